"""Tests of the composition of rounds with unknown items, and of rounds with Laplace noise."""

import math
from fractions import Fraction

import numpy as np
import oracle
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given
from hypothesis import strategies as st

from voxpop.privacy import precise
from voxpop.privacy.composition import composed_delta
from voxpop.privacy.guarantee import Expense, Guarantee
from voxpop.privacy.joint import either, laplace_round


def gaussian_rounds(epsilon, novel, mu):
    """Return the delta of Gaussian rounds that release a novel item with probability `novel`."""
    return composed_delta(epsilon, [Guarantee(1, 1.0, spend=Expense(novel, mu))], plain=False)


@pytest.mark.parametrize(
    ("epsilon", "steps", "sigmas"), [(2.0, (1, 3), (4.0, 1.5)), (1.0, (20, 1, 5), (3.0, 5.0, 2.5)), (0.5, (2,), (3.0,))]
)
def test_gaussian_rounds_are_bounded_by_their_pair(epsilon, steps, sigmas):
    """The composition of all hits and Gaussians in dp-accounting costs at most as much as the symmetric pair.

    The delta of the pair is larger by at most the probability of a hit, because both neighbours of the pair can have
    hits.
    """
    interval, hits, whole = 1e-3, [], privacy_loss_distribution.identity(1e-3)
    for step, sigma in zip(steps, sigmas, strict=True):
        hit, loss = oracle.hit_distribution(step, interval)
        hits.append(hit)
        whole = whole.compose(loss).compose(oracle.gaussian_distribution(1 / sigma, interval))
    mu = math.hypot(*(1 / sigma for sigma in sigmas))
    found, exact = gaussian_rounds(epsilon, either(hits), mu), whole.get_delta_for_epsilon(epsilon)
    assert exact <= found <= exact + Expense(either(hits), mu).hit


@given(st.floats(0.1, 5), st.floats(1e-9, 0.05), st.floats(0.05, 2))
def test_the_delta_of_gaussian_rounds_agrees_with_a_computation_to_eighty_digits(epsilon, novel, mu):
    """The relative error is at most 3e-10."""
    mp = precise.context
    hit = mp.mpf(novel) / (2 * mp.ncdf(-mp.mpf(mu) / 2))
    exact = hit + (1 - hit) * oracle.gaussian_delta(mp.mpf(epsilon), mu)
    assert gaussian_rounds(epsilon, novel, mu) == pytest.approx(float(exact), rel=3e-10)


@given(st.floats(0.1, 5), st.floats(1e-9, 0.5), st.floats(0.05, 2), st.floats(0, 1), st.floats(0, 1))
def test_the_delta_of_gaussian_rounds_increases_with_both_arguments(epsilon, novel, mu, less_novel, less_mu):
    """Delta never decreases in either argument, so the largest probability of a hit and the largest mu give a bound."""
    smaller = gaussian_rounds(epsilon, novel * less_novel, mu * less_mu)
    assert smaller <= gaussian_rounds(epsilon, novel, mu) * (1 + 1e-10)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.7, 1.0])
@pytest.mark.parametrize("hit", [1e-4, 0.1, 0.6])
def test_a_laplace_pair_costs_only_its_hits(epsilon, share, hit):
    """If the noise on shared items is pure at this epsilon, delta is at most the probability of a hit."""
    scale = 1 / epsilon
    unit = (1 - share) * epsilon  # The shift of the shared item is measured in scales.
    assert scale * unit <= 1
    directions = oracle.integrated_delta(epsilon, hit, lambda x: -np.abs(x) - math.log(2), unit)
    assert max(directions) <= hit + 1e-7
    assert laplace_round(epsilon, hit, scale, 1.0) == hit


@given(st.floats(0.2, 2), st.floats(0.1, 3))
def test_too_little_laplace_noise_costs_the_whole_budget(epsilon, scale):
    """If the noise costs at most epsilon, delta is the probability of a hit. With less noise, delta is 1."""
    assert laplace_round(epsilon, 0.25, scale, 1.0) == (
        0.25 if Fraction(1) / Fraction(scale) <= Fraction(epsilon) else 1
    )


def test_certain_hits_cost_the_whole_budget():
    """A novel item that is always released leaves no privacy."""
    assert either([0.1, 1.0]) == 1
    assert gaussian_rounds(1.0, 1.0, 0.1) == 1
    assert laplace_round(1.0, 1.0, 1.0, 1.0) == 1


def test_the_larger_delta_of_only_shared_or_only_novel_items_is_too_low():
    """If all items are shared or all are novel, delta is lower, so rounds are charged for both cases together."""
    epsilon, mu, novel = 3.0, 0.75, 2e-5
    both = gaussian_rounds(epsilon, novel, mu)
    all_shared, all_novel = gaussian_rounds(epsilon, 0.0, mu), novel
    assert both > max(all_shared, all_novel)
