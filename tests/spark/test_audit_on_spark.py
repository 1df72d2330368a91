"""The audit on Spark, with the cases and exact probabilities of the audit with a memory limit.

The audit must also detect broken variants. The probability of a false alarm is at most 2e-12 per case.
"""

from dataclasses import replace

import pytest
from scipy.special import ndtr, ndtri

import voxpop as vp
from audits.engines import on_spark, watched_on_spark
from audits.memory_cases import engine_cases
from audits.union_cases import BUDGET, LIMIT, Event
from audits.walk_cases import walk_cases
from support.power import surely_refuted, surely_strays
from voxpop.privacy.decisions import ThresholdRule
from voxpop.privacy.gate import rounds as running
from voxpop.privacy.gate import simulating as votes
from voxpop.privacy.gate import walks as voting
from voxpop.testing.auditing import examine

ERROR = 1e-12
COPIES = 12_000
"""The number of copies in one release of set union. All other cases have 3,000 and 4,900 copies."""


@pytest.mark.slow
def test_no_case_shows_more_than_the_claim_on_spark(spark, record_property):
    """The cases are set union and n-grams with default settings, which depend on the order of users.

    Each side has two releases, which is the minimum, because the time of a release hardly depends on the number of
    copies.
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
def test_every_default_pass_of_n_grams_is_audited_on_spark(spark, record_property):
    """The passes are the screening vote, votes and the second-chance pass, with individual budgets, in two places.

    Each side has one release, in which hundreds or thousands of pairs of words are trials with known probabilities.
    """
    findings = [examine(case, case.copies, ERROR) for case in walk_cases(engine=watched_on_spark(spark))]
    assert len(findings) == 2
    for finding in findings:
        print(finding)
        assert finding.passed, finding
    trials = sum(2 * finding.counts.trials for finding in findings)
    most = max(finding.epsilon_shown for finding in findings)
    record_property("figure", f"{len(findings)} cases, {trials:,} trials, at most {most:.2f} of the epsilon claimed")


@pytest.mark.slow
def test_noise_reduced_to_sixty_percent_is_detected_in_every_pass_on_spark(spark, monkeypatch):
    """The number of releases is so large that the probability of missing the reduced noise is below 1e-6."""
    cut = 0.6
    real = votes.NoisyLevels

    def quiet(rules, *others):
        less = [replace(rule, scale=cut * rule.scale) if hasattr(rule, "scale") else rule for rule in rules]
        return real(tuple(less), *others)

    def surely(case, releases):
        usual = case.exact[1]
        return surely_strays(usual, float(ndtr(ndtri(usual) / cut)), releases * case.copies, ERROR, miss=1e-6)

    monkeypatch.setattr(votes, "NoisyLevels", quiet)
    monkeypatch.setattr(voting, "NoisyLevels", quiet)
    for case in walk_cases(engine=watched_on_spark(spark)):
        releases = next(count for count in (2, 3, 4, 5) if surely(case, count))
        finding = examine(case, int(releases * case.copies / case.share), ERROR)
        assert finding.counts.trials >= releases * case.copies
        assert finding.off_plan, finding


@pytest.mark.slow
def test_half_the_noise_is_detected_on_spark(spark, monkeypatch):
    """Executors receive decisions with half the charged noise. This fault is detected with probability above 0.999."""
    plan = vp.papers.SetUnion(LIMIT, "policy-gaussian", 5.0, "joint").plan(BUDGET)
    others, trials = int(plan.threshold), 40_000
    event = Event(plan, 1, 1, on_spark(spark), 40_000)
    exact = tuple(float(ndtr((k - plan.threshold) / plan.scale)) for k in (others + 1, others))
    case = event.case("near", [(0,)] * (others + 1), [(0,)] * others, exact)
    real = running.threshold_rule

    def quiet(first):
        rule = real(first)
        return ThresholdRule(rule.noise, rule.scale / 2, rule.threshold_units, rule.unit)

    monkeypatch.setattr(running, "threshold_rule", quiet)
    twin = [float(ndtr(2 * (k - plan.threshold) / plan.scale)) for k in (others + 1, others)]
    assert surely_refuted(*twin, trials, BUDGET.epsilon, BUDGET.delta)
    finding = examine(case, trials)
    assert finding.refuted, finding
    assert finding.off_plan
