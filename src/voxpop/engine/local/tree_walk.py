"""One sequence per user, and the counts of symbols after contexts that grow one symbol at a time."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pyarrow.compute as pc

from voxpop.engine.contract import Arrays, Draws
from voxpop.kernels.arrays import Int32s, Int64s
from voxpop.kernels.sequences import count_documents, count_following, cut_sequences, lengthen_contexts, open_steps
from voxpop.reading.arrow import numbers_of, string_array

Rows = TypeVar("Rows")


class MemoryTreeWalk:
    """Count the symbols after the contexts, release the noisy counts, and `lengthen` the contexts.

    Symbol `s` after context `n` has the key `n * width + s`.
    """

    def __init__(self, sequences: Int32s, alphabet: int, max_length: int) -> None:
        """Put every step under the empty context, but no end mark behind `max_length` symbols.

        Args:
            sequences: from `one_sequence_each`: private.
            alphabet: number of symbols.
            max_length: maximum number of steps of a sequence.
        """
        self._symbols = sequences
        self._width = alphabet + 1
        # int32 by position: the node of the step's context, or -1.
        self._places = np.empty(sequences.size, np.int32)
        open_steps(sequences, alphabet, max_length, self._places)

    @classmethod
    def at(cls, symbols: Int32s, places: Int32s, alphabet: int) -> "MemoryTreeWalk":
        """Go on from where another one was."""
        counting = cls(symbols[:0], alphabet, 0)
        counting._symbols, counting._places = symbols, places
        return counting

    @property
    def symbols(self) -> Int32s:
        """int32 by position."""
        return self._symbols

    @property
    def places(self) -> Int32s:
        """int32 by position, the node of the step's context, or -1."""
        return self._places

    def count_following(self) -> tuple[Int64s, Int64s]:
        """Return the keys of the symbols that follow contexts, and their counts."""
        return count_following(self._symbols, self._places, self._width)

    def released_following(self, noise: Callable[[Int64s, Int64s], Rows]) -> Rows:
        """Count the symbols after the contexts, and return the noisy counts."""
        return noise(*self.count_following())

    def lengthen(self, depth: int, keys: Int64s, longer: Int32s, others: Int32s) -> None:
        """Move each step to a longer context; see `TreeWalk.lengthen`."""
        lengthen_contexts(self._symbols, self._places, depth, self._width, keys, longer, others)


# One sequence per user, in symbols of the public alphabet, cut to the most symbols one user may have.


def one_sequence_each(corpus: Arrays, alphabet: tuple[str, ...], max_length: int, secret: Draws | None) -> Int32s:
    """Return every user's one sequence, each followed by the end mark: private.

    A user's sequence is a function of the user's own documents, the alphabet and the secret. Tokens outside the
    alphabet are removed before anything is counted or cut.

    Args:
        corpus: the private side.
        alphabet: distinct, public.
        max_length: most symbols of one user.
        secret: source of the draw of one of a user's documents; None joins the documents, for comparisons.

    Returns:
        int32, numbers of alphabet symbols and `len(alphabet)` behind each sequence; users without a symbol are absent.
    """
    # int32 by token: its symbol, -1 outside the alphabet; public alphabet, so nothing is learnt from it.
    names = symbol_names(corpus, alphabet)
    chosen = np.full(corpus.user_key.size, -1, np.int64)
    if secret is not None:
        documents = np.zeros(corpus.user_key.size, np.int64)
        count_documents(corpus.tokens, corpus.user_start, names, documents)
        # Who has one document that holds a symbol needs no draw.
        several = np.flatnonzero(documents > 1)
        draws = secret.draws("sequences/sample", corpus.user_key[several], 0)[:, 0] >> np.uint64(32)
        chosen[:] = 0
        # floor(draw * documents / 2^32): uniform but for 2^-32, and the proof only requires that it depend on the user.
        chosen[several] = ((draws * documents[several].astype(np.uint64)) >> np.uint64(32)).astype(np.int64)
    # (users,), and one for the end mark.
    sizes = np.minimum(np.diff(corpus.user_start), max_length) + 1
    symbols = np.empty(int(sizes.sum()), np.int32)
    end = len(alphabet)
    size = cut_sequences(corpus.tokens, corpus.user_start, names, chosen, max_length, end, symbols)
    return symbols[:size]


def symbol_names(corpus: Arrays, alphabet: tuple[str, ...]) -> Int32s:
    """Return the symbol of each token of the vocabulary, -1 for those outside the alphabet."""
    found = pc.index_in(corpus.vocabulary, value_set=string_array(alphabet))
    # A copy: kernels would be compiled again for an array that cannot be written.
    return numbers_of(found, missing=-1).astype(np.int32)
