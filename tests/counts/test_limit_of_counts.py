"""Tests of the private choice of the limit of counts, including the cost, the histogram and the chosen limit."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

import voxpop as vp
from support.corpora import corpus_of
from support.engine_contract import naive_of, release_of
from support.exact import Exact
from voxpop.mechanisms.counts.constants import SHARE_OF_LIMIT
from voxpop.mechanisms.counts.mechanism import CountsMechanism
from voxpop.mechanisms.counts.plan import root_above
from voxpop.mechanisms.counts.releasing import listed_grams
from voxpop.privacy import precise
from voxpop.privacy.gate import counts as releasing
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.holders import ClassShares

BUDGET = vp.Budget(2, 1e-8)
WORDS = release_of((f"w{number:03}",) for number in range(300))


def plan_of(release=WORDS, budget=BUDGET):
    return CountsMechanism().plan(budget, release)


def mus(plan):
    """Return the mu of the counts for each limit of the menu."""
    return [root_above(max(1, sum(each.limits))) / each.sigma for each in plan.proof.menu]


def holders(sizes):
    """Return a corpus of users who have each of the first words of the list twice."""
    return corpus_of([[[f"w{number:03}" for number in range(size)] * 2] for size in sizes])


def classes(engine, edges=(4, 16, 64), counted=None):
    """Return the private histogram of users by their number of released words."""
    walk = engine.length_walk()
    walk.keep_words(next(listed_grams(WORDS, 1)).words)
    weights = walk.weigh(ClassShares(edges, counted), 300, Secret.fresh(), "count classes")
    return weights.measured(Exact(), len(edges) + 1).tolist()


@pytest.mark.parametrize("budget", [BUDGET, vp.Budget(0.1, 1e-6), vp.Budget(12, 1e-12)], ids=str)
def test_every_limit_and_the_histogram_are_within_the_budget(budget):
    """A computation to eighty digits shows that the planned noise scales are within the budget.

    A histogram with less noise exceeds the budget.
    """
    plan = plan_of(budget=budget)
    assert len(plan.proof.menu) == 10  # 1 to 256, and 300 for all grams
    for scale, fits in ((1.0, True), (0.1, False)):
        square = precise.number(max(mus(plan))) ** 2 + 1 / precise.number(scale * plan.proof.classes_sigma) ** 2
        spent = precise.gaussian_delta(budget.epsilon, square ** precise.number(0.5))
        assert (spent <= budget.delta) == fits
    assert plan.proof.classes_sigma**-2 / (plan.proof.classes_sigma**-2 + max(mus(plan)) ** 2) == pytest.approx(
        SHARE_OF_LIMIT, rel=1e-6
    )
    given = CountsMechanism(16).plan(budget, WORDS)
    assert plan.proof.menu[4].sigma / given.sigma == pytest.approx(1 / sqrt(1 - SHARE_OF_LIMIT), rel=1e-3)


@pytest.mark.jit
def test_the_charge_does_not_depend_on_the_choice():
    """The charge and the guarantee of counts do not depend on the choice, but the error does."""
    few, many = (WORDS.count(holders([size] * 3000), BUDGET, seed=1) for size in (2, 250))
    assert few.plan.limits[0] < many.plan.limits[0]
    assert few.error < many.error
    assert few.guarantee.spend == many.guarantee.spend == plan_of().guarantee.spend
    assert few.plan.to_dict()["passes"][0]["chosen"]
    assert "chosen privately" in str(few.plan)
    assert "to be chosen privately" in str(plan_of())


@pytest.mark.jit
def test_the_chosen_limit_has_nearly_the_smallest_error():
    """The error of the chosen limit is compared with the errors of other limits, for three numbers of words per user.

    Averaging 300 errors keeps false alarms below 1e-9.
    """
    for size, users in ((2, 4000), (30, 4000), (200, 4000)):
        corpus, truth = holders([size] * users), np.where(np.arange(300) < size, users, 0)
        wrong = {
            limit: np.abs(WORDS.count(corpus, BUDGET, counted_in_full=limit, seed=2).users - truth).mean()
            for limit in (1, 4, 16, 64, 256)
        }
        chosen = np.abs(WORDS.count(corpus, BUDGET, seed=2).users - truth).mean()
        assert chosen <= 1.5 * min(wrong.values())


@pytest.mark.jit
def test_engines_count_the_same_classes():
    """Some users are at the edges of classes. Words that are not on the list do not count."""
    corpus = holders([0, 1, 3, 4, 15, 16, 64, 300])
    assert classes(corpus) == classes(naive_of(corpus)) == [2, 2, 1, 2]
    odd = np.arange(300) % 2 == 1
    # Of the first 3, 4, 15, 16, 64 and 300 words, 1, 2, 7, 8, 32 and 150 are on the list.
    assert classes(corpus, counted=odd) == classes(naive_of(corpus), counted=odd) == [2, 2, 1, 1]


def moved(sizes, gone):
    """Return the l1 change of the histogram by one user."""
    fewer = [size for number, size in enumerate(sizes) if number != gone]
    return int(np.abs(np.subtract(classes(holders(sizes)), classes(holders(fewer)))).sum())


@pytest.mark.jit
def test_a_user_moves_one_class_by_one(monkeypatch):
    """The test also detects a variant in which the classes depend on other users."""
    rng = np.random.default_rng(5)
    for _ in range(40):
        sizes = [int(size) for size in rng.integers(1, 100, rng.integers(2, 9))]
        assert moved(sizes, int(rng.integers(len(sizes)))) == 1
    real = ClassShares.add

    def relative(self, histogram, items, starts, bounds=None):
        real(replace(self, edges=(2, round(float(np.diff(starts).mean())), 1000)), histogram, items, starts, bounds)

    monkeypatch.setattr(ClassShares, "add", relative)
    assert moved([10, 10, 10, 10, 90], 4) > 1


@pytest.mark.jit
def test_the_histogram_has_the_planned_noise(monkeypatch):
    """The noise has the standard deviation of the plan and its own name."""
    seen, real = [], releasing.CellNoise
    monkeypatch.setattr(releasing, "CellNoise", lambda *given: seen.append(given) or real(*given))
    plan = plan_of()
    plan.release(holders([5] * 50), seed=1)
    assert [(given[0], given[4]) for given in seen if "classes" in given[4]] == [
        (plan.proof.classes_sigma, "noise/count classes")
    ]
