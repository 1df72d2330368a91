"""Tests of the exact joint bound, which is valid and tight, and agrees with privacy loss distributions."""

import math

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from voxpop.privacy.budget import Budget
from voxpop.privacy.calibrate import Scale, calibrate, total_delta
from voxpop.privacy.gaussian import UniqueItems, delta
from voxpop.privacy.joint import Cases, certified_cases, deltas, joint_delta, sampled_cases
from voxpop.privacy.numerics import numerical_slack

TARGET = math.exp(-10)


def symmetric(limit, least=None):
    return UniqueItems(limit=limit, shape="symmetric", least=least or limit**-0.5, norm=2)


def one_case(items, weight, shared):
    return Cases(np.array([float(items)]), np.array([weight]), np.array([shared]))


# The columns are epsilon, delta, limit, sigma, threshold, and the factor by which delta is larger without a lower bound
# on novel weights.
TABLE = [
    (3, TARGET, 100, 1.28240, 6.39736, 1.67),
    (3, TARGET, 300, 1.28242, 6.62599, 1.79),
    (1, 1e-5, 100, 3.73067, 19.49700, 1.87),
    (4, 1e-7, 100, 1.29786, 7.88429, 1.62),
]


@pytest.mark.parametrize(("epsilon", "target", "limit", "sigma", "threshold", "unfloored"), TABLE)
def test_the_tabulated_noise_and_threshold_spend_the_target_delta(epsilon, target, limit, sigma, threshold, unfloored):
    """Without a lower bound on novel weights, delta would exceed the target."""
    assert joint_delta(symmetric(limit), epsilon, sigma, threshold, 1.0) == pytest.approx(target, rel=2e-4)
    light = joint_delta(symmetric(limit, 1e-9), epsilon, sigma, threshold, 1.0)
    assert light / target == pytest.approx(unfloored, abs=0.03)


@pytest.mark.parametrize(("sigma", "threshold", "used"), [(3.89353, 23.5613, 0.98), (3.91300, 23.6608, 0.8)])
def test_the_tabulated_noise_and_threshold_of_nine_lengths_are_private(sigma, threshold, used):
    """With one length of unknown grams and eight lengths of candidates with the same sigma, delta is at most 1e-7."""
    whole = joint_delta(symmetric(100), 4.0, sigma, threshold, 1.0, mu_rest=math.sqrt(8) / sigma)
    assert used * 1e-7 <= whole <= 1e-7 * (1 + 2e-4)


settings_of_random_mechanisms = {
    "epsilon": st.floats(0.2, 6),
    "sigma": st.floats(0.7, 6),
    "height": st.floats(2, 8),
    "limit": st.integers(1, 12),
    "mu_rest": st.sampled_from([0.0, 0.5]),
}


@settings(max_examples=60)
@given(**settings_of_random_mechanisms, sensitivity=st.sampled_from([1.0, 1.000001, 1.3]), seed=st.integers(0, 2**32))
def test_the_symmetric_bound_is_valid_and_tight(epsilon, sigma, height, limit, mu_rest, sensitivity, seed):
    """No admissible pair exceeds the bound, and some pair is within 3 % of it."""
    rng = np.random.default_rng(seed)
    least = limit**-0.5 * rng.uniform(0.3, 1)
    case = symmetric(limit, least)
    threshold = 1 + height * sigma
    bound = joint_delta(case, epsilon, sigma, threshold, sensitivity, mu_rest)
    items = np.repeat(np.arange(1.0, limit + 1), 300)
    start = items * least**2
    squares = start + (sensitivity**2 - start) * np.tile(np.linspace(0, 1, 300), limit)
    pairs = Cases(items, np.sqrt(squares / items), np.maximum(sensitivity**2 - squares, 0))
    found = deltas(pairs, epsilon, sigma, threshold, mu_rest)
    best = max(found.max(), delta(epsilon, math.hypot(sensitivity / sigma, mu_rest)))
    assert 0.97 * bound <= best <= bound
    for index in [*rng.integers(0, len(items), 3), int(found.argmax())]:
        weights = [pairs.weight[index]] * int(items[index])
        exact = oracle.pair_delta(epsilon, sigma, threshold, weights, pairs.shared[index], mu_rest)
        assert found[index] == pytest.approx(exact, rel=1e-10)
        assert exact <= bound


@settings(max_examples=25)
@given(**settings_of_random_mechanisms, shape=st.sampled_from(["even", "fixed"]))
def test_enumerated_bounds_are_the_supremum(epsilon, sigma, height, limit, mu_rest, shape):
    """For even and fixed weights, the bound is the largest delta over all numbers of items and novel items."""
    case = UniqueItems(limit=limit, shape=shape, least=limit**-0.5, norm=2)
    threshold = 1 + height * sigma
    exact = max(
        oracle.pair_delta(epsilon, sigma, threshold, [weight] * novel, (held - novel) * weight**2, mu_rest)
        for held in range(1, limit + 1)
        for weight in [(limit if shape == "fixed" else held) ** -0.5]
        for novel in range(held + 1)
    )
    bound = joint_delta(case, epsilon, sigma, threshold, 1.0, mu_rest)
    assert exact <= bound <= exact * (1 + 1e-8)


