"""The tree of contexts, with noisy counts of the symbols that follow each context. All arrays are public.

Probabilities are computed from noisy counts by post-processing. From the bottom up, the counts of a node are averaged
with the sums of its children's counts, weighted by precision. From the top down, the expected value of each count is
the total of its context times the probability in the context that is one symbol shorter. Empirical Bayes moves each
count towards its expected value (`kernels/shrinking.py`). Therefore, if the noise exceeds the count, the result is
close to the probability in the shorter context. The root has no shorter context, so there the expected count of every
symbol is the mean count.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from voxpop.kernels.arrays import Bools, Floats, Int32s, Int64s
from voxpop.kernels.sequences import nodes_of
from voxpop.kernels.shrinking import count_quantiles, fit_ratios
from voxpop.kernels.threads import require_polars
from voxpop.mechanisms.sequences import constants as tuned
from voxpop.reading.arrow import array_of, int64_array, lists_of, string_array

if TYPE_CHECKING:
    import polars as pl

    from voxpop.privacy.secret import Source

ROOT, OTHERS = -1, -2


@dataclass(frozen=True, eq=False)
class ContextTree:
    """Contexts by node, with shorter contexts first, and the counts of the symbols after them.

    The context of a child is the context of its parent with one more symbol before it. The child "others" counts the
    steps that are not in the other children. Therefore every step of a sequence is counted in exactly one node without
    children.

    Attributes:
        width: The number of symbols, including the end mark, which is symbol `width - 1`. Before a sequence, the end
            mark represents the beginning.
        max_length: The maximum number of symbols of a sequence.
        parents: int32 by node, the node of the context without its oldest symbol, or -1 for the root.
        before: int32 by node, the oldest symbol of the context, `ROOT` for the root, or `OTHERS` for all symbols
            without a separate child.
        scales: float64 by node, the scale of the noise on the node's counts.
        counts: int64 (nodes, width), the noisy counts, which can be negative.
        steps: The number of steps that are counted from the start of each sequence, or None if all steps are counted.
        sequences: The noisy number of sequences, which is used only if some steps are not counted.
    """

    width: int
    max_length: int
    parents: Int32s
    before: Int32s
    scales: Floats
    counts: Int64s
    steps: int | None = None
    sequences: int = 0

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return int(self.parents.size)

    @cached_property
    def depths(self) -> Int32s:
        """The length of each node's context, as int32 by node.

        For nodes "others", it is one more than the length of the parent's context.
        """
        depths = np.zeros(self.nodes, np.int32)
        for node in range(1, self.nodes):
            # Parents precede their children.
            depths[node] = depths[self.parents[node]] + 1
        return depths

    @cached_property
    def child(self) -> Int32s:
        """The node of each longer context, or -1, as int32 by node * width + preceding symbol."""
        child = np.full(self.nodes * self.width, -1, np.int32)
        named = np.flatnonzero(self.before >= 0)
        # The product is int64, because the number of nodes times the number of symbols can exceed 2^31.
        child[self.parents[named].astype(np.int64) * self.width + self.before[named]] = named
        return child

    @cached_property
    def others(self) -> Int32s:
        """The child "others" of each node, or -1, as int32 by node."""
        others = np.full(self.nodes, -1, np.int32)
        mine = np.flatnonzero(self.before == OTHERS)
        others[self.parents[mine]] = mine
        return others

    @cached_property
    def begun(self) -> Bools:
        """For each node, whether its context includes the beginning of a sequence."""
        begun: Bools = self.before == self.width - 1
        return begun

    @cached_property
    def contexts(self) -> Int32s:
        """The symbols of each context, oldest first, as int32 (nodes, longest), padded with -1.

        The beginning of a sequence is not included, and the rows of "others" are empty.
        """
        rows = np.full((self.nodes, int(self.depths.max(initial=0))), -1, np.int32)
        for node in range(1, self.nodes):
            if self.before[node] == OTHERS:
                continue
            above = self.parents[node]
            size = int((rows[above] >= 0).sum())
            first = [] if self.begun[node] else [self.before[node]]
            # Contexts are extended backwards, so the new symbol is on the left.
            rows[node, : size + len(first)] = [*first, *rows[above, :size]]
        return rows

    def find(self, rows: Int32s, lengths: Int64s, begun: Bools) -> Int32s:
        """Return the node of each history, which is the node of the longest context at the end of the history."""
        return nodes_of(np.ascontiguousarray(rows), lengths, begun, self.width, (self.child, self.others))

    def with_level(self, parents: Int32s, before: Int32s, scales: Floats, counts: Int64s) -> "ContextTree":
        """Return the tree with additional nodes."""
        return ContextTree(
            self.width,
            self.max_length,
            np.concatenate([self.parents, parents]),
            np.concatenate([self.before, before]),
            np.concatenate([self.scales, scales]),
            np.concatenate([self.counts, counts]),
            self.steps,
            self.sequences,
        )

    @property
    def counted(self) -> int:
        """The maximum number of counted steps per sequence."""
        return self.max_length if self.steps is None else self.steps


def context_table(alphabet: tuple[str, ...], tree: ContextTree, estimates: Floats) -> "pl.DataFrame":
    """Return the table of a model; see `SequenceModel.to_polars`.

    Args:
        alphabet: The symbols.
        tree: The released counts.
        estimates: float64 (nodes, width), the smoothed counts.
    """
    import polars as pl

    require_polars()
    width = tree.width
    # The node "others" has the context of its parent.
    named = np.where(tree.before == OTHERS, tree.parents, np.arange(tree.nodes))
    context = tree.contexts[named]
    # Shape (nodes * width, longest + 1), a padded context and the symbol after it. The end mark is not part of the
    # gram.
    rows = np.column_stack([np.repeat(context, width, axis=0), np.tile(np.arange(width), tree.nodes)])
    ends = rows[:, -1] == width - 1
    rows[ends, -1] = -1
    kept = rows >= 0
    return pl.DataFrame(
        {
            "gram": lists_of_symbols(alphabet, rows[kept], kept.sum(axis=1)),
            "begins": np.repeat(tree.begun[named], width),
            "others": np.repeat(tree.before == OTHERS, width),
            "ends": ends,
            "count": tree.counts.ravel(),
            "estimate": estimates.ravel(),
            "scale": np.repeat(tree.scales, width),
        }
    )


def lists_of_symbols(alphabet: tuple[str, ...], symbols: Int32s | Int64s, sizes: Int64s) -> "pl.Series":
    """Return lists of symbols from their concatenated numbers and the size of each list."""
    import polars as pl

    require_polars()
    ends = int64_array(np.concatenate([[0], np.cumsum(sizes)]))
    lists = pa.LargeListArray.from_arrays(ends, string_array(alphabet).take(array_of(symbols)))
    return pl.Series(values=lists, dtype=pl.List(pl.String))


def context_columns(tree: ContextTree) -> pa.Table:
    """Return a tree as a table with one row per node."""
    counts = lists_of(int64_array(tree.counts.ravel()), np.full(tree.counts.size // tree.width, tree.width))
    return pa.table(
        {
            "parent": array_of(tree.parents),
            "before": array_of(tree.before),
            "scale": array_of(tree.scales),
            "counts": counts,
        }
    )


def context_tree_of(
    width: int, max_length: int, parents: Int64s, before: Int64s, scales: Floats, counts: Int64s
) -> ContextTree:
    """Return the context tree with these nodes and counts.

    Args:
        width: The number of symbols, including the end mark.
        max_length: The maximum number of steps of a sequence.
        parents: The parent of each node.
        before: The oldest symbol of each node's context.
        scales: The noise scale of each node.
        counts: The counts of all nodes, concatenated.

    Returns:
        The tree.

    Raises:
        ValueError: Nodes are missing, duplicated or out of order.
    """
    nodes = parents.size
    if counts.size != nodes * width or nodes == 0 or not (np.isfinite(scales) & (scales > 0)).all():
        raise ValueError("not the counts of whole nodes")
    if parents[0] != -1 or before[0] != ROOT or (parents[1:] < 0).any() or (parents[1:] >= np.arange(1, nodes)).any():
        raise ValueError("not a tree")
    if ((before[1:] != OTHERS) & ((before[1:] < 0) | (before[1:] >= width))).any():
        raise ValueError("not symbols")
    # Encode (parent, before) as one number, which is possible because `before` is between -2 and width - 1.
    if np.unique(parents * (width + 2) + before + 2).size != nodes:
        raise ValueError("not distinct")
    closed = (before == OTHERS) | (before == width - 1)
    if closed[parents[1:]].any():
        raise ValueError("something precedes a beginning")
    links = parents.astype(np.int32), before.astype(np.int32)
    return ContextTree(width, max_length, *links, scales.astype(np.float64), counts.reshape(nodes, width))


LEAST_MASS = 1e-9
"""The minimum of expected and estimated counts, because they are divisors."""

LEAST_COUNT = 0.01
"""The minimum of the estimated count of each symbol, because no probability may be 0."""

BIN_EDGES = np.concatenate([[0.0], np.geomspace(1 / 64, 64, 49)])
"""float64 (50), the edges of the bins for the ratio of a count to its expected count. The first bin begins at 0. After
the first bin, there are 8 bins per factor of 4.
"""
STRATA = np.array([0.25, 1.0, 4.0, 16.0, 64.0, 256.0])
"""float64 (6), the expected counts, in noise scales, that separate strata with different distributions of ratios."""


@dataclass(frozen=True, slots=True, eq=False)
class Smoothed:
    """The estimates of a tree.

    Attributes:
        chances: float64 (nodes, width), the probability that each symbol follows.
        totals: float64 by node, the estimated number of occurrences of the node's context.
        ends: The estimated number of sequences that end before they are truncated, which is at least the lower bound
            that the root implies.
    """

    chances: Floats
    totals: Floats
    ends: float


def smooth(tree: ContextTree, bootstrap: "Source | None" = None) -> Smoothed:
    """Return the estimates of all nodes.

    Args:
        tree: The public tree.
        bootstrap: A source that draws the true counts from their distribution given the released counts, or None to
            estimate the true counts instead.

    Returns:
        The estimates.
    """
    counts, scales = _combined(tree)
    chances = np.zeros((tree.nodes, tree.width))
    totals = np.zeros(tree.nodes)
    root = _estimated_at_root(counts[0], float(scales[0]), bootstrap)
    chances[0], totals[0] = root / root.sum(), root.sum()
    # The number of steps divided by the maximum number of counted steps per sequence is a lower bound.
    ends = max(float(root[-1]) if tree.steps is None else float(tree.sequences), totals[0] / tree.counted)
    for depth in range(1, int(tree.depths.max(initial=0)) + 1):
        level = np.flatnonzero(tree.depths == depth)
        named, rest = level[tree.before[level] != OTHERS], level[tree.before[level] == OTHERS]
        # The contexts of `named` nodes are the parent's context with one known symbol before it. The `rest` nodes cover
        # all other symbols before the parent's context.
        rows, lengths = tree.contexts[named], (tree.contexts[named] >= 0).sum(axis=1)
        totals[named] = gram_totals(tree, Smoothed(chances, totals, ends), rows, lengths, tree.begun[named])
        # The total of a `rest` node is the parent's total minus the totals of the named children.
        held = np.bincount(tree.parents[named], weights=totals[named], minlength=tree.nodes)
        totals[rest] = np.maximum(totals - held, 1.0)[tree.parents[rest]]
        for nodes in (named, rest):
            if nodes.size:
                size, purpose = nodes.size * tree.width, f"settling/{depth}/{nodes is rest}"
                drawn = None if bootstrap is None else uniforms(bootstrap, purpose, size)
                # float64 (nodes, width), c(v) P_parent(y).
                expected = totals[nodes, None] * chances[tree.parents[nodes]]
                each = np.repeat(scales[nodes, None], tree.width, 1)
                counted = estimated(counts[nodes], expected, each, drawn, BIN_EDGES, tuned.PRIOR_BINS)
                counted[tree.begun[nodes] & (tree.depths[nodes] == 1), -1] = LEAST_MASS**2  # no sequence is empty
                chances[nodes] = counted / counted.sum(axis=1, keepdims=True)
        # If all steps are in "others", the counts of "others" add no information to the counts of the parent.
        alone = rest[held[tree.parents[rest]] == 0.0]
        chances[alone] = chances[tree.parents[alone]]
    return Smoothed(chances, totals, ends)


def shortened(tree: ContextTree, smoothed: Smoothed, kept: int) -> Smoothed:
    """Return the estimates of the same tree with its longest contexts shortened by one symbol.

    If only single symbols are counted, all symbols become equally frequent. The first symbols of sequences do not
    change if they are counted separately.

    Args:
        tree: The public tree.
        smoothed: The estimates of the tree's nodes.
        kept: The maximum length of contexts that are not shortened.
    """
    chances = smoothed.chances.copy()
    if tree.nodes == 1:
        chances[0, :-1] = (1.0 - chances[0, -1]) / (tree.width - 1)
    leaves = np.setdiff1d(np.arange(1, tree.nodes), tree.parents)
    leaves = leaves[~tree.begun[leaves] | (tree.depths[leaves] > 1)]
    leaves = leaves[tree.depths[leaves] > kept]
    chances[leaves] = smoothed.chances[tree.parents[leaves]]
    return replace(smoothed, chances=chances)


def plain_starts(tree: ContextTree) -> list[Floats]:
    """Return a list with the unadjusted shares of first symbols and of the end, or an empty list without counts."""
    node = int(tree.child[tree.width - 1])
    counts = np.append(tree.counts[node, :-1], 0)
    return [] if node < 0 else [np.maximum(counts, 0) / max(int(counts.sum()), 1)]


def gram_totals(tree: ContextTree, smoothed: Smoothed, rows: Int32s, lengths: Int64s, begun: Bools) -> Floats:
    """Return the number of occurrences of grams, by the chain rule over the longest contexts with known probabilities.

    Args:
        tree: The public tree.
        smoothed: The estimates, which are known for all contexts that are shorter than the grams.
        rows: int32 (grams, longest), the symbols of each gram from the left, padded.
        lengths: int64 by gram, the number of symbols.
        begun: bool by gram, whether only occurrences at the beginning of sequences count.

    Returns:
        The number of occurrences, as float64 by gram.
    """
    totals = np.where(begun, smoothed.ends, smoothed.totals[0])
    for place in range(int(lengths.max(initial=0))):
        more = np.flatnonzero(lengths > place)
        # c(x1 ... xk) is c() times the product of P(x_i | the longest known context of x1 ... x_(i-1)).
        nodes = tree.find(rows[more], np.full(more.size, place), begun[more])
        # If this context is all of x1 ... x_(i-1), its own total is more accurate than the product so far.
        exact = (tree.depths[nodes] == place + begun[more]) & (tree.before[nodes] != OTHERS)
        above = np.where(exact, smoothed.totals[nodes], totals[more])
        totals[more] = above * smoothed.chances[nodes, rows[more, place]]
    return totals


def _combined(tree: ContextTree) -> tuple[Floats, Floats]:
    """Return each node's counts, averaged with its children's sums by precision, and the scale of their noise."""
    counts, variances = tree.counts.astype(np.float64), tree.scales**2
    for depth in range(int(tree.depths.max(initial=0)), 0, -1):
        level = np.flatnonzero(tree.depths == depth)
        sums, noise = np.zeros_like(counts), np.zeros(tree.nodes)
        np.add.at(sums, tree.parents[level], counts[level])
        np.add.at(noise, tree.parents[level], variances[level])
        above = np.unique(tree.parents[level])
        # The best average of two independent estimates of one count, with variances v and u, has weights u / (v + u)
        # and v / (v + u), and its variance is v u / (v + u). All variances below are divided by 2, which is possible
        # because all noise is Laplace noise.
        weight = variances[above] / (variances[above] + noise[above])
        counts[above] += weight[:, None] * (sums[above] - counts[above])
        variances[above] *= 1.0 - weight
    return counts, np.sqrt(variances)


def _estimated_at_root(noisy: Floats, scale: float, bootstrap: "Source | None") -> Floats:
    """Return a quantile, or a bootstrap sample, of the count of each symbol and of the end, as float64 (width) above 0.

    Args:
        noisy: float64 (width), the noisy counts.
        scale: The scale of the noise on each count.
        bootstrap: The source of bootstrap draws, as in `smooth`.
    """
    symbols = noisy.size - 1
    # Sums of noisy counts are unbiased, but sums of counts that are clipped at 0 would be biased.
    total = max(float(noisy[:-1].sum()), symbols * LEAST_COUNT)
    drawn = None if bootstrap is None else uniforms(bootstrap, "settling/root", symbols)
    # No count exceeds the total, so the bins of ratios extend to the number of symbols, with the same step.
    more = max(int(np.ceil(np.log(symbols / BIN_EDGES[-1]) / np.log(BIN_EDGES[-1] / BIN_EDGES[-2]))), 0)
    edges = np.concatenate([BIN_EDGES, BIN_EDGES[-1] * (BIN_EDGES[-1] / BIN_EDGES[-2]) ** np.arange(1, more + 1)])
    # No prior is used, even with few symbols, because a single symbol can have nearly the whole total.
    counted = estimated(noisy[:-1], np.full(symbols, total / symbols), np.full(symbols, scale), drawn, edges, 0.0)
    if bootstrap is None:
        counted *= total / counted.sum()
    # The end is not a symbol, so its count is used as released.
    moved = 0.0 if bootstrap is None else scale * float(laplace(bootstrap, "settling/ends", 1)[0])
    found: Floats = np.maximum(np.append(counted, noisy[-1] + moved), LEAST_COUNT)
    return found


def estimated(
    noisy: Floats, expected: Floats, scales: Floats, drawn: Floats | None, edges: Floats, prior_bins: float
) -> Floats:
    """Return a quantile, or a bootstrap sample, of each true count, given all released counts.

    Args:
        noisy: float64, the released counts.
        expected: float64, rough estimates of the true counts.
        scales: float64, the scales of the noise.
        drawn: float64, uniform numbers for a bootstrap sample (None for a quantile).
        edges: The edges of the bins of ratios.
        prior_bins: The weight of the prior, as a number of bins, or 0 for no prior. According to the prior, some
            symbols never follow a context.
    """
    flat, mean, scale = noisy.ravel(), np.maximum(expected.ravel(), LEAST_MASS), scales.ravel()
    strata = np.searchsorted(STRATA, mean / scale)
    weights = _ratios(flat, mean, scale, strata, edges, prior_bins)
    # Shape (strata,), the mean ratio of counts to expected counts.
    centre = weights @ ((edges[1:] + edges[:-1]) / 2)
    centre[tuned.TRUSTED_MEANS :] = 1.0
    mean = mean / centre[strata]
    levels = np.full(flat.size, tuned.QUANTILE) if drawn is None else drawn[:, 0].copy()
    if drawn is None and prior_bins:
        # If many symbols never follow a context, 0 is a good estimate for them, so a lower quantile is used.
        empty = weights[:, edges[1:] <= tuned.EMPTY].sum(axis=1)
        levels -= (tuned.PER_EMPTY * np.maximum(empty - tuned.USUAL_EMPTY, 0.0))[strata]
    found = count_quantiles(flat, mean, scale, edges, weights, strata, levels)
    return np.maximum(found, LEAST_MASS).reshape(noisy.shape)


def _ratios(noisy: Floats, mean: Floats, scale: Floats, strata: Int64s, edges: Floats, prior_bins: float) -> Floats:
    """Return the weights of ratios in each stratum, which are near those of the next higher stratum for scarce data."""
    # Initially, ratios have the density exp(-r) at the geometric mean r of the edges of each bin.
    middle = np.sqrt(np.maximum(edges[1:], 1e-3) * np.maximum(edges[:-1], 1e-3))
    # Shape (bins,), with a sum of 1.
    fitted = np.diff(edges) * np.exp(-middle)
    fitted /= fitted.sum()
    if prior_bins:
        fitted *= 1.0 - tuned.SPIKE
        fitted[0] += tuned.SPIKE
    weights = np.empty((STRATA.size + 1, fitted.size))
    for stratum in range(STRATA.size, -1, -1):
        mine = np.flatnonzero(strata == stratum)
        # The loop runs from high strata, which have less relative noise, to low strata. Each fit begins with the
        # weights of the next higher stratum.
        if mine.size:
            some = mine[:: 1 + mine.size // tuned.MOST]
            given = noisy[some], mean[some], scale[some], edges, fitted
            fitted = fit_ratios(*given, prior_bins, tuned.ROUNDS, tuned.SMOOTHINGS)
        weights[stratum] = fitted
    return weights


def uniforms(secret: "Source", purpose: str, size: int) -> Floats:
    """Return uniform numbers strictly between 0 and 1, as float64 (size, 2), from a secret and a purpose.

    Privacy never depends on these numbers.
    """
    # Shape (size, 2), with 64 bits each. A double has room for 53 bits.
    words = secret.draws(purpose, np.arange(size, dtype=np.uint64), 0)[:, :2]
    found: Floats = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return found


def laplace(secret: "Source", purpose: str, size: int) -> Floats:
    """Return Laplace variables of scale 1, as float64 (size,), for post-processing only."""
    # The difference of two exponential variables has a Laplace distribution.
    two = np.log(uniforms(secret, purpose, size))
    found: Floats = two[:, 0] - two[:, 1]
    return found
