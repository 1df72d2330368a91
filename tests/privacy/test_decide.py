"""Tests of biased coins, which are exact to 2^-128 in both tails. Fast and exact decisions agree."""

import math
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from voxpop.privacy import precise
from voxpop.privacy.decisions import DECISION_BAND, SelectionRule, ThresholdRule, decide
from voxpop.privacy.secret import Secret

UNIT = 2.0**-32
NOISES = ("gaussian", "laplace")


def as_words(values):
    return np.array([(value >> 64, value & (2**64 - 1)) for value in values], dtype=np.uint64).reshape(-1, 2)


def threshold_rule(noise, scale=1.3, threshold=6.4):
    return ThresholdRule(noise, scale, round(threshold / UNIT), UNIT)


def assert_boundary(rule, weight):
    """Check that exactly the 128-bit numbers below the probability release the item."""
    # All draws below `limit` release the item.
    limit = int(precise.context.ceil(rule.exact(weight) * precise.number(1 << 128)))
    below = [value for value in (0, limit - 2, limit - 1) if 0 <= value < limit]
    above = [value for value in (limit, limit + 1, 2**128 - 1) if limit <= value < 2**128]
    weights = np.full(len(below) + len(above), weight, dtype=np.int64)
    assert decide(rule, weights, as_words(below + above)).tolist() == [True] * len(below) + [False] * len(above)


@pytest.mark.parametrize("noise", NOISES)
@settings(max_examples=150)
@given(weight=st.floats(-20, 40), scale=st.sampled_from([0.3, 1.3, 4.0]))
def test_decisions_change_at_the_exact_probability(noise, weight, scale):
    """Decisions are exact even for probabilities far below 2^-64, which depend on the second 64-bit word."""
    assert_boundary(threshold_rule(noise, scale), round(weight / UNIT))


@given(st.integers(0, 200), st.sampled_from([(1.0, 1e-5), (0.1, 1e-25), (20.0, 1e-30), (0.5, 0.7)]))
def test_decisions_of_the_optimal_rule_change_at_the_exact_probability(count, parameters):
    """The probabilities range from exactly 0 to exactly 1."""
    assert_boundary(SelectionRule(*parameters, unit_weight=2**32), count << 32)


def test_the_second_word_decides_below_two_to_the_minus_64():
    """An item with probability near 1e-25 is released only by a zero first word and a small second word."""
    rule, weight = threshold_rule("gaussian", 1.0, 10.5), 0
    probability = float(rule.exact(weight))
    assert 2.0**-90 < probability < 2.0**-80
    middle = int(probability * 2.0**128)
    draws = as_words([middle // 2, middle * 2, 2**64 + middle // 2])
    assert decide(rule, np.zeros(3, dtype=np.int64), draws).tolist() == [True, False, False]


def test_distant_weights_are_decided_exactly():
    """Far below the threshold, no item is released. Far above it, every item is released without overflow."""
    for noise in NOISES:
        rule = threshold_rule(noise)
        weights = np.array([-(2**61), -(2**45), 2**45, 2**61])
        draws = as_words([2**40, 1, 2**128 - 2, 2**128 - 2**40])
        assert decide(rule, weights, draws).tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    "rule", [threshold_rule("gaussian"), threshold_rule("laplace"), SelectionRule(0.7, 1e-6, 2**32)]
)
def test_fast_and_exact_decisions_agree(rule):
    """The default band and a band in which all decisions are computed exactly release the same items."""
    rng = np.random.default_rng(5)
    weights = rng.integers(0, 40, 1500) << 32
    weights[::2] = rng.integers(0, 12 << 32, 750)
    draws = Secret.fresh().draws("noise", np.arange(1500, dtype=np.uint64), 0)
    fast, exact = decide(rule, weights, draws), decide(rule, weights, draws, band=1e30)
    assert (fast == exact).all()
    assert 0 < fast.sum() < 1500


@pytest.mark.parametrize("noise", NOISES)
def test_probabilities_in_doubles_are_well_within_the_band(noise):
    """The relative error of the smaller probability is at most a tenth of the band, even far below 2^-128."""
    rule = threshold_rule(noise, 1.2824044517678, 6.397364880191162)
    bound = 37 if noise == "gaussian" else 700
    weights = rule.threshold_units + np.linspace(-bound * 1.28 / UNIT, bound * 1.28 / UNIT, 1201).astype(np.int64)
    released, missed = rule.probability(weights)
    for weight, near in zip(weights.tolist(), np.minimum(released, missed).tolist(), strict=True):
        mirrored = min(weight, 2 * rule.threshold_units - weight)  # Both kinds of noise are symmetric.
        assert abs(near / float(rule.exact(mirrored)) - 1) < DECISION_BAND / 10


def test_the_scipy_tail_is_accurate():
    """The relative error of the normal distribution function is below 1e-12 on [-37, 0]."""
    points = np.concatenate([np.linspace(-37, 0, 1500), -np.geomspace(1e-12, 1, 200)])
    for x, value in zip(points.tolist(), ndtr(points).tolist(), strict=True):
        assert abs(value / float(precise.normal_below(precise.number(x))) - 1) < 1e-12


def frequency_is_right(rule, weight, probability, size=400_000):
    """Return whether the share of released items is within Hoeffding's bound of the probability.

    A correct coin fails with probability below 1e-10.
    """
    draws = Secret.fresh().draws("frequency", np.arange(size, dtype=np.uint64), weight % 2**64)
    share = decide(rule, np.full(size, weight, dtype=np.int64), draws).mean()
    return abs(share - probability) < math.sqrt(math.log(2 / 1e-10) / 2 / size)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("distance", [-1.5, -0.5, 0.0, 0.1, 1.5])
def test_release_frequencies_agree_with_the_noise(noise, distance):
    """Items are released as often as noise of this scale exceeds their distance from the threshold.

    A threshold that is off by 0.1 scales is detected.
    """
    rule = threshold_rule(noise)
    weight = rule.threshold_units - round(distance * 1.3 / UNIT)
    normal = math.erfc(distance / math.sqrt(2)) / 2
    laplace = math.exp(-abs(distance)) / 2
    expected = normal if noise == "gaussian" else laplace if distance > 0 else 1 - laplace
    assert frequency_is_right(rule, weight, expected)
    broken = threshold_rule(noise, threshold=6.4 - 0.13)
    assert not frequency_is_right(broken, weight, expected)


def test_decisions_do_not_depend_on_the_batch():
    """A large array and its parts give the same decisions."""
    rule, size = threshold_rule("gaussian"), 2**18 + 100
    weights = np.random.default_rng(3).integers(0, 12 << 32, size)
    draws = Secret.from_seed(3).draws("noise", np.arange(size, dtype=np.uint64), 0)
    whole = decide(rule, weights, draws)
    assert (decide(rule, weights[-300:], draws[-300:]) == whole[-300:]).all()
    assert decide(rule, weights[:0], draws[:0]).shape == (0,)


def test_exact_computations_run_one_at_a_time():
    """Exact computations use constants of mpmath, which are not thread-safe."""
    inside, most = [], []

    class Watched(SelectionRule):
        def exact(self, weight):
            inside.append(weight)
            most.append(len(inside))
            time.sleep(0.002)
            inside.pop()
            return precise.number(0.5)

    rule, draws = Watched(1.0, 1e-5, 1), as_words([1 << 127] * 4)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: decide(rule, np.ones(4, np.int64), draws, band=2.0**99), range(8)))
    assert len(most) == 32
    assert max(most) == 1
