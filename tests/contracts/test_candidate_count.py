"""Exact hockey-stick divergences that show why the number of candidates must be exact.

One user has 100 grams that no other user has. With the user, each gram is released if a weight of 0.1 plus noise
reaches the threshold. Without the user, a gram is released if the simulation of candidates without weight picks it. If
the number of candidates is exact, the probability of this pick is the probability that a gram of weight zero is
released. If the number is wrong by a factor r, the probability is r times as large. The divergence depends only on how
many of the 100 grams are released.
"""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from voxpop.mechanisms.ngrams.candidates import Candidates, Grams
from voxpop.privacy import precise
from voxpop.privacy.gate.simulating import spurious_hits
from voxpop.privacy.gaussian import delta
from voxpop.privacy.secret import Secret

SIGMA, WEIGHT, HELD, CHANCE, EPSILON = 3.98371, 0.1, 100, 1e-4, 1.0


def hockey_stick(with_user, without_user, epsilon=EPSILON):
    """Return the exact delta between two binomial distributions."""
    outcomes = np.arange(HELD + 1)
    first, second = binom.pmf(outcomes, HELD, with_user), binom.pmf(outcomes, HELD, without_user)
    return float(np.maximum(first - np.exp(epsilon) * second, 0.0).sum())


def both_directions(off_by):
    """Return the deltas in both directions between the collections with and without the user."""
    with_user = ndtr(ndtri(CHANCE) + WEIGHT / SIGMA)
    return hockey_stick(with_user, CHANCE * off_by), hockey_stick(CHANCE * off_by, with_user)


def test_the_bound_is_valid_for_the_exact_number_of_candidates():
    """Delta is far below the delta of a Gaussian mechanism of sensitivity 1."""
    assert max(both_directions(1.0)) <= delta(EPSILON, 1 / SIGMA)


@pytest.mark.parametrize(("off_by", "least"), [(0.5, 2.5e-5), (2.0, 3.2e-5), (0.0, 1e-2)])
def test_a_wrong_number_of_candidates_violates_the_bound(off_by, least):
    """If the number is halved, doubled, or so small that nothing is picked, delta is more than 7 times the claim."""
    assert max(both_directions(off_by)) > least > 7 * delta(EPSILON, 1 / SIGMA)


def chance_of_empty(count_factor, runs=3000):
    """Return the picks and trials of the real simulation if the number of candidates is multiplied by a factor."""
    candidates = Candidates.all_valid(Grams.of_tokens(20), 20, single=False)
    chance = precise.number(0.02) * precise.number(count_factor)
    hits = sum(spurious_hits(candidates, chance, Secret.from_seed(run), "audit").size for run in range(runs))
    return hits, runs * candidates.count


@pytest.mark.jit
@pytest.mark.parametrize(("factor", "sound"), [(1.0, True), (0.9, False), (1.1, False)])
def test_the_simulation_detects_a_number_that_is_wrong_by_a_tenth(factor, sound):
    """False alarms and misses each have a probability below 1e-9."""
    hits, trials = chance_of_empty(factor)
    inside = binom.ppf(5e-10, trials, 0.02) <= hits <= binom.isf(5e-10, trials, 0.02)
    assert bool(inside) == sound
