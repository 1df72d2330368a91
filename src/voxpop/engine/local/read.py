"""Read a table of users and their data on this machine, from the first row to the last."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import chain
from typing import Any, Final, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.engine.local.corpus import LocalCorpus
from voxpop.engine.local.weigh import user_spans
from voxpop.files.progress import exactly, rounded, row_called, tell, track
from voxpop.kernels.group import gather_documents, gather_slices, group_items, mark_used, rename, sizes_by_user
from voxpop.kernels.threads import in_order, one_ahead, one_behind
from voxpop.reading.arrow import array_of, flattened, int64_array, numbers_of
from voxpop.reading.columns import Batches, checked_users, enclosed, guarded
from voxpop.reading.events import Events
from voxpop.reading.keyed import KeyedRows
from voxpop.reading.keys import is_list
from voxpop.reading.limited.memory import MemoryLimit, forget_pages, release_unused
from voxpop.reading.limited.sorter import HEAD, SHARE_OF_SORTER, Block, Sorter, WordRuns, in_key_order
from voxpop.reading.sources import open_source
from voxpop.reading.tokenizers import Encoded, Piece, encode_by_text, encode_lists, list_tokeniser
from voxpop.reading.users import Spellings, Stretch, Users, encode_users, identities, numbered_users, stretches
from voxpop.reading.wanted import Request
from voxpop.reading.words import merge_words

# The code below builds a corpus from rows. This code groups the users and replaces each token with its rank in the
# vocabulary.


def build_corpus(pieces: list[Piece], words: list[pa.Array], users: Users, kind: str) -> LocalCorpus:
    """Merge the lists of words, replace every id with its final id, and group the documents by user.

    Args:
        pieces: The batches, in the order of the rows.
        words: The provisional vocabularies to which the ids of the pieces refer.
        users: The result of `encode_users`.
        kind: The kind of data.

    Returns:
        The corpus.
    """
    used = [np.zeros(len(each), np.uint8) for each in words]
    for piece in pieces:
        mark_used(piece.ids, used[piece.interner])
    # For each list of words, `names` contains an int32 array with the rank of each provisional id in the sorted
    # vocabulary.
    vocabulary, names = merge_words(words, [mask.view(np.bool_) for mask in used])
    tokens = np.empty(sum(piece.ids.size for piece in pieces), np.int32)
    # Shape (pieces + 1,), the position of each piece's ids.
    places = np.cumsum([0, *(piece.ids.size for piece in pieces)])

    def finish(number: int) -> None:
        piece = pieces[number]
        rename(piece.ids, names[piece.interner], tokens[places[number] : places[number + 1]])

    for _ in in_order(finish, range(len(pieces))):
        pass
    codes, keys, _ = users
    user_start = np.zeros(keys.size + 1, np.int64)
    if pieces and pieces[0].ends is None:
        # A row without an item counts for no user.
        return LocalCorpus(group_items(tokens, codes, user_start), user_start, keys, vocabulary, kind)
    # Shift the ends of documents from positions within a piece to positions in all pieces.
    own = [piece.ends[1:] + place for piece, place in zip(pieces, places, strict=False) if piece.ends is not None]
    ends = np.concatenate([np.zeros(1, np.int64), *own])
    sizes_by_user(codes, ends, user_start)
    grouped = tokens
    if (codes[1:] < codes[:-1]).any():
        grouped = np.empty_like(tokens)
        gather_documents(tokens, codes, ends, user_start, grouped)
    return LocalCorpus(grouped, user_start, keys, vocabulary, kind)


# With a memory limit, each stretch of rows becomes a small corpus on disk, and these small corpora are merged. The
# result has the same users as a corpus that is read in memory, but in a different order. The documents of a user are in
# the order of rows, and tokens are ranks in the sorted vocabulary (docs/design/0009-spilling.md).

Encode = Callable[[Stretch], Encoded]

BYTES_OF_SPELLING = 32
"""The number of bytes per user while two lists of users are merged."""
SHARE_OF_STRETCH = 6
"""A stretch may take 1/6 of the available memory, because naming and grouping its tokens requires several copies of the
stretch.
"""


def read_rows(limit: MemoryLimit | None, rows: Batches, encode: Encode, kind: str) -> LocalCorpus:
    """Return the corpus of rows. With a memory limit, large arrays are mapped files."""
    # The next stretch is encoded by other threads while the previous stretch is grouped and written. Threads number
    # users and encode rows, but only this thread reads rows, because a source can be bound to one thread.
    rows = in_order(lambda row: (row[0], _with_codes(row[1])), rows)
    encoded = _encoded(stretches(rows, None if limit is None else limit.room // SHARE_OF_STRETCH), encode)
    first = next(encoded, None)
    if first is None:  # no error here, because an error would distinguish an empty table from a table with one user
        return build_corpus([], [], encode_users([numbered_users(int64_array([]))]), kind).within(limit)
    # All rows fit in one stretch, so no merge is needed.
    stretch, tokens = first
    if limit is None or stretch.finished:
        users, spellings = encode_users(stretch.users), Spellings(None)
        spellings.add(users[2])
        return replace(build_corpus(*tokens, users, kind), alike=spellings.alike(len(users[2]))).within(limit)
    spill = _Spill(limit, kind)
    one_behind(spill.take, chain([first], encoded))
    return spill.merged()


def _encoded(every: Iterator[Stretch], encode: Encode) -> Iterator[tuple[Stretch, Encoded]]:
    """Yield the stretches that have rows, with their tokens as provisional ids."""
    for stretch in every:
        encoded = encode(stretch)
        if stretch.users:
            yield stretch, encoded


@final
class _Spill:
    """Small corpora, which are stored one after another on disk."""

    def __init__(self, limit: MemoryLimit, kind: str) -> None:
        self._limit, self._kind = limit, kind
        self._tokens, self._heads = limit.file(), limit.file()
        self._words = WordRuns(limit)
        self._sizes: list[int] = []
        self._spellings = Spellings(limit.room // (SHARE_OF_STRETCH * BYTES_OF_SPELLING))

    def take(self, encoded: tuple[Stretch, Encoded]) -> None:
        """Group the tokens of a stretch by user, and store the resulting small corpus."""
        stretch, (pieces, words) = encoded
        codes, keys, users = encode_users(stretch.users)
        corpus = build_corpus(pieces, words, (codes, keys, users), self._kind)
        self._spellings.add(users)
        who, heads = identities(users, keys), np.zeros(keys.size, HEAD)
        heads["key"], heads["other"], heads["user"], heads["size"] = *who.T, keys, np.diff(corpus.user_start)
        self._tokens.append(corpus.tokens)
        self._heads.append(heads)
        self._words.add(corpus.vocabulary)
        self._sizes.append(heads.size)
        # The caller still has a reference to the stretch while the next stretch is cut.
        for held in (pieces, words, stretch.users):
            held.clear()
        del corpus, codes, keys, users, who, heads
        release_unused()

    def merged(self) -> LocalCorpus:
        """Return the corpus with a final id for each token and a position for each user."""
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
        corpus = LocalCorpus(*mapped, vocabulary, self._kind, limit=limit)
        return replace(corpus, alike=self._spellings.alike(corpus.user_key.size))

    def _named_blocks(self, most: int) -> Iterator[Block]:
        """Yield all users with the final ids of their tokens, in blocks of about `most` bytes of tokens."""
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


_FINE_TYPES: Final = re.compile(r"time|decimal\d+\(\d+, [1-9]")
"""The item types whose values are often so fine-grained that few users share them."""
_NEIGHBOURS_IN_TEXT: Final = " The tokens before and after such a value count as neighbours."


def read_here(source: Any, request: Request) -> LocalCorpus:
    """Read a table in batches. The rows of a user may be in any order and in any number of files.

    Args:
        source: Any source that `voxpop.read` accepts, except a Spark DataFrame.
        request: The columns, the rules that turn them into tokens, and the options for reading.

    Raises:
        InputError: If the memory limit is too low, or `csv` is given for a source that is not CSV.
        SourceError: If the source is missing or damaged, or a row has no user. A table without rows is valid.
        ColumnError: If a column is missing or has an unsupported type.
    """
    return enclosed(lambda: _corpus_of(source, request))


def _corpus_of(source: Any, request: Request) -> LocalCorpus:
    kind, keyed, options = request.kind, KeyedRows(request), request.options
    limit = None if options.memory is None else MemoryLimit.of(options.memory, options.work_folder)
    events = None if request.order is None else Events(request.order, request.session_gap, limit, request.times)
    batches = track(
        keyed.rows(open_source(source, request)),
        "reading",
        lambda each: each[1].num_rows,
        options.progress,
        exact=options.exact,
    )
    rows, as_lists = _with_users(batches, keyed.user, keyed.content, events), list_tokeniser(request.tokenizer.name)
    if kind == "items":
        rows = ((where, one_item_each(batch)) for where, batch in rows)
    rows = guarded(rows)

    def encode(stretch: Stretch) -> Encoded:
        if kind == "text":
            cut = request.tokenizer
            return encode_by_text(stretch, as_lists, keyed.content, sentences=cut.sentences, html=cut.html)
        return encode_lists(stretch, stretch, keyed.content, kind)

    with exactly(options.exact), _memory_of_the_system() if limit is None else nullcontext():
        corpus = read_rows(limit, rows, encode, kind)
    left_out = keyed.left_out + (0 if events is None else events.left_out)
    for count, what in (
        (keyed.dropped, "rows have no user and were skipped."),
        (
            keyed.doubtful,
            "rows have a user that is spelled like a missing value, such as NULL or nan, or like the name of the "
            'column, and were kept. Omit them with missing_users="drop" (--drop-missing-users).',
        ),
        (
            left_out,
            f'of the values in "{keyed.content}" are null and were skipped.'
            f"{'' if kind == 'items' else _NEIGHBOURS_IN_TEXT}",
        ),
        (
            corpus.alike,
            "ids of users differ from another id only in case or in spaces at their ends. Each id is protected as one "
            "user, so a person with several ids is not. Give such ids one spelling first, such as lower(trim(id)).",
        ),
    ):
        if count:
            tell(f"{rounded(count, exact=options.exact)} {what}", options.progress)
    for each in keyed.keys.columns:
        if _FINE_TYPES.match(each.kind) and each.name not in request.types:  # a declared type is intentional
            tell(
                f'the column "{each.name}" contains values of the type {each.kind}, which few users share. If nothing '
                "is released, round numbers or truncate times first.",
                options.progress,
            )
    return replace(corpus, token_source=request.token_source, keys=keyed.keys, families=keyed.families)


@contextmanager
def _memory_of_the_system() -> Iterator[None]:
    """Make Arrow use the allocator of the C library, which reuses the memory of one batch for the next.

    Arrow's own allocator returns memory to the system after each batch. With Arrow's allocator, reading a table and
    releasing pairs on a virtual machine took up to 1.2 times as long.
    """
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


def _with_codes(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.from_arrays([numbered_users(batch.column(0)), batch.column(1)], batch.schema.names)


def one_item_each(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return one row for each item, from rows with lists of items. An empty list gives no row."""
    users, items = batch.columns
    if not is_list(items.type):
        return batch
    elements, sizes = flattened(items)
    rows = users.take(int64_array(np.repeat(np.arange(sizes.size), sizes)))
    return batch.from_arrays([rows, elements], batch.schema.names)


