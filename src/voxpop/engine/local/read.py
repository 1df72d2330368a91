"""Read a table of users and their data on this machine, from top to bottom."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.engine.local.corpus import LocalCorpus
from voxpop.engine.local.weigh import user_spans
from voxpop.kernels.arrays import Int32s, Int64s
from voxpop.kernels.group import gather_documents, mark_used, rename, sizes_by_user
from voxpop.kernels.threads import in_order, one_ahead, one_behind
from voxpop.reading.arrow import array_of, int64_array, numbers_of, string_array
from voxpop.reading.columns import Batches, Rows, checked_users
from voxpop.reading.events import Events
from voxpop.reading.keyed import KeyedRows
from voxpop.reading.keys import is_list
from voxpop.reading.limited.memory import MemoryLimit, release_unused
from voxpop.reading.limited.sorter import HEAD, SHARE_OF_SORTER, Block, Sorter, WordRuns, in_key_order
from voxpop.reading.progress import rounded, tell, track
from voxpop.reading.sources import open_source
from voxpop.reading.text_files import CSV
from voxpop.reading.tokenizers import Encoded, Piece, encode_by_text, encode_lists, list_tokeniser
from voxpop.reading.users import Stretch, encode_users, identities, stretches
from voxpop.reading.wanted import ReadOptions, Request, Wanted
from voxpop.reading.words import merge_words

if TYPE_CHECKING:
    from voxpop.reading.users import Users


# From rows to a corpus: users grouped, tokens renamed to their rank in the vocabulary.


def build_corpus(pieces: list[Piece], words: list[pa.Array], users: "Users", kind: str) -> LocalCorpus:
    """Merge the lists of words, rename every id, and lay the documents out user by user.

    Args:
        pieces: the batches, in the order of the rows.
        words: the provisional vocabularies that the pieces' ids refer to.
        users: the user of every row, and every user's key.
        kind: what was read.

    Returns:
        The corpus.
    """
    # names: by list of words, int32 from provisional id to rank in the sorted vocabulary.
    vocabulary, names = _merge(pieces, words)
    tokens = np.empty(sum(piece.ids.size for piece in pieces), np.int32)
    # (pieces + 1,), where each piece's ids go.
    places = np.cumsum([0, *(piece.ids.size for piece in pieces)])

    def finish(number: int) -> None:
        piece = pieces[number]
        rename(piece.ids, names[piece.interner], tokens[places[number] : places[number + 1]])

    for _ in in_order(finish, range(len(pieces))):
        pass
    codes, keys = users
    if pieces and pieces[0].ends is None:
        # A row without an item belongs to no user.
        held = tokens >= 0
        tokens, codes = (tokens, codes) if held.all() else (tokens[held], codes[held])
        ends = np.arange(tokens.size + 1)
    else:
        ends = _all_ends(pieces, places)
    user_start = np.zeros(keys.size + 1, np.int64)
    sizes_by_user(codes, ends, user_start)
    grouped = tokens
    if (codes[1:] < codes[:-1]).any():
        grouped = np.empty_like(tokens)
        gather_documents(tokens, codes, ends, user_start, grouped)
    return LocalCorpus(grouped, user_start, keys, vocabulary, kind)


def _merge(pieces: list[Piece], words: list[pa.Array]) -> tuple[pa.LargeStringArray, list[Int32s]]:
    """Return the sorted vocabulary of all words that occur, and each list's new names."""
    used = [np.zeros(len(each), np.uint8) for each in words]
    for piece in pieces:
        mark_used(piece.ids, used[piece.interner])
    return merge_words(words, [mask.view(np.bool_) for mask in used])


def _all_ends(pieces: list[Piece], places: Int64s) -> Int64s:
    """Return where every document ends, over all pieces."""
    # From places within a piece to places in all of them.
    ends = [piece.ends[1:] + place for piece, place in zip(pieces, places, strict=False) if piece.ends is not None]
    return np.concatenate([np.zeros(1, np.int64), *ends])


# Within a memory limit, every stretch of rows becomes a small corpus on disk, and these are merged.
#
# The result has the same users as the corpus that is read in memory, in another order: their documents in the order of
# rows, tokens by their rank in the sorted vocabulary. See docs/design/0009-spilling.md.

