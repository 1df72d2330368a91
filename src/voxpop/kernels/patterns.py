"""Kernels that look for given runs and patterns in sequences.

Sequences lie one behind the other: `symbols[starts[j]:starts[j + 1]]`, without end marks.
"""

import numpy as np

from voxpop.arrays import Int32s, Int64s
from voxpop.kernels._jit import jit


@jit
def count_containing(symbols: Int32s, starts: Int64s, width: int, child: Int32s, counts: Int64s) -> None:
    """Count the sequences that contain each of the runs that a trie holds, without gaps.

    Args:
        symbols: int32, below 0 for what no run holds.
        starts: int64 (sequences + 1).
        width: number of symbols.
        child: int32 (nodes * width), the node reached from each node by each symbol, or 0; node 0 is the root.
        counts: int64 by node, zeros; written: how many sequences contain the run that leads there.
    """
    # int64 by node: the last sequence that counted there, so that each counts once.
    last = np.full(counts.size, -1, np.int64)
    for sequence in range(starts.size - 1):
        for begin in range(starts[sequence], starts[sequence + 1]):
            node = 0
            for position in range(begin, starts[sequence + 1]):
                if symbols[position] < 0:
                    break
                # 0 is the root, which is nobody's child: no run of the trie goes on so.
                node = child[node * width + symbols[position]]
                if node == 0:
                    break
                if last[node] != sequence:
                    last[node] = sequence
                    counts[node] += 1


@jit
def count_extensions(symbols: Int32s, starts: Int64s, pattern: Int32s, width: int) -> Int64s:
    """Count the sequences that contain a pattern, gaps allowed, and then each symbol.

    Args:
        symbols: int32, below 0 for what no pattern holds.
        starts: int64 (sequences + 1).
        pattern: int32.
        width: number of symbols.

    Returns:
        int64 by symbol.
    """
    counts = np.zeros(width, np.int64)
    # int64 by symbol: the last sequence that counted for it.
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
