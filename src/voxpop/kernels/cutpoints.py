"""Kernels for the cutpoints that bands of candidates take when each spurious gram has a price.

A band's value at cutpoint i and price c is reached_i - c e p_i: the released grams, less the price of candidates
without users. Their estimated number is e = (below + 1) / (1 - p_r), where `below` counts those that do not reach
cutpoint r (Storey 2002). It takes the lowest of its best cutpoints, or none where all values are
negative, which is written as the number of cutpoints.
"""

from typing import Any

import numpy as np

from voxpop.kernels._jit import jit
from voxpop.kernels.arrays import Floats, Int64s
from voxpop.kernels.proved import proved


@jit
def _best(reached: Int64s, empty: float, chances: Floats, charge: float) -> int:
    """Return the cutpoint that a band takes at a price."""
    best, most = chances.size, 0.0
    # From the strictest down, so that of equal ones the lowest stays.
    for cutpoint in range(chances.size - 1, -1, -1):
        value = reached[cutpoint] - charge * empty * chances[cutpoint]
        if value >= most:
            best, most = cutpoint, value
    return best


@jit
def _loosest(reached: Int64s, empty: float, chances: Floats, charge: float) -> int:
    """Return the lowest level at which one more candidate would be selected; the number of cutpoints for none.

    At level l it adds one to the counts of cutpoints 0 to l, so it is selected if the best value up to l, plus one,
    is at least that of every stricter cutpoint, and of none.
    """
    # The lowest cutpoint whose value, plus one, is at least all values behind it; met from behind.
    loosest, beyond = chances.size, 0.0
    for cutpoint in range(chances.size - 1, -1, -1):
        value = reached[cutpoint] - charge * empty * chances[cutpoint]
        if value + 1.0 >= beyond:
            loosest = cutpoint
        beyond = max(beyond, value)
    return loosest


@jit
def _at_price(reached: Int64s, below: int, each: float, chances: Floats, charge: float) -> Any:
    """Return a band's cutpoint, its number of released grams, and the spurious grams that it may add."""
    taken = _best(reached, each * (below + 1), chances, charge)
    loosest = _loosest(reached, each * below, chances, charge)
    released, spurious = 0.0, each * below * chances[loosest] if loosest < chances.size else 0.0
    if taken < chances.size:
        # At least as if the cutpoint were given: a small count below r contains little information.
        released, spurious = float(reached[taken]), max(spurious, each * (below + 1) * chances[taken])
    return taken, released, spurious


@jit
def at_prices(reached: Int64s, below: Int64s, each: float, chances: Floats, prices: Floats) -> Any:
    """Return the cutpoints and released grams of bands at each price, and the spurious grams that they may add.

    Args:
        reached: (bands, cutpoints), candidates that reach each; falling.
        below: (bands), candidates that do not reach cutpoint r.
        each: 1 / (1 - p_r), the number of empty candidates for each counted one.
        chances: (cutpoints), the probability that a candidate without users reaches each; falling.
        prices: (prices), in released grams for each spurious one; rising.

    Returns:
        Cutpoints int64, released float64 and spurious float64, all (bands, prices).
    """
    taken = np.empty((below.size, prices.size), np.int64)
    released, spurious = np.empty(taken.shape), np.empty(taken.shape)
    for band in range(below.size):
        for at in range(prices.size):
            taken[band, at], released[band, at], spurious[band, at] = _at_price(
                reached[band], below[band], each, chances, prices[at]
            )
    return taken, released, spurious


@jit
def _goes_out(
    changed: Int64s,
    below: int,
    level: int,
    each: float,
    chances: Floats,
    prices: Floats,
    share: float,
    excess: Floats,
    released: Floats,
    spurious: Floats,
) -> bool:
    """Return whether a candidate that is now at `level` is selected when the price is chosen anew.

    Only its band differs, so totals are those of before with this band's part exchanged.
    """
    for at in range(prices.size):
        others = excess[at] - spurious[at] + share * released[at]
        # At best the band has no spurious grams and releases all: if even that fails, no more work is needed.
        if others - share * changed[0] > 0.0:
            continue
        taken, out, more = _at_price(changed, below, each, chances, prices[at])
        if others + more - share * out <= 0.0:
            return bool(taken <= level)
    return False


@jit
@proved("ngrams.md#proof")
def charges(
    reached: Int64s,
    sizes: Int64s,
    reference: int,
    chances: Floats,
    prices: Floats,
    share: float,
    excess: Floats,
    released: Floats,
    spurious: Floats,
) -> Any:
    """Return the spurious grams charged to each band: the release probability of every candidate below cutpoint r.

    Proof: "so its level has the distribution of noise without weight"

    That is its chance if it had no holder and its noise were drawn again: every level that it may get is tried, and
    everything chosen anew, the lowest price at which `excess` is at most 0, then the cutpoints at that price
    (docs/privacy/ngrams.md, "Spurious grams").

    Args:
        reached: (bands, cutpoints), as in `at_prices`.
        sizes: (bands), candidates.
        reference: r.
        chances: as in `at_prices`.
        prices: as in `at_prices`.
        share: spurious grams allowed for each gram released.
        excess: (prices), of all bands: spurious grams less those allowed.
        released: (bands, prices), each band's part.
        spurious: (bands, prices), the same.

    Returns:
        float64 (bands).
    """
    charged, each = np.zeros(sizes.size), 1.0 / (1.0 - chances[reference])
    changed = np.empty(chances.size, np.int64)
    for band in range(sizes.size):
        below = sizes[band] - reached[band, reference]
        # Those that reach nothing, and of those at each level below cutpoint r.
        for now in range(-1, reference):
            alike = (sizes[band] if now < 0 else reached[band, now]) - reached[band, now + 1]
            if alike == 0:
                continue
            # Without one of them; then with it at one level after another.
            changed[:] = reached[band]
            changed[: now + 1] -= 1
            chance = 0.0
            for level in range(chances.size):
                changed[level] += 1
                left = below - 1 if level >= reference else below
                if _goes_out(
                    changed, left, level, each, chances, prices, share, excess, released[band], spurious[band]
                ):
                    # An empty candidate reaches this cutpoint and not the next.
                    chance += chances[level] - (chances[level + 1] if level + 1 < chances.size else 0.0)
            charged[band] += each * alike * chance
    return charged
