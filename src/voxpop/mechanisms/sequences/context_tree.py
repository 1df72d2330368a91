"""The tree of contexts: noisy counts of the symbols that follow each context, and its tables. Public arrays.

Probabilities follow from noisy counts by post-processing. Bottom up, the counts of a node and the sums of its
children's counts are averaged by precision. Top down, the expected value of each count is its context's total times the
probability in the context one symbol shorter. Each count moves towards its expected value by empirical Bayes
(`kernels/shrinking.py`): if the noise exceeds the count, the probability of the shorter context remains. The root has
no shorter context; there the expected count of every symbol is the mean.
"""

from dataclasses import dataclass
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
    """Contexts by node, shorter ones first, and the counts of the symbols after them.

    A node's children are its context with one symbol more before it; steps in none of them are counted by the node
    "others" of the same parent. So every step of a sequence is in exactly one node that has no children.

    Attributes:
        width: number of symbols and the end mark, symbol `width - 1`; before a sequence, it denotes the beginning.
        max_length: most symbols of a sequence.
        parents: int32 by node, the context without its oldest symbol; -1 for the root.
        before: int32 by node, that oldest symbol; `ROOT` for the root, `OTHERS` for all symbols without a child.
        scales: float64 by node, the scale of the noise on its counts.
        counts: int64 (nodes, width), noisy, below 0 too.
        steps: the number of first steps of each sequence that are counted; None for all.
        sequences: the noisy number of sequences, which only counts where steps are left out.
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
        """Number of nodes."""
        return int(self.parents.size)

    @cached_property
    def depths(self) -> Int32s:
        """int32 by node, the length of its context; that of "others" is one more than its parent's."""
        depths = np.zeros(self.nodes, np.int32)
        for node in range(1, self.nodes):
            # Parents come before children.
            depths[node] = depths[self.parents[node]] + 1
        return depths

    @cached_property
    def child(self) -> Int32s:
        """int32 by node * width + symbol before it, the node of the longer context, or -1."""
        child = np.full(self.nodes * self.width, -1, np.int32)
        named = np.flatnonzero(self.before >= 0)
        # int64: nodes times symbols may pass 2^31.
        child[self.parents[named].astype(np.int64) * self.width + self.before[named]] = named
        return child

    @cached_property
    def others(self) -> Int32s:
        """int32 by node, its node "others", or -1."""
        others = np.full(self.nodes, -1, np.int32)
        mine = np.flatnonzero(self.before == OTHERS)
        others[self.parents[mine]] = mine
        return others

    @cached_property
    def begun(self) -> Bools:
        """By node, whether its context reaches back to the beginning."""
        begun: Bools = self.before == self.width - 1
        return begun

    @cached_property
    def contexts(self) -> Int32s:
        """int32 (nodes, longest), oldest symbol first, without the beginning, padded with -1; "others" have none."""
        rows = np.full((self.nodes, int(self.depths.max(initial=0))), -1, np.int32)
        for node in range(1, self.nodes):
            if self.before[node] == OTHERS:
                continue
            above = self.parents[node]
            size = int((rows[above] >= 0).sum())
            first = [] if self.begun[node] else [self.before[node]]
            # One symbol more on the left: contexts grow backwards.
            rows[node, : size + len(first)] = [*first, *rows[above, :size]]
        return rows

    def find(self, rows: Int32s, lengths: Int64s, begun: Bools) -> Int32s:
        """Return the node of each history: of the longest context that it ends in."""
        return nodes_of(np.ascontiguousarray(rows), lengths, begun, self.width, (self.child, self.others))

    def with_level(self, parents: Int32s, before: Int32s, scales: Floats, counts: Int64s) -> "ContextTree":
        """Return the tree with more nodes."""
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
        """Most steps of a sequence that are counted."""
        return self.max_length if self.steps is None else self.steps


