"""Mutants of adaptive rounds, promises, several data sets and rankings that the audit must detect.

The probability of detection is above 0.999. Each test computes this probability from the probabilities of the mutant,
and then runs the audit. Each run of a case gives a false alarm with probability at most 1e-9 for a bound and 1e-9 for a
deviation.
"""

from dataclasses import replace

import numpy as np
import pytest

import voxpop as vp
from audits.adaptive_cases import alone_adaptive, near_adaptive
from audits.promise_cases import USERS, few, promising_plans
from audits.several_cases import DATA_SETS, alone_several, near_several
from audits.top_cases import telling
from audits.union_cases import BUDGET, EXCESS, LIMIT, Event
from support.power import surely_refuted, surely_strays
from support.twins import passed_off, with_rounds
from voxpop.errors import InternalError
from voxpop.mechanisms.counts import plan as top_plan
from voxpop.mechanisms.rounds.users_needed import MinUsersBound, item_probability
from voxpop.privacy import cumulative
from voxpop.privacy.budget import Budget
from voxpop.privacy.gate import counts as holders_module
from voxpop.privacy.gate import counts as ranking
from voxpop.privacy.gate import rounds as running
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.builtin import WEIGHTINGS
from voxpop.privacy.weightings.holders import UNIT, HolderShares
from voxpop.testing.auditing import examine
from voxpop.testing.cases import unchecked

pytestmark = [pytest.mark.jit, pytest.mark.slow]
TRIALS, FEW = 20_000, 10_000
UNION = vp.Items(max_items_per_user=LIMIT)


