"""The tree of contexts: counted like a naive twin, cut cut to max_length steps, settled, drawn."""

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voxpop as vp
from voxpop.corpus.tree_walk import MemoryTreeWalk
from voxpop.evaluate import as_sequences, private_length_distance, private_sequences
from voxpop.kernels.shrinking import draw_counts, mean_counts
from voxpop.privacy.secret import Secret
from voxpop.sequences.context_tree import OTHERS
from voxpop.sequences.exploring import Limits
from voxpop.sequences.settling import settle
from voxpop.sequences.splitting import split_contexts

PAGES = ["home", "news", "sport", "weather"]
SIGMAS = 7.0  # a normal deviate passes this with probability 2.6e-12
SEQUENCES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), min_size=1, max_size=15)


def grown(users, max_length=5, max_gram=4, epsilon=5000, size=3):
    flat = [symbol for user in users for symbol in [*user, size]]
    limits = Limits(Fraction(epsilon), size, max_length, max_gram, keep_all=False, contexts=True)
    return split_contexts(limits, MemoryTreeWalk(np.array(flat, np.int32), size), Secret.from_seed(1))


def path_of(tree, node):
    """Where a node lies: the symbols before, the latest first."""
    path = []
    while node > 0:
        path.append(int(tree.before[node]))
        node = tree.parents[node]
    return path[::-1]


def naive_counts(tree, users, max_length, size=3):
    """What follows each node's context, step by step and node by node."""
    children = {(int(tree.parents[node]), int(tree.before[node])): node for node in range(1, tree.nodes)}
    counts = Counter()
    for user in users:
        steps = [*user, size] if len(user) < max_length else list(user)
        for place, symbol in enumerate(steps):
            past = [size, *user[:place]]
            node = 0
            counts[node, symbol] += 1
            while past:
                node = children.get((node, past[-1]), children.get((node, OTHERS)))
                if node is None:
                    break
                counts[node, symbol] += 1
                past.pop()
    return counts


@settings(max_examples=60)
@given(SEQUENCES, st.integers(1, 4), st.integers(1, 40))
def test_counts_are_those_of_a_naive_twin(users, max_gram, copies):
    """With hardly any noise every node counts what follows its context, and "others" what is in no other child."""
    users = users * copies
    tree = grown(users, max_gram=max_gram)
    counts = naive_counts(tree, users, 5)
    for node, symbol in product(range(tree.nodes), range(4)):
        assert tree.counts[node, symbol] == counts[node, symbol], path_of(tree, node)


def test_the_end_behind_max_length_symbols_is_no_step():
    """A full sequence has max_length steps, a shorter one of n symbols n + 1."""
    assert grown([[0, 1, 2, 0, 1]] * 7, max_gram=1).counts.sum() == 35
    assert grown([[0, 1, 2, 0]] * 7, max_gram=1).counts.sum() == 35


def test_frequent_contexts_are_longer():
    """Where a context is frequent it is told apart by what is before it; rare ones are counted together."""
    tree = grown([[0, 1, 0, 1, 0]] * 500, epsilon=500)
    paths = {tuple(path_of(tree, node)) for node in range(tree.nodes)}
    assert {(0,), (1,), (3,), (0, 1), (1, 0), (0, 3), (OTHERS,)} <= paths
    assert (2,) not in paths
    assert not any(3 in path[:-1] or OTHERS in path[:-1] for path in paths)


def test_settled_chances_add_up(contexts):
    """At every node, all at least 0, and no sequence is empty."""
    settled = settle(contexts.tree)
    assert settled.chances.min() >= 0
    assert settled.chances.sum(axis=1) == pytest.approx(1)
    assert contexts.next()["probability"].sum() == pytest.approx(1)
    assert dict(contexts.next().iter_rows())[None] < 1e-9


