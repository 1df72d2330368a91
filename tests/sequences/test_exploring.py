"""The exploration tree against the theory in plain Python, the paper's example, and the budget of every path."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import sequences as naive
from voxpop.privacy.discrete_laplace import laplace_noise
from voxpop.privacy.secret import Secret
from voxpop.sequences.exploring import explore, predicted_heights
from voxpop.sequences.limits import Limits
from voxpop.sequences.path_budget import PathBudget
from voxpop.sequences.table import gram_symbols
from voxpop.sequences.tree import Rows, grow, plant

ALPHABET = "abcd"


def laid_out(sequences, size):
    """Sequences of letters as the kernels take them."""
    flat = [symbol for each in sequences if each for symbol in [*(ALPHABET.index(x) for x in each), size]]
    return np.array(flat, np.int32)


def grams_of(tree):
    """Each entry's gram as the naive twin writes it."""
    symbols, sizes = gram_symbols(tree)
    starts = np.cumsum([0, *sizes])
    names = [tuple(ALPHABET[s] for s in symbols[a:b]) for a, b in pairwise(starts)]
    ends = tree.symbols == tree.width - 1
    return [(*name, naive.END) if end else name for name, end in zip(names, ends, strict=True)]


def collections():
    letters = st.integers(2, 4)
    return letters.flatmap(
        lambda size: st.tuples(
            st.just(size),
            st.lists(st.text(ALPHABET[:size], max_size=6), min_size=1, max_size=12),
            st.integers(1, 40),
        )
    )


