"""Tests of the probability that rounds with a cumulative score and caps release novel items."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import binom, norm

import voxpop as vp
from voxpop.errors import InternalError
from voxpop.kernels.arrays import DROPPED, ONE_CAP, RELEASED, UNDECIDED
from voxpop.privacy.cumulative import (
    FINENESS,
    Caps,
    CumulativeScore,
    ScoreStep,
    any_release,
    lone_releases,
    novel_release,
    whole_caps,
)
from voxpop.privacy.secret import Secret

FALSE_ALARM = 1e-9

ROUNDS = CumulativeScore(
    mus=(0.6, 0.8, 1.1), parts=(0.4, 0.7, 1.2), thresholds=(4.0, 3.6, 3.2), drop_thresholds=(-0.5, 1.0), margin=0.0
)
LONG = CumulativeScore(
    mus=(0.9, 1.0, 1.1, 1.3, 1.6),
    parts=(0.6, 0.7, 0.9, 1.1, 1.4),
    thresholds=(4.2, 4.0, 3.8, 3.6, 3.4),
    drop_thresholds=(-1.0, -0.2, 0.5, 1.2),
)


def even(rounds, pool):
    """Return caps that limit each of the n items of a user to an even share."""
    share = [(int(ONE_CAP / n**0.5),) * len(rounds.mus) for n in range(1, pool + 1)]
    return Caps(tuple(range(1, pool + 1)), tuple(share), (1.0,) * pool)


def simulated(rounds, caps, novel, runs, seed, *, growing=False, greedy=False, limit=None, shared=0, choose=None):
    """Simulate rounds for a user with novel items, and return the number of runs that release at least one of them.

    Args:
        rounds: The rounds and their thresholds.
        caps: The caps on the weights of an item.
        novel: The number of novel items, which only this user has.
        runs: The number of simulated releases.
        seed: The seed of the simulation.
        growing: Whether caps increase as items are dropped, which is a fault.
        greedy: Whether the items with the highest scores get the largest possible weight.
        limit: The number of undecided items that a user draws from the pool, or None without draws. With draws, users
            give weight with the probabilities of the caps.
        shared: The number of other items that remain undecided and compete for the draws.
        choose: A function from scores to the order in which novel items are drawn, or None for a random order.
    """
    rng = np.random.default_rng(seed)
    score, left = np.zeros((runs, novel)), np.ones((runs, novel), bool)
    released, held = np.zeros(runs, bool), np.full(runs, novel)
    for number, (mu, part) in enumerate(zip(rounds.mus, rounds.parts, strict=True)):
        many = left.sum(1)
        level = caps.level(np.maximum((many if growing else held) + shared, 1))
        cap = np.array([each[number] for each in caps.weights])[level][:, None] / ONE_CAP
        if limit is None:
            first = np.argsort(np.argsort(np.where(left, -score, np.inf), 1), 1) if greedy else np.zeros(score.shape)
            room = np.maximum(np.floor(1 / cap**2), 1)
            even_share = np.maximum(many, 1)[:, None] ** -0.5
            weight = np.where(first < room, cap, 0.0) if greedy else np.minimum(cap, even_share)
        else:
            order = rng.random((runs, novel + shared))
            order[:, :novel] = choose(score) if choose else order[:, :novel]
            order[:, :novel][~left] = np.inf
            mine = np.zeros(order.shape, bool)
            np.put_along_axis(mine, np.argsort(order, 1)[:, :limit], True, 1)
            chance = np.array(caps.chances)[level] * np.maximum((many + shared) / limit, 1.0)
            takes = rng.random(runs) < chance
            weight = cap * (mine[:, :novel] & takes[:, None])
        score += part * (mu * weight * left + rng.standard_normal(score.shape))
        spread = rounds.spreads[number]
        hit = left & (score >= rounds.thresholds[number] * spread)
        released |= hit.any(1)
        left &= ~hit
        held -= hit.sum(1)
        if number < len(rounds.drop_thresholds):
            left &= score >= rounds.drop_thresholds[number] * spread
    return int(released.sum())


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("novel", [1, 2, 7, 30])
def test_the_bound_is_valid_for_simulated_rounds(novel, greedy):
    """The bound is valid even if users choose shares within the caps by score (false alarm 1e-9)."""
    runs = 200_000 // novel
    most = binom.isf(FALSE_ALARM, runs, novel_release(ROUNDS, even(ROUNDS, novel)))
    assert simulated(ROUNDS, even(ROUNDS, novel), novel, runs, seed=novel, greedy=greedy) <= most


def test_the_bound_is_close_to_the_simulated_probability():
    """At the worst number of items, the bound is less than 1.3 times the simulated probability (false alarm 1e-9)."""
    runs, caps = 60_000, even(ROUNDS, 30)
    found = simulated(ROUNDS, caps, 30, runs, seed=1)
    assert found > binom.isf(1 - FALSE_ALARM, runs, novel_release(ROUNDS, caps) / 1.3)


def test_caps_that_ignore_dropped_items_are_detected():
    """In this broken variant, weights increase as items are dropped and only high scores remain (false alarm 1e-9)."""
    runs, caps = 60_000, even(ROUNDS, 30)
    most = binom.isf(FALSE_ALARM, runs, novel_release(ROUNDS, caps))
    assert simulated(ROUNDS, caps, 30, runs, seed=2, growing=True) > most


@pytest.mark.parametrize("novel", [1, 5, 100, 1000])
def test_the_bound_of_one_round_is_close_to_the_formula(novel):
    """For one round, the bound is the sum over novel items, up to an error of the grid."""
    one = CumulativeScore(mus=(0.8,), parts=(1.7,), thresholds=(4.5,), drop_thresholds=())
    exact = max(t * float(ndtr(0.8 / t**0.5 - 4.5)) for t in range(1, novel + 1))
    assert 1.0 <= novel_release(one, even(one, novel)) / exact < 1.01


def test_every_number_of_items_is_bounded():
    """The bound for a level uses the largest number of items at this level."""
    caps = Caps((1, 30), ((ONE_CAP,) * 3, (ONE_CAP // 4,) * 3), (1.0, 1.0))
    lone = lone_releases(ROUNDS, np.array([[0.25] * 3]), np.ones(1))[0]
    assert novel_release(ROUNDS, caps) == pytest.approx(30 * lone, rel=1e-6)
    runs = 20_000
    assert simulated(ROUNDS, caps, 30, runs, seed=7) > binom.isf(FALSE_ALARM, runs, 15 * lone)


@pytest.mark.parametrize(
    "caps", [((2, 1), (1, 1), (1.0, 1.0)), ((1, 2), (1, 2), (1.0, 1.0)), ((1, 2), (2, 1), (0.5, 1.0))]
)
def test_increasing_caps_are_rejected(caps):
    """Increasing caps would allow a user with more items to exceed the bound."""
    items, weights, chances = caps
    with pytest.raises(InternalError, match="rise"):
        Caps(items, tuple((each,) for each in weights), chances)


def test_finer_grids_give_tighter_bounds():
    """The bound for a grid with a step of 1 / 40 is within two percent of that for the finest grid."""
    caps = even(ROUNDS, 20)
    bounds = [novel_release(ROUNDS, caps, fineness=fineness) for fineness in (1 / 5, 1 / 10, 1 / 40, 1 / 320)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[2] < 1.02 * bounds[3]


@pytest.mark.parametrize(("epsilon", "limit"), [(0.1, 100), (1, 10)])
def test_the_default_step_costs_two_to_four_percent(epsilon, limit):
    """With the step of a plan, the bound is two to four percent above the bound with a quarter of this step."""
    rounds = vp.Items(max_items_per_user=limit).plan(vp.Budget(epsilon, 1e-7)).passes[0]
    usual, finer = (novel_release(rounds.score, rounds.caps, fineness) for fineness in (FINENESS, FINENESS / 4))
    assert 1.02 < usual / finer < 1.04


@pytest.mark.parametrize("chance", [1.0, 0.3])
def test_a_grid_that_always_rounds_up_converges_to_the_bound(chance):
    """A second implementation rounds scores up at each step, does not interpolate, and converges from above."""
    weights = (0.9, 0.5, 0.3)
    bound = float(lone_releases(ROUNDS, np.array([weights]), np.array([chance]))[0])
    rough = [rounded_up(ROUNDS, weights, chance, step) for step in (1 / 50, 1 / 100, 1 / 200)]
    assert rough[0] > rough[1] > rough[2] > 0.99 * bound
    # The error is proportional to the step, so the line through the last two values is near the bound at step 0.
    assert 2 * rough[2] - rough[1] == pytest.approx(bound, rel=0.02)


def rounded_up(rounds, weights, chance, fineness):
    """Return the bound by a direct, dense form of the recursion, with the score rounded up to the next point."""
    spreads, step = rounds.spreads, fineness * max(rounds.parts)
    low = min(spreads[:2] * np.array(rounds.drop_thresholds)) - step
    points = low + step * np.arange(int((max(spreads * np.array(rounds.thresholds)) - low) / step) + 3)
    later = np.zeros(points.size)
    for number in (2, 1, 0):
        part, mu = rounds.parts[number], rounds.mus[number]
        kept = points >= rounds.drop_thresholds[number] * spreads[number] if number < 2 else np.zeros(points.size, bool)
        values = np.where(points >= rounds.thresholds[number] * spreads[number], 1.0, np.where(kept, later, 0.0))
        rises = np.diff(np.maximum.accumulate(values), append=1.0)

        def reached(weight, part=part, mu=mu, values=values, rises=rises):
            centres = points + part * mu * weight
            return values[0] + ndtr((centres[:, None] - points[None, :]) / part) @ rises

        later = np.minimum(chance * reached(weights[number]) + (1 - chance) * reached(0.0), 1.0)
    return later[int(np.searchsorted(points, 0.0))]


@pytest.mark.parametrize("apart", [1e-6, 0.01, 0.015, 0.04])
def test_drop_thresholds_just_below_thresholds_are_accepted(apart):
    """The first three drop thresholds are in the same cell as the thresholds, so the second round has no effect."""
    last = 3.02
    near = CumulativeScore(mus=(0.8, 0.8), parts=(1.0, 1.0), thresholds=(last, 9.0), drop_thresholds=(last - apart,))
    first = max(t * float(ndtr(0.8 / t**0.5 - last)) for t in range(1, 21))
    lower = max(t * float(ndtr(0.8 / t**0.5 - last + apart)) for t in range(1, 21))
    # An item that passes the drop threshold can be released in the second round. The bound computes this probability at
    # the upper end of the cell.
    assert first <= novel_release(near, even(near, 20)) < 1.01 * lower


def drawing(pool, chance):
    """Return caps that a user with one item always uses, and other users use with a given probability."""
    return Caps((1, pool), ((ONE_CAP,) * 5,) * 2, (1.0, chance))


@pytest.mark.parametrize(
    ("novel", "limit", "shared"), [(1, 1, 9), (8, 1, 0), (20, 1, 0), (20, 1, 20), (20, 4, 0), (12, 10, 30)]
)
def test_the_bound_is_valid_for_draws_from_a_pool(novel, limit, shared):
    """The bound is valid for any number of shared items that compete for the draws (false alarm 1e-9)."""
    runs = 400_000 // novel
    most = binom.isf(FALSE_ALARM, runs, novel_release(LONG, drawing(novel + 30, 0.2), 1 / 40) * novel / (novel + 30))
    assert (
        simulated(LONG, drawing(novel + 30, 0.2), novel, runs, novel + limit + shared, limit=limit, shared=shared)
        <= most
    )


def test_draws_from_a_pool_that_depend_on_scores_are_detected():
    """If users draw the items with the highest scores, releases exceed the bound (false alarm 1e-9)."""
    runs, caps = 60_000, drawing(20, 0.2)
    most = binom.isf(FALSE_ALARM, runs, novel_release(LONG, caps))
    assert simulated(LONG, caps, 20, runs, seed=5, limit=1, choose=lambda score: -score) > most
    assert simulated(LONG, caps, 20, runs, seed=5, limit=1) <= most


def test_the_bound_is_monotone():
    """More items, lower thresholds, larger caps, larger probabilities or a wider margin never lower the bound."""
    caps = even(ROUNDS, 20)
    base = novel_release(ROUNDS, caps)
    assert novel_release(ROUNDS, even(ROUNDS, 40)) >= base
    assert novel_release(ROUNDS, whole_caps(3, 20)) > base
    assert novel_release(ROUNDS, replace(caps, chances=(0.5,) * 20)) < base
    assert novel_release(ROUNDS, whole_caps(3, 20)) <= any_release(ROUNDS, 20)
    assert novel_release(replace(ROUNDS, thresholds=(4.0, 3.6, 3.0)), caps) > base
    assert novel_release(replace(ROUNDS, margin=0.05), caps) > base


@pytest.mark.parametrize("score", [-50.0, -0.8, 0.0, 2.0, 2.4999])
def test_undecided_items_always_have_a_positive_state(score):
    """The state of an undecided item is at least one step above that of a dropped item, so its cutoff is positive."""
    step = ScoreStep(1e-9, 1 << 30, 1, 1.0, 2.5, -np.inf, -60.0, 20.0, Secret.from_seed(1), "noise/x")

    def state(step):
        return int(step(np.zeros(1, np.int64), np.zeros((1, 2), np.uint64), np.array([score]))[1][0])

    assert DROPPED + 1 == state(step) < state(replace(step, enough=1e9)) == UNDECIDED
    assert state(replace(step, threshold=-60.0)) == RELEASED
    assert state(replace(step, floor=2.5)) == DROPPED


@pytest.mark.parametrize("fineness", [1.0, 0.5, 0.25, 1 / 40])
@pytest.mark.parametrize("drop", [-1.0, 0.0, 0.4])
@pytest.mark.parametrize("threshold", [0.5, 1.5, 3.0])
def test_the_bound_of_two_rounds_is_valid_for_any_step(threshold, drop, fineness):
    """Low thresholds and coarse grids are the hardest cases, because interpolation is least accurate for them."""

    def later(score):
        return norm.pdf(score - 0.5) * norm.sf(threshold * 2**0.5 - score - 0.5)

    exact = norm.sf(threshold - 0.5) + quad(later, drop, threshold)[0]
    rounds = CumulativeScore((0.5, 0.5), (1.0, 1.0), (threshold, threshold), (drop,))
    assert exact * (1 - 1e-9) <= novel_release(rounds, whole_caps(2, 1), fineness) < 5 * exact
