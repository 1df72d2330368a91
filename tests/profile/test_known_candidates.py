"""Tests of rounds over public candidates, including their cost, candidates without users, and neighbours."""

from math import fsum

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from support.corpora import corpus_of
from support.exact import released_known
from voxpop.errors import InternalError
from voxpop.mechanisms.rounds import known
from voxpop.mechanisms.rounds.known import plan_known
from voxpop.privacy import cumulative
from voxpop.privacy.cumulative import DROPPED, RELEASED, ScoreStep
from voxpop.privacy.gate.rounds import AdaptiveGate
from voxpop.privacy.sampling import noisy_cells
from voxpop.privacy.secret import Secret

NOBODY = corpus_of([])


def tokens(number):
    """Return `number` candidates."""
    return pa.array([f"2|{each}|x" for each in range(number)], pa.large_string())


def released(rounds, corpus, candidates, secret):
    """Return the released candidates."""
    square = fsum((each.shares.sensitivity / each.sigma) ** 2 for each in rounds.rounds) * (1 + 1e-12)
    return set(released_known(rounds, square, corpus, candidates, secret).to_pylist())


@pytest.mark.parametrize(("square", "limit", "number"), [(0.4, 100, 10**6), (2.0, 400, 50), (0.05, 102_400, 10**8)])
def test_the_rounds_spend_at_most_their_planned_mu(square, limit, number):
    """The noise spends at least 99.9 percent of the planned mu^2, and about 0.5 spurious candidates are expected."""
    rounds = plan_known(square, limit, number, 0.5)
    spent = fsum((each.shares.sensitivity / each.sigma) ** 2 for each in rounds.rounds)
    assert 0.999 * square < spent <= square
    assert 0.49 < rounds.spurious * number <= 0.5 * 1.005


def test_less_noise_than_charged_is_rejected(monkeypatch):
    """The deliberately broken variant has about a tenth less noise."""
    monkeypatch.setattr(known, "sqrt", lambda value: 1.1 * value**0.5)
    rounds = plan_known(0.4, 100, 1000, 0.5)
    with pytest.raises(InternalError, match="less noise"):
        released_known(rounds, 0.4, NOBODY, tokens(10), Secret.fresh())


def test_candidates_without_users_are_released_as_often_as_planned(monkeypatch):
    """In each of 3 runs, 500 of 100,000 candidates are expected to be released.

    The total number of these candidates is within 7 standard deviations (false alarm below 1e-11).

    The test also detects a variant without noise.
    """
    rounds = plan_known(1.0, 100, 100_000, 500)
    found = [len(released(rounds, NOBODY, tokens(100_000), Secret.from_seed(seed))) for seed in range(3)]
    # The probability is a bound that exceeds the exact value by at most two percent.
    assert abs(sum(found) - 1500) < 7 * 1500**0.5 + 30
    monkeypatch.setattr(
        AdaptiveGate, "_released_by_noise", lambda self, rounds, letters, starts: np.zeros(starts.size - 1, np.bool_)
    )
    assert not released(rounds, NOBODY, tokens(100_000), Secret.from_seed(0))


@given(weight=st.integers(0, 1 << 40), more=st.integers(0, 1 << 40), seed=st.integers(0, 2**32))
def test_noisy_cells_increase_with_the_weight(weight, more, seed):
    """With the same draw, a larger weight never has a lower cell, so users never prevent a release by noise."""
    draws = Secret.from_seed(seed).draws("test", np.arange(50, dtype=np.uint64), 0)
    one, other = (noisy_cells(np.full(50, each), 1.7, 1 << 30, 1 << 20, draws) for each in (weight, weight + more))
    assert (one <= other).all()


@pytest.mark.jit
def test_candidates_released_by_noise_do_not_depend_on_users():
    """With the same secret, additional users can only add released candidates."""
    rounds, candidates = plan_known(1.0, 100, 20_000, 400), tokens(20_000)
    rng = np.random.default_rng(1)
    users = [[[f"2|{each}|x" for each in rng.integers(0, 20_000, 30)]] for _ in range(2000)]
    secret = Secret.from_seed(4)
    alone, held = (released(rounds, corpus, candidates, secret) for corpus in (NOBODY, corpus_of(users)))
    assert 200 < len(alone) < len(held)
    assert alone <= held


