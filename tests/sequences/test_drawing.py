"""Tests of drawing sequences together, including a reference implementation, distributions and the spread of counts."""

from collections import Counter
from dataclasses import replace
from itertools import chain, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive.sequences import draw_together
from voxpop.kernels.uniform import uniform
from voxpop.mechanisms.sequences import drawing
from voxpop.mechanisms.sequences.constants import LEAST_NOVELTY, NEVER

SIGMAS = 7.0  # The absolute value of a normal deviate exceeds this with probability 2.6e-12.


def sampler_of(model, novelty, repeats=0.0):
    return replace(model._sampler, fit=replace(model._sampler.fit, novelty=novelty, repeats=repeats))


def listed(drawn):
    return [each.tolist() for each in np.split(drawn.symbols, drawn.starts[1:-1])]


@pytest.mark.jit
@settings(max_examples=25, deadline=None)
@given(
    st.booleans(),
    st.integers(1, 60),
    st.integers(0, 2**64 - 1),
    st.tuples(st.sampled_from([*LEAST_NOVELTY, 4.0, NEVER]), st.sampled_from([0.0, 0.3, 0.98])),
)
def test_draws_equal_those_of_the_reference_implementation(model, symbols_alone, alone, number, seed, copies):
    """The comparison covers all symbols of all sequences."""
    sampler = sampler_of(symbols_alone if alone else model, *copies)
    tree = sampler.tree
    seeds = np.random.default_rng(seed).integers(0, 2**64, number, dtype=np.uint64)

    def chances(history):
        rows = np.array([history], np.int32).reshape(1, len(history))
        node = int(tree.find(rows, np.array([len(history)]), np.ones(1, np.bool_))[0])
        return node, *np.diff(sampler.sums[node], prepend=0.0)

    states = [seeds[place : place + 1].copy() for place in range(number)]
    shared = ~seeds[:1]
    numbers = [lambda state=state: uniform(state) for state in states]
    naive = draw_together(chances, sampler.fit.ends, copies, numbers, lambda: uniform(shared))
    drawn = listed(sampler.draw(seeds))
    # Probabilities are differences of running sums, so boundaries can have a rounding error, which affects about one
    # draw in 1e12.
    assert drawn == naive


@pytest.mark.jit
@pytest.mark.parametrize("name", ["model", "symbols_alone"])
def test_each_sequence_has_the_distribution_of_the_model(name, request):
    """Three sequences are drawn together many times (false alarm below 1e-9)."""
    sampler, draws = sampler_of(request.getfixturevalue(name), 2.0, 0.3), 3_000
    seeds = np.random.default_rng(6).integers(0, 2**64, (draws, 3), dtype=np.uint64)
    counts = [Counter() for _ in range(3)]
    for each in seeds:
        for place, sequence in enumerate(listed(sampler.draw(each))):
            counts[place][tuple(sequence)] += 1
    for sequence in (each for size in (1, 2) for each in product(range(4), repeat=size)):
        chance = sampler.probability(list(sequence))
        for found in counts:
            assert abs(found[sequence] - draws * chance) < SIGMAS * (draws * chance) ** 0.5 + 3, sequence


def spread_of_counts(sampler):
    """Return the variance of counts of first pairs in 60 draws, relative to the variance for independent sequences."""
    size, counts = 1_000, []
    for run in range(60):
        seeds = np.random.default_rng(run).integers(0, 2**64, size, dtype=np.uint64)
        pairs = Counter(tuple(each[:2]) for each in listed(sampler.draw(seeds)))
        counts.append([pairs[pair] for pair in product(range(4), repeat=2)])
    shares = np.mean(counts, axis=0) / size
    return float(np.var(counts, axis=0, ddof=1).sum() / (size * shares * (1 - shares)).sum())


@pytest.mark.jit
def test_counts_vary_less_than_for_independent_sequences(model, monkeypatch):
    """The relative variance of counts is below a quarter. In a broken variant without spreading, it is about 1.

    Each of the 16 variances of 60 counts has a relative standard deviation of 0.18. Seven standard deviations of their
    mean are below 0.5.
    """
    sampler = sampler_of(model, NEVER)
    assert spread_of_counts(sampler) < 0.25
    rng = np.random.default_rng(1)
    monkeypatch.setattr(drawing, "_spread", lambda size, _: rng.random(size))
    assert spread_of_counts(sampler) > 0.5


def test_drawing_in_batches_gives_the_same_sequences(model, monkeypatch):
    """A draw without seeds is empty."""
    seeds = np.arange(25, dtype=np.uint64)
    monkeypatch.setattr(drawing, "_MOST_TOGETHER", 10 * model.max_length)
    pieces = [listed(model._sampler.draw(seeds[start : start + 10])) for start in (0, 10, 20)]
    assert listed(model._sampler.draw(seeds)) == list(chain(*pieces))
    assert model._sampler.draw(seeds[:0]).size == 0


@given(st.integers(1, 2_000), st.integers(0, 2**64 - 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_numbers_in_every_run_are_spread_evenly(size, seed, start, low, high):
    """In any interval, the number of elements of a run differs from the expected number by less than 3 + log2(size)."""
    low, high = sorted((low, high))
    found = drawing._spread(size, np.array([seed], np.uint64))[int(start * size) :]
    held = ((found >= low) & (found < high)).sum()
    assert abs(held - found.size * (high - low)) < 3 + np.log2(size)