def test_where_noise_drowns_counts_the_shorter_context_stays():
    """With a scale far beyond the counts, longer contexts have the chances of their parents; with none, their own."""
    from voxpop.sequences.context_tree import ROOT, ContextTree

    rng = np.random.default_rng(0)
    alike = np.array([4000, 3000, 2000, 1000])
    own = np.stack([np.roll(alike, shift) // 2 for shift in (1, 2)] * 4)
    root = own.sum(axis=0)
    parents, before = np.array([-1] + [0] * 4), np.array([ROOT, 0, 1, 2, 3])
    for scale, far in ((0.5, True), (1e6, False)):
        noisy = own[:4] + np.round(rng.laplace(0, scale, (4, 4))).astype(int)
        tree = ContextTree(
            4, 9, parents, before, np.array([0.5] + [scale] * 4), np.vstack([own[:4].sum(axis=0), noisy])
        )
        gap = np.abs(settle(tree).chances[1:4] - root / root.sum()).max()
        assert (gap > 0.05) == far


@pytest.mark.jit
@settings(max_examples=40, deadline=None)
@given(st.floats(-50, 400), st.floats(0.01, 200), st.floats(0.5, 100))
def test_mean_counts_are_integrals(noisy, expected, scale):
    """The closed forms agree with sums over a fine grid, and draws have that mean (false alarm below 1e-9)."""
    edges, weights = np.array([0.0, 0.5, 1.0, 2.0, 5.0]), np.array([[0.1, 0.4, 0.3, 0.2]])
    one = lambda value: np.array([value])  # noqa: E731
    found = mean_counts(one(noisy), one(expected), one(scale), edges, weights, np.zeros(1, int))[0]
    ratio = (np.arange(200_000) + 0.5) / 40_000
    density = (weights[0] / np.diff(edges))[np.searchsorted(edges, ratio, side="right") - 1]
    distance = np.abs(noisy - ratio * expected) / scale
    density = density * np.exp(-(distance - distance.min()))
    exact = (density * ratio).sum() / density.sum() * expected
    assert found == pytest.approx(exact, rel=1e-3, abs=1e-3 * expected)
    n = 20_000
    same = lambda value: np.full(n, value)  # noqa: E731
    uniforms = np.random.default_rng(1).random((n, 2))
    drawn = draw_counts(same(noisy), same(expected), same(scale), edges, weights, np.zeros(n, int), uniforms)
    assert abs(drawn.mean() - exact) < SIGMAS * drawn.std() / n**0.5 + 1e-3 * expected


@pytest.mark.jit
def test_draws_follow_the_model(contexts):
    """Sequences of up to four symbols come as often as their probabilities say (false alarm below 1e-9)."""
    n = 200_000
    symbols, sizes = contexts._sampler.draw(np.random.default_rng(5).integers(0, 2**63, n, dtype=np.uint64))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    short = np.flatnonzero(sizes <= 4)
    counts = Counter(tuple(symbols[starts[row] : starts[row + 1]].tolist()) for row in short)
    for sequence in (each for size in (1, 2, 3, 4) for each in product(range(4), repeat=size)):
        chance = contexts.probability([PAGES[symbol] for symbol in sequence])
        assert abs(counts[sequence] - n * chance) < SIGMAS * (n * chance) ** 0.5 + 3, sequence
    assert sizes.min() >= 1
    assert sizes.max() <= 8


@pytest.mark.jit
def test_the_model_resembles_the_data(visits, contexts):
    """Numbers of users, beginnings, lengths."""
    assert contexts.sequences == pytest.approx(6000, rel=0.1)
    assert dict(contexts.next().iter_rows())["home"] == pytest.approx(0.6, abs=0.08)
    symbols, sizes = contexts._sampler.draw(np.arange(20_000, dtype=np.uint64))
    truth = private_sequences(visits, PAGES)
    assert private_length_distance(truth, as_sequences(symbols, sizes, 4), 8) < 0.1


def test_the_table_says_what_was_released(contexts):
    """One row for each node and symbol, with its integer count; estimates at least 0."""
    frame = contexts.to_polars()
    assert frame.columns == ["gram", "begins", "others", "ends", "count", "estimate", "scale"]
    assert len(frame) == len(contexts) == contexts.tree.counts.size
    assert frame["estimate"].min() >= 0
    first = frame.filter(frame["gram"].list.len() <= 1).head(5)
    assert first["gram"].to_list() == [[page] for page in PAGES] + [[]]
    assert first["ends"].to_list() == [False] * 4 + [True]


def test_save_and_load(contexts, tmp_path):
    """What is loaded is equal and draws the same."""
    contexts.save(tmp_path / "model")
    again = vp.SequenceModel.load(tmp_path / "model")
    assert again == contexts
    assert again.sample(20, seed=1).equals(contexts.sample(20, seed=1))
    assert again.sequences == contexts.sequences


def test_the_papers_data_needs_grams(contexts):
    """Its synthesis is over grams; the refusal says what to do."""
    with pytest.raises(vp.errors.InputError, match="grams"):
        contexts.synthesize()
