"""Tests of the variable-length n-gram model (CAC12) against a reference implementation and the paper's examples."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import voxpop as vp
from naive import sequences as naive
from support.exact import paths_gate
from support.look import read_engine
from voxpop.papers.gram_tree import Level, gram_symbols, grow_tree, plant, synthetic_sequences
from voxpop.papers.ngram_model import explore, predicted_heights
from voxpop.privacy.path_budget import Limits, PathBudget
from voxpop.privacy.sampling import laplace_noise
from voxpop.privacy.secret import Secret

ALPHABET = "abcd"
PAGES = ["home", "news", "sport", "weather"]


def laid_out(sequences, size):
    """Return sequences of letters in the format of the kernels."""
    flat = [symbol for each in sequences if each for symbol in [*(ALPHABET.index(x) for x in each), size]]
    return np.array(flat, np.int32)


def grams_of(tree):
    """Return the gram of each entry in the format of the reference implementation."""
    symbols, sizes = gram_symbols(tree)
    starts = np.cumsum([0, *sizes])
    names = [tuple(ALPHABET[s] for s in symbols[a:b]) for a, b in pairwise(starts)]
    ends = tree.entries % tree.width == tree.width - 1
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


# In this example, a total differs from a sum in the last bit.
@example((3, ["b", "b", "abbab", "abbcc"], 1), Fraction(5), 5, 4, 205712)
@settings(max_examples=150)
@given(
    collections(),
    st.sampled_from([Fraction(1, 2), Fraction(5), Fraction(60), Fraction(0.1)]),
    st.integers(1, 5),
    st.integers(1, 5),
    st.integers(0, 10**6),
)
def test_the_tree_equals_the_reference_implementation(collection, epsilon, max_length, max_gram, seed):
    """Grams, noisy counts, consistent counts and scales are the same."""
    size, sequences, copies = collection
    sequences = [naive.truncate(each, ALPHABET[:size], max_length) for each in sequences * copies]
    secret = Secret.from_seed(seed)

    def noise(number, place, share):
        pair = np.array([number]), np.array([place])
        return int(laplace_noise(epsilon * share / max_length, secret, "sequences/noise", *pair)[0])

    expected = naive.explore(sequences, ALPHABET[:size], max_length, max_gram, epsilon, noise)
    tree = explore(paths_gate(Limits(epsilon, size, max_length, max_gram), laid_out(sequences, size), secret, "grams"))
    grams = grams_of(tree)
    entries = {gram: number for number, gram in enumerate(grams)}
    assert set(grams) == {(*node.gram, x) for node in expected.values() for x in node.released}
    totals, scales = tree.entry_totals().ravel(), np.repeat(tree.scales, tree.width)
    for node in expected.values():
        for symbol in node.released:
            entry = tree.entries[entries[(*node.gram, symbol)]]
            assert tree.counts.ravel()[entry] == node.noisy[symbol]
            assert totals[entry] == pytest.approx(node.count[symbol], rel=1e-9, abs=1e-9)
            assert scales[entry] == pytest.approx(float(max_length / (epsilon * node.share)))


def test_counts_are_occurrences():
    """A gram that occurs twice in a sequence counts twice, so "ab" occurs 6 times in 5 sequences, as in the paper.

    The end mark alone is not a gram.
    """
    sequences = ["abcab", "ab", "cab", "abc", "ab"]
    counts = naive.count_grams(sequences, 5)
    assert counts["a", "b"] == 6
    assert (naive.END,) not in counts
    tree = explore(paths_gate(Limits(Fraction(5000), 3, 5, 5), laid_out(sequences, 3), Secret.from_seed(0), "grams"))
    found = dict(zip(grams_of(tree), tree.counts[tree.counts >= 0].tolist(), strict=True))
    assert found["a", "b"] == 6
    assert found["b", naive.END] == 4
    assert (naive.END,) not in found


# The noisy counts of Figure 1 of the paper, for the children of the root, I1, I2, I3, I2-I3 and I3-I1.
FIGURE = {
    "": [4, 10, 9],
    "1": [0, 4, 0, 0],
    "2": [1, 0, 7, 2],
    "3": [4, 2, 1, 2],
    "23": [4, 0, 1, 2],
    "31": [1, 2, 0, 1],
}


def test_the_first_two_levels_of_figure_1_have_the_printed_budgets():
    """The root gets epsilon/5. I1 gets 4/5 for one predicted level, and I2 and I3 get 2/5 for two predicted levels."""
    paths = PathBudget(Limits(Fraction(1), alphabet=3, max_length=5, max_gram=5))
    root = paths.spend(0, Fraction(1, 5))
    assert paths.shares[root].own == Fraction(1, 5)
    largest = np.full(3, 10 / 23)
    heights = predicted_heights(np.full(3, 3.0), np.array(FIGURE[""]), largest, most=4)
    assert heights.tolist() == [1, 2, 2]
    shares = [paths.shares[paths.spend(root, Fraction(1, height))].own for height in heights.tolist()]
    assert shares == [Fraction(4, 5), Fraction(2, 5), Fraction(2, 5)]


def test_the_last_level_of_figure_1_differs_from_the_formula():
    """In the figure, I2-I3 and I3-I1 get the whole remaining budget.

    The printed formula predicts 2 and 3 levels for these grams.

    The Markov neighbours are I3 (4 of 9 continue with I1) and I1 (all continue with I2).
    """
    heights = predicted_heights(np.full(2, 3.0), np.array([7, 4]), np.array([4 / 9, 1.0]), most=3)
    assert heights.tolist() == [2, 3]


def test_the_consistent_counts_of_figure_1_are_reproduced():
    """I2-I3 has probabilities 4/7, 0, 1/7, 2/7 as in the paper, and v13 (I3-I1-I2) has half the count of its parent."""
    tree = plant(_level([-1], [""]))
    tree, _ = grow_tree(tree, _level([0, 1, 2], ["1", "2", "3"]))
    deeper = [tree.child[0, 1] * 4 + 2, tree.child[0, 2] * 4]
    tree, nodes = grow_tree(tree, _level(deeper, ["23", "31"]))
    assert tree.chances[nodes[0]] == pytest.approx([4 / 7, 0, 1 / 7, 2 / 7])
    assert tree.chances[nodes[1]] == pytest.approx([1 / 4, 1 / 2, 0, 1 / 4])
    totals = tree.entry_totals()
    assert totals[nodes[1], 1] == pytest.approx(totals.ravel()[deeper[1]] / 2)


def _level(parents, names):
    """Return a level with the counts of the figure. The root has no end mark."""
    counts = [(*FIGURE[name], -1)[:4] for name in names]
    return Level(np.array(parents), np.ones(len(parents)), np.array(counts))


@given(st.integers(1, 8), st.lists(st.integers(1, 8), max_size=8), st.floats(0.01, 10))
def test_no_path_spends_more_than_epsilon(levels, heights, epsilon):
    """For any predicted heights, the shares on a path are exact fractions that add up to at most 1."""
    paths = PathBudget(Limits(Fraction(epsilon), alphabet=17, max_length=20, max_gram=levels))
    number, spent = paths.spend(0, Fraction(1, levels)), Fraction(1, levels)
    for depth, height in enumerate(heights[: levels - 1]):
        if paths.shares[number].after == 1:
            break
        number = paths.spend(number, Fraction(1, min(height, levels - depth - 1)))
        assert paths.shares[number].before == spent
        spent += paths.shares[number].own
        assert paths.shares[number].own > 0
        assert spent <= 1
        assert paths.rate(number) * 20 == Fraction(epsilon) * paths.shares[number].own


@given(st.integers(2, 5), st.floats(0.5, 50), st.integers(0, 10**6))
def test_no_path_of_a_real_tree_spends_more_than_epsilon(max_gram, epsilon, seed):
    """In trees of random data, the sum of sensitivity over scale from the root to each leaf is at most epsilon."""
    rng = np.random.default_rng(seed)
    sequences = ["".join(rng.choice(list("aaabc"), rng.integers(1, 8))) for _ in range(400)]
    tree = explore(
        paths_gate(Limits(Fraction(epsilon), 3, 7, max_gram), laid_out(sequences, 3), Secret.from_seed(seed), "grams")
    )
    spent = np.zeros(tree.nodes)
    for node in range(tree.nodes):
        above = spent[tree.parents[node] // tree.width] if node else 0.0
        spent[node] = above + 7 / tree.scales[node]
    assert spent.max() <= epsilon * (1 + 1e-12)
    assert tree.depths.max() < max_gram


def test_the_root_has_no_end_mark():
    """The end mark is never a child of the root."""
    for seed in range(200):
        none = np.empty(0, np.int32)
        gate = paths_gate(Limits(Fraction(1), 2, max_length=5, max_gram=1), none, Secret.from_seed(seed), "grams")
        tree = explore(gate)
        assert (tree.counts[:, 2] < 0).all()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("length", [2, 4, 7])
def test_synthesis_equals_the_reference_implementation(visits, seed, length):
    """The sequences and their frequencies equal those of the loops in the paper."""
    mechanism = vp.papers.VariableLengthNGrams(l_max=length, n_max=3, alphabet=PAGES)
    model = mechanism.release(visits, vp.Budget(0.2 + seed), seed=seed)
    tree = model.tree
    symbols, sizes = gram_symbols(tree)
    starts = np.cumsum([0, *sizes])
    counts = {}
    whole = np.floor(tree.entry_totals()[tree.counts >= 0] + 1e-9).astype(int).tolist()
    for number, value in enumerate(whole):
        gram = tuple(symbols[starts[number] : starts[number + 1]].tolist())
        counts[(*gram, naive.END) if tree.entries[number] % tree.width == 4 else gram] = value
    columns, found = synthetic_sequences(tree, length)
    got = {tuple(x for x in row if x >= 0): n for row, n in zip(columns.tolist(), found.tolist(), strict=True)}
    key = lambda gram: (len(gram), tuple(4 if x == naive.END else x for x in gram))  # noqa: E731
    assert got == naive.synthesize(counts, length, key)
    frame = model.synthesize()
    assert frame["count"].sum() == sum(got.values())
    assert frame["sequence"].list.len().max() <= max(length, 3)


def test_the_plan_has_the_noise_of_the_paper_and_an_ordered_table(visits):
    """Grams are ordered by length. Invalid fields, a very small epsilon and a corpus of items are rejected."""
    mechanism = vp.papers.VariableLengthNGrams(l_max=8, n_max=4, alphabet=PAGES)
    plan = mechanism.plan(vp.Budget(3))
    assert (plan.scale, plan.guarantee) == (pytest.approx(8 * 4 / 3), vp.Guarantee(3, 0.0))
    assert "4 symbols" in str(plan)
    model = plan.release(visits, seed=1)
    frame = model.to_polars()
    assert frame.columns == ["gram", "ends", "count", "estimate", "scale"]
    assert len(frame) == len(model)
    assert frame["count"].min() >= 0
    lengths = frame["gram"].list.len() + frame["ends"]
    assert lengths.is_sorted()
    assert lengths.max() <= 4
    assert not model.guarantee.private
    for wrong in ({"l_max": 0}, {"n_max": 0}, {"alphabet": "abc"}, {"alphabet": [str(i) for i in range(10_001)]}):
        with pytest.raises(vp.errors.InputError):
            vp.papers.VariableLengthNGrams(**{"alphabet": PAGES, **wrong})
    with pytest.raises(vp.errors.BudgetError, match="epsilon"):
        mechanism.plan(vp.Budget(1e-9))
    items = read_engine(pl.DataFrame({"who": [1], "what": ["a"]}), user="who", items="what")
    with pytest.raises(vp.errors.InputError, match="order"):
        mechanism.release(items, vp.Budget(1))
