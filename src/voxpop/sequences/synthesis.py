"""The paper's synthetic data: grams lengthened by the Markov assumption, taken longest first (CAC12, 4.3.5)."""

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from voxpop.arrays import Int32s, Int64s
from voxpop.errors import InputError
from voxpop.kernels.synthesis import join_grams, take_sequences
from voxpop.sequences.tree import Tree

if TYPE_CHECKING:
    import polars as pl

    from voxpop.sequences.context_tree import ContextTree

MOST_GRAMS = 1 << 27


def synthetic_frame(alphabet: tuple[str, ...], tree: "Tree | ContextTree", max_length: int) -> "pl.DataFrame":
    """Return the synthetic sequences as a table; see `SequenceModel.synthesize`."""
    import polars as pl

    if not isinstance(tree, Tree):
        raise InputError(
            "the synthesis of the paper works on grams, and this model counts what follows contexts: use `sample`, or "
            'release with tree="grams".'
        )
    columns, counts = synthetic_sequences(tree, max_length)
    sizes = (columns >= 0).sum(axis=1)
    words = pa.array(alphabet, pa.large_string()).take(pa.array(columns[columns >= 0]))
    lists = pa.LargeListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(sizes)])), words)
    return pl.DataFrame({"sequence": pl.Series(values=lists, dtype=pl.List(pl.String)), "count": counts})


def synthetic_sequences(tree: Tree, max_length: int) -> tuple[Int32s, Int64s]:
    """Return distinct sequences, one per row, padded with -1 and the longest first, and how often each occurs."""
    prefix, suffix, counts, lengths, last = _whole_grams(tree)
    length = int(lengths.max(initial=0))
    # Grams of one length overlap into longer ones as long as there are two of them.
    while length < max_length and int((lengths == length).sum()) >= 2 and counts.size < MOST_GRAMS:
        first = int(np.searchsorted(lengths, length))
        # (grams + 1,): the longest grams are sorted by prefix, so those that go on from one lie together.
        begins = np.searchsorted(prefix[first:], np.arange(counts.size + 1)) + first
        longer = join_grams(prefix, suffix, counts, first, begins)
        prefix, suffix = np.concatenate([prefix, longer[0]]), np.concatenate([suffix, longer[1]])
        counts = np.concatenate([counts, longer[2]])
        length += 1
        lengths = np.concatenate([lengths, np.full(longer[0].size, length, np.int32)])
        last = np.concatenate([last, last[longer[1]]])
    left = counts.copy()
    taken = np.flatnonzero(take_sequences(prefix, suffix, left, lengths, last == tree.width - 1))[::-1]
    return _spelled(taken, prefix, lengths, last), left[taken]


def _whole_grams(tree: Tree) -> tuple[Int32s, Int32s, Int64s, Int32s, Int32s]:
    """Return prefix, suffix, count rounded down, length and last symbol of the grams that occur at least once."""
    entries = np.arange(tree.symbols.size)
    nodes = tree.node_of(entries)
    # Whole sequences need whole counts; what doubles lost of a whole number is given back.
    counts = np.floor(tree.entry_totals() + 1e-9).astype(np.int64)
    kept = np.flatnonzero(counts > 0)
    number = np.full(entries.size + 1, -1, np.int32)  # the last place stands for none
    number[kept] = np.arange(kept.size, dtype=np.int32)
    return (
        number[tree.parents[nodes]][kept],
        number[_suffix_entries(tree, nodes)][kept],
        counts[kept],
        (tree.depths[nodes] + 1)[kept].astype(np.int32),
        tree.symbols[kept],
    )


def _suffix_entries(tree: Tree, nodes: Int64s) -> Int64s:
    """Return the entry of each entry's gram without its first symbol, -1 where it was not released."""
    neighbours = tree.neighbour[nodes]
    # The neighbour is the gram without its first symbol only where it is just one symbol shorter.
    exact = (tree.depths[neighbours] == tree.depths[nodes] - 1) & (nodes > 0)
    keys = np.repeat(np.arange(tree.nodes), np.diff(tree.starts)) * tree.width + tree.symbols
    wanted = neighbours.astype(np.int64) * tree.width + tree.symbols
    at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return np.where(exact & (keys[at] == wanted), at, -1)


def _spelled(grams: Int64s, prefix: Int32s, lengths: Int32s, last: Int32s) -> Int32s:
    """Return the symbols of each gram, padded with -1."""
    # From the last symbol to the first: each gram's prefix has the symbol before.
    columns = np.full((grams.size, int(lengths[grams].max(initial=0))), -1, np.int32)
    at, place = grams, lengths[grams].astype(np.int64) - 1
    rows = np.arange(grams.size)
    while rows.size:
        columns[rows, place] = last[at]
        more = place > 0
        rows, at, place = rows[more], prefix[at[more]].astype(np.int64), place[more] - 1
    return columns
