"""A search over neighbouring pairs of users with individual bounds, in the kernels of the individual filter.

The extra user must move the weights by at most the user's bound. Other users have arbitrary bounds from zero to several
times 1.
"""

from dataclasses import dataclass, replace

import numpy as np

from searches.crowds import Crowds, Generator, piled_crowds, wild_crowds
from searches.sensitivity import rule_of
from voxpop.kernels.arrays import Bools, Floats, Int64s
from voxpop.kernels.weigh import ONE_BOUND
from voxpop.privacy.individual import MOST_BOUND
from voxpop.privacy.weightings.rule import RuleSetting, WeightingRule

PAIRS_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class Reached:
    """The results of the search.

    Attributes:
        pairs: The number of neighbouring pairs that were weighed.
        beyond: The largest excess of a distance over the bound of the extra user, in units of weight.
        closest: The largest distance relative to the bound of the extra user, for bounds that are not tiny.
    """

    pairs: int
    beyond: float
    closest: float


def search_reaches(weighting: str | WeightingRule, *, pairs: int, limit: int = 6, seed: int = 0) -> Reached:
    """Search for neighbouring pairs with a larger distance than the bound of the extra user.

    Args:
        weighting: The name of a weighting, or a rule of `voxpop.privacy.weightings`.
        pairs: The number of pairs, rounded up to whole batches.
        limit: The maximum number of items per user.
        seed: The seed of the search.

    Returns:
        The largest excess and the largest relative distance.

    Example:
        >>> search_reaches("policy-gaussian", pairs=2000).beyond < 1e-12
        True
    """
    weighting_rule, rng = rule_of(weighting), np.random.default_rng(seed)
    done, beyond, closest = 0, -np.inf, 0.0
    while done < pairs:
        size = min(PAIRS_AT_ONCE, pairs)
        make = wild_crowds if rng.random() < 0.6 else piled_crowds
        crowds = make(rng, size, limit)
        bounds = some_reaches(rng, crowds.sets.shape[:2])
        apart = reach_distances(crowds, weighting_rule, bounds, limit)
        own = bounds[:, 0] / ONE_BOUND
        beyond = max(beyond, float((apart - own).max()))
        closest = max(closest, float((apart[own > 0.01] / own[own > 0.01]).max(initial=0.0)))
        done += size
    return Reached(done, beyond, closest)


def some_reaches(rng: Generator, shape: tuple[int, int]) -> Int64s:
    """Return user bounds, including zero, a few steps, any number below 1, exactly 1, and several times 1."""
    kind = rng.integers(5, size=shape)
    parts = rng.random(shape) * np.array([0.0, 2e-6, 1.0, 0.0, float(MOST_BOUND)])[kind]
    bounds: Int64s = np.where(kind == 3, ONE_BOUND, np.floor(parts * ONE_BOUND)).astype(np.int64)
    return bounds


def reach_distances(crowds: Crowds, weighting_rule: WeightingRule, bounds: Int64s, limit: int) -> Floats:
    """Return the distance between the two histograms of each pair, computed by the real kernel with the bounds."""
    setting = RuleSetting(limit, 2, weighting_rule.bits(crowds.cutoff), bound=MOST_BOUND)
    setting = replace(setting, cutoff=round(crowds.cutoff * setting.unit))
    larger = _weighed(crowds, weighting_rule, setting, crowds.sets, bounds)
    smaller = _weighed(crowds, weighting_rule, setting, crowds.sets[:, 1:], bounds[:, 1:])
    apart: Floats = np.linalg.norm((larger - smaller) / setting.unit, axis=1)
    return apart


def _weighed(
    crowds: Crowds, weighting_rule: WeightingRule, setting: RuleSetting, sets: Bools, bounds: Int64s
) -> Int64s:
    pair, _, item = np.nonzero(sets)
    starts = np.concatenate([[0], np.cumsum(sets.sum(axis=2).ravel())]).astype(np.int64)
    units = np.floor(crowds.start * setting.unit).astype(np.int64)
    histogram = np.minimum(units, setting.cutoff).ravel()
    items = (pair * crowds.start.shape[1] + item).astype(np.int32)
    weighting_rule.add_within(histogram, items, starts, setting, bounds.ravel())
    return histogram.reshape(crowds.start.shape)