def _with_users(batches: Batches, user: str, column: str, events: Events | None) -> Batches:
    """Yield the users and the contents of each batch. The contents of events are their sequences."""
    rows = checked_users(batches, user)
    for where, first, batch in rows if events is None else events.sequences(rows, user, column):
        yield f"{where}, from {row_called(first + 1)} on", batch.select([user, column])


# The order of rows can depend on several users. For example, Spark reads files in the order of their sizes, so the rows
# of one user could change the order of all files. This would change which documents count for other users. The order
# that is computed here depends only on a user's own documents (docs/privacy/spark.md).

_POSITIONS_READ_AT_ONCE = 1 << 20
BYTES_OF_POSITION = 72
"""The number of bytes per position of one user, for three copies of the tokens and up to seven numbers of a document.
"""


def in_content_order(corpus: LocalCorpus, *, documents: bool = True) -> LocalCorpus:
    """Return a corpus that does not depend on the order of rows, except for the order of users with different keys.

    Each user's documents are sorted by their tokens, and tokens by their bytes.

    Args:
        corpus: The corpus to change in place. The ids must be the ranks of the tokens in the order of their bytes.
        documents: Whether to sort each user's documents. Events are already in order of time.

    Raises:
        MemoryLimitError: If the documents of one user do not fit in the memory limit of the corpus.
    """
    if documents and corpus.kind != "items":
        if corpus.limit is not None:
            size = BYTES_OF_POSITION * int(np.diff(corpus.user_start).max(initial=0))
            corpus.limit.require(size, "the documents of one user, to be put in the order of their contents,")
        for _ in in_order(lambda block: _sort(corpus, *block), user_spans(corpus.user_start, _POSITIONS_READ_AT_ONCE)):
            pass
    return corpus


def _sort(corpus: LocalCorpus, first: int, last: int) -> None:
    starts = corpus.user_start[first : last + 1]
    tokens = corpus.tokens[starts[0] : starts[-1]]
    begins = np.concatenate([[0], np.flatnonzero(tokens < 0) + 1])
    # The bytes of these numbers are in the order of the tokens, and the end of a document sorts first.
    letters = pa.py_buffer((tokens + np.int32(1)).astype(">i4"))
    buffers = [None, pa.py_buffer(4 * begins), letters]
    contents = pa.LargeBinaryArray.from_buffers(pa.large_binary(), begins.size - 1, buffers)
    owners = array_of(np.searchsorted(starts - starts[0], begins[:-1], side="right"))
    rows = pa.table({"owner": owners, "content": contents})
    order = pc.sort_indices(rows, sort_keys=[("owner", "ascending"), ("content", "ascending")])
    moved = np.empty_like(tokens)
    gather_slices(tokens, begins, numbers_of(order).astype(np.int64), moved)
    tokens[:] = moved
    forget_pages(corpus.tokens, int(corpus.user_start[first]), int(corpus.user_start[last]))