def context_table(alphabet: tuple[str, ...], tree: ContextTree, estimates: Floats) -> "pl.DataFrame":
    """Return the table of a model; see `SequenceModel.to_polars`.

    Args:
        alphabet: the symbols.
        tree: the released counts.
        estimates: float64 (nodes, width), the smoothed counts.
    """
    import polars as pl

    require_polars()
    width = tree.width
    # "Others" have the context of their parent.
    named = np.where(tree.before == OTHERS, tree.parents, np.arange(tree.nodes))
    context = tree.contexts[named]
    # (nodes * width, longest + 1): a context, padded, and the symbol after it; the end mark does not change the gram.
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
    """Return lists of symbols, given by their numbers one after the other and the size of each list."""
    import polars as pl

    require_polars()
    ends = int64_array(np.concatenate([[0], np.cumsum(sizes)]))
    lists = pa.LargeListArray.from_arrays(ends, string_array(alphabet).take(array_of(symbols)))
    return pl.Series(values=lists, dtype=pl.List(pl.String))


def context_columns(tree: ContextTree) -> pa.Table:
    """Return the columns of a tree, one row per node."""
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
    """Return the tree of a table.

    Args:
        width: number of symbols and the end mark.
        max_length: most steps of a sequence.
        parents: by node.
        before: by node.
        scales: by node.
        counts: of all nodes, one behind the other.

    Returns:
        The tree.

    Raises:
        ValueError: where nodes are missing, doubled or out of order.
    """
    nodes = parents.size
    if counts.size != nodes * width or nodes == 0 or not (np.isfinite(scales) & (scales > 0)).all():
        raise ValueError("not the counts of whole nodes")
    if parents[0] != -1 or before[0] != ROOT or (parents[1:] < 0).any() or (parents[1:] >= np.arange(1, nodes)).any():
        raise ValueError("not a tree")
    if ((before[1:] != OTHERS) & ((before[1:] < 0) | (before[1:] >= width))).any():
        raise ValueError("not symbols")
    # (parent, before) as one number: `before` is from -2 to width - 1.
    if np.unique(parents * (width + 2) + before + 2).size != nodes:
        raise ValueError("not distinct")
    closed = (before == OTHERS) | (before == width - 1)
    if closed[parents[1:]].any():
        raise ValueError("something precedes a beginning")
    links = parents.astype(np.int32), before.astype(np.int32)
    return ContextTree(width, max_length, *links, scales.astype(np.float64), counts.reshape(nodes, width))


LEAST_MASS = 1e-9
"""Minimum of expected and estimated counts, which are divisors."""

LEAST_COUNT = 0.01
"""Minimum of the estimated count of each symbol, because no probability may be 0."""

BIN_EDGES = np.concatenate([[0.0], np.geomspace(1 / 64, 64, 49)])
"""float64 (50), edges of the cells of count over expected count: one from 0, then 8 to a factor of 4."""
STRATA = np.array([0.25, 1.0, 4.0, 16.0, 64.0, 256.0])
"""float64 (6), expected counts in noise scales that separate bins with different distributions of ratios."""


@dataclass(frozen=True, slots=True, eq=False)
class Smoothed:
    """The estimates of a tree.

    Attributes:
        chances: float64 (nodes, width), the probability of each symbol to follow.
        totals: float64 by node, number of occurrences of its context.
        ends: number of sequences that end before they are cut; at least the minimum that the root implies.
    """

    chances: Floats
    totals: Floats
    ends: float


def smooth(tree: ContextTree, bootstrap: "Source | None" = None) -> Smoothed:
    """Return the estimates of all nodes.

    Args:
        tree: public.
        bootstrap: draws the true counts from their distribution given the released ones, instead of estimating them.

    Returns:
        The estimates.
    """
    counts, scales = _combined(tree)
    chances = np.zeros((tree.nodes, tree.width))
    totals = np.zeros(tree.nodes)
    root = _estimated_at_root(counts[0], float(scales[0]), bootstrap)
    chances[0], totals[0] = root / root.sum(), root.sum()
    # The maximum number of counted steps per sequence gives a lower bound.
    ends = max(float(root[-1]) if tree.steps is None else float(tree.sequences), totals[0] / tree.counted)
    for depth in range(1, int(tree.depths.max(initial=0)) + 1):
        level = np.flatnonzero(tree.depths == depth)
        named, rest = level[tree.before[level] != OTHERS], level[tree.before[level] == OTHERS]
        # `named`: the parent's context with one known symbol before it; `rest`: with any of the others before it.
        rows, lengths = tree.contexts[named], (tree.contexts[named] >= 0).sum(axis=1)
        totals[named] = gram_totals(tree, Smoothed(chances, totals, ends), rows, lengths, tree.begun[named])
        # The rest of a parent's total after its named children.
        held = np.bincount(tree.parents[named], weights=totals[named], minlength=tree.nodes)
        totals[rest] = np.maximum(totals - held, 1.0)[tree.parents[rest]]
        for nodes in (named, rest):
            if nodes.size:
                size, purpose = nodes.size * tree.width, f"settling/{depth}/{nodes is rest}"
                drawn = None if bootstrap is None else uniforms(bootstrap, purpose, size)
                # float64 (nodes, width): c(v) P_parent(y).
                expected = totals[nodes, None] * chances[tree.parents[nodes]]
                each = np.repeat(scales[nodes, None], tree.width, 1)
                counted = estimated(counts[nodes], expected, each, drawn, BIN_EDGES, tuned.PRIOR_BINS)
                counted[tree.begun[nodes] & (tree.depths[nodes] == 1), -1] = LEAST_MASS**2  # no sequence is empty
                chances[nodes] = counted / counted.sum(axis=1, keepdims=True)
        # Where all steps are "others" these add nothing to the counts of the parent.
        alone = rest[held[tree.parents[rest]] == 0.0]
        chances[alone] = chances[tree.parents[alone]]
    return Smoothed(chances, totals, ends)


