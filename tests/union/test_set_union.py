"""End-to-end tests of set union on small corpora."""

import json
import math

import numpy as np
import polars as pl
import pytest

import voxpop as vp
from voxpop.privacy.weightings.builtin import WEIGHTINGS, Count, Weighted

pytestmark = pytest.mark.usefixtures("fixed_secrets")


@pytest.mark.parametrize(
    "union",
    [vp.papers.SetUnion(10, name, accounting=each) for name in WEIGHTINGS for each in ("joint", "published")],
    ids=repr,
)
def test_every_weighting_releases_common_items_and_no_rare_items(crowd, budget, union):
    """The most common item is released, less than half of all items are released, and items are in order."""
    release = union.release(crowd, budget, seed=1)
    items = release.to_list()
    assert "item 0000" in items
    assert items == sorted(items)
    assert len(items) < 1000


@pytest.mark.jit
def test_only_seeded_releases_are_repeatable(crowd, budget):
    """The same seed gives the same release. Without a seed, releases differ (false alarm below 1e-30)."""
    union = vp.Items(max_items_per_user=10)
    first, again = union.release(crowd, budget, seed=7), union.release(crowd, budget, seed=7)
    assert list(first) == list(again)
    assert list(union.release(crowd, budget)) != list(union.release(crowd, budget))


def test_a_seed_marks_the_release_as_not_private(crowd, budget):
    """A predictable secret does not protect users."""
    assert not vp.Items().release(crowd, budget, seed=0).guarantee.private
    assert vp.Items().release(crowd, budget).guarantee.private


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_the_order_of_rows_does_not_matter(budget, weighting):
    """With the same seed, a shuffled table gives the same release."""
    rng = np.random.default_rng(3)
    users, items = rng.integers(0, 800, 9000), (300 * rng.random(9000) ** 2).astype(int)
    table = pl.DataFrame({"who": users, "what": items})
    shuffled = table.sample(fraction=1.0, shuffle=True, seed=1)
    union = vp.papers.SetUnion(5, weighting, accounting="joint")
    releases = [
        list(union.release(vp.read(each, user="who", items="what"), budget, seed=4)) for each in (table, shuffled)
    ]
    assert releases[0] == releases[1]


def test_repeated_rows_do_not_change_the_release(crowd, budget):
    """Only the distinct items of a user count."""
    table = pl.DataFrame({"who": [u for u in range(200) for _ in range(3)], "what": ["a", "b", "c"] * 200})
    doubled = pl.concat([table, table])
    union = vp.Items(max_items_per_user=2)
    first, second = (union.release(vp.read(t, user="who", items="what"), budget, seed=9) for t in (table, doubled))
    assert list(first) == list(second)


def test_an_empty_release_is_not_an_error(budget):
    """Items with at most two users are not released, so the release is empty."""
    corpus = vp.read(pl.DataFrame({"who": [1, 2, 3], "what": ["x", "x", "y"]}), user="who", items="what")
    release = vp.Items().release(corpus, budget)
    assert len(release) == 0
    assert release.to_polars().columns == ["what"]


def test_users_without_items_are_allowed(budget):
    """A user with empty texts contributes nothing and causes no error."""
    corpus = vp.read(pl.DataFrame({"who": [1, 2], "text": ["", None]}), user="who", text="text")
    assert len(vp.Items().release(corpus, budget)) == 0


@pytest.mark.parametrize("held", [9, 13, 16])
def test_items_are_released_with_the_planned_probability(held, budget):
    """The frequency is within 7 standard deviations of the planned probability (false alarm below 1e-9)."""
    table = pl.DataFrame({"who": list(range(held)) * 2, "what": ["a"] * held + ["b"] * held})
    corpus = vp.read(table, user="who", items="what")
    plan = vp.papers.SetUnion(2, "weighted", accounting="joint").plan(budget)
    weight = held * math.floor(2**32 / math.sqrt(2)) / 2**32
    expected = 0.5 * math.erfc((plan.threshold - weight) / plan.sigma / math.sqrt(2))
    runs = 300
    seen = sum(len(plan.release(corpus, seed=seed)) for seed in range(runs))
    spread = math.sqrt(2 * runs * expected * (1 - expected)) + 1
    assert abs(seen - 2 * runs * expected) < 7 * spread


def test_the_plan_and_the_release_contain_no_private_number(crowd, budget):
    """The plan of a release equals a plan that was computed without data."""
    release = vp.Items(max_items_per_user=10).release(crowd, budget)
    plan = vp.Items(max_items_per_user=10).plan(budget)
    assert json.dumps(release.plan.to_dict()) == json.dumps(plan.to_dict())


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"max_items_per_user": 0}, "`max_items_per_user`"),
        ({"max_items_per_user": True}, "`max_items_per_user`"),
        ({"max_items_per_user": 2.5}, "`max_items_per_user`"),
        ({"min_users": 0}, "`min_users`"),
    ],
)
def test_invalid_fields_are_rejected(fields, words):
    """Each message names the field or the allowed values."""
    with pytest.raises(vp.errors.InputError, match=words):
        vp.Items(**fields)


@pytest.mark.parametrize(
    ("weighting", "fields", "words"),
    [
        (Count, {"noise": "uniform"}, "gaussian"),
        (Weighted, {"noise": None}, "gaussian"),
        (vp.papers.SetUnion, {"weighting": "l3"}, "policy-gaussian"),
        (vp.papers.SetUnion, {"accounting": "exact"}, "published"),
        (vp.papers.SetUnion, {"alpha": math.nan}, "`alpha`"),
        (vp.papers.SetUnion, {"max_items_per_user": 0}, "`max_items_per_user`"),
        (vp.papers.SetUnion, {"min_users": 0}, "`min_users`"),
        (vp.papers.SetUnion, {"weighting": "policy-laplace", "alpha": -1}, "`alpha`"),
        (vp.papers.OptimalSelection, {"min_users": 0}, "`min_users`"),
    ],
)
def test_fields_of_weightings_are_checked(weighting, fields, words):
    """Each message names the field or the allowed values."""
    with pytest.raises(vp.errors.InputError, match=words):
        weighting(**fields)


def test_a_delta_of_zero_is_rejected():
    """Unknown items cannot be released with a delta of 0. The error explains how to choose delta."""
    with pytest.raises(vp.errors.BudgetError, match="must not be computed from the data"):
        vp.Items().plan(vp.Budget(1.0))