def test_unequal_novel_weights_are_worse():
    """One heavy and 99 light novel items have a larger delta than 100 equal items, which the bound assumes."""
    sigma, threshold = 1.29786, 7.88429
    equal = oracle.pair_delta(4, sigma, threshold, [0.1] * 100, 0.0)
    unequal = oracle.pair_delta(4, sigma, threshold, [0.99] + [0.0142] * 99, 0.0)
    assert unequal > 1.19 * equal
    assert unequal > 1.19 * joint_delta(symmetric(100), 4, sigma, threshold, 1.0)


@pytest.mark.parametrize("limit", [513, 2000, 40_000])
def test_grouped_numbers_of_items_are_bounded(limit):
    """At large limits, numbers of novel items are grouped.

    The bound covers every number and is within 3 % of the largest delta.
    """
    sigma, threshold = 1.3, 6.0  # The threshold is so low that novel items determine delta.
    items = np.unique(np.geomspace(1, limit, 4000).astype(np.int64)).astype(float)
    for shape in ("symmetric", "even", "fixed"):
        case = UniqueItems(limit=limit, shape=shape, least=limit**-0.5 * (1 - 1e-12), norm=2)
        weight = np.full(len(items), case.least) if shape == "fixed" else items**-0.5
        found = deltas(Cases(items, weight, np.maximum(1 - items * weight**2, 0)), 3.0, sigma, threshold)
        bound = joint_delta(case, 3.0, sigma, threshold, 1.0)
        assert found.max() <= bound <= found.max() * 1.03


def test_the_certified_cases_cover_the_cases_of_the_search():
    """The search never finds a larger delta than the certified bound."""
    for shape in ("symmetric", "even", "fixed"):
        case = UniqueItems(limit=60, shape=shape, least=60**-0.5 * 0.99, norm=2)
        few, every = sampled_cases(case, 1.0), certified_cases(case, 1.0)
        arguments = (2.0, 1.5, 7.0)
        assert deltas(few, *arguments).max() <= deltas(every, *arguments).max() * (1 + 1e-12)


@pytest.mark.parametrize(("items", "weight", "held"), [(100, 0.1, 100), (60, 0.1, 100), (40, 0.12, 60), (1, 1.0, 1)])
def test_the_pair_agrees_with_the_privacy_loss_distribution(items, weight, held):
    """The composition of a hit and a Gaussian in dp-accounting has the delta of the closed form to 1e-6."""
    sigma, threshold = 1.28240, 6.39736
    shared = (held - items) * weight**2
    # If -ln(1 - hit) is a multiple of the step of the grid of losses, the accountant is exact.
    interval = -items * math.log1p(-math.erfc((threshold - weight) / sigma / math.sqrt(2)) / 2)
    epsilon = round(3 / interval) * interval
    _, loss = oracle.hit_distribution(1, interval)
    if shared > 0:
        loss = loss.compose(oracle.gaussian_distribution(math.sqrt(shared) / sigma, interval))
    found = deltas(one_case(items, weight, shared), epsilon, sigma, threshold)
    assert found[0] == pytest.approx(loss.get_delta_for_epsilon(epsilon), rel=1e-6)


def test_the_worst_pair_of_a_calibrated_mechanism_costs_the_whole_budget():
    """In dp-accounting, the worst pair has the certified delta (relative error 1e-6)."""
    case = symmetric(100)
    scale = calibrate(Budget(3, TARGET), case)
    cases = certified_cases(case, 1.0)
    worst = int(deltas(cases, 3, scale.scale, scale.threshold).argmax())
    items, weight, shared = cases.items[worst], cases.weight[worst], cases.shared[worst]
    assert shared < 0.05  # Nearly all items are novel, so shared items change only the last digits.
    interval = -items * math.log1p(-math.erfc((scale.threshold - weight) / scale.scale / math.sqrt(2)) / 2)
    _, loss = oracle.hit_distribution(1, interval)
    loss = loss.compose(oracle.gaussian_distribution(max(math.sqrt(shared), 0.05) / scale.scale, interval))
    assert loss.get_delta_for_epsilon(3.0) == pytest.approx(scale.delta, rel=1e-6)


@pytest.mark.parametrize(("epsilon", "hit", "mu"), [(3.0, 2e-5, 0.75), (0.3, 0.2, 0.4), (1.0, 0.01, 0.0)])
def test_the_pair_agrees_with_numerical_integration(epsilon, hit, mu):
    """The closed form equals the larger of the two hockey-stick divergences, computed as sums over a grid."""
    sums = oracle.integrated_delta(epsilon, hit, lambda x: -x * x / 2 - math.log(2 * math.pi) / 2, mu)
    case = one_case(1, 0.0, mu**2)
    found = deltas(case, epsilon, 1.0, -float(ndtri(hit)))
    assert found[0] == pytest.approx(max(sums), rel=1e-6)


def test_the_total_delta_includes_the_numerical_slack():
    """The reported delta is the bound plus the cost of 128-bit decisions."""
    scale = Scale(1.4, 60.0, 0.0)
    huge = 30.0
    bound = joint_delta(symmetric(10), huge, scale.scale, scale.threshold, 1.0)
    assert total_delta(scale, huge, symmetric(10), noise="gaussian") == pytest.approx(
        bound + numerical_slack(huge), rel=1e-12
    )
    assert numerical_slack(huge) > 1e-18
