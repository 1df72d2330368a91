"""The levels of the caps of adaptive rounds, and their tuned constants; the caps that run are in the certificate."""

from functools import lru_cache
from math import ceil, hypot, log, sqrt
from typing import Final

import numpy as np

from voxpop.kernels.arrays import ONE_CAP, Floats
from voxpop.privacy.weightings.capped import on_lattice

KAPPA: Final = 1.25
"""The mean cap of a user with a full pool, in parts of an even share: it determines the thresholds at large budgets. 2
releases half a percent fewer posts at epsilon 3, and the same of the chat."""
DRIFT: Final = 0.04
"""A user may always lift the score of an item by that much, in standard deviations: at small budgets lower caps hardly
lower thresholds. With 0.03, users with 2,000 items each lost a fifth of their words at epsilon 1 and more at limits up
to 10; 0.06 released a fifth of a percent fewer posts. Lower caps also cost precision."""
TILT: Final = 0.4
"""The distance of the caps of the first rounds below the mean, if users give to all items of their pool. Early weight
goes mostly to items of few users, late weight to those that are not dropped. 0.2 and 0.6 release a fifth of a percent
fewer posts. Where users draw, any tilt releases fewer: 0.4 at limit 2 two percent of posts in persons of 5."""
DRAWN: Final = 1.0
"""Where users draw, the least chance of an item is this multiple of (limit / pool)^(1/2); 0.7 and 1.4 are alike."""
_SPARE: Final = (1.5, 0.5)
"""An item stops rising where its score is above the threshold by the first number plus the second over mu, in standard
deviations of the round: 2.2 at epsilon 3 and 6 at 0.5, where 2 released five percent fewer words of the chat."""
_CAP_FALL: Final = 0.98
"""Each level of the caps is that part of the one before."""


def spare(mus: tuple[float, ...]) -> float:
    """Return the distance above the threshold at which an item stops rising, in standard deviations of the round."""
    return _SPARE[0] + _SPARE[1] / hypot(*mus)


def levels(steps: Floats, mu: float, limit: int, pool: int) -> tuple[tuple[tuple[int, ...], ...], tuple[float, ...]]:
    """Return by level the caps of all rounds, in 2^-30, and the chances; the first level caps nothing.

    Args:
        steps: by round, c_r mu_r in any unit: the score that a weight of 1 adds.
        mu: of all rounds.
        limit: most items of one user in a round.
        pool: most items of one user in all rounds.
    """
    fewest = min(limit, pool)
    # C_r rises to the whole score from a part 1 - tilt of it: the weights that spend x dC_r.
    # (rounds,), of mean about 1.
    reached = np.cumsum(steps)
    tilt = TILT if limit >= pool else 0.0
    envelope = reached * (1 - tilt + tilt * reached / reached[-1])
    slope = np.diff(envelope, prepend=0.0) / steps
    least = min(1.0, max(KAPPA / sqrt(fewest), DRIFT / mu))
    falls = _falling(least)
    weights = [tuple(lattice(min(1.0, fall * float(each))) for each in slope) for fall in falls[1:]]
    weights.insert(0, (ONE_CAP,) * len(steps))
    chances = [1.0] * len(weights)
    if limit < pool:
        further = _falling(min(1.0, max(DRAWN * sqrt(limit / pool), DRIFT / (mu * least))))[1:]
        chances += further
        weights += [weights[-1]] * len(further)
    return tuple(weights), tuple(chances)


def _falling(least: float) -> list[float]:
    """Return a geometric sequence from 1 down to a number."""
    count = ceil(log(least) / log(_CAP_FALL))
    return [1.0] + [least ** (each / count) for each in range(1, count + 1)]


@lru_cache(maxsize=1 << 14)
def lattice(weight: float) -> int:
    """Return the largest cap up to a weight, in 2^-30, whose projection is well-conditioned; 1 caps nothing.

    1 / cap^2 is at least 1/4 above and 1/16 below a whole number, so that items at the cap leave at least cap^2 / 4.

    Example:
        >>> lattice(1.0) == ONE_CAP, lattice(0.99) / ONE_CAP < 0.895, lattice(0.12) / ONE_CAP > 0.1195
        (True, True, True)
    """
    units = min(ONE_CAP, int(weight * ONE_CAP))
    while not on_lattice(units):
        whole, rest = divmod(ONE_CAP**2, units**2)
        # On to 1 / cap^2 a quarter above a whole number.
        above = whole + 0.25 if 4 * rest < units**2 else whole + 1.25
        units = min(units - 1, int(ONE_CAP / sqrt(above)) + 2)
    return units
