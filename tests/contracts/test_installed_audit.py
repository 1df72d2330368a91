"""Tests of the cases of `voxpop audit`, one for each mechanism.

Each case passes, and detects noise that is reduced to 0.6 times the planned noise.

With an error of 1e-12 for each of two checks, a false alarm of this file has a probability below 2e-11.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from voxpop.mechanisms.heavy_hitters import releasing as hitters_releasing
from voxpop.privacy import cumulative
from voxpop.privacy import path_budget as paths
from voxpop.privacy.gate import counts as ranking
from voxpop.privacy.gate import simulating as threshold_vote
from voxpop.privacy.gate import walks as voting
from voxpop.release.registry import MECHANISMS, load_object
from voxpop.testing import audit
from voxpop.testing.auditing import AUDITED, examine

pytestmark = pytest.mark.jit
ERROR, CUT = 1e-12, 0.6
TRIALS = {
    "items": 40_000,
    "ngrams": 80_000,
    "heavy-hitters": 40_000,
    "sequences": 40_000,
    "profile": 40_000,
    "top": 40_000,
    "keys": 40_000,
}


def quiet_items(monkeypatch):
    """Reduce the noise of every adaptive round."""
    real = cumulative.noisy_cells
    monkeypatch.setattr(cumulative, "noisy_cells", lambda weights, sigma, *rest: real(weights, sigma * CUT, *rest))


def quiet_ngrams(monkeypatch):
    """Reduce the noise of the votes on phrases."""
    real = threshold_vote.NoisyLevels

    def quiet(rules, *others):
        less = [replace(rule, scale=rule.scale * CUT) if hasattr(rule, "scale") else rule for rule in rules]
        return real(tuple(less), *others)

    monkeypatch.setattr(threshold_vote, "NoisyLevels", quiet)
    monkeypatch.setattr(voting, "NoisyLevels", quiet)


def quiet_hitters(monkeypatch):
    """Reduce the number of votes that a prefix needs, which replaces noise."""
    real = hitters_releasing.grown_trie

    def content(spelling, electorate, rules, gate):
        gate.proof = replace(gate.proof, theta=int(CUT * gate.proof.theta))
        return real(spelling, electorate, rules, gate)

    monkeypatch.setattr(hitters_releasing, "grown_trie", content)


def quiet_sequences(monkeypatch):
    """Reduce the noise of counts after contexts."""
    real = paths.laplace_noise
    monkeypatch.setattr(paths, "laplace_noise", lambda rate, *others: real(rate / CUT, *others))


def quiet_top(monkeypatch):
    """Reduce the noise of counts that are ranked."""
    real = ranking.GumbelNoise
    monkeypatch.setattr(ranking, "GumbelNoise", lambda rate, *rest: real(rate / CUT, *rest))


def quiet_keys(monkeypatch):
    """Reduce the noise of keys."""
    real = ranking.KeyNumbers
    monkeypatch.setattr(
        ranking, "KeyNumbers", lambda noise, *rest: real(replace(noise, rate=noise.rate / Fraction(3, 5)), *rest)
    )


QUIET = {
    "items": quiet_items,
    "ngrams": quiet_ngrams,
    "heavy-hitters": quiet_hitters,
    "sequences": quiet_sequences,
    "profile": quiet_items,
    "top": quiet_top,
    "keys": quiet_keys,
}


def test_each_mechanism_with_noise_has_a_case():
    """Counts have no separate case, because sequences have the same noise, and rankings use the same counts."""
    assert {each.command for each in MECHANISMS} - set(AUDITED) == {"count"}
    assert set(AUDITED) == set(QUIET)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", AUDITED)
def test_the_case_of_each_mechanism_passes(mechanism):
    """The case passes with fresh secrets, and can show more than half of epsilon."""
    finding = audit(mechanism, TRIALS[mechanism], ERROR)
    assert finding.passed, finding
    assert finding.epsilon_exact > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", AUDITED)
def test_the_case_detects_noise_reduced_to_three_fifths(mechanism, monkeypatch):
    """The case is built from the plan, but the release runs with less noise than planned."""
    case = load_object(AUDITED[mechanism])()
    QUIET[mechanism](monkeypatch)
    finding = examine(case, TRIALS[mechanism], ERROR)
    assert finding.refuted or finding.off_plan, finding
    assert np.isfinite(finding.delta_shown)
