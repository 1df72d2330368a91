"""Tests of counts of users, which are correct up to the noise and record their spend."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voxpop as vp
from naive.counts import holders
from support.corpora import corpus_of
from support.exact import exact_counts
from support.look import read_engine
from support.strategies import written_users
from voxpop.mechanisms.counts.mechanism import CountsMechanism
from voxpop.privacy.weightings.holders import UNIT, share_table

pytestmark = pytest.mark.usefixtures("fixed_secrets")

BUDGET = vp.Budget(1, 1e-8)
GRAMS = st.lists(st.lists(st.sampled_from("abcdx"), min_size=1, max_size=4).map(tuple), min_size=1, max_size=25)


@given(users=written_users(), grams=GRAMS, limits=st.lists(st.integers(1, 4), min_size=4, max_size=4))
@settings(max_examples=150)
def test_weights_equal_the_reference_implementation(release_of, users, grams, limits):
    """Any grams can be counted, with or without their parts, and with or without users."""
    release = release_of(grams)
    lengths = max(map(len, grams))
    found = exact_counts(corpus_of(users), release, limits[:lengths]) / UNIT
    expected = holders(users, list(release), limits[:lengths])
    assert np.allclose(found, [expected[gram] for gram in release], rtol=0, atol=len(users) * 2 / UNIT)


def test_counts_differ_from_the_truth_only_by_noise(release_of):
    """Each of 200 words has 1,000 users, and the counts are within 7 standard errors (false alarm below 1e-9)."""
    words = [f"w{i:03}" for i in range(200)]
    table = pl.DataFrame({"who": range(2000), "what": [words[:100], words[100:]] * 1000})
    corpus = read_engine(table, user="who", items="what")
    counts = release_of((word,) for word in words).count(corpus, BUDGET, counted_in_full=100)
    assert counts.error == pytest.approx(np.hypot(counts.plan.sigma, 12**-0.5))
    assert (np.abs(counts.users - 1000) < 7 * counts.error + 1).all()
    assert np.std(counts.users) > counts.error / 2


def test_grams_without_users_also_get_noise(release_of):
    """Over 300 of 400 counts differ from 0, and the mean of all 400 is near 0 (false alarm below 1e-10)."""
    corpus = corpus_of([[["a"]]])
    counts = release_of((f"x{i}",) for i in range(400)).count(corpus, BUDGET, counted_in_full=4)
    assert np.count_nonzero(counts.users) > 300
    assert abs(counts.users.mean()) < 7 * counts.error / 20
    assert (counts.users < 0).any()


def test_two_counts_share_noise_only_if_they_have_the_same_seed(release_of):
    """Without a seed, every count draws a fresh secret. A count with a seed is repeatable and marked as not private."""
    corpus, release = corpus_of([[["a", "b"]]] * 5), release_of((f"x{i}",) for i in range(50))
    fresh = [release.count(corpus, BUDGET).users.tolist() for _ in range(2)]
    seeded = [release.count(corpus, BUDGET, seed=3) for _ in range(2)]
    assert fresh[0] != fresh[1]
    assert seeded[0].users.tolist() == seeded[1].users.tolist()
    assert not seeded[0].guarantee.private
    assert not seeded[0].total.adaptive.private


@pytest.mark.parametrize("limit", [1, 3, 7, 1000, 10**6])
def test_squares_of_shares_never_exceed_the_limit(limit):
    """In integer arithmetic, the squares of the shares are within the limit for every number of grams per user."""
    shares = [int(share) for share in share_table(limit, 5000)]
    assert all(held * share * share <= limit * UNIT * UNIT for held, share in enumerate(shares))
    assert shares[min(limit, 5000)] == UNIT


def test_limits_halve_with_each_length(release_of):
    """The limit of a length never exceeds the number of released grams of this length."""
    release = release_of([*((f"w{i}",) for i in range(50)), *((f"w{i}", "w1") for i in range(50)), ("a", "b", "c")])
    assert CountsMechanism(60).plan(BUDGET, release).limits == (50, 30, 1)
    assert CountsMechanism(5).plan(BUDGET, release).limits == (5, 3, 1)
    assert CountsMechanism(60).plan(BUDGET, release).sensitivity >= 81**0.5


def test_the_plan_reads_no_data_and_states_the_guarantee(release_of):
    """The plan uses the smallest Gaussian noise that the budget permits, and its spend gives the budget's delta."""
    from voxpop.privacy.gaussian import delta

    plan = CountsMechanism(16).plan(BUDGET, release_of((f"w{i}",) for i in range(99)))
    assert plan.guarantee == vp.Guarantee(1, 1e-8)
    assert plan.guarantee.spend.mu == pytest.approx(4 / plan.sigma)
    assert 0.999e-8 < delta(1, 4 / plan.sigma) <= 1e-8


