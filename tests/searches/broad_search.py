"""A search over millions of neighbouring pairs for a sensitivity above the claimed sensitivity of a weighting."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from searches.crowds import Crowds, Generator, piled_crowds, wild_crowds
from searches.sensitivity import rule_of
from voxpop.kernels.arrays import Floats
from voxpop.privacy.weightings.rule import WeightingRule

CELLS_AT_ONCE = 1 << 21
"""The largest number of entries of the table of users and items in one batch."""
CLIMBERS = 256
TOLERANCE = 1e-12
"""The excess over 1 above which a distance is a violation. Rounding errors of a distance are smaller.

`WeightingRule.sensitivity` charges for rounding of steps over all users, which is far smaller over the few users of a
pair.
"""


@dataclass(frozen=True, slots=True)
class Searched:
    """The results of a search.

    Attributes:
        pairs: The number of neighbouring pairs that were weighed.
        wild: The largest distance of random pairs.
        piled: The largest distance of pairs built like the known counterexample.
        climbed: The largest distance after hill climbing from the best pair of each kind.
        worst: The pair with the largest distance, as a batch of one pair.
    """

    pairs: int
    wild: float
    piled: float
    climbed: float
    worst: Crowds

    @property
    def distance(self) -> float:
        """The largest distance over all pairs."""
        return max(self.wild, self.piled, self.climbed)

    @property
    def violated(self) -> bool:
        """Whether the distance of some pair exceeds 1."""
        return self.distance > 1.0 + TOLERANCE


def search_broadly(
    weighting: str | WeightingRule,
    *,
    norm: int,
    pairs: int = 1_000_000,
    limit: int = 6,
    users: int | None = None,
    seed: int = 0,
) -> Searched:
    """Search neighbouring pairs for the largest distance. One call of the real kernel weighs thousands of pairs.

    Half of the pairs are random, and a quarter resemble the known counterexample. The last quarter is found by hill
    climbing from the best pair of each kind. Starting weights are arbitrary, because a weighting must be contractive
    for all starting weights.

    Args:
        weighting: The name of a weighting, or a rule.
        norm: The norm of distances, 1 or 2.
        pairs: The approximate number of pairs.
        limit: The maximum number of items per user.
        users: The maximum number of users in a pair, including the extra user. The default is a small number.
        seed: The seed of the search.

    Returns:
        The largest distances, and the worst pair.

    Example:
        >>> search_broadly("policy-gaussian", norm=2, pairs=2000).violated
        False
    """
    rng = np.random.default_rng(seed)
    measure = partial(_measured, rule_of(weighting), norm, limit)
    wild, best_wild = _sweep(measure, lambda many: wild_crowds(rng, many, limit, users), pairs // 2)
    piled, best_piled = _sweep(measure, lambda many: piled_crowds(rng, many, limit, users), pairs // 4)
    done = wild + piled
    tops = [best_wild, best_piled]
    climbed, best = 0, max(tops, key=lambda each: each[0])
    while done + climbed < pairs:
        for number, top in enumerate(tops):
            steps = max(1, min(200, (pairs - done - climbed) // (2 * CLIMBERS) + 1))
            tops[number] = _climb(measure, rng, limit, top, steps)
            climbed += CLIMBERS * steps
    best = max([best, *tops], key=lambda each: each[0])
    return Searched(done + climbed, best_wild[0], best_piled[0], max(each[0] for each in tops), best[1])


Measure = Callable[[Crowds], tuple[Floats, Crowds]]
Top = tuple[float, Crowds]


def _measured(weighting_rule: WeightingRule, norm: int, limit: int, crowds: Crowds) -> tuple[Floats, Crowds]:
    return crowds.distances(weighting_rule, norm, limit), crowds


def _sweep(measure: Measure, make: Callable[[int], Crowds], pairs: int) -> tuple[int, Top]:
    """Weigh batches of new pairs, and return the number of pairs and the best pair."""
    done, best = 0, (-1.0, make(1))
    while done < pairs:
        size = max(1, CELLS_AT_ONCE // make(1).sets[0].size // 16)
        distances, crowds = measure(make(min(size, pairs - done)))
        place = int(np.argmax(distances))
        if distances[place] > best[0]:
            best = float(distances[place]), crowds.where(np.array([place]))
        done += len(crowds)
    return done, best


def _climb(measure: Measure, rng: Generator, limit: int, top: Top, steps: int) -> Top:
    """Make many small changes to the best pair, and keep the changes that do not decrease the distance."""
    crowds = top[1].where(np.zeros(CLIMBERS, np.int64))
    distances = np.full(CLIMBERS, top[0])
    for _ in range(steps):
        changed, other = measure(crowds.mutated(rng, limit))
        wins = changed >= distances
        crowds, distances = crowds.better(other, wins), np.where(wins, changed, distances)
    place = int(np.argmax(distances))
    return float(distances[place]), crowds.where(np.array([place]))
