"""Tests that privacy rules are the same in all mechanisms that share them, and in plans and their releases.

docs/design/0014-one-rule.md lists each of these rules, with its place and the test that compares its copies.
"""

from collections import Counter
from fractions import Fraction

import polars as pl
import pytest
from test_charged import mu_squared, walked

import voxpop as vp
from support.deltas import first_pair
from support.look import read_engine
from voxpop.privacy.numerics import numerical_slack, walk_slack
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.builtin import WEIGHTINGS

BUDGET = vp.Budget(2, 1e-6)
UNIONS = [
    *(
        vp.papers.SetUnion(20, name, accounting="joint")
        for name, each in WEIGHTINGS.items()
        if each.noise == "gaussian"
    ),
    vp.papers.SetUnion(20, "weighted"),
]
PLANNED = [
    *UNIONS,
    *(vp.papers.SetUnion(20, name, accounting="joint") for name, each in WEIGHTINGS.items() if each.noise == "laplace"),
]


@pytest.fixture(scope="module")
def talk():
    """Return 1,500 users who each wrote one of two texts and a unique word."""
    texts = [f"{text} w{user}" for user, text in enumerate(["good morning to you all", "good night to you"] * 750)]
    return read_engine(pl.DataFrame({"who": range(1500), "what": texts}), user="who", text="what")


def rounds_of(plan):
    """Return the rounds of a plan that can release unknown items."""
    return [plan.last] if hasattr(plan, "passes") else [plan.first]


@pytest.mark.parametrize(
    "mechanism", [*PLANNED, vp.papers.DPNE(3, max_phrases_per_user=20), vp.papers.DPNE(1, weighting="policy-gaussian")]
)
def test_releases_use_exactly_the_planned_thresholds(mechanism):
    """Decisions use the threshold from which delta was computed, and the grid that was charged."""
    plan = mechanism.plan(BUDGET)
    for one in rounds_of(plan):
        rule = one.rule(BUDGET)
        assert Fraction(rule.threshold_units) * Fraction(rule.unit) == Fraction(one.threshold)
        assert rule.unit == 2.0**-one.shares.setting.bits
        assert rule.scale == one.scale


@pytest.mark.parametrize("union", UNIONS)
def test_the_spend_of_a_union_covers_its_rounds(union):
    """Ledgers and `compose` use the spend, so the spend must be at least the cost of the rounds that run."""
    plan = union.plan(BUDGET)
    spend = plan.guarantee.spend
    assert Fraction(spend.mu) ** 2 >= mu_squared(plan.last)
    assert spend.novel >= first_pair(plan.last)[0] + numerical_slack(BUDGET.epsilon)


@pytest.mark.parametrize(
    "ngrams", [vp.papers.DPNE(5, max_phrases_per_user=20, weighting="policy-gaussian", ratio=1.5), vp.papers.DPNE(5)]
)
def test_the_spend_of_ngrams_covers_every_length_that_runs(ngrams):
    """The spend covers all rounds, which are planned one after another from earlier released numbers."""
    plan = ngrams.plan(BUDGET)
    spend = plan.guarantee.spend
    later = sum(mu_squared(one) for one, _ in walked(plan, [3, 1000]))
    assert Fraction(spend.mu) ** 2 >= mu_squared(plan.first) + later
    assert spend.novel >= first_pair(plan.first)[0] + walk_slack(BUDGET.epsilon, ngrams.max_length)


@pytest.mark.parametrize("weighting", ["weighted", "policy-gaussian"])
def test_dpne_of_length_one_has_the_parameters_of_set_union(weighting):
    """Noise, threshold, grid and cutoff differ only by the slack of n-grams."""
    words = vp.papers.DPNE(1, max_phrases_per_user=50, weighting=weighting, alpha=3.0).plan(BUDGET).first
    items = vp.papers.SetUnion(50, weighting).plan(BUDGET).last
    assert type(words.shares.weighting_rule) is type(items.shares.weighting_rule)
    assert words.shares.setting.bits == items.shares.setting.bits
    # The tolerance allows for the slack.
    assert words.scale == pytest.approx(items.scale, rel=1e-6)
    assert words.threshold == pytest.approx(items.threshold, rel=1e-6)
    assert words.cutoff == pytest.approx(items.cutoff, rel=1e-6) if words.cutoff else items.cutoff is None


RELEASES = [vp.Items(max_items_per_user=9), vp.NGrams(4, max_phrases_per_user=9)]


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("mechanism", [*RELEASES, vp.papers.DPNE(4, max_phrases_per_user=9, pruning="single")])
def test_no_two_passes_use_the_same_noise(talk, mechanism, memory, monkeypatch):
    """If two passes used the same noise, the difference of their noisy weights would be the exact difference."""
    corpus = talk.within(
        read_engine(
            pl.DataFrame({"w": [1], "t": ["a"]}), user="w", text="t", options=vp.ReadOptions(memory="1GiB")
        ).limit
    )
    drawn: Counter[str] = Counter()

    def counting(real):
        def draws(self, purpose, first, *others):
            if purpose.startswith("noise/"):
                drawn[purpose] += 1
            return real(self, purpose, first, *others)

        return draws

    for name in ("draws", "text_draws"):
        monkeypatch.setattr(Secret, name, counting(getattr(Secret, name)))
    release = mechanism.release(corpus if memory else talk, vp.Budget(8, 1e-4))
    assert len(release) > 2
    assert max(drawn.values()) == 1
    assert len(drawn) >= 3


def test_a_repeated_pass_would_be_detected(talk, monkeypatch):
    """The previous test fails if all rounds of a release have the same noise."""
    from voxpop.privacy.gate import rounds as running

    real = running.score_step
    monkeypatch.setattr(running, "score_step", lambda *given: real(*given[:-1], "round 1/length 1"))
    with pytest.raises(AssertionError):
        test_no_two_passes_use_the_same_noise(talk, vp.Items(max_items_per_user=9), False, monkeypatch)
