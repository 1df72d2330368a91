"""The released grams as a table, and the tree from the table."""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from voxpop.arrays import Floats, Int32s, Int64s
from voxpop.arrow import array_of, int64_array, string_array
from voxpop.sequences.tree import Rows, Tree, grow, plant

if TYPE_CHECKING:
    import polars as pl


def table_of(alphabet: tuple[str, ...], tree: Tree) -> "pl.DataFrame":
    """Return the table of a model; see `SequenceModel.to_polars`."""
    import polars as pl

    symbols, sizes = gram_symbols(tree)
    ends = tree.symbols == tree.width - 1
    flat = string_array(alphabet).take(array_of(symbols))
    grams = pa.LargeListArray.from_arrays(int64_array(np.concatenate([[0], np.cumsum(sizes)])), flat)
    return pl.DataFrame(
        {
            "gram": pl.Series(values=grams, dtype=pl.List(pl.String)),
            "ends": ends,
            "count": tree.counts,
            "estimate": tree.entry_totals(),
            "scale": np.repeat(tree.scales, np.diff(tree.starts)),
        }
    )


def gram_symbols(tree: Tree) -> tuple[Int64s, Int64s]:
    """Return the symbols of every entry's gram, one after the other and without end marks, and how many each has."""
    entries = np.arange(tree.symbols.size)
    depths = tree.depths[tree.node_of(entries)]
    most = int(depths.max(initial=0)) + 1
    columns = np.full((entries.size, most), -1, np.int64)
    at = entries.copy()
    for step in range(most):
        rows = np.flatnonzero(at >= 0)
        columns[rows, depths[rows] - step] = tree.symbols[at[rows]]
        at[rows] = tree.parents[tree.node_of(at[rows])]
    columns[columns == tree.width - 1] = -1
    kept = columns >= 0
    return columns[kept], kept.sum(axis=1)


def tree_of(
    width: int,
    symbols: Int64s,
    sizes: Int64s,
    ends: Int64s,
    counts: Int64s,
    scales: Floats,
    balanced: bool,
) -> Tree:
    """Return the tree of a table.

    Args:
        width: number of symbols and the end mark.
        symbols: of all grams, one after the other.
        sizes: how many each gram has.
        ends: 1 where the end mark follows.
        counts: noisy.
        scales: of the noise.
        balanced: how the tree is made consistent.

    Returns:
        The tree, settled.

    Raises:
        ValueError: where grams are missing, doubled or out of order.
    """
    grams = _grams(symbols, sizes, ends, width - 1)
    lengths = sizes + ends
    if (np.diff(lengths) < 0).any() or (lengths < 1).any() or (counts < 0).any():
        raise ValueError("not in order of length, or negative")
    entry_of = {gram: entry for entry, gram in enumerate(grams)}
    above = np.array([entry_of[gram[:-1]] if len(gram) > 1 else -1 for gram in grams], np.int64)
    last = np.array([gram[-1] for gram in grams], np.int32)
    if len(entry_of) != len(grams) or (np.diff(above * width + last) <= 0).any():
        raise ValueError("not distinct or not in order")
    single = lengths == 1
    tree = plant(
        width, Rows(np.array([-1]), _scale(scales[single]), *_columns(above[single], last, counts, 0)), balanced
    )
    for length in range(2, int(lengths.max(initial=1)) + 1):
        first, stop = np.searchsorted(lengths, [length, length + 1])
        parents, at = np.unique(above[first:stop], return_index=True)
        if (last[parents] == width - 1).any():
            raise ValueError("something follows an end")
        level = Rows(parents, scales[first:stop][at], *_columns(above[first:stop], last, counts, first))
        tree, nodes = grow(tree, level)
        if (nodes < 0).any():
            raise ValueError("a gram whose continuations are all 0")
    return tree


def _columns(above: Int64s, last: Int32s, counts: Int64s, first: int) -> tuple[Int64s, Int32s, Int64s]:
    """Return row, symbol and count of the entries of one level."""
    _, rows = np.unique(above, return_inverse=True)
    span = slice(first, first + above.size)
    return rows.astype(np.int64), last[span], counts[span]


def _scale(scales: Floats) -> Floats:
    return scales[:1].astype(np.float64) if scales.size else np.ones(1)


def _grams(symbols: Int64s, sizes: Int64s, ends: Int64s, end: int) -> list[tuple[int, ...]]:
    flat, grams, place = symbols.tolist(), [], 0
    for size, closed in zip(sizes.tolist(), ends.tolist(), strict=True):
        grams.append((*flat[place : place + size], *((end,) if closed else ())))
        place += size
    return grams
