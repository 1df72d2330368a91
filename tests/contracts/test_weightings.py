"""Requirements on every weighting, built-in or external, and faults that the search must find."""

from math import sqrt
from pathlib import Path

import numpy as np
import pytest

import voxpop as vp
from voxpop.kernels.arrays import Int64s
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.builtin import WEIGHTINGS, PolicyGaussian
from voxpop.privacy.weightings.rule import RuleSetting, WeightingRule
from voxpop.testing import search_sensitivity

NAMES = [(name, each.norm) for name, each in WEIGHTINGS.items()]


@pytest.mark.jit
@pytest.mark.parametrize(("name", "norm"), NAMES)
def test_the_search_finds_no_violation_of_a_sound_cell(name, norm):
    """Thousands of neighbouring pairs on the real kernels stay within 1; the worst pair is close to 1."""
    worst = search_sensitivity(name, norm=norm, pairs=4000, seed=11)
    assert 0.99 < worst.distance <= 1.0 + 1e-12 or name.startswith("count")


class Algorithm8(vp.weightings.Weighting):
    """Algorithm 8 of DPSU, which raises all items by one level, with squares that sum to 1. It is not contractive."""

    norm = 2

    def least(self, limit):
        return 1 / sqrt(limit)

    def share(self, weights, cutoff):
        gaps = np.sort(np.maximum(cutoff - weights, 0.0))
        filled = np.concatenate([[0.0], np.cumsum(gaps**2)[:-1]])
        levels = np.sqrt(np.maximum(1.0 - filled, 0.0) / np.arange(len(gaps), 0, -1))
        free = np.flatnonzero(levels < gaps)
        level = levels[free[0]] if free.size else gaps[-1]
        return np.minimum(np.maximum(cutoff - weights, 0.0), level)


class Greedy(vp.weightings.Weighting):
    """The item nearest to the cutoff is filled first.

    The paper gives it as an example of a policy of large sensitivity.
    """

    norm = 1

    def least(self, limit):
        return 1e-9

    def share(self, weights, cutoff):
        shares, left = np.full(len(weights), 1e-9), 1.0 - 1e-9 * len(weights)
        for item in np.argsort(cutoff - weights, kind="stable")[: np.count_nonzero(weights)]:
            shares[item] += min(left, max(cutoff - weights[item] - shares[item], 0.0))
            left -= shares[item] - 1e-9
        return shares


class Half(vp.weightings.Weighting):
    """Half of an even share, which is sound but wasteful."""

    norm = 2

    def least(self, limit):
        return 0.5 / sqrt(limit)

    def share(self, weights, cutoff):
        return np.full(len(weights), 0.5 / sqrt(len(weights)))


class ForgetsTheNorm(WeightingRule):
    """A planted fault in which every item gets a whole unit, and the noise is that of l2 sensitivity 1."""

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
def test_the_search_finds_every_planted_fault(broken):
    """The search finds that each of four wrong weightings moves by more than 1.02."""
    worst = search_sensitivity(broken, pairs=3000, seed=3)
    assert worst.distance > 1.02
    assert worst.users


@pytest.mark.jit
def test_the_search_finds_no_violation_of_a_sound_weighting_from_outside():
    """Half of an even share moves weights by at most a half."""
    assert search_sensitivity(Half(), pairs=1500).distance == pytest.approx(0.5, abs=1e-9)


def test_a_weighting_of_the_caller_releases_items(crowd_of_tea):
    """A weighting object is planned by its own smallest weight and released like the built-in weightings."""
    union = vp.Items(max_items_per_user=4, weighting=Half())
    release = union.release(crowd_of_tea, vp.Budget(3, 1e-6), seed=1)
    assert list(release) == ["milk", "tea"]
    assert union.plan(vp.Budget(3, 1e-6)).to_dict()["weighting"] == "Half"


def test_weights_of_a_weighting_from_outside_stop_at_the_cutoff(crowd_of_tea):
    """Weights without an upper bound overflowed above 2^63 units, so one user could change them by the whole range."""
    plan = vp.Items(max_items_per_user=4, weighting=Half()).plan(vp.Budget(3, 1e-6))
    shares = plan.last.shares
    weights = crowd_of_tea._engine.weigh(shares, 4, Secret.from_seed(1))._weights
    assert 400 * 0.5 / 2**0.5 * shares.setting.unit > 2**63
    assert weights.tolist() == [shares.setting.cutoff] * 2


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda w: np.full(len(w), 1.0), "at most 1"),
        (lambda w: np.full(len(w), np.nan), "finite"),
        (lambda w: np.zeros(len(w)), "least"),
        (lambda w: np.linspace(0.5, 0.6, len(w)), "equal shares"),
        (lambda w: np.zeros(len(w) + 1), "one share per item"),
    ],
)
def test_violated_bounds_stop_the_release(crowd_of_tea, answer, words):
    """Shares that break the contract raise an error before anything is released, and the message contains no data."""

    class Broken(Half):
        def share(self, weights, cutoff):
            return answer(weights)

    with pytest.raises(vp.errors.InputError, match=words) as refusal:
        vp.Items(max_items_per_user=4, weighting=Broken()).release(crowd_of_tea, vp.Budget(3, 1e-6))
    assert "tea" not in str(refusal.value)


def test_the_norm_of_a_weighting_determines_its_noise():
    """An l1 claim runs with Laplace noise; an unsupported norm raises an error."""

    class Quarter(Half):
        norm = 1

        def least(self, limit):
            return 0.5 / limit

        def share(self, weights, cutoff):
            return np.full(len(weights), 0.5 / len(weights))

    assert vp.Items(max_items_per_user=4, weighting=Quarter()).plan(vp.Budget(3, 1e-6)).last.noise == "laplace"
    Quarter.norm = 3
    with pytest.raises(vp.errors.InputError, match="norm"):
        vp.Items(weighting=Quarter())


@pytest.mark.parametrize("error", [-1e-3, -(2.0**-60), float("nan"), float("inf"), 1.0, True, "0.1", None])
def test_an_error_that_would_lower_the_sensitivity_is_rejected(error):
    """A negative error would be charged as a sensitivity below 1, which understates delta."""

    class Wrong(Half):
        pass

    Wrong.error = error
    with pytest.raises(vp.errors.InputError, match="`error` of Wrong must be a number from 0 to below 1"):
        vp.Items(max_items_per_user=4, weighting=Wrong()).plan(vp.Budget(3, 1e-6))


def test_the_guide_lists_every_weighting():
    """The table of the guide has a row for each entry of the registry."""
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "weightings.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in guide for name in WEIGHTINGS)
