"""How likely items of one user alone are released by rounds that add up evidence."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from voxpop.privacy.evidence import EvidenceRounds, novel_release

FALSE_ALARM = 1e-9

ROUNDS = EvidenceRounds(
    mus=(0.6, 0.8, 1.1), parts=(0.4, 0.7, 1.2), thresholds=(4.0, 3.6, 3.2), floors=(-0.5, 1.0), margin=0.0
)


def simulated(rounds, novel, runs, seed, grow=True):
    """Run the rounds as they are for a user with novel items alone, weights shared evenly by what is left.

    Returns how many runs released one. With `grow` off, weights stay what they were at first.
    """
    rng = np.random.default_rng(seed)
    evidence = np.zeros((runs, novel))
    left = np.ones((runs, novel), bool)
    released = np.zeros(runs, bool)
    for number, (mu, part) in enumerate(zip(rounds.mus, rounds.parts, strict=True)):
        many = left.sum(1) if grow else np.full(runs, novel)
        weight = 1 / np.sqrt(np.maximum(many, 1))[:, None]
        evidence += part * (mu * weight + rng.standard_normal(evidence.shape))
        spread = rounds.spreads[number]
        hit = left & (evidence >= rounds.thresholds[number] * spread)
        released |= hit.any(1)
        left &= ~hit
        if number < len(rounds.floors):
            left &= evidence >= rounds.floors[number] * spread
    return int(released.sum())


@pytest.mark.parametrize("novel", [1, 2, 7, 30])
def test_the_bound_holds_for_the_rounds_as_they_are(novel):
    """The number of runs that release a novel item is no more than the bound allows (false alarm 1e-9)."""
    runs = 200_000 // novel
    most = binom.isf(FALSE_ALARM, runs, novel_release(ROUNDS, novel))
    assert simulated(ROUNDS, novel, runs, seed=novel) <= most


def test_the_bound_is_close():
    """At the number of items that is worst, the bound is less than twice what happens (false alarm 1e-9)."""
    runs = 20_000
    found = simulated(ROUNDS, 30, runs, seed=1)
    assert found > binom.isf(1 - FALSE_ALARM, runs, novel_release(ROUNDS, 30) / 2)


def test_weights_that_do_not_grow_would_promise_too_much():
    """A bound that forgot how weights grow as others are dropped is exceeded by the rounds as they are."""
    runs = 60_000
    forgetful = simulated(ROUNDS, 30, runs, seed=2, grow=False) / runs
    assert simulated(ROUNDS, 30, runs, seed=3) > binom.isf(FALSE_ALARM, runs, 1.2 * forgetful)


@pytest.mark.parametrize("limit", [1, 5, 100, 1000])
def test_one_round_is_the_formula(limit):
    """Without earlier rounds the bound is the sum over novel items, up to the grid."""
    one = EvidenceRounds(mus=(0.8,), parts=(1.7,), thresholds=(4.5,), floors=())
    exact = max(t * float(ndtr(0.8 / t**0.5 - 4.5)) for t in range(1, limit + 1))
    assert 1.0 <= novel_release(one, limit) / exact < 1.1


def test_finer_grids_bound_closer():
    """Every grid gives a bound, so the finest is the lowest."""
    bounds = [novel_release(ROUNDS, 20, fineness) for fineness in (1 / 20, 1 / 60, 1 / 180)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] < 2 * bounds[2]


def test_monotone():
    """More items, lower thresholds and a wider margin never make a release less likely."""
    base = novel_release(ROUNDS, 20)
    assert novel_release(ROUNDS, 40) >= base
    lower = EvidenceRounds(ROUNDS.mus, ROUNDS.parts, (4.0, 3.6, 3.0), ROUNDS.floors)
    assert novel_release(lower, 20) > base
    wider = EvidenceRounds(ROUNDS.mus, ROUNDS.parts, ROUNDS.thresholds, ROUNDS.floors, margin=0.05)
    assert novel_release(wider, 20) > base
