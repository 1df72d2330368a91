"""What a word and a symbol are in a corpus, as arrays: words numbered in the order of their symbols."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
import pyarrow as pa

from voxpop.arrays import Bytes, Int32s, Int64s
from voxpop.arrow import text_buffers
from voxpop.errors import InputError
from voxpop.hitters.rules import Rules
from voxpop.kernels.tries import copy_rows, measure_strings, number_rows

if TYPE_CHECKING:
    from voxpop.corpus.engine import Arrays


@final
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Spelling:
    """The distinct words of a corpus, and who says which: private.

    Attributes:
        sizes: int32 (words), symbols of each, the end mark left out.
        shared: int32 (words), symbols each has in common with the start of the word before.
        said: int32, the word at every position; negative where there is none that fits.
        user_start: int64 (users + 1), where each user's positions begin.
        rows: int32 (words, longest), tokens of each word, -1 beyond its end; None where a word is a token itself.
    """

    sizes: Int32s
    shared: Int32s
    said: Int32s
    user_start: Int64s
    rows: Int32s | None = None

    def fits(self, rules: Rules) -> Bytes:
        """Return which words may be voted for: neither empty nor too long."""
        # Too long a word is left out before the user's word is chosen, so it costs no vote.
        fitting = (self.sizes > 0) & (self.sizes <= rules.longest)
        return fitting.view(np.uint8)


def spell(corpus: "Arrays", alphabet: str, rules: Rules) -> Spelling:
    """Return the words of a corpus in an alphabet.

    Args:
        corpus: the private side.
        alphabet: "characters" and "bytes" take every token as a word, "tokens" every document.
        rules: the public rules.

    Raises:
        InputError: for tokens of items, which have no order.
    """
    if alphabet == "tokens":
        return _documents(corpus, rules)
    words = len(corpus.vocabulary)
    sizes, shared = np.empty(words, np.int32), np.empty(words, np.int32)
    measure_strings(*text_buffers(corpus.vocabulary), alphabet == "characters", sizes, shared)
    return Spelling(sizes, shared, corpus.tokens, corpus.user_start)


def _documents(corpus: "Arrays", rules: Rules) -> Spelling:
    if corpus.kind == "items":
        raise InputError(
            'alphabet="tokens" spells documents token by token, and items have no order. Read the column with '
            "text=, tokens= or sequence=."
        )
    ends = np.flatnonzero(corpus.tokens < 0)
    starts = np.concatenate([np.zeros(1, np.int64), ends + 1])[:-1]
    # (users + 1,), now in documents: how many end before each user begins.
    user_start = np.searchsorted(ends, corpus.user_start).astype(np.int64)
    sizes = ends - starts
    fitting = np.flatnonzero((sizes > 0) & (sizes <= rules.longest))
    rows = np.full((fitting.size, rules.longest), -1, np.int32)
    copy_rows(corpus.tokens, starts[fitting], sizes[fitting], rows)
    # lexsort's last key comes first: by the first token, then the second, with -1 (nothing) before all.
    order = np.lexsort(rows.T[::-1])
    numbers, shared = np.empty(fitting.size, np.int32), np.empty(fitting.size, np.int32)
    count = number_rows(rows, order, numbers, shared)
    said = np.full(ends.size, -1, np.int32)
    # By document: the number of its content, -1 where it does not fit.
    said[fitting] = numbers
    distinct = np.empty((count, rules.longest), np.int32)
    distinct[numbers] = rows
    lengths = (distinct >= 0).sum(axis=1, dtype=np.int32)
    return Spelling(lengths, shared[:count], said, user_start, distinct)


def grams_of(found: Int64s, spelling: Spelling, vocabulary: pa.LargeStringArray) -> list[list[str]]:
    """Return found words as grams, in canonical order: by length, then by the bytes of their tokens.

    Args:
        found: numbers of words, rising.
        spelling: of the corpus.
        vocabulary: of the corpus.
    """
    return sorted(_named(found, spelling, vocabulary), key=len)  # stable: numbers follow the bytes of tokens


def _named(found: Int64s, spelling: Spelling, vocabulary: pa.LargeStringArray) -> Iterator[list[str]]:
    for word in found:
        tokens = [word] if spelling.rows is None else spelling.rows[word, : spelling.sizes[word]]
        yield [vocabulary[int(token)].as_py() for token in tokens]
