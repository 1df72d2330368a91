"""The audit of the whole default path of n-grams. The cases use every pass, and the audit detects broken variants.

Wrong charges of a screening vote change too few trials for the audit to detect them. The search through whole releases
detects such charges (`test_walk_search.py`).

Each time a case is run, the probability of a false alarm is at most 1e-9 for a bound and 1e-9 for a deviation, plus the
probabilities in `walk_cases.py`.
"""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from scipy.special import ndtr

import voxpop as vp
from audits.engines import in_memory, within_limit
from audits.ngrams_cases import ngrams_cases
from audits.walk_cases import (
    BUDGET,
    LIKELY,
    PRUNED,
    chance,
    collection,
    event_of,
    shown_by,
    walk_cases,
)
from support.power import surely_strays
from voxpop.mechanisms.ngrams.constants import SCREENING_CHARGES
from voxpop.mechanisms.rounds.menu import Menu
from voxpop.privacy.gate import simulating as selecting
from voxpop.privacy.gate import walks as voting
from voxpop.privacy.individual import BOUND_STEPS
from voxpop.testing.auditing import examine
from voxpop.testing.cases import ngrams

pytestmark = [pytest.mark.jit, pytest.mark.slow]
TRIALS = 20_000


def shown(pairs, canary=0):
    """Return the results of one release for each copy, and the plan."""
    plan = vp.NGrams(3).plan(BUDGET)
    return shown_by(plan, collection(plan, pairs, canary), pairs), plan


def test_the_cases_use_every_pass_and_nearly_the_whole_budget():
    """Some likely pairs get a second chance, some pruned pairs pass the screening vote, and the defaults are used."""
    for case in walk_cases():
        assert case.joined.args[0].mechanism == vp.NGrams(3)
    swept, plan = shown(LIKELY)
    assert 0.3 < np.mean(swept.seen > 0.9 * plan.later) < 0.9
    wide, _ = shown(PRUNED)
    assert set(np.round(wide.seen / plan.later, 3)) == {SCREENING_CHARGES[0], SCREENING_CHARGES[0] + 0.25}
    assert isinstance(plan.first, Menu)


@pytest.mark.parametrize("engine", [in_memory, pytest.param(within_limit, marks=pytest.mark.slow)])
def test_every_case_of_n_grams_detects_noise_reduced_to_0_6(engine, monkeypatch):
    """On both engines, each case detects the mutant on its own with few trials. The worst p-value is near 1e-22."""
    cases = [ngrams(engine=engine), *walk_cases(engine=engine)]
    cases += ngrams_cases() if engine is in_memory else []
    assert len(cases) == (6 if engine is in_memory else 3)
    real = selecting.NoisyLevels

    def quiet(rules, *others):
        less = [replace(rule, scale=0.6 * rule.scale) if hasattr(rule, "scale") else rule for rule in rules]
        return real(tuple(less), *others)

    monkeypatch.setattr(selecting, "NoisyLevels", quiet)
    monkeypatch.setattr(voting, "NoisyLevels", quiet)
    for case in cases:
        finding = examine(case, TRIALS // 4)
        assert finding.off_plan, finding


def caught(number, without, asked):
    """Check that these trials detect the mutant, which has a wrong probability without a canary."""
    case = list(walk_cases())[number]
    trials = int(asked * case.share / case.copies) * case.copies
    assert surely_strays(case.exact[1], without, trials)
    finding = examine(case, asked)
    assert finding.off_plan, finding


@pytest.mark.slow
def test_a_second_chance_pass_with_half_the_noise_is_detected(monkeypatch):
    """The sums of at least 0.3 of all pairs have less variance, which is 0.25 of the cap plus a quarter of the rest."""
    real = selecting.NoisyLevels

    def quiet(rules, secret, purpose):
        halved = [halved_noise(rule) if hasattr(rule, "scale") and purpose == "noise/sweep" else rule for rule in rules]
        return real(tuple(halved), secret, purpose)

    monkeypatch.setattr(selecting, "NoisyLevels", quiet)
    monkeypatch.setattr(voting, "NoisyLevels", quiet)
    plan = vp.NGrams(3).plan(BUDGET)
    least = event_of(plan.later, BUDGET.delta)
    usual = chance(plan.later, least, canary=False)
    variance = plan.later * (0.25 + 0.75 / 4 + 0.02)
    caught(0, 0.7 * usual + 0.3 * float(ndtr(-least / sqrt(variance))), asked=2 * TRIALS)


def halved_noise(rule):
    """Return a rule with half its noise."""
    return type(rule)(rule.noise, rule.scale / 2, rule.threshold_units, rule.unit)


def test_a_second_chance_pass_with_a_sixteenth_of_its_charge_is_detected(monkeypatch):
    """In the mutant, users get four times the bound that fits the noise, so three users move a pair too far."""
    real = voting.LaterPasses._paid  # This method rejects a mechanism that requests less.

    def cheap(self, step, bounding):
        charge = real(self, step, bounding)
        return replace(charge, cost=charge.cost // 16) if charge.rates == (BOUND_STEPS,) else charge

    monkeypatch.setattr(voting.LaterPasses, "_paid", cheap)
    plan = vp.NGrams(3).plan(BUDGET)
    least = event_of(plan.later, BUDGET.delta)
    usual = chance(plan.later, least, canary=False)
    more = LIKELY.others * 0.7 * plan.later
    caught(0, 0.7 * usual + 0.3 * float(ndtr((more - least) / sqrt(plan.later))), asked=TRIALS // 2)