def recorded(monkeypatch, rounds, corpus, candidates, secret):
    """Return the weights of all candidates that received noise, by round and name. Outcomes depend only on draws."""
    weights = {}

    def step(self, mine, names, score):
        draws = self.secret.draws(f"{self.purpose}/outcome", names[:, 0], names[:, 1])[:, 0]
        for name, weight in zip(names[:, 0].tolist(), mine.tolist(), strict=True):
            weights[self.purpose, name] = max(weight, weights.get((self.purpose, name), 0)) / 1
        states = (2 + draws % np.uint64(254)).astype(np.uint8)
        states[draws % np.uint64(11) == 0] = DROPPED
        states[draws % np.uint64(13) == 0] = RELEASED
        return score, states

    with monkeypatch.context() as patch:
        patch.setattr(ScoreStep, "__call__", step)
        released(rounds, corpus, candidates, secret)
    return weights


def farthest(monkeypatch, cases, rounds):
    """Return the largest squared change by one user, in units of sigma, and whether the same candidates get noise."""
    worst, same, rng = 0.0, True, np.random.default_rng(7)
    for case in range(cases):
        size = int(rng.integers(1, 9))
        names = [f"2|{each}|x" for each in range(size)]
        users = [
            [[names[each] for each in rng.integers(0, size, rng.integers(1, 12))]] for _ in range(rng.integers(1, 5))
        ]
        # The additional user also has candidates without other users.
        extra = [[*(f"2|own{each}|x" for each in range(rng.integers(0, 3))), *users[0][0]]]
        candidates = pa.array([*names, *(f"2|own{each}|x" for each in range(3)), "2|none|x"], pa.large_string())
        keys = rng.permutation(len(users) + 1).tolist()
        one, other = (
            recorded(monkeypatch, rounds, corpus, candidates, Secret.from_seed(case))
            for corpus in (corpus_of(users, keys[1:]), corpus_of([*users, extra], [*keys[1:], keys[0]]))
        )
        same &= one.keys() == other.keys()
        total = 0.0
        for number, each in enumerate(rounds.rounds):
            purpose = f"noise/round {number + 1}/candidates"
            moved = [other.get(key, 0) - one.get(key, 0) for key in {*one, *other} if key[0] == purpose]
            total += (np.linalg.norm(moved) / each.shares.setting.unit / each.sigma) ** 2
        worst = max(worst, total)
    return worst, same


def test_one_user_changes_weights_by_at_most_the_charge(monkeypatch):
    """The change covers all rounds and candidates. The same candidates receive noise with and without the user."""
    square = 0.8
    worst, same = farthest(monkeypatch, 60, plan_known(square, 100, 1000, 0.5))
    assert same
    assert 0.5 * square < worst <= square
    tight, _ = farthest(monkeypatch, 30, plan_known(square, 2, 1000, 0.5))
    assert tight <= square


def test_the_search_detects_noise_on_only_candidates_with_users(monkeypatch):
    """In this broken variant, candidates without users receive no noise, so a release would reveal a single user."""
    monkeypatch.setattr(
        AdaptiveGate, "_released_by_noise", lambda self, rounds, letters, starts: np.zeros(starts.size - 1, np.bool_)
    )
    assert not farthest(monkeypatch, 10, plan_known(0.8, 100, 1000, 0.5))[1]


def shown(rounds):
    """Return the release rates of 20,000 candidates without users and of 20,000 candidates with one user."""
    number = 20_000
    candidates = tokens(number)
    alone = [len(released(rounds, NOBODY, candidates, Secret.fresh())) / number]
    corpus = corpus_of([[[token]] for token in candidates.to_pylist()])
    return alone[0], len(released(rounds, corpus, candidates, Secret.fresh())) / number


@pytest.mark.jit
def test_candidates_of_one_user_show_at_most_the_planned_mu(monkeypatch):
    """The release rates with and without one user differ by at most those of a Gaussian with the planned mu.

    Less noise than planned is detected. The probability of a false alarm is below 1e-9.
    """
    rounds = plan_known(1.0, 100, 20_000, 2_000)
    without, joined = shown(rounds)
    deviation = (joined / 20_000) ** 0.5
    assert abs(without - 0.1) < 7 * (0.1 / 20_000) ** 0.5 + 0.002
    most = float(ndtr(ndtri(rounds.spurious) + 1.0))
    assert 0.6 * most < joined < most + 7 * deviation
    real = cumulative.noisy_cells
    monkeypatch.setattr(cumulative, "noisy_cells", lambda weights, sigma, *rest: real(weights, 0.4 * sigma, *rest))
    without, joined = shown(rounds)
    assert joined > float(ndtr(ndtri(max(without, 1 / 20_000)) + 1.0)) + 7 * deviation