def test_the_joint_bound_is_below_the_sum():
    """A Gaussian release and its counts compose exactly, so at the sum of deltas, epsilon is well below the sum."""
    table = pl.DataFrame({"who": range(2000), "what": ["tea", "milk"] * 1000})
    corpus = read_engine(table, user="who", items="what")
    words = vp.papers.SetUnion(5, "policy-gaussian", 5.0, "joint").release(corpus, vp.Budget(2, 1e-8))
    counts = words.count(corpus, vp.Budget(2, 1e-8))
    assert counts.total.fixed.delta == 2e-8
    assert 2 < counts.total.fixed.epsilon < 3.3
    assert counts.total.adaptive.private


@pytest.mark.parametrize("limit", [0, -1, 1.5, "3", [3], True])
def test_invalid_limits_are_rejected(limit):
    """The limit must be a whole number of at least 1."""
    with pytest.raises(vp.errors.InputError, match="`counted_in_full`"):
        CountsMechanism(limit)


def test_a_budget_without_delta_is_rejected(release_of):
    """The error is raised before any data is read."""
    release = release_of([("a",), ("a", "b")])
    with pytest.raises(vp.errors.BudgetError, match="delta"):
        CountsMechanism().plan(vp.Budget(1), release)


def test_phrases_of_items_are_rejected(release_of):
    """Items have no order, so they have no phrases."""
    table = pl.DataFrame({"who": range(20), "what": ["tea"] * 20})
    corpus = read_engine(table, user="who", items="what")
    with pytest.raises(vp.errors.InputError, match="order"):
        release_of([("a",), ("a", "b")]).count(corpus, BUDGET)


def test_an_empty_release_has_no_counts(release_of):
    """Counting an empty release gives an empty result and no error."""
    counts = release_of([]).count(corpus_of([[["a"]]]), BUDGET)
    assert (len(counts), list(counts), counts.to_polars().height) == (0, [], 0)


def test_counts_are_written_as_tables(release_of):
    """Rows are in descending order of the number of users, and counts are available by gram and in Arrow."""
    corpus = corpus_of([[["a", "b"]]] * 3000 + [[["b"]]] * 1000)
    counts = release_of([("a",), ("b",), ("a", "b")]).count(corpus, BUDGET)
    assert next(iter(counts))[0] == ("b",)
    assert counts.to_polars()["gram"].to_list()[0] == ["b"]
    assert counts.to_arrow().column_names == ["gram", "length", "users"]
    assert counts["b"] == counts[("b",)] == counts.to_arrow()["users"][0].as_py()
    assert "error" in repr(counts)


def test_the_result_is_saved_in_the_folder_of_the_release(release_of, tmp_path):
    """Loaded counts equal the saved ones, remain if their release is saved again, and cannot join another release."""
    corpus, release = corpus_of([[["a", "b"]]] * 100), release_of([("a",), ("b",), ("a", "b")])
    counts = release.count(corpus, BUDGET)
    release.save(tmp_path / "words")
    counts.save(tmp_path / "words")
    again = vp.load(tmp_path / "words", vp.Counts)
    assert vp.load(tmp_path / "words") == release
    assert again.users.tolist() == counts.users.tolist()
    assert (again.error, again.guarantee, again.total) == (counts.error, counts.guarantee, counts.total)
    release_of([("c",)]).save(tmp_path / "other")
    with pytest.raises(vp.errors.ReleaseError, match="another release"):
        counts.save(tmp_path / "other")
    release.save(tmp_path / "words")
    assert vp.load(tmp_path / "words", vp.Counts).users.tolist() == counts.users.tolist()


def test_paid_counts_are_replaced_only_with_overwrite(release_of, tmp_path):
    """Neither other counts nor another release can replace paid counts, except with `overwrite=True`."""
    release, other = release_of([("a",), ("b",)]), release_of([("c",)])
    counts = release.count(corpus_of([[["a"]]] * 9), BUDGET)
    release.save(tmp_path / "words")
    counts.save(tmp_path / "words")
    with pytest.raises(vp.errors.ReleaseError, match="already contains counts, which cost a budget"):
        release.count(corpus_of([[["a"]]] * 9), BUDGET).save(tmp_path / "words")
    with pytest.raises(vp.errors.ReleaseError, match="a release and counts, which"):
        other.save(tmp_path / "words")
    counts.save(tmp_path / "words", overwrite=True)
    other.save(tmp_path / "words", overwrite=True)
    with pytest.raises(vp.errors.ReleaseError, match="contains no counts"):
        vp.load(tmp_path / "words", vp.Counts)


@pytest.mark.parametrize("name", ["counts.parquet", "counts.json"])
def test_damaged_counts_are_rejected(release_of, tmp_path, name):
    """A changed byte in the saved counts is detected."""
    release = release_of([("a",), ("b",)])
    release.save(tmp_path / "words")
    release.count(corpus_of([[["a"]]] * 9), BUDGET).save(tmp_path / "words")
    content = (tmp_path / "words" / name).read_bytes()
    (tmp_path / "words" / name).write_bytes(content[:-9] + b"x" + content[-8:])
    with pytest.raises(vp.errors.ReleaseError):
        vp.load(tmp_path / "words", vp.Counts)