def caught(case, joined, without, trials=TRIALS):
    """Check that exact probabilities refute the mutant with probability above 0.999, and return the finding."""
    n = -(-trials // case.copies) * case.copies
    assert surely_refuted(joined, without, n, case.budget.epsilon, case.budget.delta)
    finding = examine(case, trials)
    assert finding.refuted, finding
    return finding


def quieter(plan, factor):
    """Return the plan with the noise of all rounds divided by `factor`.

    The levels do not change, so each level is `factor` times as many standard deviations from 0.
    """
    names = ("thresholds", "drop_thresholds")
    levels = {name: tuple(factor * level for level in getattr(plan.last.score, name)) for name in names}
    rounds = tuple(replace(each, sigma=each.sigma / factor) for each in plan.last.rounds)
    return with_rounds(plan, rounds=rounds, score=replace(plan.last.score, **levels))


def with_steps(monkeypatch, change):
    """Apply a change to the score step of every round."""
    real = running.score_step
    monkeypatch.setattr(running, "score_step", lambda *given: change(real(*given)))


def test_rounds_with_a_third_of_the_noise_are_detected(monkeypatch):
    """In the mutant of the default plan, one more user near the threshold has three times the effect."""
    plan = UNION.plan(BUDGET)
    twin = quieter(plan, 3.0)
    others = int(near_adaptive(twin).name.split()[1])
    exact, wrong = ([item_probability(each.last, users, 1) for users in (others + 1, others)] for each in (plan, twin))
    case = Event(plan, 1, 1).case("near", [(0,)] * (others + 1), [(0,)] * others, exact)
    assert examine(case, TRIALS).passed
    real = cumulative.noisy_cells
    monkeypatch.setattr(cumulative, "noisy_cells", lambda weights, sigma, *rest: real(weights, sigma / 3, *rest))
    assert caught(case, *wrong).off_plan


def test_halved_score_thresholds_are_detected(monkeypatch):
    """In the mutant, an item that only one user has is released far more often than the charge permits."""
    plan = UNION.plan(BUDGET)
    case = alone_adaptive(plan)
    with_steps(monkeypatch, lambda step: replace(step, threshold=step.threshold / 2))
    halved = tuple(level / 2 for level in plan.last.score.thresholds)
    twin = with_rounds(plan, score=replace(plan.last.score, thresholds=halved))
    assert caught(case, item_probability(twin.last, 1, 1), 0.0).off_plan


@pytest.mark.parametrize("kind", range(len(promising_plans())))
def test_min_users_off_by_one_is_detected(kind, monkeypatch):
    """The thresholds are for four users, so an item of five users is released more often than beta.

    The test uses a small beta, because a difference of one user has less effect if the noise is wide.
    """
    budget, beta = Budget(2.0, 0.02), 0.005
    assert examine(few(promising_plans(budget, beta)[kind]), TRIALS).passed
    # With Laplace noise on counts, one user has too little effect for this number of trials, so this mutant is wrong by
    # two users.
    wrong = 3 if kind == 2 + list(WEIGHTINGS).index("count-laplace") else 2
    monkeypatch.setattr(MinUsersBound, "few", property(lambda self: self.users - wrong))
    case = few(promising_plans(budget, beta)[kind], users=USERS - 1)
    caught(case, *case.exact)


def test_rounds_without_min_users_are_detected(monkeypatch):
    """The mutant runs rounds of a plan with a promise, but with the thresholds of a plan without a promise."""
    plan, plain = promising_plans()[0], UNION.plan(BUDGET)
    case, twin = few(plan), replace(plan.last, score=plain.last.score)
    real = running.score_step
    monkeypatch.setattr(running, "score_step", lambda _, *rest: real(twin.stated(), *rest))
    assert caught(case, item_probability(twin, USERS - 1, 1), 0.0).off_plan


@pytest.mark.slow
def test_data_sets_that_each_spend_the_whole_budget_are_detected():
    """In the mutant, each of six data sets runs the rounds of a single data set.

    The claim is refuted without comparing with the plan.
    """
    names = (*DATA_SETS, "friends", "songs", "books")
    together, alone = UNION.plan_each(names, BUDGET), UNION.plan(BUDGET)
    assert examine(near_several(together), FEW).passed
    case = near_several(passed_off(together, passes=alone.passes))
    assert not caught(case, *case.exact, trials=2 * FEW).off_plan


def test_data_sets_that_share_their_noise_are_detected(monkeypatch):
    """In the mutant, all data sets use one secret, so all data sets or none release an item of the same users."""
    plan = UNION.plan_each(DATA_SETS, BUDGET)
    case, most = near_several(plan), 2
    assert f"{most} released" in case.name
    real, calls = Secret.of, []

    def shared(seed):
        place = len(calls) % (1 + len(DATA_SETS))  # The first secret of a release belongs to no data set.
        calls.append(calls[-1] if place > 1 else real(seed))
        return calls[-1]

    monkeypatch.setattr(Secret, "of", staticmethod(shared))
    with pytest.raises(InternalError, match="draws of another"):
        examine(case, FEW)
    monkeypatch.setattr(Secret, "equals", lambda secret, other: False)  # so that the gate raises no error
    calls.clear()
    once = item_probability(plan.last, int(case.name.split()[1]) + 1, 1)
    assert surely_strays(case.exact[0], once, FEW)
    assert examine(case, FEW).off_plan


def test_halved_thresholds_of_several_data_sets_are_detected(monkeypatch):
    """With halved thresholds, an item of one user is released too often from at least one of three data sets."""
    plan = UNION.plan_each(DATA_SETS, BUDGET)
    case = alone_several(plan)
    assert examine(case, TRIALS).passed
    with_steps(monkeypatch, lambda step: replace(step, threshold=step.threshold / 2))
    halved = tuple(level / 2 for level in plan.last.score.thresholds)
    twin = item_probability(with_rounds(plan, score=replace(plan.last.score, thresholds=halved)).last, 1, 1)
    assert caught(case, 1 - (1 - twin) ** len(DATA_SETS), 0.0).off_plan


def test_picks_that_each_spend_the_whole_budget_are_detected(monkeypatch):
    """In the mutant, each of twelve picks spends the whole budget. No comparison with the plan is necessary."""
    monkeypatch.setattr(top_plan, "largest_rate", lambda budget, *_: budget.epsilon)
    monkeypatch.setattr(top_plan, "certified", unchecked)  # Without this patch, the plan is rejected.
    case = telling(12).case(BUDGET)
    assert not caught(case, *case.exact, trials=3 * FEW // 2).off_plan


def test_a_ranking_with_half_the_noise_is_detected(monkeypatch):
    """The mutant runs the ranking at twice the rate that the budget was charged for."""
    lists = telling(1)
    case = lists.case(BUDGET)
    assert examine(case, FEW).passed
    real = ranking.GumbelNoise
    monkeypatch.setattr(ranking, "GumbelNoise", lambda rate, *rest: real(2 * rate, *rest))
    assert caught(case, *lists.chances(2 * lists.plan(BUDGET).proof.rate), trials=FEW).off_plan


def test_a_ranking_that_counts_occurrences_is_detected(monkeypatch):
    """In the mutant, a user who has an item eight times counts eight times."""

    class Occurrences(HolderShares):
        """Add eight units for each item."""

        def add(self, histogram, items, starts, bounds=None):
            """Count each item of a user eight times."""
            np.add.at(histogram, items, EXCESS * UNIT)

    lists = replace(telling(1), times=EXCESS)
    case = lists.case(BUDGET)
    assert examine(case, FEW).passed
    monkeypatch.setattr(holders_module, "HolderShares", Occurrences)
    rate = lists.plan(BUDGET).proof.rate
    assert caught(case, lists.chances(EXCESS * rate)[0], lists.chances(rate)[1], trials=FEW).off_plan
