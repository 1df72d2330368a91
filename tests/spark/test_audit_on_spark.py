"""Audit on Spark: the cases of a memory limit, with the same exact probabilities, and a twin that is caught.

False alarms: at most 2e-12 a case.
"""

import pytest
from scipy.special import ndtr

import voxpop as vp
from voxpop.privacy.decide import ThresholdRule
from voxpop.testing.audit import examine, surely_refuted
from voxpop.testing.audit.engines import on_spark
from voxpop.testing.audit.memory_cases import engine_cases
from voxpop.testing.audit.union_cases import BUDGET, LIMIT, Event
from voxpop.union import plan as plan_module

ERROR = 1e-12
COPIES = 12_000
"""Of one release of set union: of the other cases 3,000 and 4,900."""


@pytest.mark.slow
def test_no_case_shows_more_than_the_claim_on_spark(spark, record_property):
    """Set union and n-grams as they run by default, where order matters.

    Two releases of each side, which is the least: on Spark a release takes its time whatever the number of copies.
    """
    findings = [examine(case, case.copies, ERROR) for case in engine_cases(on_spark(spark), COPIES)]
    assert len(findings) == 5
    for finding in findings:
        print(finding)
        assert finding.passed, finding
        assert finding.epsilon_shown <= finding.epsilon
        assert finding.delta_shown <= finding.delta
    assert max(finding.epsilon_shown for finding in findings) > 0.1
    trials = sum(2 * finding.counts.trials for finding in findings)
    most = max(finding.epsilon_shown for finding in findings)
    record_property("figure", f"{len(findings)} cases, {trials:,} trials, at most {most:.2f} of the epsilon claimed")


@pytest.mark.slow
def test_half_the_noise_is_caught_on_spark(spark, monkeypatch):
    """Coins that travel to executors with half the noise that was charged: caught with probability above 0.999."""
    plan = vp.SetUnion(limit=LIMIT, weighting="l2-descent").plan(BUDGET)
    others, trials = int(plan.threshold), 40_000
    event = Event(plan, 1, 1, on_spark(spark), 40_000)
    exact = tuple(float(ndtr((k - plan.threshold) / plan.scale)) for k in (others + 1, others))
    case = event.case("near", [(0,)] * (others + 1), [(0,)] * others, exact)
    real = plan_module.RoundPlan.rule

    def quiet(self, budget):
        rule = real(self, budget)
        return ThresholdRule(rule.noise, rule.scale / 2, rule.threshold_units, rule.unit)

    monkeypatch.setattr(plan_module.RoundPlan, "rule", quiet)
    twin = [float(ndtr(2 * (k - plan.threshold) / plan.scale)) for k in (others + 1, others)]
    assert surely_refuted(*twin, trials, BUDGET.epsilon, BUDGET.delta)
    finding = examine(case, trials)
    assert finding.refuted, finding
    assert finding.off_plan
