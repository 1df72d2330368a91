"""From noisy counts of contexts to chances: post-processing of what was released.

Bottom up, a node's own counts and the sum of its children's are averaged, each by its precision. Top down, each count
is expected to be its context's total times the chance one symbol shorter, and is drawn towards that as far as all
counts of its kind together say (`kernels/shrinking.py`): where noise drowns it, the shorter context's chance stays.
Shorter than no symbol there is nothing: how often a symbol occurs at all is expected to be what all do on average.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from voxpop.arrays import Bools, Floats, Int32s, Int64s
from voxpop.kernels.shrinking import draw_counts, fit_ratios, mean_counts
from voxpop.sequences.context_tree import OTHERS, ContextTree
from voxpop.sequences.redrawing import laplace, uniforms
from voxpop.sequences.schedule import EDGES, FEWEST, MOST, ROUNDS, SMOOTHINGS, STRATA, TRUSTED_MEANS

if TYPE_CHECKING:
    from voxpop.privacy.secret import Source


LEAST = 1e-9
"""Expected and believed counts are at least this, so that they can be divided by."""

LEAST_COUNT = 0.01
"""How often each symbol is believed to occur at all, at least, as no chance may be 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """What is believed of a tree.

    Attributes:
        chances: float64 (nodes, width), of each symbol to follow.
        totals: float64 by node, how often its context occurs.
        ends: how many sequences end before they are cut, or at least as many as there must be.
    """

    chances: Floats
    totals: Floats
    ends: float


def settle(tree: ContextTree, redraw: "Source | None" = None) -> Settled:
    """Return the chances of all nodes.

    Args:
        tree: public.
        redraw: draws what the counts may have been, rather than their means.

    Returns:
        The chances and totals.
    """
    counts, scales = _combined(tree)
    chances = np.zeros((tree.nodes, tree.width))
    totals = np.zeros(tree.nodes)
    root = _believed_at_all(counts[0], float(scales[0]), redraw)
    chances[0], totals[0] = root / root.sum(), root.sum()
    # A sequence has max_length symbols at most, so there are at least so many.
    ends = max(float(root[-1]), totals[0] / tree.max_length)
    for depth in range(1, int(tree.depths.max(initial=0)) + 1):
        level = np.flatnonzero(tree.depths == depth)
        named, rest = level[tree.before[level] != OTHERS], level[tree.before[level] == OTHERS]
        # `named`: the parent's context with one known symbol before it; `rest`: with any of the others before it.
        rows, lengths = tree.contexts[named], (tree.contexts[named] >= 0).sum(axis=1)
        totals[named] = gram_totals(tree, Settled(chances, totals, ends), rows, lengths, tree.begun[named])
        # What a parent's named children leave of its total.
        held = np.bincount(tree.parents[named], weights=totals[named], minlength=tree.nodes)
        totals[rest] = np.maximum(totals - held, 1.0)[tree.parents[rest]]
        for nodes in (named, rest):
            if nodes.size:
                size, purpose = nodes.size * tree.width, f"settling/{depth}/{nodes is rest}"
                drawn = None if redraw is None else uniforms(redraw, purpose, size)
                # float64 (nodes, width): c(v) P_parent(y).
                expected = totals[nodes, None] * chances[tree.parents[nodes]]
                each = np.repeat(scales[nodes, None], tree.width, 1)
                believed = _believed(counts[nodes], expected, each, drawn, EDGES, FEWEST)
                believed[tree.begun[nodes] & (tree.depths[nodes] == 1), -1] = LEAST**2  # no sequence is empty
                chances[nodes] = believed / believed.sum(axis=1, keepdims=True)
    return Settled(chances, totals, ends)


