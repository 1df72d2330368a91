"""Read a table of who wrote what."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from queue import SimpleQueue
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.arrow import int_codes, numbers_of, plain, string_array
from voxpop.corpus.bound import THREADS, in_order
from voxpop.corpus.corpus import Corpus
from voxpop.corpus.encode import Piece, build_corpus
from voxpop.corpus.events import Events, events_of
from voxpop.corpus.files import quieten
from voxpop.corpus.interner import WordInterner
from voxpop.corpus.keyed import KeyedRows, column_names
from voxpop.corpus.memory import MemoryLimit
from voxpop.corpus.sentences import each_sentence
from voxpop.corpus.sources import ITEMS_AT_ONCE, ROWS_AT_ONCE, Batches, is_spark, open_source
from voxpop.corpus.spilling import Encode, read_within
from voxpop.corpus.stretches import Rows, Stretch
from voxpop.corpus.tokenisers import Tokenise, list_tokeniser, tokeniser_name
from voxpop.corpus.users import encode_users
from voxpop.errors import ColumnError, InputError, InternalError, SourceError
from voxpop.kernels.group import lay_documents
from voxpop.progress import tell, track

Texts = Iterable[tuple[str, pa.Array]]
Encoded = tuple[list[Piece], list[pa.Array]]


def read(
    source: Any,
    *,
    user: str | list[str],
    text: str | None = None,
    tokens: str | None = None,
    items: str | list[str] | None = None,
    sequence: str | None = None,
    tokenizer: Any = "words",
    sentences: bool = False,
    progress: bool | None = None,
    memory: str | int | None = None,
    work_folder: str | os.PathLike[str] | None = None,
    connection: Any = None,
    order: str | None = None,
    session: Any = None,
) -> Corpus:
    """Read a table with a column of users and one of what they hold.

    Rows are read in batches; rows of one user may come in any order and from any number of files.

    Args:
        source: a path, folder or glob of Parquet, CSV, TSV or JSON lines (the last three also .gz or .zst), a list of
            such, or an address of one (s3://, https://); a polars, pandas or pyarrow table, or anything else that
            speaks Arrow; an iterator of tables; a list of dictionaries; a dictionary of columns; a cursor; or a query,
            with `connection`. A Spark DataFrame stays on its cluster (docs/guides/spark.md).
        user: name of the column that says whose row it is, never null, or a list of several that say it together:
            whole numbers, strings, UUIDs, dates, whatever has equality.
        text: name of a column of texts, cut into tokens by `tokenizer`; null is an empty text.
        tokens: name of a column of lists of tokens, in order.
        items: name of a column of items without order: one per row, or a list; nulls are left out. Strings, whole
            numbers, truth values, dates, times, decimals, bytes; or a list of columns whose values together are one
            item. Releases give columns and types back.
        sequence: name of a column of lists, such as pages visited; whole numbers become their decimal strings. With
            `order`, of single events.
        tokenizer: "words" (NFC, lower case, URLs removed, runs of letters, marks, digits and apostrophes),
            "whitespace", "characters", a compiled regular expression, or a callable from a list of texts to a list of
            lists of strings. For `text` only.
        sentences: cut each text into sentences first, so that phrases do not run across them. For `text` only.
        progress: whether to show progress on standard error; by default only on a terminal. What was left out is told
            there, unless False.
        memory: the most that the process may hold while it reads and extracts, such as "2GiB"; what does not fit goes
            to work files. By default as much as it takes. The result is the same.
        work_folder: where work files are made; by default the system's folder for temporary files.
        order: name of a column of times, dates or numbers: then each row is one event, `sequence` says what happened,
            and a user's events in this order are the user's sequence. Events of the same time come in order of their
            bytes; events without anything that happened are left out.
        session: the longest pause within a sequence, such as "30min" or, where `order` holds numbers, a number of the
            same unit; a longer one begins a new sequence.
        connection: where `source` is SQL, the database: an address (postgresql://, sqlite:///, duckdb:///) or an open
            connection.

    Returns:
        The corpus: private, held in memory or in work files; `Corpus.save` keeps it. Of a Spark DataFrame a
            `SparkCorpus`, which set union, n-grams and sequences take alike.

    Raises:
        InputError: where not exactly one of text, tokens, items and sequence is given, or `memory` is too little.
        SourceError: where the source is missing, empty, broken, or a row has no user.
        ColumnError: where a column is missing or of a type that does not fit.

    Example:
        >>> import polars as pl
        >>> import voxpop as vp
        >>> posts = pl.DataFrame({"author": ["ann", "bob"], "body": ["Good morning!", "good night"]})
        >>> vp.read(posts, user="author", text="body")
        Corpus(kind='text', private)
    """
    kind, given = _content(text=text, tokens=tokens, items=items, sequence=sequence)
    several = column_names(kind, given) if kind == "items" else [str(given)]
    events = events_of(kind, order, session)
    keyed = KeyedRows(column_names("user", user), several, typed=kind == "items", order=order)
    as_lists = list_tokeniser(tokenizer)
    if sentences and kind != "text":
        raise InputError(f"sentences=True cuts texts; with {kind}= there are none.")
    if is_spark(source):
        spark = import_module("voxpop.spark.read")  # the one look upwards: a corpus on a cluster is another engine
        columns = {"users": column_names("user", user), "kind": kind, "columns": several}
        if memory is not None:
            raise InputError("`memory` bounds this machine; on Spark, executors have limits of their own.")
        corpus: Corpus = spark.read_spark(
            source, tokenizer=tokenizer, sentences=sentences, order=order, session=session, **columns
        )
        return corpus
    wide = ITEMS_AT_ONCE if kind == "items" else ROWS_AT_ONCE
    limit = None if memory is None else MemoryLimit.of(memory, work_folder)
    if events is not None:
        events.limit = limit
    column = keyed.content
    dictionary = column if kind == "items" else None
    batches = keyed.rows(
        open_source(source, keyed.wanted, wide, dictionary=dictionary, small=limit is not None, connection=connection)
    )
    batches = track(batches, "reading", lambda each: each[1].num_rows, progress)
    rows = _with_users(batches, keyed.user, column, events)

    def encode(stretch: Stretch) -> Encoded:
        if kind == "text":
            return _encode_by_text(stretch, as_lists, column, sentences=sentences)
        return _encode_lists(stretch, stretch, column, kind)

    read_corpus = _read_at_once(rows, encode, kind) if limit is None else read_within(limit, rows, encode, kind)
    if read_corpus is None:
        raise SourceError("the source holds no rows; check that it is the one you meant.")
    left_out = keyed.left_out + (0 if events is None else events.left_out)
    if left_out:
        tell(f'{left_out:,} of the values in "{column}" are null, and were left out.', progress)
    return replace(read_corpus, reading=tokeniser_name(tokenizer) if kind == "text" else kind, keys=keyed.keys)


def _read_at_once(rows: Rows, encode: Encode, kind: str) -> Corpus | None:
    """Encode all rows in memory."""
    stretch = Stretch(rows, None)
    pieces, words = encode(stretch)
    return build_corpus(pieces, words, encode_users(stretch.users), kind) if stretch.users else None


def _content(**columns: Any) -> tuple[str, Any]:
    """Return which of the four columns was given, and its name."""
    given = [(kind, name) for kind, name in columns.items() if name is not None]
    if len(given) != 1:
        named = ", ".join(kind for kind, _ in given) or "none"
        raise InputError(f"give exactly one of text=, tokens=, items= and sequence=, got {named}.")
    return given[0]


def _with_users(batches: Batches, user: str, column: str, events: Events | None = None) -> Rows:
    """Pass on the users and the contents of each batch; of events their sequences."""
    rows = _checked_users(batches, user)
    for where, first, batch in rows if events is None else events.sequences(rows, user, column):
        yield f"{where}, rows {first + 1:,} to {first + batch.num_rows:,}", batch.column(user), batch.column(column)


def _checked_users(batches: Batches, user: str) -> Iterator[tuple[str, int, pa.RecordBatch]]:
    """Pass on batches whose users are of one type and never null, and how many rows of the same source went before."""
    seen: dict[str, int] = {}
    kinds: set[str] = set()
    for where, batch in batches:
        if batch.num_rows == 0:
            continue
        first = seen.get(where, 0)
        seen[where] = first + batch.num_rows
        users = _user_column(batch.column(user), where, user, first)
        _check_kinds(users, kinds, user)
        yield where, first, batch.set_column(batch.schema.get_field_index(user), user, users)


def _user_column(ids: pa.Array, where: str, name: str, first: int) -> pa.Array:
    """Check a batch of user ids; whole numbers and strings each become one type."""
    if pa.types.is_dictionary(ids.type):
        ids = ids.dictionary_decode()
    if ids.null_count:
        row = first + 1 + int(np.flatnonzero(ids.is_null().to_numpy(zero_copy_only=False))[0])
        raise SourceError(
            f'{where}, row {row:,}: the column "{name}" is empty, so nobody knows whose row it is. '
            "Fill it in or leave the row out."
        )
    if pa.types.is_integer(ids.type):
        return ids.cast(pa.uint64() if ids.type == pa.uint64() else pa.int64())
    if _is_string(ids.type):
        return _valid_text(ids, where, name)
    raise InternalError("users must be whole numbers or strings by now; please report the call.")


def _check_kinds(users: pa.Array, kinds: set[str], name: str) -> None:
    """Refuse ids that are strings here and numbers there, or whose 64 bits would stand for two numbers."""
    if not pa.types.is_integer(users.type):
        kinds.add("strings")
    elif users.type == pa.uint64():
        kinds.add("numbers from 2^63 on" if pc.max(users).as_py() >= 2**63 else "numbers")
    else:
        kinds.add("numbers below 0" if pc.min(users).as_py() < 0 else "numbers")
    if ("strings" in kinds and len(kinds) > 1) or {"numbers from 2^63 on", "numbers below 0"} <= kinds:
        raise ColumnError(
            f'the column "{name}" holds {" and ".join(sorted(kinds))}, which cannot be told apart safely. '
            "Give it one type in all files."
        )


def _is_string(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _valid_text(texts: pa.Array, where: str, name: str) -> pa.Array:
    """Return strings as large_string, after checking that they are UTF-8."""
    texts = texts.cast(pa.large_string())
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid as error:
        quieten(error)
        raise SourceError(f'{where}: the column "{name}" holds bytes that are not UTF-8; save it as UTF-8.') from None
    return texts


def _text_column(texts: pa.Array, where: str) -> pa.Array:
    if pa.types.is_dictionary(texts.type):
        texts = texts.dictionary_decode()
    if pa.types.is_null(texts.type):
        return string_array([""] * len(texts))
    if not _is_string(texts.type):
        raise ColumnError(
            f"{where}: text= needs a column of strings, got {texts.type}; for lists use tokens= or sequence=, for "
            "numbers items=."
        )
    return _valid_text(texts, where, "text")


def _encode_by_text(stretch: Stretch, as_lists: Tokenise | None, column: str, *, sentences: bool) -> Encoded:
    """Cut texts into words, or into sentences and those into words; a text's sentences stay one user's."""
    starts: list[np.ndarray] = []
    rows: Texts = stretch
    if sentences:
        rows = each_sentence(((where, _text_column(texts, where)) for where, texts in rows), starts)
    pieces, words = _encode_words(rows, stretch) if as_lists is None else _encode_texts(rows, stretch, as_lists, column)
    if sentences:
        pieces = [
            Piece(p.ids, None if p.ends is None else p.ends[own], p.interner)
            for p, own in zip(pieces, starts, strict=True)
        ]
    return pieces, words


def _encode_words(rows: Texts, stretch: Stretch) -> Encoded:
    """Cut texts into words by the kernel, a thread and an interner each."""
    interners = [WordInterner() for _ in range(THREADS)]
    idle: SimpleQueue[int] = SimpleQueue()
    for number in range(THREADS):
        idle.put(number)

    def cut(row: tuple[str, pa.Array]) -> Piece:
        where, texts = row
        number = idle.get()
        try:
            ids, ends = interners[number].cut(_text_column(texts, where))
            return Piece(ids.copy(), ends, number)
        finally:
            idle.put(number)

    pieces, held = [], 0
    for piece in in_order(cut, rows):
        pieces.append(piece)
        held += piece.size
        stretch.hold(held + sum(interner.size for interner in interners))
    return pieces, [interner.vocabulary() for interner in interners]


def _encode_texts(rows: Texts, stretch: Stretch, tokenise: Tokenise, column: str) -> Encoded:
    """Cut texts into lists by a tokeniser, then encode the lists."""
    lists = ((where, tokenise(_text_column(texts, where).fill_null(""))) for where, texts in rows)
    return _encode_lists(lists, stretch, column, "text")


def _encode_lists(rows: Texts, stretch: Stretch, column: str, kind: str) -> Encoded:
    """Encode lists of strings or numbers, or one item per row."""

    def encode(row: tuple[str, pa.Array]) -> tuple[pa.DictionaryArray, np.ndarray | None]:
        where, values = row
        flat, starts = _flat(values, column, kind)
        return _dictionary(flat, where, column), starts

    encoded, held = [], 0
    for codes, starts in in_order(encode, rows):
        encoded.append((codes, starts))
        held += codes.nbytes + (0 if starts is None else starts.nbytes)
        stretch.hold(2 * held)
    if not encoded:
        return [], []
    whole = pa.chunked_array([codes for codes, _ in encoded]).unify_dictionaries()
    words = whole.chunk(0).dictionary
    words = words.cast(pa.large_string())
    pieces = [_piece(chunk, starts, kind) for chunk, (_, starts) in zip(whole.chunks, encoded, strict=True)]
    return pieces, [words]


def _flat(values: pa.Array, column: str, kind: str) -> tuple[pa.Array, np.ndarray | None]:
    """Return all elements of lists and where each list starts, or single items and None."""
    test = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if any(each(values.type) for each in test):
        large = values.cast(pa.large_list(values.type.value_type))
        lengths = numbers_of(large.value_lengths())
        return large.flatten(), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    if kind == "items" or pa.types.is_null(values.type):
        return values, None
    raise ColumnError(
        f'{kind}= needs a column of lists, got "{column}" of type {values.type}; for strings use text=, for one item '
        "per row items=."
    )


def _dictionary(flat: pa.Array, where: str, column: str) -> pa.DictionaryArray:
    """Return elements as codes into distinct strings."""
    if pa.types.is_null(flat.type):
        flat = flat.cast(pa.large_string())
    kind = flat.type.value_type if pa.types.is_dictionary(flat.type) else flat.type
    if not pa.types.is_integer(kind) and not _is_string(kind):
        raise ColumnError(f'the column "{column}" must hold strings or whole numbers, got {kind}.')
    if not pa.types.is_dictionary(flat.type):
        flat = plain(flat.dictionary_encode())
    words = flat.dictionary
    words = words.cast(pa.large_string()) if pa.types.is_integer(kind) else _valid_text(words, where, column)
    return pa.DictionaryArray.from_arrays(flat.indices.cast(pa.int32()), words)


def _piece(chunk: pa.DictionaryArray, starts: np.ndarray | None, kind: str) -> Piece:
    """Lay out one batch: documents with their -1, or items row by row."""
    codes = int_codes(chunk)
    if kind == "items":
        return _items_piece(codes, starts)
    if starts is None:
        starts = np.arange(codes.size + 1, dtype=np.int64)
    ids = np.empty(codes.size + starts.size - 1, np.int32)
    ends = np.zeros(starts.size, np.int64)
    lay_documents(codes, starts, ids, ends)
    return Piece(ids[: ends[-1]], ends, 0)


def _items_piece(codes: np.ndarray, starts: np.ndarray | None) -> Piece:
    """Items one per row keep their row; lists of items become documents, whose -1 mean nothing."""
    if starts is None:
        return Piece(codes, None, 0)
    ids = np.empty(codes.size + starts.size - 1, np.int32)
    ends = np.zeros(starts.size, np.int64)
    lay_documents(codes, starts, ids, ends)
    return Piece(ids[: ends[-1]], ends, 0)
