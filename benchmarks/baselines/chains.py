"""Chains of fixed memory, for comparison. All n-grams of one length get noise, and no tree is explored.

With grams of length 1, the chain is the unigram model, in which symbols and ends are drawn independently. Beginnings
have separate contexts, so a sequence of L symbols takes L + 1 steps and the sensitivity is max_length + 1. The release
is (epsilon, 0)-private for one user added or removed, because it is one histogram with integer Laplace noise, followed
by post-processing.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from voxpop.errors import InputError
from voxpop.kernels._jit import jit
from voxpop.kernels.arrays import Floats, Int32s, Int64s, Uint64s
from voxpop.kernels.uniform import uniform
from voxpop.privacy.sampling import laplace_noise
from voxpop.privacy.secret import Secret

MOST_BINS = 1 << 25


@final
@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """A released chain.

    Attributes:
        width: The number of symbols and the end mark.
        memory: The number of preceding symbols that determine a step.
        max_length: The maximum number of symbols per sequence.
        counts: int64 (contexts * width), the noisy counts, which are at least 0.
    """

    width: int
    memory: int
    max_length: int
    counts: Int64s

    @property
    def sequences(self) -> float:
        """The number of sequences, estimated from the noisy counts of ends."""
        return float(self.counts.reshape(-1, self.width)[:, -1].sum())

    def draw(self, seeds: Uint64s) -> tuple[Int32s, Int64s]:
        """Return the symbols of one sequence per seed, concatenated, and the size of each sequence."""
        rows = self.counts.reshape(-1, self.width).astype(np.float64)
        sums = np.cumsum(rows, axis=1)
        sums /= np.maximum(sums[:, -1:], 1.0)
        symbols = np.empty(seeds.size * self.max_length, np.int32)
        sizes = np.empty(seeds.size, np.int64)
        contexts = rows.shape[0]
        size = draw_chains(seeds.copy(), self.max_length, self.width, contexts, sums.ravel(), symbols, sizes)
        return symbols[:size].copy(), sizes


def release_chain(
    sequences: Int32s, alphabet: int, max_length: int, gram: int, epsilon: Fraction, secret: Secret
) -> Chain:
    """Release all grams of one length with noise.

    Args:
        sequences: The private sequences, from `one_sequence_each`.
        alphabet: The number of symbols.
        max_length: The maximum number of symbols per sequence.
        gram: The length of the grams. The memory is one less.
        epsilon: The budget.
        secret: The source of the noise.

    Returns:
        The chain, which is public.

    Raises:
        InputError: If there are too many possible grams.
    """
    width = alphabet + 1
    if width**gram > MOST_BINS:
        raise InputError(f"{width}^{gram} grams are too many for a chain of fixed memory; at most {MOST_BINS:,}.")
    counts = np.zeros(width**gram, np.int64)
    count_steps(sequences, width, width ** (gram - 1), counts)
    numbers = np.arange(counts.size)
    counts += laplace_noise(epsilon / (max_length + 1), secret, f"chain {gram}", numbers, numbers * 0)
    return Chain(width, gram - 1, max_length, np.maximum(counts, 0))


@jit
def count_steps(symbols: Int32s, width: int, contexts: int, counts: Int64s) -> None:
    """Count the pairs of a context and the next symbol over all sequences, including their ends.

    Args:
        symbols: int32, concatenated sequences, each with its end mark.
        width: The number of symbols and the end mark.
        contexts: The number of contexts, `width` to the power of the memory.
        counts: int64 (contexts * width), increased in place.
    """
    # width - 1 in every place, because only end marks precede a sequence.
    context = contexts - 1
    for position in range(symbols.size):
        symbol = symbols[position]
        counts[context * width + symbol] += 1
        # Shift by one place in base `width`. The remainder drops the oldest symbol.
        context = contexts - 1 if symbol == width - 1 else (context * width + symbol) % contexts


@jit
def draw_chains(
    seeds: Uint64s, most: int, width: int, contexts: int, sums: Floats, symbols_out: Int32s, sizes: Int64s
) -> int:
    """Draw sequences from a chain.

    Args:
        seeds: uint64, one per sequence. They are overwritten.
        most: The maximum number of symbols per sequence.
        width: The number of symbols and the end mark.
        contexts: The number of contexts, `width` to the power of the memory.
        sums: float64 (contexts * width), running sums of probabilities within each context.
        symbols_out: int32, written, with space for `most` symbols per seed.
        sizes: int64 by seed, written.

    Returns:
        The number of written symbols.
    """
    size = 0
    for number in range(seeds.size):
        state = seeds[number : number + 1]
        context = contexts - 1
        begin = size
        while size - begin < most:
            row = context * width
            # By inversion, the first symbol with a running sum above a uniform number.
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
