"""Rules of privacy that more than one mechanism follows, or both a plan and a release: the same everywhere.

docs/design/0014-one-rule.md lists them, with the place where each stands and the test that binds its copies.
"""

from collections import Counter
from fractions import Fraction

import polars as pl
import pytest
from test_charged import mu_squared, walked

import voxpop as vp
from voxpop.privacy.round_composition import either
from voxpop.privacy.secret import Secret
from voxpop.privacy.slack import numerical_slack, walk_slack

BUDGET = vp.Budget(2, 1e-6)
UNIONS = [
    vp.SetUnion(limit=20, weighting="l2-descent"),
    vp.SetUnion(limit=20, weighting="l2-descent", rounds=3),
    vp.SetUnion(limit=20, weighting="weighted", accounting="published"),
    vp.SetUnion(limit=20, weighting="count", rounds=2),
]
PLANNED = [
    *UNIONS,
    vp.SetUnion(limit=20, weighting="l1-descent", noise="laplace", rounds=2),
    vp.SetUnion(limit=20, weighting="weighted", noise="laplace"),
]


@pytest.fixture(scope="module")
def talk():
    """Return 1,500 users who say one of two things, and a word of their own."""
    texts = [f"{text} w{user}" for user, text in enumerate(["good morning to you all", "good night to you"] * 750)]
    return vp.read(pl.DataFrame({"who": range(1500), "what": texts}), user="who", text="what")


def rounds_of(plan):
    """Return the rounds of a plan in which something unknown may come out."""
    return getattr(plan, "rounds", None) or [plan.first]


@pytest.mark.parametrize(
    "mechanism", [*PLANNED, vp.NGrams(3, limit=20, words="once"), vp.NGrams(1, weighting="weighted")]
)
def test_thresholds_reach_the_coins_unlowered(mechanism):
    """What decides is the threshold that delta was computed from, on the grid that was charged for: exactly."""
    plan = mechanism.plan(BUDGET)
    for one in rounds_of(plan):
        rule = one.rule(BUDGET)
        assert Fraction(rule.threshold_units) * Fraction(rule.unit) == Fraction(one.threshold)
        assert rule.unit == 2.0**-one.shares.setting.bits
        assert rule.scale == one.scale


@pytest.mark.parametrize("union", UNIONS)
def test_the_spend_of_a_union_covers_its_rounds(union):
    """What a ledger and `compose` add up is no less than what runs."""
    plan = union.plan(BUDGET)
    spend = plan.guarantee.spend
    assert Fraction(spend.mu) ** 2 >= sum(map(mu_squared, plan.rounds))
    assert spend.novel >= either([one.pair()[0] for one in plan.rounds]) + numerical_slack(BUDGET.epsilon)


@pytest.mark.parametrize(
    "ngrams", [vp.NGrams(5, limit=20, words="once"), vp.NGrams(5, budgets="equal", weighting="weighted")]
)
def test_the_spend_of_ngrams_covers_every_length_that_runs(ngrams):
    """The same, with the rounds that a walk settles one after the other."""
    plan = ngrams.plan(BUDGET)
    spend = plan.guarantee.spend
    later = sum(mu_squared(one) for one, _ in walked(plan, [3, 1000], [0.0, 0.5]))
    assert Fraction(spend.mu) ** 2 >= mu_squared(plan.first) + later
    assert spend.novel >= plan.first.pair()[0] + walk_slack(BUDGET.epsilon, ngrams.passes)


@pytest.mark.parametrize("weighting", ["weighted", "l2-descent"])
@pytest.mark.parametrize("accounting", ["joint", "published"])
def test_length_1_alone_is_a_set_union(weighting, accounting):
    """One length has the noise, threshold, grid and cutoff of set union, but for the slack of its walk."""
    fields = {"weighting": weighting, "accounting": accounting, "alpha": 3.0}
    words = vp.NGrams(1, limit=50, words="once", **fields).plan(BUDGET).first
    (items,) = vp.SetUnion(limit=50, **fields).plan(BUDGET).rounds
    assert words.shares.weighting_rule is items.shares.weighting_rule
    assert words.shares.setting.bits == items.shares.setting.bits
    # With more lengths to come n-grams take the least noise, which the best pair for items exceeds.
    assert words.scale == pytest.approx(items.scale, rel=1e-6)
    assert words.threshold == pytest.approx(items.threshold, rel=1e-6)
    assert words.cutoff == pytest.approx(items.cutoff, rel=1e-6) if words.cutoff else items.cutoff is None


RELEASES = [vp.SetUnion(9, "l2-descent", rounds=3), vp.SetUnion(limit=9), vp.NGrams(4, limit=9)]


@pytest.mark.parametrize("memory", [False, True])
@pytest.mark.parametrize("mechanism", [*RELEASES, vp.NGrams(4, limit=9, pruning="single", weighting="weighted")])
def test_no_pass_uses_the_noise_of_another(talk, mechanism, memory, monkeypatch):
    """Every pass has a purpose of its own: the difference of two histograms with the same noise would be exact."""
    corpus = talk.within(vp.read(pl.DataFrame({"w": [1], "t": ["a"]}), user="w", text="t", memory="1GiB").limit)
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


def test_a_repeated_pass_would_be_seen(talk, monkeypatch):
    """The test above, on a release that weighs its second round with the noise of its first."""
    from voxpop.union import releasing

    real, seen = releasing.run_round, []

    def again(round_plan, budget, remaining, secret, pass_name):
        seen.append(pass_name)
        return real(round_plan, budget, remaining, secret, "round 0/length 1")

    monkeypatch.setattr(releasing, "run_round", again)
    with pytest.raises(AssertionError):
        test_no_pass_uses_the_noise_of_another(talk, vp.SetUnion(9, "l2-descent", rounds=3), False, monkeypatch)
    assert len(seen) == 3
