"""How likely items of one user alone are released by rounds that add up score."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import binom

from voxpop.privacy.cumulative import CumulativeScore, novel_release, passing

FALSE_ALARM = 1e-9

ROUNDS = CumulativeScore(
    mus=(0.6, 0.8, 1.1), parts=(0.4, 0.7, 1.2), thresholds=(4.0, 3.6, 3.2), drop_thresholds=(-0.5, 1.0), margin=0.0
)


def simulated(rounds, novel, runs, seed, grow=True):
    """Run the rounds as they are for a user with novel items alone, weights shared evenly by what is left.

    Returns how many runs released one. With `grow` off, weights stay what they were at first.
    """
    rng = np.random.default_rng(seed)
    score = np.zeros((runs, novel))
    left = np.ones((runs, novel), bool)
    released = np.zeros(runs, bool)
    for number, (mu, part) in enumerate(zip(rounds.mus, rounds.parts, strict=True)):
        many = left.sum(1) if grow else np.full(runs, novel)
        weight = 1 / np.sqrt(np.maximum(many, 1))[:, None]
        score += part * (mu * weight + rng.standard_normal(score.shape))
        spread = rounds.spreads[number]
        hit = left & (score >= rounds.thresholds[number] * spread)
        released |= hit.any(1)
        left &= ~hit
        if number < len(rounds.drop_thresholds):
            left &= score >= rounds.drop_thresholds[number] * spread
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
    one = CumulativeScore(mus=(0.8,), parts=(1.7,), thresholds=(4.5,), drop_thresholds=())
    exact = max(t * float(ndtr(0.8 / t**0.5 - 4.5)) for t in range(1, limit + 1))
    assert 1.0 <= novel_release(one, limit) / exact < 1.01


def test_finer_grids_bound_closer():
    """Every grid gives a bound, so the finest is the lowest; the usual one is within two percent of it."""
    bounds = [novel_release(ROUNDS, 20, fineness=fineness) for fineness in (1 / 5, 1 / 10, 1 / 40, 1 / 320)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[2] < 1.02 * bounds[3]


def test_the_bound_is_above_a_grid_that_always_rounds_up():
    """A second program, which rounds score up at each step and takes lines for nothing, converges from above."""
    rough = [rounded_up(ROUNDS, 20, step) for step in (1 / 50, 1 / 100, 1 / 200)]
    assert rough[0] > rough[1] > rough[2] > 0.99 * novel_release(ROUNDS, 20)
    # Its error falls with the step, so the line through the last two meets the bound near 0.
    assert 2 * rough[2] - rough[1] == pytest.approx(novel_release(ROUNDS, 20), rel=0.05)


@pytest.mark.parametrize("apart", [1e-6, 0.01, 0.015, 0.04])
def test_drop_thresholds_just_below_thresholds(apart):
    """The first three lie between the same two points of the grid, so that no cell is left: the first round alone."""
    last = 3.02
    near = CumulativeScore(mus=(0.8, 0.8), parts=(1.0, 1.0), thresholds=(last, 9.0), drop_thresholds=(last - apart,))
    first = max(t * float(ndtr(0.8 / t**0.5 - last)) for t in range(1, 21))
    lower = max(t * float(ndtr(0.8 / t**0.5 - last + apart)) for t in range(1, 21))
    # What passes the drop threshold may be released in the second round, which is counted by the upper end of its cell.
    assert first <= novel_release(near, 20) < 1.01 * lower


def rounded_up(rounds, novel, fineness):
    """Bound by the transcript of the recursion: dense, one number of items, score up to the next point."""
    spreads, step = rounds.spreads, fineness * max(rounds.parts)
    low = min(spreads[:2] * np.array(rounds.drop_thresholds)) - step
    points = low + step * np.arange(int((max(spreads * np.array(rounds.thresholds)) - low) / step) + 3)
    chances = passing(rounds.parts, rounds.drop_thresholds, 0.0)
    later = np.zeros((novel + 1, points.size))
    for number in (2, 1, 0):
        part, mu = rounds.parts[number], rounds.mus[number]
        if number < 2:
            trials = np.arange(novel)
            later[1:] = [binom.pmf(trials, many, chances[number]) @ later[1:] for many in range(novel)]
        kept = points >= rounds.drop_thresholds[number] * spreads[number] if number < 2 else np.zeros(points.size, bool)
        values = np.where(points >= rounds.thresholds[number] * spreads[number], 1.0, np.where(kept, later, 0.0))
        rises = np.diff(np.maximum.accumulate(values, axis=1), axis=1, append=1.0)
        before = np.zeros_like(later)
        for many in range(1, novel + 1):
            centres = points + part * mu / many**0.5
            before[many] = values[many, 0] + ndtr((centres[:, None] - points[None, :]) / part) @ rises[many]
        later = np.minimum(before, 1.0)
    origin = int(np.searchsorted(points, 0.0))
    return max(many * later[many, origin] for many in range(1, novel + 1))


def drawn(rounds, novel, limit, runs, seed, *, shared=0, choose=None, fresh=True, frozen=False):
    """Run rounds in which a user draws `limit` of its pool: novel items and shared ones that take no weight.

    Returns how many runs released a novel item. `choose` orders items otherwise than by chance, given their score;
    without `fresh` the same order serves all rounds; with `frozen` items keep competing after they were dropped.
    """
    rng = np.random.default_rng(seed)
    score, left = np.zeros((runs, novel)), np.ones((runs, novel), bool)
    released, first = np.zeros(runs, bool), rng.random((runs, novel + shared))
    for number, (mu, part) in enumerate(zip(rounds.mus, rounds.parts, strict=True)):
        order = rng.random((runs, novel + shared)) if fresh else first.copy()
        if choose is not None:
            order[:, :novel] = choose(score)
        if not frozen:
            order[:, :novel][~left] = np.inf
        mine = np.zeros(order.shape, bool)
        np.put_along_axis(mine, np.argsort(order, 1)[:, :limit], True, 1)
        picked = mine[:, :novel] & left
        weight = 1 / np.sqrt(np.maximum(picked.sum(1), 1))[:, None]
        score += part * (mu * weight * picked + rng.standard_normal(score.shape))
        spread = rounds.spreads[number]
        hit = left & (score >= rounds.thresholds[number] * spread)
        released |= hit.any(1)
        left &= ~hit
        if number < len(rounds.drop_thresholds):
            left &= score >= rounds.drop_thresholds[number] * spread
    return int(released.sum())


LONG = CumulativeScore(
    mus=(0.9, 1.0, 1.1, 1.3, 1.6),
    parts=(0.6, 0.7, 0.9, 1.1, 1.4),
    thresholds=(4.2, 4.0, 3.8, 3.6, 3.4),
    drop_thresholds=(-1.0, -0.2, 0.5, 1.2),
)


@pytest.mark.parametrize(
    ("novel", "limit", "shared"), [(1, 1, 0), (1, 1, 9), (8, 1, 0), (20, 1, 0), (20, 1, 20), (20, 4, 0), (12, 10, 30)]
)
def test_the_bound_holds_for_draws_from_a_pool(novel, limit, shared):
    """However many shared items compete for the draws (false alarm 1e-9)."""
    runs = 400_000 // novel
    most = binom.isf(FALSE_ALARM, runs, novel_release(LONG, limit, novel))
    assert drawn(LONG, novel, limit, runs, seed=novel + limit + shared, shared=shared) <= most


def test_the_bound_for_draws_is_close():
    """Less than three times what happens (false alarm 1e-9): 20 items, one drawn each round."""
    runs = 60_000
    found = drawn(LONG, 20, 1, runs, seed=4)
    assert found > binom.isf(1 - FALSE_ALARM, runs, novel_release(LONG, 1, 20) / 3)


def test_draws_that_look_at_evidence_are_caught():
    """Who draws the items of most score releases more than the bound allows (false alarm 1e-9)."""
    runs = 60_000
    found = drawn(LONG, 20, 1, runs, seed=5, choose=lambda score: -score)
    assert found > binom.isf(FALSE_ALARM, runs, novel_release(LONG, 1, 20))


def test_a_pool_is_never_bounded_below_its_limit():
    """One item and one drawn is the old rule; larger pools and limits cost more."""
    assert novel_release(LONG, 1, 1) == pytest.approx(novel_release(LONG, 1), rel=1e-9)
    bounds = [novel_release(LONG, limit, 30) for limit in (1, 2, 5, 30)]
    assert bounds[0] < bounds[1] < bounds[2]
    assert novel_release(LONG, 2, 3) <= novel_release(LONG, 2, 30)


def test_passing_drop_thresholds_is_bounded_from_below_and_closely():
    """Against runs of noise alone (false alarm 1e-9 for each drop threshold)."""
    rng, runs = np.random.default_rng(6), 400_000
    chances = passing(LONG.parts, LONG.drop_thresholds, 0.0)
    score, left = np.zeros(runs), np.ones(runs, bool)
    for number, chance in enumerate(chances):
        score += LONG.parts[number] * rng.standard_normal(runs)
        before, left = int(left.sum()), left & (score >= LONG.drop_thresholds[number] * LONG.spreads[number])
        assert left.sum() >= binom.isf(1 - FALSE_ALARM, before, chance)
        assert left.sum() <= binom.isf(FALSE_ALARM, before, min(1.0, 1.02 * chance))


def test_monotone():
    """More items, lower thresholds and a wider margin never make a release less likely."""
    base = novel_release(ROUNDS, 20)
    assert novel_release(ROUNDS, 40) >= base
    lower = CumulativeScore(ROUNDS.mus, ROUNDS.parts, (4.0, 3.6, 3.0), ROUNDS.drop_thresholds)
    assert novel_release(lower, 20) > base
    wider = CumulativeScore(ROUNDS.mus, ROUNDS.parts, ROUNDS.thresholds, ROUNDS.drop_thresholds, margin=0.05)
    assert novel_release(wider, 20) > base