def gram_totals(tree: ContextTree, smoothed: Smoothed, rows: Int32s, lengths: Int64s, begun: Bools) -> Floats:
    """Return the number of occurrences of grams, by the chain rule along the longest contexts whose chances are known.

    Args:
        tree: public.
        smoothed: known for all contexts that are shorter than the grams.
        rows: int32 (grams, most), symbols from the left, padded.
        lengths: int64 by gram.
        begun: by gram, whether only beginnings of sequences count.

    Returns:
        float64 by gram.
    """
    totals = np.where(begun, smoothed.ends, smoothed.totals[0])
    for place in range(int(lengths.max(initial=0))):
        more = np.flatnonzero(lengths > place)
        # c(x1 ... xk) = c() times the product of P(x_i | the longest known context of x1 ... x_(i-1)).
        nodes = tree.find(rows[more], np.full(more.size, place), begun[more])
        # Where that context is all of x1 ... x_(i-1), its own total is nearer than the product so far.
        exact = (tree.depths[nodes] == place + begun[more]) & (tree.before[nodes] != OTHERS)
        above = np.where(exact, smoothed.totals[nodes], totals[more])
        totals[more] = above * smoothed.chances[nodes, rows[more, place]]
    return totals


def _combined(tree: ContextTree) -> tuple[Floats, Floats]:
    """Return each node's counts, its own and its children's averaged by precision, and the scale of their noise."""
    counts, variances = tree.counts.astype(np.float64), tree.scales**2
    for depth in range(int(tree.depths.max(initial=0)), 0, -1):
        level = np.flatnonzero(tree.depths == depth)
        sums, noise = np.zeros_like(counts), np.zeros(tree.nodes)
        np.add.at(sums, tree.parents[level], counts[level])
        np.add.at(noise, tree.parents[level], variances[level])
        above = np.unique(tree.parents[level])
        # Two independent estimates of one count, of variances v and u, are best averaged with weights u and v over v +
        # u; the variance is then v u / (v + u). In units of 2, as all noise is Laplace.
        weight = variances[above] / (variances[above] + noise[above])
        counts[above] += weight[:, None] * (sums[above] - counts[above])
        variances[above] *= 1.0 - weight
    return counts, np.sqrt(variances)


def _estimated_at_root(noisy: Floats, scale: float, bootstrap: "Source | None") -> Floats:
    """Return a quantile, or a bootstrap sample, of the count of each symbol and the end: float64 (width), above 0.

    Args:
        noisy: float64 (width).
        scale: of the noise on each.
        bootstrap: as in `settle`.
    """
    symbols = noisy.size - 1
    # The noise of sums is without bias; that of counts that cannot fall below 0 is not.
    total = max(float(noisy[:-1].sum()), symbols * LEAST_COUNT)
    drawn = None if bootstrap is None else uniforms(bootstrap, "settling/root", symbols)
    # No count is more than all: ratios reach to the number of symbols, in steps as before.
    more = max(int(np.ceil(np.log(symbols / BIN_EDGES[-1]) / np.log(BIN_EDGES[-1] / BIN_EDGES[-2]))), 0)
    edges = np.concatenate([BIN_EDGES, BIN_EDGES[-1] * (BIN_EDGES[-1] / BIN_EDGES[-2]) ** np.arange(1, more + 1)])
    # However few symbols there are, a first guess at their ratios would be worse: one may be nearly all.
    counted = estimated(noisy[:-1], np.full(symbols, total / symbols), np.full(symbols, scale), drawn, edges, 0.0)
    if bootstrap is None:
        counted *= total / counted.sum()
    # The end is not a symbol: its count is used as released.
    moved = 0.0 if bootstrap is None else scale * float(laplace(bootstrap, "settling/ends", 1)[0])
    found: Floats = np.maximum(np.append(counted, noisy[-1] + moved), LEAST_COUNT)
    return found