Encode = Callable[[Stretch], tuple[list[Piece], list[pa.Array]]]

SHARE_OF_STRETCH = 6
"""A stretch holds this part of the room: naming and grouping its tokens takes a few copies of it."""


def read_within(limit: MemoryLimit, rows: Rows, encode: Encode, kind: str) -> LocalCorpus | None:
    """Return the corpus of rows, its arrays mapped where they are large; None where there are no rows."""
    spill = _Spill(limit, kind)
    # The next stretch is encoded while the last is grouped and written; only this thread reads rows, since a source may
    # belong to it.
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

    __slots__ = ("_heads", "_kind", "_limit", "_sizes", "_tokens", "_words")

    def __init__(self, limit: MemoryLimit, kind: str) -> None:
        self._limit, self._kind = limit, kind
        self._tokens, self._heads = limit.file(), limit.file()
        self._words = WordRuns(limit)
        self._sizes: list[int] = []

    def take(self, stretch: _Encoded) -> None:
        """Group the tokens of a stretch by user, and keep the small corpus that this gives."""
        codes, keys = encode_users(stretch.users)
        corpus = build_corpus(stretch.pieces, stretch.words, (codes, keys), self._kind)
        who, heads = identities(stretch.users, keys, codes), np.zeros(keys.size, HEAD)
        heads["key"], heads["other"], heads["user"], heads["size"] = *who.T, keys, np.diff(corpus.user_start)
        self._tokens.append(corpus.tokens)
        self._heads.append(heads)
        self._words.add(corpus.vocabulary)
        self._sizes.append(heads.size)
        # The caller still holds the stretch while the next is cut.
        stretch.pieces, stretch.words, stretch.users = [], [], []
        del corpus, codes, keys, who, heads
        release_unused()

    def merged(self) -> LocalCorpus:
        """Give every token its final name, and every user one place."""
        limit, most = self._limit, self._limit.room // SHARE_OF_SORTER
        vocabulary = self._words.merged()
        release_unused()
        expected = self._tokens.size + self._heads.size
        sorter = Sorter(limit, most, expected)
        for heads, tokens in one_ahead(self._named_blocks(most // 4)):
            sorter.add(heads, tokens)
        self._tokens.close()
        self._heads.close()
        mapped = in_key_order(sorter, limit)
        release_unused()
        return LocalCorpus(*mapped, vocabulary, self._kind, limit=limit)

    def _named_blocks(self, most: int) -> Iterator[Block]:
        """Yield all records, about that number of bytes of tokens at a time, by their final names."""
        place = begin = 0
        for number, users in enumerate(self._sizes):
            names = self._words.names(number)
            heads = self._heads.read(place, users, HEAD)
            place += heads.nbytes
            ends = np.concatenate([[0], np.cumsum(heads["size"])])
            for first, last in user_spans(ends, most // 4):
                tokens = self._tokens.read(begin, int(ends[last] - ends[first]), np.int32)
                begin += tokens.nbytes
                rename(tokens, names, tokens)
                yield heads[first:last], tokens


ROWS_AT_ONCE = 1 << 15
ITEMS_AT_ONCE = 1 << 20
FINE: Final = re.compile(r"time|decimal\d+\(\d+, [1-9]")
"""Types of items whose values are often too fine to be shared."""
DEFAULTS: Final = ReadOptions()
FOUND: Final = CSV()


def read_here(source: Any, wanted: Wanted, options: ReadOptions = DEFAULTS, csv: CSV = FOUND) -> LocalCorpus:
    """Read a table in batches; rows of one user may come in any order and from any number of files.

    Args:
        source: anything that `voxpop.read` takes, except a Spark DataFrame.
        wanted: the columns, and how they become tokens.
        options: how reading runs.
        csv: how CSV files are written.

    Raises:
        InputError: if the memory limit is too low, or `csv` describes a source that is no CSV.
        SourceError: if the source is missing or broken, or a row has no user. A table without rows is no error.
        ColumnError: if a column is missing or of a type that does not fit.
    """
    kind, keyed = wanted.kind, KeyedRows(wanted)
    limit = None if options.memory is None else MemoryLimit.of(options.memory, options.work_folder)
    events = None if wanted.order is None else Events(wanted.order, wanted.session, limit)
    rows_at_once = ITEMS_AT_ONCE if kind == "items" else ROWS_AT_ONCE
    request = Request(wanted.selection, rows_at_once, limit is not None, wanted.repeated, csv)
    batches = track(
        keyed.rows(open_source(source, request)),
        "reading",
        lambda each: each[1].num_rows,
        options.progress,
        exact=options.exact,
    )
    rows, as_lists = _with_users(batches, keyed.user, keyed.content, events), list_tokeniser(wanted.tokenizer)
    if kind == "items":
        rows = ((where, *one_item_each(users, items)) for where, users, items in rows)

    def encode(stretch: Stretch) -> Encoded:
        if kind == "text":
            return encode_by_text(stretch, as_lists, keyed.content, sentences=wanted.sentences, html=wanted.html)
        return encode_lists(stretch, stretch, keyed.content, kind)

    corpus = _read_at_once(rows, encode, kind) if limit is None else read_within(limit, rows, encode, kind)
    if corpus is None:  # an error would distinguish it from a table of one user
        corpus = _nobody(kind).within(limit)
    if keyed.dropped:
        tell(f"{rounded(keyed.dropped, exact=options.exact)} rows have no user and were left out.", options.progress)
    if keyed.doubtful:
        count = rounded(keyed.doubtful, exact=options.exact)
        tell(
            f"{count} rows have a user that is spelled like a missing value, such as NULL or nan, or like the name of "
            'the column, and were kept. Leave them out with missing_users="drop" (--drop-missing-users).',
            options.progress,
        )
    for each in keyed.keys.columns:
        if FINE.match(each.kind) and each.name not in wanted.types:  # who declares a type knows it
            tell(
                f'the column "{each.name}" holds values of the type {each.kind}, which few users share. If nothing is '
                "released, round numbers or truncate times first.",
                options.progress,
            )
    left_out = keyed.left_out + (0 if events is None else events.left_out)
    if left_out:
        count = rounded(left_out, exact=options.exact)
        tell(f'{count} of the values in "{keyed.content}" are null and were left out.', options.progress)
    return replace(corpus, reading=wanted.reading, keys=keyed.keys)


def one_item_each(users: pa.Array, items: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return users and items row by row, from rows with lists of items; a user without items has a null one."""
    if not is_list(items.type):
        return users, items
    lists = items.cast(pa.large_list(items.type.value_type))
    sizes = numbers_of(lists.value_lengths())
    owners = users.take(int64_array(np.repeat(np.arange(sizes.size), np.maximum(sizes, 1))))
    if not (sizes == 0).any():
        return owners, lists.flatten()
    places = np.full(len(owners), -1, np.int64)
    ends = np.cumsum(np.maximum(sizes, 1))
    empty = np.zeros(len(owners), np.bool_)
    empty[ends[sizes == 0] - 1] = True
    places[~empty] = np.arange(int(sizes.sum()))
    return owners, lists.flatten().take(pc.if_else(array_of(empty), None, int64_array(places)))


def _with_users(batches: Batches, user: str, column: str, events: Events | None) -> Rows:
    """Yield the users and the contents of each batch; of events their sequences."""
    rows = checked_users(batches, user)
    for where, first, batch in rows if events is None else events.sequences(rows, user, column):
        yield f"{where}, rows {first + 1:,} to {first + batch.num_rows:,}", batch.column(user), batch.column(column)


def _nobody(kind: str) -> LocalCorpus:
    """Return the corpus of no users: it is released like any other, and the result is empty."""
    return LocalCorpus(np.empty(0, np.int32), np.zeros(1, np.int64), np.empty(0, np.uint64), string_array([]), kind)


def _read_at_once(rows: Rows, encode: Encode, kind: str) -> LocalCorpus | None:
    """Encode all rows in memory."""
    stretch = Stretch(rows, None)
    pieces, words = encode(stretch)
    return build_corpus(pieces, words, encode_users(stretch.users), kind) if stretch.users else None
