"""Read within a bound: every stretch of rows becomes a small corpus on disk, and these are merged.

The result is the corpus that reading in memory gives, number for number: users by first appearance, their documents in
the order of the rows, tokens by their rank in the sorted vocabulary. See docs/design/0009-spilling.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import final

import numpy as np
import pyarrow as pa

from voxpop.arrays import Int64s, Uint64s
from voxpop.corpus.corpus import Corpus
from voxpop.corpus.limited.memory import MemoryLimit
from voxpop.corpus.limited.pages import release_unused
from voxpop.corpus.limited.sorter import HEAD, SHARE_OF_SORTER, Block, Heads, Sorter
from voxpop.corpus.limited.user_files import in_key_order
from voxpop.corpus.limited.word_runs import WordRuns
from voxpop.corpus.reading.columns import Rows
from voxpop.corpus.reading.layout import Piece, build_corpus
from voxpop.corpus.reading.stretches import Stretch, stretches
from voxpop.corpus.reading.users import encode_users, first_rows, identities
from voxpop.kernels.group import rename
from voxpop.threads import one_ahead, one_behind

Encode = Callable[[Stretch], tuple[list[Piece], list[pa.Array]]]

SHARE_OF_STRETCH = 6
"""A stretch holds this part of the room: naming and grouping its tokens takes a few copies of it."""


def read_within(limit: MemoryLimit, rows: Rows, encode: Encode, kind: str) -> Corpus | None:
    """Return the corpus of rows, its arrays mapped where they are large; None where there are no rows."""
    spill = _Spill(limit, kind)
    # The next stretch is encoded while the last is grouped and written; rows are asked for by this thread alone, since
    # a source may belong to it.
    encoded = _encoded(stretches(rows, limit.room // SHARE_OF_STRETCH), encode)
    first = next(encoded, None)
    if first is None:
        return None
    # All rows fit into one stretch: nothing to merge.
    if first.finished:
        return build_corpus(first.pieces, first.words, encode_users(first.users), kind).within(limit)
    one_behind(spill.take, chain([first], encoded))
    return spill.merged()


@final
@dataclass(slots=True)
class _Encoded:
    """The tokens of a stretch by provisional ids, and whose its rows are."""

    pieces: list[Piece]
    words: list[pa.Array]
    users: list[pa.Array]
    finished: bool


def _encoded(every: Iterator[Stretch], encode: Encode) -> Iterator[_Encoded]:
    """Yield the stretches that have rows."""
    for stretch in every:
        encoded = _Encoded(*encode(stretch), stretch.users, stretch.finished)
        if encoded.users:
            yield encoded


@final
class _Spill:
    """Small corpora, one behind the other on disk."""

    __slots__ = ("_heads", "_kind", "_limit", "_rows", "_sizes", "_tokens", "_words")

    def __init__(self, limit: MemoryLimit, kind: str) -> None:
        self._limit, self._kind = limit, kind
        self._tokens, self._heads = limit.file(), limit.file()
        self._words = WordRuns(limit)
        self._sizes: list[int] = []
        self._rows = 0

    def take(self, stretch: _Encoded) -> None:
        """Group the tokens of a stretch by user, and keep the small corpus that this gives."""
        codes, keys = encode_users(stretch.users)
        corpus = build_corpus(stretch.pieces, stretch.words, (codes, keys), self._kind)
        first = first_rows(codes)
        self.add(corpus, identities(stretch.users, keys, first), first, codes.size)
        # Whoever cut the stretch still holds it while the next is cut.
        stretch.pieces, stretch.words, stretch.users = [], [], []
        del corpus, codes, keys, first
        release_unused()

    def add(self, corpus: Corpus, who: Uint64s, first: Int64s, rows: int) -> None:
        """Keep one more corpus: whose its users' records are, and the row in which each of them first appears."""
        heads = np.empty(corpus.user_key.size, HEAD)
        heads["key"], heads["other"] = who[:, 0], who[:, 1]
        heads["user"], heads["row"], heads["size"] = corpus.user_key, first + self._rows, np.diff(corpus.user_start)
        self._tokens.append(corpus.tokens)
        self._heads.append(heads)
        self._words.add(corpus.vocabulary)
        self._sizes.append(heads.size)
        self._rows += rows

    def merged(self) -> Corpus:
        """Give every token its final name, and every user one place."""
        limit, most = self._limit, self._limit.room // SHARE_OF_SORTER
        vocabulary = self._words.merged()
        release_unused()
        expected = self._tokens.size + self._heads.size
        by_user = Sorter(limit, most, expected)
        for heads, tokens in one_ahead(self._named_blocks(most // 4)):
            by_user.add(heads, tokens)
        self._tokens.close()
        self._heads.close()
        by_row = Sorter(limit, most, expected, 0, self._rows)
        for heads, tokens in _with_first_row(one_ahead(by_user.blocks())):
            by_row.add(heads, tokens)
        mapped = in_key_order(by_row, limit)
        release_unused()
        return Corpus(*mapped, vocabulary, self._kind, limit=limit)

    def _named_blocks(self, most: int) -> Iterator[Block]:
        """Yield all records, about so many bytes of tokens at a time, by their final names."""
        place = begin = 0
        for number, users in enumerate(self._sizes):
            names = self._words.names(number)
            heads = self._heads.read(place, users, HEAD)
            place += heads.nbytes
            ends = np.concatenate([[0], np.cumsum(heads["size"])])
            first = 0
            while first < users:
                last = max(first + 1, int(np.searchsorted(ends, ends[first] + most // 4, side="right")) - 1)
                tokens = self._tokens.read(begin, int(ends[last] - ends[first]), np.int32)
                begin += tokens.nbytes
                rename(tokens, names, tokens)
                yield heads[first:last], tokens
                first = last


def _with_first_row(blocks: Iterator[Block]) -> Iterator[Block]:
    """Give every record as its key the first row of its user; blocks hold all records of a user, or go on with it."""
    seen: dict[tuple[int, int], int] = {}
    for heads, tokens in blocks:
        keys = heads["key"]
        if keys[0] == keys[-1]:
            seen = {who: row for who, row in seen.items() if who[0] == int(keys[0])}
            rows = _rows_of_few(heads, seen)
        else:
            new = np.ones(keys.size, np.bool_)
            new[1:] = (keys[1:] != keys[:-1]) | (heads["other"][1:] != heads["other"][:-1])
            rows = heads["row"][new][np.cumsum(new) - 1]
        heads["key"], heads["other"], heads["row"] = rows.view(np.uint64), 0, rows
        yield heads, tokens


def _rows_of_few(heads: Heads, seen: dict[tuple[int, int], int]) -> Int64s:
    """Return the first row of each record's user, where one or a few users hold all of a block."""
    key = int(heads["key"][0])
    for other, row in zip(heads["other"][::-1].tolist(), heads["row"][::-1].tolist(), strict=True):
        seen[key, other] = min(row, seen.get((key, other), row))
    return np.array([seen[key, other] for other in heads["other"].tolist()], np.int64)
