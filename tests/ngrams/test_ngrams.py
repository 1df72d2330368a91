"""End-to-end tests of n-grams, including released grams, rejected inputs and invariants."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import voxpop as vp
from naive import ngrams as naive_ngrams
from support.corpora import corpus_of
from support.strategies import written_users
from voxpop.engine.local import length_walk as levels
from voxpop.engine.local import weigh as bound
from voxpop.errors import BudgetError, InputError
from voxpop.kernels import threads

pytestmark = pytest.mark.usefixtures("fixed_secrets")

CELLS = [
    vp.NGrams(max_length=4, max_phrases_per_user=20),
    vp.NGrams(max_length=4, max_phrases_per_user=20, length_weights=[0, 1, 0, 20]),
    vp.papers.DPNE(max_length=4, max_phrases_per_user=20),
    vp.papers.DPNE(max_length=4, max_phrases_per_user=20, pruning="single"),
    vp.papers.DPNE(max_length=4, max_phrases_per_user=[20, 20, 10, 10], weighting="policy-gaussian", ratio=1.2),
]


@pytest.mark.parametrize("cell", CELLS)
def test_common_phrases_are_released_and_rare_phrases_are_not(letters, budget, cell):
    """Every phrase with 1,000 users is released with all its parts, but no word of a single user is released."""
    release = cell.release(letters, budget, seed=3)
    grams = set(release)
    assert {("thank", "you", "very", "much"), ("see", "you", "soon"), ("how", "are", "you")} <= grams
    assert naive_ngrams.is_downward_closed(grams)
    assert not any(word.startswith("number") for gram in grams for word in gram)
    assert list(release) == sorted(grams, key=lambda gram: (len(gram), [word.encode() for word in gram]))
    assert release.guarantee == vp.Guarantee(4, 1e-7, private=False)


@cache
def generous_plan(cell):
    """Return a plan with an epsilon so large that words with few users and many spurious grams are released."""
    return replace(CELLS[cell], max_phrases_per_user=6, max_spurious_share=0.4).plan(vp.Budget(30, 0.01))


@given(users=written_users(), cell=st.sampled_from(range(len(CELLS))), seed=st.integers(0, 99))
@settings(max_examples=60)
def test_any_release_is_downward_closed_and_within_the_vocabulary(users, cell, seed):
    """The releases contain words with few users and many spurious grams."""
    release = generous_plan(cell).release(corpus_of([[["a"]], *users]), seed=seed)
    grams = set(release)
    assert naive_ngrams.is_downward_closed(grams)
    assert {word for gram in grams for word in gram} <= set("abcd")


@pytest.mark.jit
def test_a_seeded_release_is_the_same_for_any_number_of_threads(letters, budget, monkeypatch):
    """The random values depend on grams and users, but not on the order of computations."""
    plan = vp.NGrams(max_length=4, max_phrases_per_user=3).plan(budget)
    first = plan.release(letters, seed=7)
    monkeypatch.setattr(threads, "THREADS", 1)
    monkeypatch.setattr(bound, "THREADS", 1)
    monkeypatch.setattr(levels, "THREADS", 5)
    monkeypatch.setattr(bound, "TOKENS_AT_ONCE", 1000)
    again = plan.release(letters, seed=7)
    assert again == first
    assert not first.guarantee.private
    assert "NOT PRIVATE" in str(first.guarantee)


@pytest.mark.jit
def test_no_two_releases_without_a_seed_share_their_noise(letters):
    """With this budget, many grams are close to thresholds, so at least two of four releases differ."""
    plan = vp.NGrams(max_length=3, max_phrases_per_user=3, max_spurious_share=0.3).plan(vp.Budget(0.5, 1e-7))
    assert len({frozenset(plan.release(letters)) for _ in range(4)}) > 1


def test_a_dpne_release_spends_the_planned_budget(letters, budget):
    """After length 1, `DPNE` spends at most the mu^2 of the plan and more than 99.9 percent of it."""
    plan = vp.papers.DPNE(max_length=4, max_phrases_per_user=20).plan(budget)
    ran = plan.release(letters).plan.ran
    spent = sum(each.sigma**-2 for each in ran[1:])
    assert 0.999 * plan.later < spent <= plan.later
    assert [each.length for each in ran] == list(range(1, len(ran) + 1))
    assert ran[0].sigma == plan.lengths[0].sigma
    assert ran[0].threshold == plan.lengths[0].lowest_threshold


@pytest.mark.jit
def test_a_plan_spends_at_most_its_budget(budget):
    """Plans with exact accounting also spend more than 99.9 percent of delta."""
    for cell in CELLS:
        plan = cell.plan(budget)
        assert plan.delta_spent <= budget.delta
        # Thresholds of adaptive rounds use the delta for novel words within 0.4 percent.
        assert isinstance(cell, vp.papers.DPNE) or plan.delta_spent > 0.999 * budget.delta


def test_the_plan_of_dpne_has_the_published_numbers(budget):
    """The defaults are T 9 and limit 100, at epsilon 4 and delta 1e-7."""
    published = vp.papers.DPNE().plan(budget)
    assert published.sigma == pytest.approx([3.98371] * 9, abs=2e-5)
    assert published.first.threshold == pytest.approx(24.4381, abs=1e-3)


def test_the_dpne_ratio_is_the_ratio_of_consecutive_sigmas(budget):
    """With the ratio c, sigma_k = c sigma_(k-1)."""
    sigma = np.array(vp.papers.DPNE(max_length=6, ratio=1.25).plan(budget).sigma)
    assert sigma[1:] / sigma[:-1] == pytest.approx(1.25, rel=1e-9)


def test_dpne_limits_can_differ_by_length(letters, budget):
    """A list gives one limit for each length."""
    dpne = vp.papers.DPNE(max_length=3, max_phrases_per_user=[10, 5, 2])
    assert dpne.limits == (10, 5, 2)
    assert hash(dpne) == hash(vp.papers.DPNE(max_length=3, max_phrases_per_user=(10, 5, 2)))
    assert ("see", "you", "soon") in dpne.release(letters, budget, seed=1)


def test_without_a_limit_words_have_a_chosen_limit_and_phrases_a_constant_limit(letters, budget):
    """The plan of a release contains the chosen limit of words. Longer phrases have a limit of 100,000 at no cost."""
    plan, given = vp.NGrams(2).plan(budget), vp.NGrams(2, max_phrases_per_user=100_000).plan(budget)
    assert plan.sigma[1] == pytest.approx(given.sigma[1], rel=0.01)
    assert plan.to_dict()["max_phrases_per_user"] == given.to_dict()["max_phrases_per_user"] == 100_000
    assert plan.to_dict()["max_words_per_user"] is None
    assert "to be chosen privately" in str(plan)
    release = vp.NGrams(2).release(letters, budget, seed=1)
    limit = release.plan.to_dict()["max_words_per_user"]
    assert limit in release.plan.to_dict()["passes"][0]["limits"]
    assert f"length 1: at most {limit:,} words per user, chosen privately" in str(release.plan)
    assert release.guarantee.spend == plan.guarantee.spend


@pytest.mark.jit
def test_the_number_of_spurious_grams_follows_eta():
    """No bigram has users, so the number of released bigrams has a binomial distribution (false alarm 1e-9)."""
    users = [[[word] for word in "abcdefgh"]] * 400  # All words are common, and there are no bigrams.
    corpus, eta, runs = corpus_of(users), 0.25, 120
    plan = vp.papers.DPNE(max_length=2, max_phrases_per_user=8, max_spurious_share=eta).plan(vp.Budget(20, 1e-6))
    found = 0
    for seed in range(runs):
        release = plan.release(corpus, seed=seed)
        ran = release.plan.ran[1]
        assert ran.candidates == 64
        found += sum(len(gram) == 2 for gram in release)
    chance = eta * 8 / 64
    assert binom.ppf(5e-10, 64 * runs, chance) <= found <= binom.isf(5e-10, 64 * runs, chance)


def test_documents_are_not_joined(budget):
    """No phrase spans two documents of a user."""
    corpus = corpus_of([[["good"], ["morning"]]] * 2000)
    release = vp.NGrams(max_length=2, max_phrases_per_user=5).release(corpus, budget, seed=1)
    assert set(release) == {("good",), ("morning",)}


def test_tokens_can_contain_spaces(budget):
    """A gram is a list of tokens, not a string."""
    corpus = corpus_of([[["New York", "City"]]] * 2000)
    release = vp.NGrams(max_length=2, max_phrases_per_user=5).release(corpus, budget, seed=1)
    assert ("New York", "City") in release
    assert release.to_polars()["gram"].to_list()[-1] == ["New York", "City"]


@pytest.mark.parametrize("users", [[], [[]], [[[]]], [[["a"]]]])
def test_very_little_data_gives_an_empty_release(users, budget):
    """The cases are no users, no documents, documents without words, and one word of one user."""
    assert list(vp.NGrams(max_length=3).release(corpus_of(users), budget)) == []


def test_ngrams_of_length_one_equal_a_set_union(letters, budget):
    """With `max_length=1`, the plan has the rounds of set union, and the same words are released."""
    one, union = (
        vp.NGrams(max_length=1, max_phrases_per_user=20).plan(budget),
        vp.Items(max_items_per_user=20).plan(budget),
    )
    squares = [row["scale"] ** -2 for row in union.to_dict()["passes"]]
    assert one.first.square == pytest.approx(sum(squares), rel=1e-3)
    assert set(one.release(letters, seed=1)) == set(union.release(letters, seed=1).each_gram())


def test_a_release_is_saved_and_loaded_with_its_transcript(letters, budget, tmp_path):
    """The stored plan shows the numbers of each length."""
    release = vp.NGrams(max_length=3, max_phrases_per_user=20).release(letters, budget)
    release.save(tmp_path / "phrases")
    again = vp.load(tmp_path / "phrases")
    assert again == release
    assert [row["length"] for row in again.plan.passes if row["pass"] in ("words", "vote") and row["ran"]] == [1, 2, 3]
    assert "What ran" in str(release.plan)


def test_the_number_of_users_needed_increases_with_length_and_probability(budget):
    """With a ratio above 1, longer phrases need more users."""
    plan = vp.papers.DPNE(max_length=5, ratio=1.3).plan(budget)
    halves = [plan.users_needed(0.5, length=length) for length in range(2, 6)]
    assert halves == sorted(halves)
    assert all(plan.users_needed(0.9, length=length) >= plan.users_needed(0.5, length=length) for length in range(1, 6))
    for bad in ({"length": 6, "probability": 0.5}, {"length": 2, "probability": 1.0}):
        with pytest.raises(InputError):
            plan.users_needed(**bad)
    with pytest.raises(InputError, match="per_user"):
        plan.users_needed(0.5, length=2, per_user=0)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"max_length": 0}, "`max_length`"),
        ({"max_length": 33}, "`max_length`"),
        ({"max_phrases_per_user": 0}, "`max_phrases_per_user`"),
        ({"max_phrases_per_user": [10, 10]}, "`max_phrases_per_user`"),
        ({"max_spurious_share": 0}, "`max_spurious_share`"),
        ({"max_spurious_share": 1}, "`max_spurious_share`"),
        ({"length_weights": [1, 2], "max_length": 3}, "`length_weights` must be 3 numbers"),
        ({"length_weights": [1, -1, 1], "max_length": 3}, "`length_weights` must be 3 numbers from 0"),
        ({"length_weights": 4.0, "max_length": 3}, "`length_weights` must be 3 numbers"),
        ({"length_weights": [1, 1, 0], "max_length": 3}, "last of `length_weights` must be above 0"),
    ],
)
def test_invalid_fields_are_rejected(fields, words):
    """Each message names the field or the allowed values."""
    with pytest.raises(InputError, match=words):
        vp.NGrams(**fields)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"max_phrases_per_user": [10, 10], "max_length": 3}, "one for each length"),
        ({"max_phrases_per_user": 0}, "`max_phrases_per_user`"),
        ({"weighting": "count"}, "policy-gaussian"),
        ({"pruning": "none"}, "single"),
        ({"ratio": 0}, "`ratio`"),
        ({"alpha": -1}, "`alpha`"),
        ({"max_spurious_share": 1}, "`max_spurious_share`"),
    ],
)
def test_dpne_fields_out_of_range_are_rejected(fields, words):
    """Each message names the field or the allowed values."""
    with pytest.raises(InputError, match=words):
        vp.papers.DPNE(**fields)


def test_a_delta_of_zero_is_rejected():
    """Words are not known in advance, so their release requires a positive delta."""
    with pytest.raises(BudgetError, match="must not be computed from the data"):
        vp.NGrams().plan(vp.Budget(1.0))


def test_plans_can_be_compared_and_contain_all_passes(budget):
    """Equal mechanisms have equal plans. The dict of a plan contains a row for every pass, although no pass has run."""
    plan = vp.NGrams(max_length=3).plan(budget)
    assert plan == vp.NGrams(max_length=3).plan(budget)
    assert vp.NGrams(max_length=2).plan(budget) != plan
    numbers = plan.to_dict()
    assert [row["length"] for row in numbers["passes"] if row["pass"] in ("words", "vote")] == [1, 2, 3]
    assert [row["ran"] for row in numbers["passes"] if "ran" in row] == [None] * 8
    assert "users for 50 %" in str(plan)
