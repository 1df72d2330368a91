"""Comparison of synthetic sequences with private ones.

This module reads exact private numbers and is never part of a release.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from voxpop.engine.contract import check_engine
from voxpop.errors import InputError
from voxpop.kernels._jit import jit
from voxpop.kernels.arrays import Floats, Int32s, Int64s

if TYPE_CHECKING:
    from voxpop.engine.local.corpus import LocalCorpus

Pattern = tuple[int, ...]
SANITY = 0.001
MOST_CELLS = 1 << 28


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SequenceData:
    """Sequences as numbers of an alphabet's symbols, which are private if they originate in a corpus.

    Attributes:
        symbols: int32, the concatenated sequences.
        starts: int64 (sequences + 1), where each sequence begins.
        alphabet: The number of symbols.
    """

    symbols: Int32s
    starts: Int64s
    alphabet: int

    @property
    def size(self) -> int:
        """The number of sequences."""
        return int(self.starts.size - 1)

    def __repr__(self) -> str:
        return "SequenceData(private)"


def private_sequences(corpus: "LocalCorpus", alphabet: Sequence[str]) -> SequenceData:
    """Return every user's whole sequence, of joined documents, without tokens outside the alphabet.

    Args:
        corpus: The private data.
        alphabet: The symbols, in the order of their numbers.

    Returns:
        The private sequences of all users who have a sequence.
    """
    from voxpop.engine.local.corpus import one_sequence_each

    corpus = check_engine(corpus)
    longest = int(np.diff(corpus.user_start).max(initial=1))
    marked = one_sequence_each(corpus, tuple(alphabet), longest, None)
    ends = np.flatnonzero(marked == len(alphabet))
    starts = np.concatenate([[0], ends - np.arange(ends.size)]).astype(np.int64)
    return SequenceData(marked[marked < len(alphabet)], starts, len(alphabet))


def as_sequences(symbols: Int32s, sizes: Int64s, alphabet: int) -> SequenceData:
    """Return drawn sequences for comparison.

    Args:
        symbols: int32, the concatenated sequences.
        sizes: int64, the number of symbols of each sequence.
        alphabet: The number of symbols.

    Returns:
        The sequences.
    """
    return SequenceData(symbols, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), alphabet)


def private_queries(
    data: SequenceData, most: int, number: int, seed: int, kind: Literal["held", "uniform"] = "held"
) -> list[Pattern]:
    """Draw count queries. A query counts the sequences that contain a run of symbols.

    Args:
        data: The private sequences.
        most: The largest length. Lengths are uniform from 1 to this number.
        number: The number of queries.
        seed: The seed that determines the queries.
        kind: The kind of queries. "held" takes runs from random places of the data. "uniform" takes runs of random
            symbols, most of which occur in no sequence.

    Returns:
        The queries, which are private if they are of kind "held".
    """
    from voxpop.privacy.secret import Secret

    draws = Secret.from_seed(seed).draws("queries", np.arange(number, dtype=np.uint64), most)
    lengths = (draws[:, 1] % np.uint64(most)).astype(np.int64) + 1
    if kind == "uniform":
        more = Secret.from_seed(seed).draws("symbols", np.arange(number * most, dtype=np.uint64), most)
        symbols = (more[:, 0] % np.uint64(data.alphabet)).astype(np.int64).reshape(number, most)
        return [tuple(row[:size].tolist()) for row, size in zip(symbols, lengths, strict=True)]
    places = (draws[:, 0] % np.uint64(data.symbols.size)).astype(np.int64)
    stops = data.starts[np.searchsorted(data.starts, places, side="right")]
    stops = np.minimum(places + lengths, stops)
    return [tuple(data.symbols[a:b].tolist()) for a, b in zip(places, stops, strict=True)]


def private_counts(data: SequenceData, queries: Sequence[Pattern]) -> Int64s:
    """Return the number of sequences that contain each run.

    Args:
        data: The private sequences.
        queries: The runs of symbols.

    Returns:
        int64 by query, the private numbers without noise.

    Raises:
        InputError: If there are too many queries for this alphabet.
    """
    if (1 + sum(map(len, queries))) * data.alphabet > MOST_CELLS:
        raise InputError("too many queries for so large an alphabet; ask fewer at a time.")
    nodes: dict[Pattern, int] = {(): 0}
    for query in queries:
        for stop in range(1, len(query) + 1):
            nodes.setdefault(query[:stop], len(nodes))
    child = np.zeros((len(nodes), data.alphabet), np.int32)
    for gram, node in nodes.items():
        if gram:
            child[nodes[gram[:-1]], gram[-1]] = node
    counts = np.zeros(len(nodes), np.int64)
    count_containing(data.symbols, data.starts, data.alphabet, child.ravel(), counts)
    return counts[[nodes[query] for query in queries]]


def private_relative_error(
    truth: SequenceData, synthetic: SequenceData, queries: Sequence[Pattern], weight: float = 1.0
) -> Floats:
    """Return the relative error of each count query, `|Q - Q'| / max(Q, 0.1 % of the sequences)`.

    Args:
        truth: The private sequences.
        synthetic: The synthetic sequences.
        queries: The runs of symbols.
        weight: The number of sequences that each synthetic one represents.

    Returns:
        float64 by query. They are private and must not be published.
    """
    real = private_counts(truth, queries)
    estimated = private_counts(synthetic, queries) * weight
    errors: Floats = np.abs(real - estimated) / np.maximum(real, SANITY * truth.size)
    return errors


def private_top_patterns(data: SequenceData, k: int) -> list[Pattern]:
    """Return the k sequential patterns, with gaps allowed, that most sequences contain. Smaller symbols win ties.

    Args:
        data: The private sequences.
        k: The number of patterns.

    Returns:
        The patterns in descending order of frequency. They are private and must not be published.
    """
    found: list[Pattern] = []
    waiting: list[tuple[int, Pattern]] = []
    _push_extensions(data, (), waiting)
    while waiting and len(found) < k:
        _, pattern = heapq.heappop(waiting)
        found.append(pattern)
        if len(found) < k:
            _push_extensions(data, pattern, waiting)
    return found


def _push_extensions(data: SequenceData, pattern: Pattern, waiting: list[tuple[int, Pattern]]) -> None:
    """Push every extension that occurs onto the heap. No extension is more frequent than the pattern."""
    supports = count_extensions(data.symbols, data.starts, np.array(pattern, np.int32), data.alphabet)
    for symbol in np.flatnonzero(supports).tolist():
        heapq.heappush(waiting, (-int(supports[symbol]), (*pattern, symbol)))


def private_true_positives(truth: Sequence[Pattern], found: Sequence[Pattern], ks: Iterable[int]) -> pl.DataFrame:
    """Return the number of the k most frequent patterns that are among the k most frequent synthetic ones.

    Args:
        truth: The result of `private_top_patterns` on the private sequences.
        found: The result of the same function on the synthetic sequences.
        ks: The numbers of patterns.

    Returns:
        A table with the columns k and true_positives. It is private and must not be published.
    """
    rows = [{"k": k, "true_positives": len(set(truth[:k]) & set(found[:k]))} for k in ks]
    return pl.DataFrame(rows)


def private_length_distance(truth: SequenceData, synthetic: SequenceData, max_length: int) -> float:
    """Return the total variation distance of the distributions of lengths, cut at `max_length`.

    Args:
        truth: The private sequences.
        synthetic: The synthetic sequences.
        max_length: The maximum length. Longer sequences count as this length.

    Returns:
        A number from 0, for equal distributions, to 1. It is private and must not be published.
    """
    shares = []
    for data in (truth, synthetic):
        lengths = np.minimum(np.diff(data.starts), max_length)
        shares.append(np.bincount(lengths, minlength=max_length + 1) / max(data.size, 1))
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


@jit
def count_containing(symbols: Int32s, starts: Int64s, width: int, child: Int32s, counts: Int64s) -> None:
    """Count the sequences that contain each of the runs of a trie, without gaps.

    Args:
        symbols: int32, negative for symbols that no run contains.
        starts: int64 (sequences + 1).
        width: The number of symbols.
        child: int32 (nodes * width), the child of each node for each symbol, or 0. Node 0 is the root.
        counts: int64 by node, zeros, overwritten with the number of sequences that contain the run of the node.
    """
    # int64 by node, the last sequence that counted there, so that each sequence counts once.
    last = np.full(counts.size, -1, np.int64)
    for sequence in range(starts.size - 1):
        for begin in range(starts[sequence], starts[sequence + 1]):
            node = 0
            for position in range(begin, starts[sequence + 1]):
                if symbols[position] < 0:
                    break
                # The root, 0, is not a child of any node. Therefore 0 means that no run of the trie continues with this
                # symbol.
                node = child[node * width + symbols[position]]
                if node == 0:
                    break
                if last[node] != sequence:
                    last[node] = sequence
                    counts[node] += 1


@jit
def count_extensions(symbols: Int32s, starts: Int64s, pattern: Int32s, width: int) -> Int64s:
    """Count the sequences that contain a pattern, with gaps allowed, and after it each symbol.

    Args:
        symbols: int32, negative for symbols that no pattern contains.
        starts: int64 (sequences + 1).
        pattern: int32.
        width: The number of symbols.

    Returns:
        int64 by symbol.
    """
    counts = np.zeros(width, np.int64)
    # int64 by symbol, the last sequence that counted for it.
    last = np.full(width, -1, np.int64)
    for sequence in range(starts.size - 1):
        matched = 0
        for position in range(starts[sequence], starts[sequence + 1]):
            symbol = symbols[position]
            # Greedy matching finds the earliest end of the pattern, so no later symbol is missed.
            if matched < pattern.size:
                matched += symbol == pattern[matched]
            elif symbol >= 0 and last[symbol] != sequence:
                last[symbol] = sequence
                counts[symbol] += 1
    return counts
