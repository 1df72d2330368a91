"""Tests of the basic mechanism, DP-SIPS and PipelineDP's weighted Gaussian, and of pairs, samples and missing mass."""

from itertools import pairwise
from math import exp

import numpy as np
import polars as pl
import pytest
from benchmarks.baselines.gaussian import even_weights, pipeline_dp_scale, private_dp_sips, private_pipeline_dp
from benchmarks.baselines.gaussian import published_scales as scales_of
from benchmarks.baselines.held import PrivatePairs, private_released
from benchmarks.baselines.noise import gaussian, laplace
from benchmarks.evaluation import private_missing_mass, private_user_counts
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

import voxpop as vp
from naive import weighing as naive
from support.look import read_engine
from support.strategies import as_arrays, bounded_users
from voxpop.privacy.secret import Secret

BUDGET = vp.Budget(3, exp(-10))
MEASURED = {(3, 1): 6.436175, (3, 10): 20.327304, (3, 100): 68.247531}


@given(users=bounded_users())
def test_weights_equal_those_of_plain_loops(users):
    """All items of a user have equal shares, with an l2 norm of 1."""
    items, starts = as_arrays(users)
    expected = naive.weigh_weighted(users, 2)
    weights = even_weights(PrivatePairs(items, starts, np.ones_like(items), 8))
    assert weights == pytest.approx([expected.get(item, 0.0) for item in range(8)])


@given(users=bounded_users(), limit=st.integers(1, 6), seed=st.integers(0, 9))
def test_samples_are_subsets_of_the_items_of_users(users, limit, seed):
    """Each sample contains as many items of the user as the limit allows, with their frequencies."""
    items, starts = as_arrays(users)
    held = PrivatePairs(items, starts, items + 10, 8)
    drawn = held.drawn(limit, Secret.from_seed(seed), "test")
    assert drawn.sizes.tolist() == [min(len(user), limit) for user in users]
    assert (drawn.times == drawn.items + 10).all()
    for user, (begin, end) in enumerate(pairwise(drawn.starts)):
        assert set(drawn.items[begin:end]) <= set(users[user])


def test_every_item_is_drawn_equally_often():
    """If 6,000 users each draw 2 of 6 items, every item is drawn 2,000 times, within 8 standard deviations (37 each).

    The probability of a false alarm is below 1e-14.
    """
    held = PrivatePairs(np.tile(np.arange(6, dtype=np.int32), 6000), np.arange(6001) * 6, np.ones(36000, np.int32), 6)
    counts = held.drawn(2, Secret.from_seed(2), "test").holders()
    assert np.abs(counts - 2000).max() < 8 * 37


def test_noise_has_the_quantiles_of_its_distribution():
    """The shares of 200,000 draws below 0 and 1 are within 7 standard deviations (false alarm below 1e-10)."""
    normal, double = gaussian(Secret.from_seed(3), "a", 200_000), laplace(Secret.from_seed(3), "b", 200_000)
    for noise, below in ((normal, 0.8413447), (double, 1 - 0.5 * exp(-1))):
        assert abs((noise < 1).mean() - below) < 7 * 0.5 / 200_000**0.5
        assert abs((noise < 0).mean() - 0.5) < 7 * 0.5 / 200_000**0.5


def test_one_round_has_the_noise_and_threshold_of_voxpop_with_published_accounting():
    """An independent computation gives the same noise scale and threshold."""
    ours = vp.papers.SetUnion(50, "weighted").plan(BUDGET)
    (scale,) = scales_of(BUDGET, 50, (1.0,))
    assert (scale.scale, scale.threshold) == pytest.approx((ours.scale, ours.threshold), rel=1e-9)


def crowd() -> pl.DataFrame:
    """Return three words with 500 users each, and a word with one user."""
    rows = [(user, word) for user in range(500) for word in ("a", "b", "c")]
    return pl.DataFrame([*rows, (1, "z"), (1, "a")], schema=["who", "what"], orient="row")


def test_every_method_releases_the_common_items_and_has_the_exact_missing_mass():
    """Every method releases the items with 500 users but not the item with one user.

    The missing mass counts each pair of a user and an item once.
    """
    corpus = read_engine(crowd(), user="who", items="what")
    held = PrivatePairs.of(corpus)
    assert held.holders().tolist() == private_user_counts(corpus).tolist() == [500, 500, 500, 1]
    assert held.times[(held.users == 1) & (held.items == 0)].tolist() == [2]
    budget = vp.Budget(3, 1e-9)
    for released in (
        private_dp_sips(held, budget, 10, Secret.from_seed(1)),
        private_dp_sips(held, budget, 10, Secret.from_seed(1), rounds=1),
        private_pipeline_dp(held, budget, 10, Secret.from_seed(1)),
    ):
        assert released.tolist() == [True, True, True, False]
        assert held.missing_mass(released) == pytest.approx(1 / 1501)
    release = vp.Items(max_items_per_user=10).release(corpus, budget, seed=1)
    assert private_released(corpus, release).tolist() == [True, True, True, False]
    assert private_missing_mass(corpus, release) == pytest.approx(1 / 1501)


@pytest.mark.parametrize(("case", "threshold"), MEASURED.items())
def test_pipeline_dp_multiplies_its_noise_by_the_root_of_the_limit(case, threshold):
    """The thresholds were measured with pipeline-dp 0.3.1 (python-dp 1.1.5)."""
    epsilon, limit = case
    assert pipeline_dp_scale(vp.Budget(epsilon, BUDGET.delta), limit).threshold == pytest.approx(threshold, rel=1e-3)


def test_thresholds_equal_those_of_the_installed_pipeline_dp():
    """The installed selector has the same threshold and release probabilities as the comparison."""
    selection = pytest.importorskip(
        "pipeline_dp.optimal_selection", reason="pipeline-dp is not installed: pip install pipeline-dp"
    )
    for limit in (1, 10, 100):
        own, ours = (
            selection.create_weighted_gaussian_thresholding(3.0, BUDGET.delta, limit),
            pipeline_dp_scale(BUDGET, limit),
        )
        assert ours.threshold == pytest.approx(own.threshold, rel=1e-3)
        for weight in (10, 30, 60):
            assert ndtr((weight - ours.threshold) / ours.scale) == pytest.approx(
                own.probability_of_keep(weight), rel=0.01
            )
    assert pipeline_dp_scale(BUDGET, 100, as_run=False).threshold == pytest.approx(7.5, abs=0.3)
