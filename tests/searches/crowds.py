"""Thousands of small neighbouring collections that are weighed in one call of a kernel.

Each pair has a separate block of items, so pairs are independent. A pair starts from arbitrary weights of earlier
users, because a weighting must not increase the distance between two histograms for any starting weights. The extra
user of the larger collection is next, followed by the same users in both collections.
"""

from dataclasses import dataclass, replace

import numpy as np

from voxpop.kernels.arrays import Bools, Floats, Int64s
from voxpop.privacy.weightings.rule import RuleSetting, WeightingRule

Generator = np.random.Generator


@dataclass(frozen=True, slots=True, eq=False)
class Crowds:
    """A batch of neighbouring pairs.

    Attributes:
        start: The weights before the extra user, at most the cutoff, as float64 (pairs, items).
        sets: Whether each user has each item, as bool (pairs, users, items). User 0 is the extra user.
        cutoff: The weight above which items receive no more weight.
    """

    start: Floats
    sets: Bools
    cutoff: float

    def __len__(self) -> int:
        return len(self.start)

    def distances(self, weighting_rule: WeightingRule, norm: int, limit: int) -> Floats:
        """Return the distance between the two histograms of each pair, computed by the real kernel."""
        setting = RuleSetting(limit, norm, weighting_rule.bits(self.cutoff))
        setting = replace(setting, cutoff=round(self.cutoff * setting.unit))
        larger = self._weighed(weighting_rule, setting, self.sets)
        smaller = self._weighed(weighting_rule, setting, self.sets[:, 1:])
        apart: Floats = np.linalg.norm((larger - smaller) / setting.unit, norm, axis=1)
        return apart

    def _weighed(self, weighting_rule: WeightingRule, setting: RuleSetting, sets: Bools) -> Int64s:
        width = self.start.shape[1]
        pair, _, item = np.nonzero(sets)
        starts = np.concatenate([[0], np.cumsum(sets.sum(axis=2).ravel())]).astype(np.int64)
        units = np.floor(self.start * setting.unit).astype(np.int64)
        histogram = np.minimum(units, setting.cutoff).ravel()
        weighting_rule.add(histogram, (pair * width + item).astype(np.int32), starts, setting)
        return histogram.reshape(self.start.shape)

    def where(self, chosen: Bools | Int64s) -> "Crowds":
        """Return the chosen pairs."""
        return Crowds(self.start[chosen], self.sets[chosen], self.cutoff)

    def better(self, other: "Crowds", wins: Bools) -> "Crowds":
        """Return a batch with the other pair if its entry in `wins` is true, and otherwise this pair."""
        start = np.where(wins[:, None], other.start, self.start)
        return Crowds(start, np.where(wins[:, None, None], other.sets, self.sets), self.cutoff)

    def mutated(self, rng: Generator, limit: int) -> "Crowds":
        """Return each pair with a few changes to the items of users and the starting weights."""
        sets = self.sets ^ (rng.random(self.sets.shape) < 1.5 / self.sets[0].size)
        crowded = sets.sum(axis=2) > limit
        sets = np.where(crowded[:, :, None], self.sets, sets)
        moved = rng.random(self.start.shape) < 1.0 / self.start.shape[1]
        near = np.clip(self.start + rng.normal(0, 0.1, self.start.shape), 0.0, self.cutoff)
        fresh = np.where(rng.random(self.start.shape) < 0.5, near, some_start(rng, self.start.shape, self.cutoff))
        return Crowds(np.where(moved, fresh, self.start), sets, self.cutoff)


def some_start(rng: Generator, shape: tuple[int, ...], cutoff: float) -> Floats:
    """Return initial weights. A third is zero, a third is arbitrary, and a third is slightly below the cutoff."""
    kind = rng.integers(3, size=shape)
    below = np.maximum(cutoff - rng.random(shape), 0.0)
    return np.select([kind == 0, kind == 1], [np.zeros(shape), rng.random(shape) * cutoff], below)


def wild_crowds(rng: Generator, pairs: int, limit: int, users: int | None = None) -> Crowds:
    """Return pairs of a few users with arbitrary subsets of a few items.

    Args:
        rng: The random generator.
        pairs: The number of pairs.
        limit: The maximum number of items per user.
        users: The number of users, including the extra user. The default is up to 6.
    """
    items, users = int(rng.integers(1, min(limit, 8) + 1)), users or int(rng.integers(1, 7))
    cutoff = float(rng.uniform(1.0, 4.0))
    held = rng.random((pairs, users, items), np.float32) < rng.random((pairs, users, 1), np.float32)
    held[:, 0, 0] |= ~held[:, 0].any(axis=1)  # The extra user has at least one item.
    return Crowds(some_start(rng, (pairs, items), cutoff), held, cutoff)


def piled_crowds(rng: Generator, pairs: int, limit: int, users: int | None = None) -> Crowds:
    """Return pairs built like the worst known pairs for Algorithm 8 of DPSU.

    All items except the last start slightly below the cutoff, and the last item starts at zero. The extra user has all
    items. Each later user has the last item and a few other items that no other later user has. Because the extra user
    raised the weights of these other items, later users give more weight to the last item.

    Args:
        rng: The random generator.
        pairs: The number of pairs.
        limit: The maximum number of items per user.
        users: The maximum number of users, including the extra user.
    """
    items = limit
    each = int(rng.integers(1, max(1, min(items - 1, 12)) + 1))
    later = max(1, min((items - 1) // each, users - 1 if users else items))
    cutoff = float(rng.uniform(1.0, 16.0))
    gap = (each + 1) ** -0.5 * rng.choice([1.0, rng.uniform(0.5, 1.5)])
    start = np.clip(cutoff - gap * (1 + 0.02 * rng.normal(size=(pairs, items))), 0.0, cutoff)
    start[:, -1] = 0.0
    sets = np.zeros((pairs, later + 1, items), np.bool_)
    sets[:, 0] = True
    for user in range(later):
        sets[:, user + 1, user * each : (user + 1) * each] = True
    sets[:, 1:, -1] = rng.random((pairs, later)) < 0.97
    return Crowds(start, sets, cutoff)
