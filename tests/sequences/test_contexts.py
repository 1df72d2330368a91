"""Tests of the context tree, including a reference implementation, truncation to max_length, smoothing and draws."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from benchmarks.evaluation import as_sequences, private_length_distance, private_sequences
from hypothesis import given, settings
from hypothesis import strategies as st

from support.exact import paths_gate
from voxpop.kernels.shrinking import LEAST_WEIGHT, count_quantiles, fit_ratios
from voxpop.mechanisms.sequences.constants import NEVER
from voxpop.mechanisms.sequences.context_tree import OTHERS, ROOT, ContextTree, smooth
from voxpop.mechanisms.sequences.releasing import split_contexts
from voxpop.privacy.path_budget import Limits
from voxpop.privacy.secret import Secret

PAGES = ["home", "news", "sport", "weather"]
SIGMAS = 7.0  # The absolute value of a normal deviate exceeds this with probability 2.6e-12.
SEQUENCES = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), min_size=1, max_size=15)


def grown(users, max_length=5, max_gram=4, epsilon=5000, size=3):
    flat = [symbol for user in users for symbol in [*user, size]]
    limits = Limits(Fraction(epsilon), size, max_length, max_gram)
    return split_contexts(paths_gate(limits, flat, Secret.from_seed(1)))[0]


def path_of(tree, node):
    """Return the symbols of the context of a node, with the latest symbol first."""
    path = []
    while node > 0:
        path.append(int(tree.before[node]))
        node = tree.parents[node]
    return path[::-1]


def naive_counts(tree, users, max_length, size=3):
    """Count the symbols that follow the context of each node, in loops over steps and nodes."""
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
def test_counts_equal_the_reference_implementation(users, max_gram, copies):
    """With almost no noise, nodes count the symbols after their contexts.

    The child "others" covers the contexts that no other child covers.
    """
    users = users * copies
    tree = grown(users, max_gram=max_gram)
    counts = naive_counts(tree, users, 5)
    for node, symbol in product(range(tree.nodes), range(4)):
        assert tree.counts[node, symbol] == counts[node, symbol], path_of(tree, node)


def test_the_end_after_max_length_symbols_is_not_counted_as_a_step():
    """A sequence of max_length symbols has max_length steps. A shorter sequence of n symbols has n + 1 steps."""
    assert grown([[0, 1, 2, 0, 1]] * 7, max_gram=1).counts.sum() == 35
    assert grown([[0, 1, 2, 0]] * 7, max_gram=1).counts.sum() == 35


def test_frequent_contexts_are_longer():
    """Frequent contexts are split by the symbol before them. Rare contexts are counted together."""
    size = 100
    tree = grown([[0, 1, 0, 1, 0]] * 500, epsilon=500, size=size)
    paths = {tuple(path_of(tree, node)) for node in range(tree.nodes)}
    assert {(0,), (1,), (size,), (0, 1), (1, 0), (0, size), (OTHERS,)} <= paths
    # The 98 symbols without users are in no context.
    assert {symbol for path in paths for symbol in path} == {0, 1, size, OTHERS}
    assert not any(size in path[:-1] or OTHERS in path[:-1] for path in paths)


def test_smoothed_probabilities_add_up_to_one(model):
    """At every node, no probability is negative, and the probability of an empty sequence is nearly 0."""
    smoothed = smooth(model.tree)
    assert smoothed.chances.min() >= 0
    assert smoothed.chances.sum(axis=1) == pytest.approx(1)
    assert model.next()["probability"].sum() == pytest.approx(1)
    assert dict(model.next().iter_rows())[None] < 1e-9


def test_large_noise_gives_the_probabilities_of_shorter_contexts():
    """If the noise scale is far above the counts, longer contexts have the probabilities of their parents.

    Otherwise, longer contexts have different probabilities.
    """
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
        gap = np.abs(smooth(tree).chances[1:4] - root / root.sum()).max()
        assert (gap > 0.05) == far


@pytest.mark.jit
@settings(max_examples=40, deadline=None)
@given(st.floats(-50, 400), st.floats(0.01, 200), st.floats(0.5, 100), st.floats(0.01, 0.99))
def test_quantiles_agree_with_integrals(noisy, expected, scale, level):
    """The closed forms agree with sums over a fine grid.

    The share of the posterior distribution below the quantile is the given level.
    """
    edges, weights = np.array([0.0, 0.5, 1.0, 2.0, 5.0]), np.array([[0.1, 0.4, 0.3, 0.2]])
    one = lambda value: np.array([value])  # noqa: E731
    found = count_quantiles(one(noisy), one(expected), one(scale), edges, weights, np.zeros(1, int), one(level))[0]
    ratio = (np.arange(200_000) + 0.5) / 40_000
    density = (weights[0] / np.diff(edges))[np.searchsorted(edges, ratio, side="right") - 1]
    distance = np.abs(noisy - ratio * expected) / scale
    density = density * np.exp(-(distance - distance.min()))
    below = np.append(0.0, np.cumsum(density) / density.sum())
    # At high density, one step of the grid covers a large share, so the level is only between those of the adjacent
    # steps.
    place = np.searchsorted(ratio, found / expected)
    assert below[max(place - 1, 0)] - 1e-3 <= level <= below[min(place + 1, ratio.size)] + 1e-3


def naive_fit(noisy, expected, scale, edges, weights, prior_bins, rounds, smoothings):
    """Run expectation maximisation with smoothing, computing the likelihood of each cell as a sum over a fine grid."""
    parts = 4000
    inside = edges[:-1, None] + np.diff(edges)[:, None] * (np.arange(parts) + 0.5) / parts
    like = np.array(
        [np.exp(-np.abs(z - inside * mean) / b).mean(axis=1) for z, mean, b in zip(noisy, expected, scale, strict=True)]
    )
    prior = LEAST_WEIGHT + prior_bins * weights
    for _ in range(rounds):
        more = prior.copy()
        for row in like:
            more += weights * row / (weights * row).sum()
        weights = more / more.sum()
        for _ in range(smoothings):
            padded = [weights[0], *weights, weights[-1]]
            weights = np.array([(a + 2 * b + c) / 4 for a, b, c in zip(padded, weights, padded[2:], strict=False)])
    return weights


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-50, 400), st.floats(1, 200), st.floats(5, 100)), min_size=1, max_size=12),
    st.sampled_from([0.0, 0.5, 5.0]),
    st.integers(0, 4),
    st.integers(0, 3),
)
def test_fitted_ratios_equal_the_reference_implementation(bins, prior_bins, rounds, smoothings):
    """The cases have few or many bins, with and without a prior and smoothing. The weights add up to 1."""
    noisy, expected, scale = np.array(bins).T
    edges, weights = np.array([0.0, 0.25, 0.5, 1.0, 2.0, 5.0]), np.array([0.1, 0.2, 0.3, 0.3, 0.1])
    fitted = fit_ratios(noisy, expected, scale, edges, weights, prior_bins, rounds, smoothings)
    assert fitted.sum() == pytest.approx(1)
    naive = naive_fit(noisy, expected, scale, edges, weights, prior_bins, rounds, smoothings)
    assert fitted == pytest.approx(naive, rel=1e-3, abs=1e-6)


SHAPES = {
    "falling": 1 / np.arange(1, 18),
    "long tail": 1 / np.arange(1, 301),
    "nearly all is one": np.append(np.full(199, 0.1 / 199), 0.9),
    "flat": np.ones(40),
}


def one_level(shape, scale, seed):
    """Return exact counts of 100,000 steps with the given shape and 5,000 ends, and a one-node tree of noisy counts."""
    rng = np.random.default_rng(seed)
    exact = np.append(100_000 * shape / shape.sum(), 5_000)
    counts = np.round(exact + rng.laplace(0, scale, exact.size)).astype(np.int64)
    first = np.array([-1], np.int32)
    return exact, ContextTree(exact.size, 20, first, np.array([ROOT], np.int32), np.array([scale]), counts[None])


@pytest.mark.jit
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("scale", [50, 500])
def test_smoothing_reduces_noise(name, scale):
    """Smoothed counts are at least as accurate as counts that are clipped at 0, and much more accurate for large noise.

    The smoothed counts add up. The test uses 20 fixed seeds. The noise of a sum of counts has the standard deviation
    scale (2 width)^(1/2), and seven standard deviations are allowed.
    """
    ours, cut = [], []
    for seed in range(20):
        exact, tree = one_level(SHAPES[name], scale, seed)
        smoothed = smooth(tree)
        believed = smoothed.totals[0] * smoothed.chances[0]
        ours.append(np.abs(believed - exact)[:-1].sum())
        cut.append(np.abs(np.maximum(tree.counts[0], 0) - exact)[:-1].sum())
        assert abs(believed[:-1].sum() - 100_000) < SIGMAS * scale * (2 * exact.size) ** 0.5
    assert np.mean(ours) < 1.02 * np.mean(cut), (np.mean(ours), np.mean(cut))
    if scale * exact.size > 100_000:
        assert np.mean(ours) < 0.8 * np.mean(cut), (np.mean(ours), np.mean(cut))


@pytest.mark.jit
def test_bootstrap_draws_of_the_root_have_the_variance_of_the_noise():
    """If counts are far above the noise, a bootstrap draw is the count plus noise with the same variance.

    There are 400 draws of 17 symbols each. The mean square of n Laplace numbers of variance 2 has the standard
    deviation (20 / n)^(1/2). For n = 6,800, seven standard deviations are 0.38.
    """
    shape = np.arange(17, 34)
    _, tree = one_level(shape, 20.0, 1)
    drawn = [smooth(tree, Secret.from_seed(seed)) for seed in range(400)]
    gaps = np.array([(each.totals[0] * each.chances[0] - tree.counts[0])[:-1] for each in drawn]) / 20.0
    assert abs((gaps**2).mean() - 2.0) < 0.4
    assert abs(gaps.mean()) < 0.2


@pytest.mark.jit
@pytest.mark.parametrize("name", ["model", "symbols_alone"])
@pytest.mark.parametrize(("novelty", "repeats"), [(2.0, 0.0), (NEVER, 0.0), (2.0, 0.4)])
def test_draws_have_the_probabilities_of_the_model(name, novelty, repeats, request):
    """The frequencies of sequences of up to four symbols agree with their probabilities (false alarm below 1e-9)."""
    n = 200_000
    model = replace(request.getfixturevalue(name))
    fit = replace(model._sampler.fit, novelty=novelty, repeats=repeats)
    model.__dict__["_sampler"] = replace(model._sampler, fit=fit)
    drawn = model._sampler.draw(np.random.default_rng(5).integers(0, 2**63, n, dtype=np.uint64))
    symbols, sizes = drawn.symbols, drawn.sizes
    starts = np.concatenate([[0], np.cumsum(sizes)])
    short = np.flatnonzero(sizes <= 4)
    counts = Counter(tuple(symbols[starts[row] : starts[row + 1]].tolist()) for row in short)
    for sequence in (each for size in (1, 2, 3, 4) for each in product(range(4), repeat=size)):
        chance = model.probability([PAGES[symbol] for symbol in sequence])
        assert abs(counts[sequence] - n * chance) < SIGMAS * (n * chance) ** 0.5 + 3, sequence
    assert sizes.min() >= 1
    assert sizes.max() <= 8


@pytest.mark.jit
def test_the_model_resembles_the_data(visits, model):
    """The number of users, the first symbols and the lengths of drawn sequences agree with the data."""
    assert model.n_users == pytest.approx(6000, rel=0.1)
    assert dict(model.next().iter_rows())["home"] == pytest.approx(0.6, abs=0.08)
    drawn = model._sampler.draw(np.arange(20_000, dtype=np.uint64))
    symbols, sizes = drawn.symbols, drawn.sizes
    truth = private_sequences(visits, PAGES)
    assert private_length_distance(truth, as_sequences(symbols, sizes, 4), 8) < 0.1


def test_the_table_contains_the_released_counts(model):
    """The table has one row for each node and symbol with its integer count. Estimates are at least 0."""
    frame = model.to_polars()
    assert frame.columns == ["gram", "begins", "others", "ends", "count", "estimate", "scale"]
    assert len(frame) == len(model) == model.tree.counts.size
    assert frame["estimate"].min() >= 0
    first = frame.filter(frame["gram"].list.len() <= 1).head(5)
    assert first["gram"].to_list() == [[page] for page in PAGES] + [[]]
    assert first["ends"].to_list() == [False] * 4 + [True]