def gram_totals(tree: ContextTree, settled: Settled, rows: Int32s, lengths: Int64s, begun: Bools) -> Floats:
    """Return how often grams occur, by the chain rule along the longest contexts whose chances are known.

    Args:
        tree: public.
        settled: known for all contexts that are shorter than the grams.
        rows: int32 (grams, most), symbols from the left, padded.
        lengths: int64 by gram.
        begun: by gram, whether only beginnings of sequences count.

    Returns:
        float64 by gram.
    """
    totals = np.where(begun, settled.ends, settled.totals[0])
    for place in range(int(lengths.max(initial=0))):
        more = np.flatnonzero(lengths > place)
        # c(x1 ... xk) = c() times the product of P(x_i | the longest known context of x1 ... x_(i-1)).
        nodes = tree.find(rows[more], np.full(more.size, place), begun[more])
        # Where that context is all of x1 ... x_(i-1), its own total is nearer than the product so far.
        exact = (tree.depths[nodes] == place + begun[more]) & (tree.before[nodes] != OTHERS)
        above = np.where(exact, settled.totals[nodes], totals[more])
        totals[more] = above * settled.chances[nodes, rows[more, place]]
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


def _believed_at_all(noisy: Floats, scale: float, redraw: "Source | None") -> Floats:
    """Return the mean, or a draw, of how often each symbol, and the end, may occur at all: float64 (width), above 0.

    Args:
        noisy: float64 (width).
        scale: of the noise on each.
        redraw: as in `settle`.
    """
    symbols = noisy.size - 1
    # The noise of sums is without bias; that of counts that cannot fall below 0 is not.
    total = max(float(noisy[:-1].sum()), symbols * LEAST_COUNT)
    drawn = None if redraw is None else uniforms(redraw, "settling/root", symbols)
    # No count is more than all: ratios reach to the number of symbols, in steps as before.
    more = max(int(np.ceil(np.log(symbols / EDGES[-1]) / np.log(EDGES[-1] / EDGES[-2]))), 0)
    edges = np.concatenate([EDGES, EDGES[-1] * (EDGES[-1] / EDGES[-2]) ** np.arange(1, more + 1)])
    # However few symbols there are, a first guess at their ratios would be worse: one may be nearly all.
    believed = _believed(noisy[:-1], np.full(symbols, total / symbols), np.full(symbols, scale), drawn, edges, 1)
    if redraw is None:
        believed *= total / believed.sum()
    # The end is no symbol: it is as likely as its own count says.
    moved = 0.0 if redraw is None else scale * float(laplace(redraw, "settling/ends", 1)[0])
    found: Floats = np.maximum(np.append(believed, noisy[-1] + moved), LEAST_COUNT)
    return found


def _believed(
    noisy: Floats, expected: Floats, scales: Floats, drawn: Floats | None, edges: Floats, fewest: int
) -> Floats:
    """Return the mean, or a draw, of what each count may have been, given what all of them look like."""
    flat, mean, scale = noisy.ravel(), np.maximum(expected.ravel(), LEAST), scales.ravel()
    strata = np.searchsorted(STRATA, mean / scale)
    weights = _ratios(flat, mean, scale, strata, edges, fewest)
    # By stratum: the mean ratio, by which expected counts are off on average.
    centre = weights @ ((edges[1:] + edges[:-1]) / 2)
    centre[TRUSTED_MEANS:] = 1.0
    mean = mean / centre[strata]
    if drawn is None:
        found = mean_counts(flat, mean, scale, edges, weights, strata)
    else:
        found = draw_counts(flat, mean, scale, edges, weights, strata, drawn)
    return np.maximum(found, LEAST).reshape(noisy.shape)


def _ratios(noisy: Floats, mean: Floats, scale: Floats, strata: Int64s, edges: Floats, fewest: int) -> Floats:
    """Return the weights of ratios in each stratum; where few bins or much noise say little, those of the one above."""
    # To begin with, ratios have the density exp(-r) at the geometric middle r of each cell.
    middle = np.sqrt(np.maximum(edges[1:], 1e-3) * np.maximum(edges[:-1], 1e-3))
    # (cells,), and 1 together.
    fitted = np.diff(edges) * np.exp(-middle)
    fitted /= fitted.sum()
    weights = np.empty((STRATA.size + 1, fitted.size))
    for stratum in range(STRATA.size, -1, -1):
        mine = np.flatnonzero(strata == stratum)
        # From high strata, where noise says much, to low ones, which begin with the weights of the one above.
        if mine.size >= fewest:
            some = mine[:: 1 + mine.size // MOST]
            fitted = fit_ratios(noisy[some], mean[some], scale[some], edges, fitted, ROUNDS, SMOOTHINGS)
        weights[stratum] = fitted
    return weights
