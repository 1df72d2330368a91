"""Tests of levels, bands and thresholds of votes, including their distributions, constraints and faults."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from voxpop.engine.local.weigh import Histogram
from voxpop.mechanisms.ngrams.candidates import Candidates, Grams
from voxpop.mechanisms.ngrams.constants import ALIKE, FINE_CUTPOINTS, MANY
from voxpop.mechanisms.ngrams.forecast import Estimates, Forecast, bands_of, calibrated_cells, worthless
from voxpop.mechanisms.ngrams.votes import ThresholdVote, Votes, cutpoints_above, cutpoints_below
from voxpop.privacy.decisions import FixedRule, NoisyLevels, ReleaseDecisions, ThresholdRule
from voxpop.privacy.gate import simulating as selecting
from voxpop.privacy.secret import Secret

UNIT = 64
RULE = ThresholdRule("gaussian", 2.0, 3 * UNIT, 1 / UNIT)
CUTPOINTS = np.array([-0.5, 0.5, 1.0, 2.0, 3.0])
FALSE_ALARM = 1e-10


def pairs_of(words):
    """Return all pairs of `words` words as candidates."""
    return Candidates.all_valid(Grams.of_tokens(words), words, single=False)


def graded(vote, histogram, secret):
    """Return the names and levels of candidates in a vote, computed as in the gate."""
    hits = selecting.simulated(vote.candidates, vote.rules, secret, "length 2")
    return histogram.noisy_levels(NoisyLevels(vote.rules, secret, "noise/length 2"), *hits)


def levels_of(vote, weights, runs):
    """Return the level of every candidate in each run, or 0 if it reaches no cutpoint."""
    everything = vote.candidates.names(np.arange(vote.candidates.count))
    held = np.flatnonzero(weights)
    found = np.zeros((runs, everything.size), np.int64)
    for run in range(runs):
        names, levels = graded(vote, Histogram(everything[held], weights[held]), Secret.from_seed(run))
        assert (np.diff(names) > 0).all()
        assert (levels > 0).all()
        found[run, np.searchsorted(everything, names)] = levels
    return found


def off(found, vote, weights):
    """Return whether too many or too few candidates reach a cutpoint (false alarm below `FALSE_ALARM` per call)."""
    tests = len(vote.rules) * np.unique(weights).size
    for weight in np.unique(weights):
        own = found[:, weights == weight]
        for cutpoint, rule in enumerate(vote.rules):
            reached, chance = np.count_nonzero(own > cutpoint), float(rule.exact(int(weight)))
            tail = min(binom.cdf(reached, own.size, chance), binom.sf(reached - 1, own.size, chance))
            if tail < FALSE_ALARM / (2 * tests):
                return True
    return False


def test_levels_have_the_exact_distribution():
    """Candidates with and without users reach each cutpoint with the exact probability (false alarm 1e-10)."""
    vote = ThresholdVote.of(pairs_of(12), RULE, CUTPOINTS)
    weights = np.tile([0, 0, 0, 2 * UNIT, 5 * UNIT, 9 * UNIT], 24)
    assert not off(levels_of(vote, weights, 120), vote, weights)


@pytest.mark.parametrize("fault", ["levels of one kind", "another chance", "too few hits"])
def test_wrong_distributions_of_levels_are_detected(fault, monkeypatch):
    """Candidates without users never go above the lowest cutpoint, go above it too rarely, or reach it too rarely."""
    if fault == "levels of one kind":
        monkeypatch.setattr(selecting, "FixedRule", lambda chance: FixedRule(chance * 0))
    if fault == "another chance":
        monkeypatch.setattr(selecting, "FixedRule", lambda chance: FixedRule(chance / 2))
    if fault == "too few hits":
        real = selecting.spurious_hits
        rarer = lambda candidates, chance, *rest: real(candidates, chance**2, *rest)  # noqa: E731
        monkeypatch.setattr(selecting, "spurious_hits", rarer)
    vote = ThresholdVote.of(pairs_of(12), RULE, CUTPOINTS)
    weights = np.tile([0, 0, 0, 2 * UNIT, 5 * UNIT, 9 * UNIT], 24)
    assert off(levels_of(vote, weights, 120), vote, weights)


@given(st.lists(st.integers(0, 12 * UNIT), min_size=1, max_size=30), st.integers(0, 99))
def test_a_level_is_the_number_of_thresholds_reached(weights, seed):
    """The same draw is compared with all thresholds, so each decision equals that of a separate rule."""
    secret, names = Secret.from_seed(seed), np.arange(len(weights))
    rules = ThresholdVote.of(None, RULE, CUTPOINTS).rules
    levels = NoisyLevels(rules, secret, "noise")(np.array(weights), names)
    alone = [ReleaseDecisions(rule, secret, "noise")(np.array(weights), names, None) for rule in rules]
    assert (levels == np.sum(alone, axis=0)).all()
    assert all((later <= earlier).all() for earlier, later in pairwise(alone))


def test_the_planned_rule_is_one_of_the_cutpoints():
    """Length 1 and votes with published thresholds release grams by the rule of the plan, so it must be a cutpoint."""
    vote = ThresholdVote.of(None, RULE, cutpoints_above(1.5, 6.5))
    assert vote.rules[0] == RULE
    assert (np.diff(vote.thresholds) > 0).all()
    both = ThresholdVote.of(pairs_of(9), RULE, np.append(cutpoints_below(1.5, 9, 81), cutpoints_above(1.5, 6.5)))
    assert RULE in both.rules
    assert both.rules.index(RULE) == FINE_CUTPOINTS


def test_the_number_of_empty_candidates_is_estimated_from_candidates_below_cutpoints():
    """Of 2,000 candidates, 1,000 have no users and 1,000 have many users."""
    votes = Votes(np.array([[1300, 1010]]), np.array([2000]), np.array([0.3, 0.01]))
    assert votes.empty[0] == pytest.approx(1000, rel=0.01)


def forecast_of(words, seed):
    """Return forecasts of all pairs of words."""
    rng = np.random.default_rng(seed)
    estimates = Estimates(rng.integers(1, 400, words), 0.25)
    return Forecast.of(pairs_of(words), estimates, np.full(words, estimates.total), 0.25)


@given(st.integers(3, 40), st.integers(0, 99), st.floats(0.01, 4))
def test_bands_partition_all_candidates(words, seed, least):
    """Each candidate is in exactly one band, which its forecast determines, and the sizes are exact."""
    forecast = forecast_of(words, seed)
    bands = bands_of(forecast.valid, forecast, least)
    names = forecast.valid.names(np.arange(forecast.valid.count))
    band = bands.of_names(names)
    assert np.bincount(band, minlength=bands.sizes.size).tolist() == bands.sizes.tolist()
    for number, each in enumerate(bands.sets):
        assert set(each.names(np.arange(each.count))) == set(names[band >= number])


def naive_estimate(cells, sigma):
    """Multiply each deviation from the mean by the share of the variance that noise does not explain."""
    mean = max(sum(cells) / len(cells), sigma / 16)
    spread = sum((x - sum(cells) / len(cells)) ** 2 for x in cells) / len(cells)
    between = max(0.0, spread - sigma**2)
    return [max(round(mean + between / (between + sigma**2) * (x - mean)), round(mean / 4), 1) for x in cells]


def test_estimates_shrink_to_the_mean_of_their_level():
    """The estimates equal those of the reference implementation.

    Measurements that contain only noise shrink to their mean.
    """
    rng = np.random.default_rng(3)
    levels = np.repeat([1, 2], ALIKE)
    cells = np.concatenate([rng.integers(-300, 900, ALIKE), rng.integers(5_000, 90_000, ALIKE)])
    mixed = rng.permutation(2 * ALIKE)
    found = calibrated_cells(cells[mixed], levels[mixed], 400.0)
    wanted = np.array([*naive_estimate(cells[:ALIKE], 400.0), *naive_estimate(cells[ALIKE:], 400.0)])[mixed]
    assert np.abs(found - wanted).max() <= 1
    noise = calibrated_cells(rng.normal(50, 400, 10_000).astype(np.int64), np.ones(10_000, np.int64), 400.0)
    assert noise.std() < 0.3 * 400
    assert calibrated_cells(np.array([], np.int64), np.array([], np.int64), 1.0).size == 0


def test_levels_with_few_grams_are_pooled():
    """Levels with few grams are pooled with adjacent levels, so that no mean is computed from few grams."""
    levels = np.array([1] * (ALIKE - 1) + [2] * (ALIKE - 1) + [3] * 5)
    cells = np.arange(levels.size) * 10
    assert (np.diff(calibrated_cells(cells, levels, 1e9)) == 0).all()


def test_unproductive_bands_are_skipped_at_the_next_length():
    """All bands before the first band with enough released grams are skipped.

    Small bands are ignored.
    """
    many = np.array([MANY * 10, MANY * 10, 5, MANY * 10])
    assert worthless(many, np.array([3, 4, 0, 900])) == 2
    assert worthless(many, np.array([900, 0, 0, 0])) == 0
    assert worthless(many, np.array([0, 0, 0, 0])) == 4
    assert worthless(np.array([5, 5]), np.array([0, 0])) == 0
