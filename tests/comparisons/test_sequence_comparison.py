"""Tests of the comparisons of sequences, which are checked against plain loops, and of their baselines."""

from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from benchmarks.baselines.chains import release_chain
from benchmarks.baselines.prefix_trees import release_prefix_tree
from benchmarks.comparisons.sequences_cells import MAX_LENGTH, RIVALS, Measure
from benchmarks.evaluation import (
    as_sequences,
    private_counts,
    private_length_distance,
    private_queries,
    private_relative_error,
    private_top_patterns,
    private_true_positives,
)
from benchmarks.evaluation.drawing import draw_from, estimated_sequences
from hypothesis import given, settings
from hypothesis import strategies as st

from support.look import read_engine
from voxpop.errors import InputError
from voxpop.privacy.secret import Secret

SEQUENCES = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=7), min_size=1, max_size=12)


def data_of(sequences):
    flat = np.array([x for each in sequences for x in each], np.int32)
    return as_sequences(flat, np.array([len(each) for each in sequences]), 4)


def marked(sequences):
    return np.array([x for each in sequences for x in (*each, 4)], np.int32)


@given(SEQUENCES, st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple), min_size=1, max_size=9))
def test_counts_are_numbers_of_sequences_that_contain_the_run(sequences, queries):
    """Each sequence counts once, and runs have no gaps."""
    expected = [
        sum(any(tuple(each[i : i + len(query)]) == query for i in range(len(each))) for each in sequences)
        for query in queries
    ]
    assert private_counts(data_of(sequences), queries).tolist() == expected


@settings(max_examples=50)
@given(SEQUENCES, st.integers(1, 12))
def test_top_patterns_are_the_most_frequent_subsequences(sequences, k):
    """The best-first search finds the same supports as an enumeration of all subsequences."""
    support = Counter()
    for each in sequences:
        support.update({pattern for size in range(1, len(each) + 1) for pattern in combinations(each, size)})
    found = private_top_patterns(data_of(sequences), k)
    assert len(set(found)) == min(k, len(support))
    assert [support[pattern] for pattern in found] == sorted(support.values(), reverse=True)[:k]


def test_errors_distances_and_hits_equal_hand_computed_values():
    """The expected values of small cases are computed by hand."""
    truth, other = data_of([[0, 1], [0], [2, 0, 1, 1]]), data_of([[0, 1], [1, 1]])
    errors = private_relative_error(truth, other, [(0,), (0, 1), (3,)], weight=1.5)
    assert errors == pytest.approx([0.5, 0.25, 0.0])
    assert private_length_distance(truth, truth, 5) == 0
    assert private_length_distance(truth, other, 5) == pytest.approx(2 / 3)
    hits = private_true_positives([(0,), (1,), (2,)], [(1,), (3,), (2,)], [1, 3])
    assert hits["true_positives"].to_list() == [0, 2]


def test_generated_queries_have_the_documented_lengths():
    """Queries drawn from sequences occur in the data, and uniform queries have every length.

    The seed determines the queries.
    """
    data = data_of([[0, 1, 2, 3, 0], [1], [2, 2, 2]])
    held = private_queries(data, 3, 200, seed=1)
    assert private_counts(data, held).min() >= 1
    assert held == private_queries(data, 3, 200, seed=1) != private_queries(data, 3, 200, seed=2)
    uniform = private_queries(data, 3, 200, seed=1, kind="uniform")
    assert {len(query) for query in uniform} == {1, 2, 3}
    with pytest.raises(InputError, match="too many queries"):
        private_counts(as_sequences(data.symbols, np.diff(data.starts), 10**8), held)


@given(SEQUENCES, st.integers(1, 3))
def test_a_chain_without_noise_counts_every_step(sequences, gram):
    """With a huge epsilon, the chain contains the exact count of each gram, including beginnings and ends."""
    chain = release_chain(marked(sequences), 4, 7, gram, Fraction(10**6), Secret.from_seed(0))
    expected = Counter()
    for each in sequences:
        padded = [*[4] * (gram - 1), *each, 4]
        expected.update(tuple(padded[i : i + gram]) for i in range(len(padded) - gram + 1))
    grams = np.argwhere(chain.counts.reshape((5,) * gram))
    assert {tuple(g): int(chain.counts.reshape((5,) * gram)[tuple(g)]) for g in grams.tolist()} == expected
    assert chain.sequences == len(sequences)
    symbols, sizes = chain.draw(np.arange(50, dtype=np.uint64))
    assert symbols.size == sizes.sum()


def test_a_chain_samples_from_its_counts():
    """A chain of memory 2 that has counted one sequence draws that sequence."""
    chain = release_chain(marked([[0, 1, 2, 1]] * 500), 4, 7, 3, Fraction(10**6), Secret.from_seed(0))
    symbols, sizes = chain.draw(np.arange(9, dtype=np.uint64))
    assert sizes.tolist() == [4] * 9
    assert symbols.tolist() == [0, 1, 2, 1] * 9
    with pytest.raises(InputError, match="too many"):
        release_chain(marked([[0]]), 10_000, 7, 3, Fraction(1), Secret.from_seed(0))


def test_a_prefix_tree_without_noise_equals_the_data():
    """With a huge epsilon, the tree contains the exact count of each sequence.

    Longer sequences are truncated to the height of the tree.
    """
    sequences = [[0, 1]] * 300 + [[0]] * 200 + [[2, 2, 2, 2]] * 100
    tree = release_prefix_tree(marked(sequences), 4, 3, Fraction(10**6), Secret.from_seed(0))
    found = {
        tuple(x for x in row if x >= 0): n for row, n in zip(tree.columns.tolist(), tree.counts.tolist(), strict=True)
    }
    assert {gram: n for gram, n in found.items() if n} == {(0, 1): 300, (0,): 200, (2, 2, 2): 100}
    symbols, sizes = tree.draw(Secret.from_seed(1).draws("x", np.arange(60, dtype=np.uint64), 0)[:, 0])
    assert symbols.size == sizes.sum()
    assert set(sizes.tolist()) <= {1, 2, 3}


@pytest.mark.jit
@pytest.mark.parametrize("model", [*RIVALS, "PrivTree", "default"])
def test_every_compared_model_draws_as_many_sequences_as_it_estimates(model):
    """For each baseline and for the default, the number of drawn sequences is the number that the model estimates."""
    frame = pl.DataFrame({"user": range(400), "sequence": [["a", "b"], ["b"]] * 200})
    whole = Measure.__new__(Measure)
    whole.name, whole.whole, whole.alphabet = "a few", True, ("a", "b")
    whole.corpus = read_engine(frame, user="user", sequence="sequence")
    whole.cut = whole.cut_at(MAX_LENGTH)
    released = whole.released(model, 100.0, 1, MAX_LENGTH)
    assert estimated_sequences(released) == pytest.approx(400, rel=0.3)
    assert draw_from(released, 2, 1).size == round(estimated_sequences(released))


def test_the_noise_of_baselines_follows_their_budget():
    """The noise in empty bins has the scale sensitivity / epsilon (false alarm below 1e-9)."""
    chain = release_chain(np.empty(0, np.int32), 60, 4, 3, Fraction(1), Secret.fresh())
    a = np.exp(-1 / 5)
    assert (chain.counts >= 1).mean() == pytest.approx(a / (1 + a), abs=7 * 0.5 / chain.counts.size**0.5)
    assert chain.counts[chain.counts > 0].mean() == pytest.approx(1 / (1 - a), rel=0.02)
