"""Tests of truncated geometric noise, including its exact delta and the distribution of draws."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from voxpop.privacy.decisions import exact_probability
from voxpop.privacy.parameters import KeyNoise
from voxpop.privacy.truncated import (
    _noise_table,
    key_delta,
    key_levels,
    least_noise,
    noise_bound,
    noise_probabilities,
    noise_spread,
    released_with,
)

CASES = [(2.0, 1e-7), (1.0, 1e-7), (0.5, 1e-8), (1.0, 0.02), (3.0, 0.02), (5.0, 0.3), (0.25, 1e-9)]
CASES += [(0.01, 0.001), (0.1, 0.1), (0.5, 0.1)]
NOISES = {f"{rate:g}, {delta:g}": (least_noise(1, Fraction(rate), delta), delta) for rate, delta in CASES}


def outcomes(noise: KeyNoise, users: int) -> dict[int | None, float]:
    """Return the probability of each released number, and of no release (None), for a key with this number of users."""
    chances, found = noise_probabilities(noise), {None: 0.0}
    if users == 0:
        return {None: 1.0}
    for z, chance in zip(range(-noise.reach, noise.reach + 1), chances.tolist(), strict=True):
        y = users + z
        shown = 1.0 if y > noise.reach else noise.coin if y == noise.reach else 0.0
        found[None] += chance * (1 - shown)
        found[y] = found.get(y, 0.0) + chance * shown
    return found


def excess(one: dict[int | None, float], other: dict[int | None, float], rate: float) -> float:
    """Return the sum of max(0, P - e^rate Q) over all outcomes."""
    return sum(max(0.0, chance - np.exp(rate) * other.get(name, 0.0)) for name, chance in one.items())


@pytest.mark.parametrize("name", NOISES)
def test_delta_is_the_largest_excess_of_all_neighbours(name):
    """For every number of users and in both directions, P exceeds e^rate Q by at most delta.

    For novel keys, the excess equals delta.
    """
    noise, delta = NOISES[name]
    stated, rate = float(key_delta(noise)), float(noise.rate)
    assert stated == pytest.approx(delta, rel=1e-9)
    assert stated <= delta
    every = [outcomes(noise, users) for users in range(2 * noise.reach + 3)]
    assert all(abs(sum(each.values()) - 1) < 1e-12 for each in every)
    forward = [excess(more, less, rate) for less, more in pairwise(every)]
    backward = [excess(less, more, rate) for less, more in pairwise(every)]
    # The rounding error of sums near 1 is about 1e-15.
    assert max(forward + backward) <= delta + 1e-14
    assert forward[0] == pytest.approx(delta, rel=1e-6)
    assert released_with(noise, 1) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("name", NOISES)
def test_the_probability_of_release_is_nearly_optimal(name):
    """The probability is at most delta below that of optimal selection, and equal to it up to `reach` users."""
    noise, delta = NOISES[name]
    for users in range(1, 2 * noise.reach + 3):
        optimal = float(exact_probability(float(noise.rate), delta, users))
        assert optimal - delta <= released_with(noise, users) <= optimal + 1e-9
        if users <= noise.reach:
            assert released_with(noise, users) == pytest.approx(optimal, rel=1e-6)


@pytest.mark.parametrize("change", [{"end": 2.0}, {"coin": 1.01}, {"rate": 1.01}, {"reach": -1}], ids=str)
def test_less_noise_has_a_larger_delta(change):
    """The parameters of the noise just satisfy delta, so any change to the unsafe side makes delta larger."""
    noise, delta = NOISES["1, 1e-07"]
    (name, factor), *_ = change.items()
    value = getattr(noise, name)
    moved = value + factor if name == "reach" else value * (Fraction(factor) if name == "rate" else factor)
    less = replace(noise, **{name: moved})
    if name == "rate":
        # With a larger rate, there is less noise than the charged epsilon requires.
        every = [outcomes(less, users) for users in range(2 * noise.reach + 3)]
        found = max(excess(more, few, float(noise.rate)) for few, more in pairwise(every))
        assert found > delta * 1.001
        return
    assert float(key_delta(less)) > delta * 1.001


def reference(noise: KeyNoise, users: int, uniform: int) -> int:
    """Return the level of one key, computed with Python integers and all thresholds."""
    table = _noise_table(noise)
    z = sum(tail > uniform for tail in table.tails) - noise.reach
    y = users + z
    won = y > noise.reach or (y == noise.reach and uniform < table.coins[z + noise.reach])
    return y - noise.reach + 1 if won else 0


@pytest.mark.parametrize("name", NOISES)
def test_draws_equal_those_of_the_reference(name):
    """The cases are random draws, extreme draws, and draws at or next to each threshold."""
    noise, _ = NOISES[name]
    table, rng = _noise_table(noise), np.random.default_rng(5)
    near = [value + step for value in (*table.tails, *table.coins) for step in (-1, 0, 1) if 0 <= value + step < 2**128]
    ends = [0, 1, 2**128 - 1, 2**64, 2**64 - 1]
    drawn = [int.from_bytes(rng.bytes(16), "big") for _ in range(300)]
    for users in (1, 2, noise.reach, noise.reach + 1, 2 * noise.reach, 2 * noise.reach + 1, 10**6):
        values = [*near, *ends, *drawn]
        words = np.array([[value >> 64, value & (2**64 - 1)] for value in values], np.uint64)
        found = key_levels(noise, np.full(len(values), users), words)
        assert found.tolist() == [reference(noise, users, value) for value in values]


@pytest.mark.parametrize("name", NOISES)
def test_the_table_has_the_probabilities_of_the_noise(name):
    """Tails and coins equal sums of probabilities to 1e-12."""
    noise, _ = NOISES[name]
    chances, table = noise_probabilities(noise), _noise_table(noise)
    tails = np.cumsum(chances[::-1])[:-1]
    assert np.array([tail / 2**128 for tail in table.tails]) == pytest.approx(tails, rel=1e-12)
    above = np.concatenate([tails[::-1], [0]])[: 2 * noise.reach]
    coins = np.array([coin / 2**128 for coin in table.coins])
    assert coins == pytest.approx(above + noise.coin * chances[:-1], rel=1e-12)
    assert list(table.tails) == sorted(table.tails)


def test_spread_and_bound_equal_those_of_a_sample():
    """The standard deviation is within 2 percent, and the bound is the smallest that covers 95 percent of draws."""
    noise, _ = NOISES["1, 1e-07"]
    words = np.random.default_rng(3).integers(0, 2**64, (200_000, 2), np.uint64, endpoint=False)
    z = key_levels(noise, np.full(len(words), 1000), words) + noise.reach - 1 - 1000
    assert z.std() == pytest.approx(noise_spread(noise), rel=0.02)
    reach = noise_bound(noise, 0.95)
    assert (np.abs(z) <= reach).mean() > 0.95 > (np.abs(z) <= reach - 1).mean() - 0.005