@settings(max_examples=150)
@given(
    collections(),
    st.sampled_from([Fraction(1, 2), Fraction(5), Fraction(60), Fraction(0.1)]),
    st.integers(1, 5),
    st.integers(1, 5),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_the_tree_is_the_one_of_the_theory(collection, epsilon, max_length, max_gram, keep_all, seed):
    """Same grams, same noisy counts, same consistent counts and same scales as loops over dicts and fractions."""
    size, sequences, copies = collection
    sequences = [naive.truncate(each, ALPHABET[:size], max_length) for each in sequences * copies]
    secret = Secret.from_seed(seed)

    def noise(number, place, share):
        pair = np.array([number]), np.array([place])
        return int(laplace_noise(epsilon * share / max_length, secret, "sequences/noise", *pair)[0])

    expected = naive.explore(sequences, ALPHABET[:size], max_length, max_gram, epsilon, noise, keep_all)
    tree = explore(Limits(epsilon, size, max_length, max_gram, keep_all), laid_out(sequences, size), secret)
    grams = grams_of(tree)
    entries = {gram: number for number, gram in enumerate(grams)}
    assert set(grams) == {(*node.gram, x) for node in expected.values() for x in node.released}
    totals, scales = tree.entry_totals(), np.repeat(tree.scales, np.diff(tree.starts))
    for node in expected.values():
        for symbol in node.released:
            entry = entries[(*node.gram, symbol)]
            assert tree.counts[entry] == node.noisy[symbol]
            assert totals[entry] == pytest.approx(node.count[symbol], rel=1e-9, abs=1e-9)
            assert scales[entry] == pytest.approx(float(max_length / (epsilon * node.share)))


def test_counts_are_occurrences():
    """A gram that occurs twice in one sequence counts twice: 6 in 5 sequences, as in the paper; no lone end mark."""
    sequences = ["abcab", "ab", "cab", "abc", "ab"]
    counts = naive.count_grams(sequences, 5)
    assert counts["a", "b"] == 6
    assert (naive.END,) not in counts
    tree = explore(Limits(Fraction(5000), 3, 5, 5, True), laid_out(sequences, 3), Secret.from_seed(0))
    found = dict(zip(grams_of(tree), tree.counts.tolist(), strict=True))
    assert found["a", "b"] == 6
    assert found["b", naive.END] == 4
    assert (naive.END,) not in found


# Figure 1 of the paper: noisy counts of the children of the root, I1, I2, I3, I2-I3 and I3-I1, as printed.
FIGURE = {
    "": [4, 10, 9],
    "1": [0, 4, 0, 0],
    "2": [1, 0, 7, 2],
    "3": [4, 2, 1, 2],
    "23": [4, 0, 1, 2],
    "31": [1, 2, 0, 1],
}


def test_the_first_two_levels_of_figure_1_get_the_budgets_printed_there():
    """Epsilon/5 at the root; then 4/5 for I1, predicted to end at once, and 2/5 for I2 and I3, predicted two levels."""
    paths = PathBudget(Fraction(1), max_length=5, alphabet=3)
    root = paths.open_root(5)
    assert paths.shares[root].own == Fraction(1, 5)
    largest = np.full(3, 10 / 23)
    heights = predicted_heights(np.full(3, 3.0), np.array(FIGURE[""]), largest, most=4)
    assert heights.tolist() == [1, 2, 2]
    shares = [paths.shares[paths.open(root, height)].own for height in heights.tolist()]
    assert shares == [Fraction(4, 5), Fraction(2, 5), Fraction(2, 5)]


def test_the_last_level_of_figure_1_differs_as_the_errata_say():
    """The figure gives I2-I3 and I3-I1 all that is left; by the stated formula they are predicted 2 and 3 levels.

    The Markov neighbours are I3 (4 of 9 go to I1) and I1 (all go to I2).
    """
    heights = predicted_heights(np.full(2, 3.0), np.array([7, 4]), np.array([4 / 9, 1.0]), most=3)
    assert heights.tolist() == [2, 3]


def test_the_consistent_counts_of_figure_1():
    """I2-I3 has the chances 4/7, 0, 1/7, 2/7, as the paper says, and v13 (I3-I1-I2) half of its parent's count."""
    rows = lambda parents, counts: Rows(  # noqa: E731
        np.array(parents), np.ones(len(parents)), *_columns(counts)
    )
    tree = plant(4, rows([-1], [FIGURE[""]]), balanced=False)
    tree, _ = grow(tree, rows([0, 1, 2], [FIGURE["1"], FIGURE["2"], FIGURE["3"]]))
    of = {gram: number for number, gram in enumerate(grams_of(tree))}
    deeper = [of["b", "c"], of["c", "a"]]
    tree, nodes = grow(tree, rows(deeper, [FIGURE["23"], FIGURE["31"]]))
    chances = [tree.chances[tree.starts[node] : tree.starts[node + 1]] for node in nodes]
    assert chances[0] == pytest.approx([4 / 7, 0, 1 / 7, 2 / 7])
    assert chances[1] == pytest.approx([1 / 4, 1 / 2, 0, 1 / 4])
    of = {gram: number for number, gram in enumerate(grams_of(tree))}
    totals = tree.entry_totals()
    assert totals[of["c", "a", "b"]] == pytest.approx(totals[of["c", "a"]] / 2)


def _columns(counts):
    rows = np.repeat(np.arange(len(counts)), [len(each) for each in counts])
    symbols = np.concatenate([np.arange(len(each)) for each in counts]).astype(np.int32)
    return rows, symbols, np.concatenate(counts)


@given(st.integers(1, 8), st.lists(st.integers(1, 8), max_size=8), st.floats(0.01, 10))
def test_no_path_spends_more_than_epsilon(levels, heights, epsilon):
    """Whatever heights are predicted, shares on a path are exact fractions and add up to at most 1."""
    paths = PathBudget(Fraction(epsilon), max_length=20, alphabet=17)
    number, spent = paths.open_root(levels), Fraction(1, levels)
    for depth, height in enumerate(heights[: levels - 1]):
        if paths.shares[number].after == 1:
            break
        number = paths.open(number, min(height, levels - depth - 1))
        assert paths.shares[number].before == spent
        spent += paths.shares[number].own
        assert paths.shares[number].own > 0
        assert spent <= 1
        assert paths.rate(number) * 20 == Fraction(epsilon) * paths.shares[number].own


@given(st.integers(2, 5), st.floats(0.5, 50), st.integers(0, 10**6), st.booleans())
def test_no_path_of_a_real_tree_spends_more_than_epsilon(max_gram, epsilon, seed, keep_all):
    """On real trees: sensitivity over each node's scale, added up from the root to each leaf, is at most epsilon."""
    rng = np.random.default_rng(seed)
    sequences = ["".join(rng.choice(list("aaabc"), rng.integers(1, 8))) for _ in range(400)]
    tree = explore(Limits(Fraction(epsilon), 3, 7, max_gram, keep_all), laid_out(sequences, 3), Secret.from_seed(seed))
    spent = np.zeros(tree.nodes)
    for node in range(tree.nodes):
        above = spent[tree.node_of(tree.parents[node : node + 1])[0]] if node else 0.0
        spent[node] = above + 7 / tree.scales[node]
    assert spent.max() <= epsilon * (1 + 1e-12)
    assert tree.depths.max() < max_gram