def estimated(
    noisy: Floats, expected: Floats, scales: Floats, drawn: Floats | None, edges: Floats, prior_bins: float
) -> Floats:
    """Return a quantile, or a bootstrap sample, of each true count, given all released counts.

    Args:
        noisy: float64, released.
        expected: float64, roughly known.
        scales: float64, of the noise.
        drawn: float64, for a bootstrap sample; None for a quantile.
        edges: of the cells of ratios.
        prior_bins: as many bins the prior counts like, which expects symbols that never follow; 0 for no prior.
    """
    flat, mean, scale = noisy.ravel(), np.maximum(expected.ravel(), LEAST_MASS), scales.ravel()
    strata = np.searchsorted(STRATA, mean / scale)
    weights = _ratios(flat, mean, scale, strata, edges, prior_bins)
    # By stratum: the mean ratio, by which expected counts are off on average.
    centre = weights @ ((edges[1:] + edges[:-1]) / 2)
    centre[tuned.TRUSTED_MEANS :] = 1.0
    mean = mean / centre[strata]
    levels = np.full(flat.size, tuned.QUANTILE) if drawn is None else drawn[:, 0].copy()
    if drawn is None and prior_bins:
        # Where many symbols never follow, 0 is a good estimate: a lower quantile is nearer to it.
        empty = weights[:, edges[1:] <= tuned.EMPTY].sum(axis=1)
        levels -= (tuned.PER_EMPTY * np.maximum(empty - tuned.USUAL_EMPTY, 0.0))[strata]
    found = count_quantiles(flat, mean, scale, edges, weights, strata, levels)
    return np.maximum(found, LEAST_MASS).reshape(noisy.shape)


def _ratios(noisy: Floats, mean: Floats, scale: Floats, strata: Int64s, edges: Floats, prior_bins: float) -> Floats:
    """Return the weights of ratios in each stratum; with few bins or much noise, near those of the one above."""
    # To begin with, ratios have the density exp(-r) at the geometric middle r of each cell.
    middle = np.sqrt(np.maximum(edges[1:], 1e-3) * np.maximum(edges[:-1], 1e-3))
    # (cells,), and 1 together.
    fitted = np.diff(edges) * np.exp(-middle)
    fitted /= fitted.sum()
    if prior_bins:
        fitted *= 1.0 - tuned.SPIKE
        fitted[0] += tuned.SPIKE
    weights = np.empty((STRATA.size + 1, fitted.size))
    for stratum in range(STRATA.size, -1, -1):
        mine = np.flatnonzero(strata == stratum)
        # From high strata, where noise is small, to low ones, which begin with the weights of the one above.
        if mine.size:
            some = mine[:: 1 + mine.size // tuned.MOST]
            given = noisy[some], mean[some], scale[some], edges, fitted
            fitted = fit_ratios(*given, prior_bins, tuned.ROUNDS, tuned.SMOOTHINGS)
        weights[stratum] = fitted
    return weights


def uniforms(secret: "Source", purpose: str, size: int) -> Floats:
    """Return float64 (size, 2), above 0 and below 1, a function of secret and purpose. No privacy rests on them."""
    # (size, 2), 64 bits each, of which a double holds 53.
    words = secret.draws(purpose, np.arange(size, dtype=np.uint64), 0)[:, :2]
    found: Floats = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return found


def laplace(secret: "Source", purpose: str, size: int) -> Floats:
    """Return float64 (size,), Laplace numbers of scale 1 in doubles: for post-processing only."""
    # Two exponential numbers; their difference is a Laplace one.
    two = np.log(uniforms(secret, purpose, size))
    found: Floats = two[:, 0] - two[:, 1]
    return found
