"""Kernels that choose a cutpoint for each band of candidates, given a price for each spurious gram.

A band's value at cutpoint i and price c is reached_i - c e p_i. This is the number of released grams minus the price of
the expected number of released candidates without users, because such a candidate reaches cutpoint i with probability
p_i. The number of candidates without users is estimated as e = (below + 1) / (1 - p_r), and `below` is the number of
candidates that do not reach the reference cutpoint r (Storey 2002). The band takes the lowest of its best cutpoints. If
all values are negative, the band takes no cutpoint, and the index is then the number of cutpoints.
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
    # Start at the strictest cutpoint, so that the lowest of several best cutpoints is returned.
    for cutpoint in range(chances.size - 1, -1, -1):
        value = reached[cutpoint] - charge * empty * chances[cutpoint]
        if value >= most:
            best, most = cutpoint, value
    return best


@jit
def _loosest(reached: Int64s, empty: float, chances: Floats, charge: float) -> int:
    """Return the lowest level at which one more candidate would be selected.

    If there is no such level, return the number of cutpoints.

    A candidate at level l adds one to the counts of cutpoints 0 to l. Therefore it is selected if the best value of
    these cutpoints, plus one, is at least 0 and at least the value of every stricter cutpoint.
    """
    # Find the lowest cutpoint whose value plus one is at least the value of every stricter cutpoint. The loop starts at
    # the strictest.
    loosest, beyond = chances.size, 0.0
    for cutpoint in range(chances.size - 1, -1, -1):
        value = reached[cutpoint] - charge * empty * chances[cutpoint]
        if value + 1.0 >= beyond:
            loosest = cutpoint
        beyond = max(beyond, value)
    return loosest


@jit
def _at_price(reached: Int64s, below: int, each: float, chances: Floats, charge: float) -> Any:
    """Return a band's cutpoint, its number of released grams, and its estimated number of spurious grams."""
    taken = _best(reached, each * (below + 1), chances, charge)
    loosest = _loosest(reached, each * below, chances, charge)
    released, spurious = 0.0, each * below * chances[loosest] if loosest < chances.size else 0.0
    if taken < chances.size:
        # Use at least the number of spurious grams at a fixed cutpoint, because a small count below r contains little
        # information.
        released, spurious = float(reached[taken]), max(spurious, each * (below + 1) * chances[taken])
    return taken, released, spurious


@jit
def at_prices(reached: Int64s, below: Int64s, each: float, chances: Floats, prices: Floats) -> Any:
    """Return the cutpoints of bands at each price, the numbers of released grams, and the numbers of spurious grams.

    Args:
        reached: (bands, cutpoints), the number of candidates that reach each cutpoint, in decreasing order.
        below: (bands), the number of candidates that do not reach cutpoint r.
        each: 1 / (1 - p_r), the estimated number of candidates without users per candidate counted in `below`.
        chances: (cutpoints), the probability that a candidate without users reaches each cutpoint, in decreasing order.
        prices: (prices), in released grams per spurious gram, in increasing order.

    Returns:
        The cutpoints (int64), and the numbers of released and of spurious grams (float64), each with shape (bands,
        prices).
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
    """Return whether a candidate that is now at `level` is selected after the price is chosen again.

    Only the candidate's band changes. Therefore the function computes the new totals by replacing this band's part.
    """
    for at in range(prices.size):
        others = excess[at] - spurious[at] + share * released[at]
        # At best, the band releases all its grams and adds no spurious grams. If this is not enough, skip the rest.
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
    """Return the spurious grams charged to each band, summed over all candidates below cutpoint r.

    Proof: "so its level has the distribution of noise without weight"

    The charge for each candidate is the probability that it is released if it has no users and its noise is drawn
    again. The function tries every level that the candidate may reach. For each level, both choices are made again,
    first the lowest price with `excess` at most 0, and then the cutpoints at that price (docs/privacy/ngrams.md,
    "Spurious grams").

    Args:
        reached: (bands, cutpoints), see `at_prices`.
        sizes: (bands), the number of candidates.
        reference: The cutpoint r.
        chances: See `at_prices`.
        prices: See `at_prices`.
        share: The number of spurious grams allowed per released gram.
        excess: (prices), the number of spurious grams of all bands minus the allowed number.
        released: (bands, prices), each band's number of released grams.
        spurious: (bands, prices), each band's number of spurious grams.

    Returns:
        float64 (bands), the charged number of spurious grams.
    """
    charged, each = np.zeros(sizes.size), 1.0 / (1.0 - chances[reference])
    changed = np.empty(chances.size, np.int64)
    for band in range(sizes.size):
        below = sizes[band] - reached[band, reference]
        # Visit the candidates that reach no cutpoint, and then the candidates at each level below cutpoint r.
        for now in range(-1, reference):
            alike = (sizes[band] if now < 0 else reached[band, now]) - reached[band, now + 1]
            if alike == 0:
                continue
            # Remove one of these candidates, then add it back at one level after another.
            changed[:] = reached[band]
            changed[: now + 1] -= 1
            chance = 0.0
            for level in range(chances.size):
                changed[level] += 1
                left = below - 1 if level >= reference else below
                if _goes_out(
                    changed, left, level, each, chances, prices, share, excess, released[band], spurious[band]
                ):
                    # The probability that a candidate without users reaches this cutpoint but not the next cutpoint.
                    chance += chances[level] - (chances[level + 1] if level + 1 < chances.size else 0.0)
            charged[band] += each * alike * chance
    return charged
