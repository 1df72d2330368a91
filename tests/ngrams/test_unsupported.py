"""Tests of candidates without users that reach a threshold only because of noise.

Hits have the exact distribution, and computations in doubles agree with computations to eighty digits.
"""

import numpy as np
import pytest
from scipy.stats import binom

from support.exact import By
from voxpop.engine.local.weigh import Histogram
from voxpop.errors import BudgetError
from voxpop.mechanisms.ngrams.candidates import Candidates, Grams
from voxpop.privacy import precise
from voxpop.privacy.gate import simulating
from voxpop.privacy.gate.simulating import hits_below, spurious_hits
from voxpop.privacy.sampling import SAMPLING_BAND
from voxpop.privacy.secret import Secret

FALSE_ALARM = 1e-9
"""The probability of a false alarm in each call of `are_binomial`."""


def are_binomial(hits, trials, chance):
    """Return whether all counts are plausible for a binomial distribution."""
    each = FALSE_ALARM / (2 * np.size(hits))
    low, high = binom.ppf(each, trials, chance), binom.isf(each, trials, chance)
    return bool(np.all((hits >= low) & (hits <= high)))


@pytest.mark.parametrize(("count", "chance"), [(50, 0.3), (3, 0.5), (1, 0.01), (400, 0.002)])
def test_every_candidate_is_hit_independently_with_the_same_probability(count, chance):
    """The test counts hits on single candidates and on pairs of consecutive candidates over 4,000 secrets."""
    runs = 4000
    hits = np.zeros((runs, count), np.int64)
    for run in range(runs):
        found = hits_below(count, precise.number(chance), Secret.from_seed(run), "test")
        assert np.all(np.diff(found) > 0)
        hits[run, found] = 1
    assert are_binomial(hits.sum(0), runs, chance)
    assert not are_binomial(hits.sum(0), runs, 1.5 * chance) or chance < 0.1
    for side in (0, 1):
        together = hits[:, side : count - 1 : 2] * hits[:, side + 1 : count : 2]
        assert are_binomial(together.sum(), together.size, chance**2)


def test_doubles_and_exact_computations_give_the_same_hits():
    """If every gap between hits is computed exactly, the hits do not change, whether gaps are small or large."""
    for count, chance in [(10**5, 1e-3), (10**12, 3e-10), (1000, 0.9), (2**46, 1e-13)]:
        quick, exact = (
            hits_below(count, precise.number(chance), Secret.from_seed(3), "test", band=band).tolist()
            for band in (SAMPLING_BAND, 1.0)
        )
        assert quick == exact
        assert quick


def test_supported_candidates_get_separate_noise():
    """If a candidate has users, its own noisy level replaces its simulated hit. All other hits remain."""
    candidates = Candidates.all_valid(Grams.of_tokens(9), 9, single=False)
    everything = spurious_hits(candidates, precise.number(0.999999), Secret.from_seed(1), "x")
    assert everything.size == 81
    supported = everything[::2]
    histogram = Histogram(supported[::-1], np.ones(supported.size, np.int64))
    theirs = np.full(81, 2)
    rest, levels = histogram.noisy_levels(
        By(lambda weights, names, texts: np.zeros(weights.size, np.int64)), everything, theirs
    )
    assert rest.tolist() == everything[1::2].tolist()
    assert (levels == 2).all()
    one, levels = histogram.noisy_levels(
        By(lambda weights, names, texts: 3 * (names == everything[4])), everything, theirs
    )
    assert one.tolist() == sorted([*everything[1::2].tolist(), everything[4]])
    assert levels[one == everything[4]].tolist() == [3]


def test_too_many_candidates_are_rejected(monkeypatch):
    """The numbers that identify candidates must not overflow, so the error recommends a lower limit."""
    monkeypatch.setattr(simulating, "_MOST_CANDIDATES", 80)
    candidates = Candidates.all_valid(Grams.of_tokens(9), 9, single=False)
    with pytest.raises(BudgetError, match="lower limit"):
        spurious_hits(candidates, precise.number(0.1), Secret.from_seed(1), "x")
