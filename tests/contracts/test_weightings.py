"""Tests of the requirements for every weighting, and of planted faults that the search must detect."""

from typing import get_args

import numpy as np
import pytest

from searches.sensitivity import Written, search_sensitivity
from voxpop.kernels.arrays import Int64s
from voxpop.papers.dpsu import WeightingName
from voxpop.privacy.weightings.builtin import WEIGHTINGS, PolicyGaussian
from voxpop.privacy.weightings.rule import RuleSetting, WeightingRule

NAMES = [(name, each.norm) for name, each in WEIGHTINGS.items()]


def test_the_literal_names_of_weightings_equal_those_of_the_registry():
    """The names are written twice, because type checkers need a literal."""
    assert set(get_args(WeightingName)) == set(WEIGHTINGS)


@pytest.mark.jit
@pytest.mark.parametrize(("name", "norm"), NAMES)
def test_the_search_finds_no_violation_of_a_sound_weighting(name, norm):
    """The largest distance of thousands of neighbouring pairs on the real kernels is at most 1 and close to 1."""
    worst = search_sensitivity(name, norm=norm, pairs=4000, seed=11)
    assert 0.99 < worst.distance <= 1.0 + 1e-12 or name.startswith("count")


class Algorithm8(Written):
    """Algorithm 8 of DPSU.

    It raises all items by the same amount, so that the squares sum to 1, and is not contractive.
    """

    def shares(self, weights, cutoff):
        gaps = np.sort(np.maximum(cutoff - weights, 0.0))
        filled = np.concatenate([[0.0], np.cumsum(gaps**2)[:-1]])
        levels = np.sqrt(np.maximum(1.0 - filled, 0.0) / np.arange(len(gaps), 0, -1))
        free = np.flatnonzero(levels < gaps)
        level = levels[free[0]] if free.size else gaps[-1]
        return np.minimum(np.maximum(cutoff - weights, 0.0), level)


class Greedy(Written):
    """A policy that first fills the item nearest to the cutoff.

    The paper gives this policy as an example with a large sensitivity.
    """

    noise = "laplace"

    def shares(self, weights, cutoff):
        shares, left = np.full(len(weights), 1e-9), 1.0 - 1e-9 * len(weights)
        for item in np.argsort(cutoff - weights, kind="stable")[: np.count_nonzero(weights)]:
            shares[item] += min(left, max(cutoff - weights[item] - shares[item], 0.0))
            left -= shares[item] - 1e-9
        return shares


class ForgetsTheNorm(WeightingRule):
    """A planted fault in which every item gets a whole unit, and the noise is calibrated to an l2 sensitivity of 1."""

    sequential = False
    name = "forgets the norm"

    noise, sound_norms = "gaussian", (2,)

    def novelty(self, setting):
        raise NotImplementedError

    def share(self, held, setting):
        return 1.0

    def add(self, histogram: Int64s, items, starts, setting: RuleSetting) -> None:
        np.add.at(histogram, items, setting.unit)


class CoarseDescent(WeightingRule):
    """A planted fault in which the weights of l2-descent are rounded to a coarse grid afterwards."""

    sequential = True
    name = "coarse descent"

    noise, sound_norms = "gaussian", (2,)

    def novelty(self, setting):
        raise NotImplementedError

    def share(self, held, setting):
        return 1.0

    def add(self, histogram: Int64s, items, starts, setting: RuleSetting) -> None:
        PolicyGaussian().add(histogram, items, starts, setting)
        grid = setting.unit // 4
        histogram[:] = histogram // grid * grid


@pytest.mark.slow
@pytest.mark.parametrize("broken", [Algorithm8(), Greedy(), ForgetsTheNorm(), CoarseDescent()])
def test_the_search_detects_every_planted_fault(broken):
    """For each of four wrong weightings, the search finds a distance of more than 1.02."""
    worst = search_sensitivity(broken, pairs=3000, seed=3)
    assert worst.distance > 1.02
    assert worst.users
