"""A search for neighbouring collections with histograms that are too far apart, in the compiled kernels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise

import numpy as np

from voxpop.kernels.arrays import Floats, Int32s, Int64s
from voxpop.privacy.gaussian import Noise, UniqueItems
from voxpop.privacy.weightings.builtin import WEIGHTINGS
from voxpop.privacy.weightings.rule import RuleSetting, WeightingRule

_Users = list[Int32s]


class Written(WeightingRule):
    """A weighting in plain Python, such as a deliberately unsound one. Subclasses define `shares` for one user."""

    __slots__ = ()
    name = "written"
    noise: Noise = "gaussian"
    sound_norms = (1, 2)
    sequential = True

    def shares(self, weights: Floats, cutoff: float) -> Floats:
        """Return the weight that a user adds to each of their items, given the current weights of the items."""
        raise NotImplementedError

    def novelty(self, setting: RuleSetting) -> UniqueItems:
        """Return None, because searches need no bound."""
        raise NotImplementedError

    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, setting: RuleSetting) -> None:
        """Run the weighting for one user at a time. Weights are rounded down to the grid and clipped at the cutoff."""
        cutoff = setting.cutoff / setting.unit
        for begin, end in pairwise(starts):
            mine = items[begin:end]
            shares = np.asarray(self.shares(histogram[mine] / setting.unit, cutoff), np.float64)
            raised = histogram[mine] + np.floor(shares * setting.unit).astype(np.int64)
            histogram[mine] = np.minimum(raised, setting.cutoff)


@dataclass(frozen=True, slots=True)
class Violation:
    """The worst pair of neighbours that a search found.

    Attributes:
        distance: The distance between their histograms, in the norm of the weighting, which is at most 1 for a sound
            weighting.
        users: The items of every user of the larger collection, in order.
        extra: The index of the user who is missing from the smaller collection.
        cutoff: The weight above which items receive no more weight.
    """

    distance: float
    users: tuple[tuple[int, ...], ...]
    extra: int
    cutoff: float


def search_sensitivity(
    weighting: str | WeightingRule,
    *,
    norm: int | None = None,
    pairs: int = 20_000,
    limit: int = 6,
    seed: int = 0,
) -> Violation:
    """Search random neighbouring collections for the largest distance between their histograms.

    The search runs the real kernel on both collections. A distance above 1 (and a little rounding) refutes a weighting,
    but a search without such a distance proves nothing. Half of the pairs are small and arbitrary. The other half are
    built like the known counterexample to DPSU's Algorithm 8. In these pairs, items are just below the cutoff, one user
    has all of them, and later users have new items.

    Args:
        weighting: The name of a weighting, or a rule.
        norm: The norm of distances, 1 or 2. The default is the weighting's own norm.
        pairs: The number of pairs to try.
        limit: The maximum number of items per user.
        seed: The seed, which determines the search.

    Returns:
        The worst pair found.
    """
    weighting_rule = rule_of(weighting)
    norm = norm or weighting_rule.norm
    rng = np.random.default_rng(seed)
    worst = Violation(0.0, (), 0, 0.0)
    for number in range(pairs):
        cutoff = float(rng.uniform(1.0, 4.0))
        users, extra = _wild(rng, limit) if number % 2 else _crowded(rng, limit, cutoff)
        distance = neighbour_distance(weighting_rule, users, extra, cutoff, norm, limit)
        if distance > worst.distance:
            worst = Violation(distance, tuple(tuple(map(int, user)) for user in users), extra, cutoff)
    return worst


def neighbour_distance(
    weighting_rule: WeightingRule,
    users: "Sequence[Int32s]",
    extra: int,
    cutoff: float,
    norm: int,
    limit: int,
) -> float:
    """Return the distance between the histograms with and without the user `extra`, in the given norm."""
    setting = RuleSetting(limit, norm, weighting_rule.bits(cutoff))
    setting = replace(setting, cutoff=round(cutoff * setting.unit))
    size = 1 + max((int(user.max()) for user in users if user.size), default=0)
    larger = _histogram(weighting_rule, users, setting, size)
    smaller = _histogram(weighting_rule, [user for i, user in enumerate(users) if i != extra], setting, size)
    return float(np.linalg.norm((larger - smaller) / setting.unit, norm))


def _histogram(weighting_rule: WeightingRule, users: "Sequence[Int32s]", setting: RuleSetting, size: int) -> Int64s:
    histogram = np.zeros(size, np.int64)
    items = np.concatenate([np.empty(0, np.int32), *users])
    starts = np.cumsum([0, *(user.size for user in users)])
    weighting_rule.add(histogram, items, starts, setting)
    return histogram


def _wild(rng: np.random.Generator, limit: int) -> tuple[_Users, int]:
    """Return a few users with a few arbitrary items each, and the index of an arbitrary extra user."""
    universe = int(rng.integers(1, limit + 3))
    users = [_some_items(rng, universe, limit) for _ in range(int(rng.integers(1, 10)))]
    return users, int(rng.integers(len(users)))


def _some_items(rng: np.random.Generator, universe: int, limit: int) -> Int32s:
    size = int(rng.integers(1, min(universe, limit) + 1))
    return rng.choice(universe, size, replace=False).astype(np.int32)


def _crowded(rng: np.random.Generator, limit: int, cutoff: float) -> tuple[_Users, int]:
    """Return users with items near the cutoff, a user with all of them, and users with one of them and new items."""
    near = int(rng.integers(1, limit + 1))
    users = [np.array([item], np.int32) for item in range(near - 1) for _ in range(int(cutoff))]
    fresh = count(near)
    users += [_with_fresh(rng, item, fresh, limit) for item in range(near - 1)]
    extra = len(users)
    users.append(np.arange(near, dtype=np.int32))
    for _ in range(int(rng.integers(0, 6))):
        users.append(_with_fresh(rng, int(rng.integers(near)), fresh, limit))
    return users, extra


def _with_fresh(rng: np.random.Generator, item: int, fresh: Iterator[int], limit: int) -> Int32s:
    size = int(rng.integers(1, limit + 1))
    return np.array([item, *(next(fresh) for _ in range(size - 1))], np.int32)


def rule_of(weighting: str | WeightingRule) -> WeightingRule:
    """Return the rule for a name."""
    return WEIGHTINGS[weighting] if isinstance(weighting, str) else weighting
