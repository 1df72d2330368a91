"""Exact sums for a few trials show that the bounds of the audit are wrong with at most the given probability."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from support.power import surely_refuted, surely_strays
from voxpop.testing.auditing import TrialCounts, clopper_pearson, delta_shown, epsilon_shown, strays

TRIALS = 40


@given(st.integers(1, 10**6), st.data(), st.sampled_from([0.05, 1e-3, 1e-9]))
def test_bounds_of_a_probability_are_clopper_pearson_bounds(trials, data, error):
    """The bounds equal the two-sided interval of scipy for twice the error."""
    hits = data.draw(st.integers(0, trials))
    interval = binomtest(hits, trials).proportion_ci(1 - 2 * error, "exact")
    assert clopper_pearson(hits, trials, error) == pytest.approx((interval.low, interval.high), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("delta", [0.0, 0.1])
@pytest.mark.parametrize("error", [0.2, 0.02])
def test_false_alarms_are_as_rare_as_stated(epsilon, delta, error):
    """For 40 trials per collection, the error is below its bound if the probabilities attain the claim."""
    outcomes = np.arange(TRIALS + 1)
    refutes = np.array(
        [[delta_shown(TrialCounts(int(a), int(b), TRIALS), epsilon, error) > delta for b in outcomes] for a in outcomes]
    )
    for without in np.linspace(0.0, 1.0, 41):
        joined = min(math.exp(epsilon) * without + delta, 1 - math.exp(-epsilon) * (1 - without - delta), 1.0)
        laws = [binom.pmf(outcomes, TRIALS, chance) for chance in (joined, without)]
        assert laws[0] @ refutes @ laws[1] <= error
        assert laws[1] @ refutes @ laws[0] <= error


@given(st.integers(0, 40), st.integers(0, 40), st.floats(0.01, 3), st.floats(0, 0.3))
def test_epsilon_and_delta_are_refuted_by_the_same_counts(joined, without, epsilon, delta):
    """Counts show more than epsilon at delta if and only if they show more than delta at epsilon."""
    counts = TrialCounts(joined, without, 40)
    by_delta = delta_shown(counts, epsilon, 0.1)
    if abs(by_delta - delta) > 1e-9:
        assert (by_delta > delta) == (epsilon_shown(counts, delta, 0.1) > epsilon)


@pytest.mark.parametrize(("joined", "without"), [(0.9, 0.1), (0.2, 0.0), (0.1, 0.9), (0.3, 0.105)])
def test_a_surely_refuted_claim_is_refuted_with_high_probability(joined, without):
    """If `surely_refuted` is true, the probability of a miss is below 1 in 1000.

    In one of the cases, `surely_refuted` is false.
    """
    trials, epsilon, delta, error = 400, 1.0, 0.01, 1e-3
    outcomes = np.arange(trials + 1)
    laws = [binom.pmf(outcomes, trials, chance) for chance in (joined, without)]
    likely = [np.flatnonzero(law > 1e-12) for law in laws]
    power = sum(
        laws[0][a] * laws[1][b]
        for a in likely[0]
        for b in likely[1]
        if delta_shown(TrialCounts(int(a), int(b), trials), epsilon, error) > delta
    )
    said = surely_refuted(joined, without, trials, epsilon, delta, error)
    assert not said or power > 0.999
    assert said == (joined != 0.3)


def test_p_values_of_deviations_agree_with_the_exact_distribution():
    """The p-values and the power of the test for deviations agree with the exact distribution."""
    assert strays(50, 100, 0.5) == 1.0
    assert strays(0, 100, 0.5) == pytest.approx(2 * 0.5**100)
    trials, claimed, real = 5_000, 0.2, 0.26
    assert surely_strays(claimed, real, trials, error=1e-9)
    missed = sum(binom.pmf(hits, trials, real) for hits in range(1_000, 1_600) if strays(hits, trials, claimed) >= 1e-9)
    assert missed < 1e-3
    assert not surely_strays(0.2, 0.205, trials, error=1e-9)
