"""The levels of the caps in adaptive rounds, and their tuned constants. The certificate contains the caps in use."""

from functools import lru_cache
from math import ceil, hypot, log, sqrt
from typing import Final

import numpy as np

from voxpop.kernels.arrays import ONE_CAP, Floats
from voxpop.privacy.weightings.capped import on_lattice

KAPPA: Final = 1.25
"""The mean cap of a user with a full pool, relative to an even share. It determines the thresholds at large budgets. At
epsilon 3, a value of 2 releases half a percent fewer words of the posts, and an equal number of words of the chat.
"""
DRIFT: Final = 0.04
"""A user may always raise the score of an item by this amount, in standard deviations, because lower caps hardly reduce
the thresholds at small budgets. With 0.03, users with 2,000 items each lost a fifth of their words at epsilon 1, and
more at limits up to 10. With 0.06, the number of released words of the posts was 0.2 percent lower. Lower caps also
reduce precision.
"""
TILT: Final = 0.4
"""The relative distance of the caps of the first rounds below the mean cap, if users give weight to all items of their
pool. Early weight mostly goes to items with few users, and late weight to items that were not dropped. With values of
0.2 and 0.6, the number of released words of the posts is 0.2 percent lower. If users draw items, any tilt releases
fewer words. At limit 2, a tilt of 0.4 releases two percent fewer words of the posts in persons of 5.
"""
DRAWN: Final = 1.0
"""If users draw items, the minimum probability of an item is this multiple of (limit / pool)^(1/2). The results with
0.7 and 1.4 are about equal.
"""
_SPARE: Final = (1.5, 0.5)
"""An item receives no more weight if its score is above the threshold by the first number plus the second number
divided by mu, in standard deviations of the round. The distance is 2.2 at epsilon 3 and 6 at epsilon 0.5. At epsilon
0.5, a distance of 2 released five percent fewer words of the chat.
"""
_CAP_FALL: Final = 0.98
"""The ratio of each level of the caps to the preceding level."""


def spare(mus: tuple[float, ...]) -> float:
    """Return the distance above the threshold at which an item receives no more weight, in standard deviations."""
    return _SPARE[0] + _SPARE[1] / hypot(*mus)


def levels(steps: Floats, mu: float, limit: int, pool: int) -> tuple[tuple[tuple[int, ...], ...], tuple[float, ...]]:
    """Return the caps of all rounds, and the probability that an item is drawn, at each level.

    The caps are in multiples of 2^-30. The first level has no caps.

    Args:
        steps: The score that a weight of 1 adds in each round, which is c_r mu_r, in any unit.
        mu: The mu of all rounds together.
        limit: The maximum number of items per user and round.
        pool: The maximum number of items per user over all rounds.
    """
    fewest = min(limit, pool)
    # The envelope C_r increases from the part 1 - tilt of the score to the whole score. Dividing its increase in each
    # round by the step of the round gives weights of shape (rounds,), with a mean of approximately 1.
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
    """Return a geometric sequence from 1 down to a given number."""
    count = ceil(log(least) / log(_CAP_FALL))
    return [1.0] + [least ** (each / count) for each in range(1, count + 1)]


@lru_cache(maxsize=1 << 14)
def lattice(weight: float) -> int:
    """Return the largest cap up to a weight, in multiples of 2^-30, that has a well-conditioned projection.

    A cap of 1 has no effect. For other caps, 1 / cap^2 is at least 1/4 above and 1/16 below a whole number, so that
    items at the cap leave at least cap^2 / 4 for the other items.

    Example:
        >>> lattice(1.0) == ONE_CAP, lattice(0.99) / ONE_CAP < 0.895, lattice(0.12) / ONE_CAP > 0.1195
        (True, True, True)
    """
    units = min(ONE_CAP, int(weight * ONE_CAP))
    while not on_lattice(units):
        whole, rest = divmod(ONE_CAP**2, units**2)
        # Continue with a cap for which 1 / cap^2 is a quarter above a whole number.
        above = whole + 0.25 if 4 * rest < units**2 else whole + 1.25
        units = min(units - 1, int(ONE_CAP / sqrt(above)) + 2)
    return units
