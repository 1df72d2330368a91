"""Kernels for chains of fixed memory: a context is the last `memory` symbols, read as a number in base `width`.

Symbols are 0 to width - 2; `width - 1` is the end mark in what follows, and in contexts what lies before a beginning.
"""

from voxpop.arrays import Floats, Int32s, Int64s, Uint64s
from voxpop.kernels._jit import jit
from voxpop.kernels.uniform import uniform


@jit
def count_steps(symbols: Int32s, width: int, contexts: int, counts: Int64s) -> None:
    """Count (context, what follows) over all sequences, their ends included.

    Args:
        symbols: int32, sequences one behind the other, each with its end mark.
        width: number of symbols and the end mark.
        contexts: width to the power of the memory.
        counts: int64 (contexts * width), added to.
    """
    # width - 1 in every place: before a sequence stands nothing but end marks.
    context = contexts - 1
    for position in range(symbols.size):
        symbol = symbols[position]
        counts[context * width + symbol] += 1
        # Shift by one place in base `width`; the remainder drops the oldest symbol.
        context = contexts - 1 if symbol == width - 1 else (context * width + symbol) % contexts


@jit
def draw_chains(
    seeds: Uint64s, most: int, width: int, contexts: int, sums: Floats, symbols_out: Int32s, sizes: Int64s
) -> int:
    """Draw sequences from a chain.

    Args:
        seeds: uint64, one per sequence; overwritten.
        most: most symbols of a sequence.
        width: number of symbols and the end mark.
        contexts: width to the power of the memory.
        sums: float64 (contexts * width), running sums of chances within each context.
        symbols_out: int32, written; room for `most` symbols per seed.
        sizes: int64 by seed, written.

    Returns:
        How many symbols were written.
    """
    size = 0
    for number in range(seeds.size):
        state = seeds[number : number + 1]
        context = contexts - 1
        begin = size
        while size - begin < most:
            row = context * width
            # Inversion: the first symbol whose running sum exceeds a uniform number.
            place = uniform(state)
            symbol = 0
            while symbol < width - 1 and sums[row + symbol] <= place:
                symbol += 1
            if symbol == width - 1:
                break
            symbols_out[size] = symbol
            size += 1
            context = (context * width + symbol) % contexts
        sizes[number] = size - begin
    return size
