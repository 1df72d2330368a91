"""Tests that noisy cells have exactly the planned distribution, which rounding in doubles does not change."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from voxpop.privacy import sampling
from voxpop.privacy.sampling import noisy_cells
from voxpop.privacy.secret import Secret


def draws_of(count, seed=0):
    return Secret.from_seed(seed).draws("test", np.arange(count, dtype=np.uint64), 0)


def test_cells_have_the_probability_of_the_normal_distribution():
    """In 400,000 draws, 13 cells and both tails have the expected frequencies (false alarm below 1e-10)."""
    draws, unit, cell, sigma = draws_of(400_000), 1 << 20, 1 << 19, 1.0
    weight = 123_457
    cells = noisy_cells(np.full(len(draws), weight), sigma, unit, cell, draws)
    edges = (np.arange(-6, 8) - 0.5) * cell / unit - weight / unit
    expected = np.diff(np.concatenate([[0.0], ndtr(edges / sigma), [1.0]]))
    found = np.histogram(cells, np.concatenate([[-100.5], np.arange(-6, 8) - 0.5, [100.5]]))[0] / len(draws)
    spread = np.sqrt(expected * (1 - expected) / len(draws))
    assert (np.abs(found - expected) < 7 * spread + 1e-12).all()


@pytest.mark.slow
@given(weight=st.integers(0, 2**55), sigma=st.floats(0.01, 1e4), shift=st.integers(0, 2**20))
def test_doubles_agree_with_exact_computations(weight, sigma, shift):
    """The fast computation in doubles and the exact computation give the same cells."""
    unit, cell = 1 << 32, 1 << 30
    draws = draws_of(40, seed=shift)
    weights = np.full(len(draws), weight, np.int64)
    quick = noisy_cells(weights, sigma, unit, cell, draws)
    exact = [math.floor(sampling._exact(weight, sigma, unit, cell, words)) for words in draws]
    assert quick.tolist() == exact


def test_errors_of_doubles_are_far_below_the_allowed_error(monkeypatch):
    """The relative error is at most 2^-42, even for extreme draws and large weights. The allowed error is 2^-36."""
    # The same draws with other weights have the same quantiles, whose digits take most of the time.
    monkeypatch.setattr(sampling.precise, "normal_quantile", cache(sampling.precise.normal_quantile))
    rng = np.random.default_rng(3)
    few = [int(2**power) for power in np.linspace(36, 63, 300)]
    middle = [(1 << 63) - int(2**power) for power in np.linspace(0, 62, 100)]
    first = np.array([*few, *middle, *(2**64 - 1 - word for word in few)], np.uint64)
    second = rng.choice(np.array([0, 2**64 - 1], np.uint64), len(first))
    draws = np.stack([first, second], axis=1)
    for weight, sigma, unit, cell in ((0, 3.0, 1 << 40, 1 << 30), (2**55 + 1, 0.01, 1 << 32, 1 << 20)):
        values, size, ends = sampling._in_doubles(np.full(len(draws), weight), sigma, unit, cell, draws)
        exact = [sampling._exact(weight, sigma, unit, cell, words) for words in draws]
        errors = [abs(float(true - float(value))) for true, value in zip(exact, values, strict=True)]
        assert (ends >= sampling.TAIL * 0.999).all()
        assert (errors <= 2.0**-42 * size).all()
        assert sampling.BORDER >= 64 * 2.0**-42


def test_rounding_commutes_with_a_shift_by_whole_cells():
    """If a user adds whole cells to the weight, the output is shifted by the same number of cells."""
    draws = draws_of(5000)
    base = noisy_cells(np.zeros(5000, np.int64), 3.0, 1 << 16, 1 << 12, draws)
    moved = noisy_cells(np.full(5000, 5 << 12), 3.0, 1 << 16, 1 << 12, draws)
    assert np.array_equal(moved, base + 5)


@pytest.mark.parametrize("word", [0, 1, 2**64 - 1, 2**63, 2**63 - 1, 2**36 - 1])
def test_extreme_and_middle_draws_are_exact(word):
    """Even the least probable draws have exact and finite cells."""
    draws = np.array([[word, 12345]], np.uint64)
    (cell,) = noisy_cells(np.zeros(1, np.int64), 1.0, 1 << 20, 1 << 16, draws)
    exact = math.floor(sampling._exact(0, 1.0, 1 << 20, 1 << 16, draws[0]))
    assert cell == exact
    assert abs(cell) < 13 * 16
    assert math.copysign(1, cell) == (1 if word >= 2**63 or cell == 0 else -1)
