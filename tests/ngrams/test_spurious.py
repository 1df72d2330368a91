"""Tests of the number of spurious grams of each length if nearly all candidates have no users.

The cutpoint of a band is chosen after the votes, so more empty candidates reach this cutpoint than a fixed one. For n
empty candidates, let W be the maximum, over all cutpoints i, of the number of candidates above cutpoint i minus (1 + a)
n p_i. For each length and its part of the second-chance pass, the excess of m bands is below `sum_bound`, except with
probability `FALSE_ALARM` (docs/privacy/ngrams.md, "Spurious grams"). For the whole file, the probability of a false
alarm is below 1e-8. Charges vary with the votes, so the total charge of all runs can be up to a tenth below n p_i. For
small votes, `test_cutpoints.py` shows exactly that the mean of charges is never too low.
"""

import numpy as np
import pytest
from scipy.optimize import brentq

import voxpop as vp
from support.corpora import corpus_of
from voxpop.mechanisms.ngrams import votes as thresholds
from voxpop.mechanisms.ngrams.candidates import DeferredList
from voxpop.privacy.decisions import FixedRule
from voxpop.privacy.gate import simulating as selecting

RUNS, LONGEST, FALSE_ALARM = 10, 5, 1e-9
pytestmark = pytest.mark.jit
MOST_BANDS = 24
"""An upper bound on the number of bands of a length, including its pieces in the second-chance pass."""
SLACK, SHORT = 0.25, 0.9
"""The slack a, and the smallest allowed ratio of the charges of all runs to their expected value."""
SAID = [[f"said{number:02}{place}" for place in range(LONGEST)] for number in range(40)]
HELD = {tuple(each[first:last]) for each in SAID for first in range(LONGEST) for last in range(first + 2, LONGEST + 1)}
PLAN = {"max_length": LONGEST, "max_phrases_per_user": 10, "max_spurious_share": 0.3}


@pytest.fixture(scope="module")
def mostly_empty():
    """Return a corpus of 200 words that never occur in pairs, and sentences of five other words with 30 users each."""
    users = [[[f"word{number:03}"]] for number in range(200) for _ in range(40)]
    return corpus_of(users + [[sentence] for sentence in SAID for _ in range(30)])


def numbers_by_length(corpus, monkeypatch, mechanism=vp.NGrams):
    """Return arrays of numbers for all lengths from 2.

    The arrays contain the total number of spurious grams in all runs, its estimate, and the maximum number of bands.
    """
    plan, found = mechanism(**PLAN).plan(vp.Budget(8, 1e-4)), np.zeros((2, LONGEST - 1))
    real, pieces, bands = DeferredList.lengths_of, [], np.zeros(LONGEST - 1, int)

    def seen(self, by_piece):
        pieces[:] = [each.pieces for each in self.lengths]
        return real(self, by_piece)

    monkeypatch.setattr(DeferredList, "lengths_of", seen)
    for seed in range(RUNS):
        pieces.clear()
        release, more = plan.release(corpus, seed=seed), np.zeros(LONGEST - 1, int)
        for gram in release.each_gram():
            if len(gram) > 1:
                found[0, len(gram) - 2] += tuple(gram) not in HELD
        for run in release.plan.ran[1:]:
            found[1, run.length - 2] += run.spurious
            more[run.length - 2] = len(run.bands)
        second = release.plan.second_chance.spurious if release.plan.second_chance else ()
        found[1, : len(second)] += second
        more[: len(pieces)] += np.array(pieces, int)
        bands = np.maximum(bands, more)
    monkeypatch.setattr(DeferredList, "lengths_of", real)
    assert bands.max() <= MOST_BANDS
    return *found, bands


def sum_bound(theta, bands):
    """Return x with e^(m - theta x) (theta x / m)^m = `FALSE_ALARM` for m bands."""
    scaled = brentq(lambda x: bands - x + bands * np.log(x / bands) - np.log(FALSE_ALARM), bands, 100 + 10 * bands)
    return scaled / theta


def too_many(found, estimated, bands):
    """Return, for each length, whether there are more spurious grams than the choice of cutpoints explains."""
    theta = brentq(lambda x: np.expm1(x) - x * (1 + SLACK), 1e-6, 2.0)
    excess = np.array([sum_bound(theta, RUNS * each) if each else 0.0 for each in bands])
    return found > (1 + SLACK) * estimated / SHORT + excess


@pytest.mark.parametrize("mechanism", [vp.NGrams, vp.papers.DPNE])
def test_no_length_has_more_spurious_grams_than_reported(mechanism, mostly_empty, monkeypatch):
    """The default (with screening votes and the second-chance pass) and `DPNE` satisfy the bound."""
    found, estimated, bands = numbers_by_length(mostly_empty, monkeypatch, mechanism)
    print(mechanism, found / RUNS, estimated / RUNS, bands)
    assert not too_many(found, estimated, bands).any()
    assert (estimated[:3] > 0).all()


@pytest.mark.parametrize("fault", ["too many go on", "a third of those below"])
def test_more_spurious_grams_are_detected(fault, mostly_empty, monkeypatch):
    """One fault raises too many empty candidates above the lowest cutpoint, and the other counts too few below it."""
    if fault == "too many go on":
        monkeypatch.setattr(selecting, "FixedRule", lambda chance: FixedRule(min(1, 3 * chance)))
    if fault == "a third of those below":
        choose, charge = thresholds.at_prices, thresholds.charges
        monkeypatch.setattr(thresholds, "at_prices", lambda reached, below, *more: choose(reached, below // 3, *more))
        monkeypatch.setattr(thresholds, "charges", lambda *all_of: charge(*all_of) / 3)
    found, estimated, bands = numbers_by_length(mostly_empty, monkeypatch)
    print(fault, found / RUNS, estimated / RUNS, bands)
    assert too_many(found, estimated, bands)[0]


def test_a_higher_eta_is_detected_if_thresholds_are_published(mostly_empty, monkeypatch):
    """The probability of a hit is three times as large as reported, up to 0.9."""
    real = selecting.spurious_hits
    monkeypatch.setattr(selecting, "spurious_hits", lambda who, p, *rest: real(who, min(3 * p, 0.9), *rest))
    assert too_many(*numbers_by_length(mostly_empty, monkeypatch, vp.papers.DPNE))[:2].all()


@pytest.mark.parametrize("empty", [30, 1000])
def test_the_excess_is_bounded_for_the_worst_cutpoint(empty):
    """For the worst choice of cutpoints, the mean excess over (1 + a) n p_i is below 1 / (2 a) in 4,000 draws.

    The sum of the excess is below `sum_bound`, except with probability 1e-9.
    """
    chances, rng, draws = np.geomspace(1e-4, 0.9, 60), np.random.default_rng(5), 4_000
    # For each draw, the number of candidates with a score below each chance.
    places = np.searchsorted(chances, rng.random((draws, empty)), side="right") + 61 * np.arange(draws)[:, None]
    above = np.bincount(places.ravel(), minlength=61 * draws).reshape(draws, 61).cumsum(axis=1)[:, :-1]
    for slack in (0.1, SLACK, 1.0):
        theta = brentq(lambda x, slack=slack: np.expm1(x) - x * (1 + slack), 1e-6, 5.0)
        worst = np.maximum(0.0, (above - (1 + slack) * empty * chances).max(axis=1))
        assert worst.sum() < sum_bound(theta, draws)
        assert worst.mean() < 1 / (2 * slack)
    # With a = 0, no such bound exists, because the excess of the worst choice is of the order of sqrt(n).
    assert (above - empty * chances).max(axis=1).mean() > 0.25 * np.sqrt(empty)
