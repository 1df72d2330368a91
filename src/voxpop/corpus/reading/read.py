"""Read a table of who wrote what."""

import os
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

from voxpop.arrow import string_array
from voxpop.choices import TextTokenizer
from voxpop.corpus.corpus import Corpus
from voxpop.corpus.limited.memory import MemoryLimit
from voxpop.corpus.reading.columns import Batches, Rows, checked_users
from voxpop.corpus.reading.csv_text import Dialect
from voxpop.corpus.reading.events import Events, events_of
from voxpop.corpus.reading.keyed import KeyedRows, column_names
from voxpop.corpus.reading.layout import build_corpus
from voxpop.corpus.reading.sources import ITEMS_AT_ONCE, ROWS_AT_ONCE, check_undescribed, is_spark, open_source
from voxpop.corpus.reading.spilling import Encode, read_within
from voxpop.corpus.reading.stretches import Stretch
from voxpop.corpus.reading.tokenisers import list_tokeniser, tokeniser_name
from voxpop.corpus.reading.tokens import Encoded, encode_by_text, encode_lists
from voxpop.corpus.reading.users import encode_users
from voxpop.errors import InputError
from voxpop.progress import tell, track


def read(
    source: Any,
    *,
    user: str | list[str],
    text: str | None = None,
    tokens: str | None = None,
    items: str | list[str] | None = None,
    sequence: str | None = None,
    tokenizer: TextTokenizer = "words",
    sentences: bool = False,
    html: bool = False,
    progress: bool | None = None,
    memory: str | int | None = None,
    work_folder: str | os.PathLike[str] | None = None,
    connection: Any = None,
    order: str | None = None,
    session: Any = None,
    partitions: int | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
) -> Corpus:
    """Read a table with a column of users and one of what they hold.

    Rows are read in batches; rows of one user may come in any order and from any number of files.

    Args:
        source: a path, folder or glob of Parquet, CSV, TSV or JSON lines (the last three also .gz or .zst), a list of
            such, or an address of one (s3://, https://); a polars, pandas or pyarrow table, or anything else that
            speaks Arrow; an iterator of tables; a list of dictionaries; a dictionary of columns; a cursor; or a query,
            with `connection`. A Spark DataFrame stays on its cluster, if it has one (docs/guides/spark.md).
        user: name of the column that says whose row it is, never null, or a list of several that say it together:
            whole numbers, strings, UUIDs, dates, whatever has equality.
        text: name of a column of texts, cut into tokens by `tokenizer`; null is an empty text.
        tokens: name of a column of lists of tokens, in order.
        items: name of a column of items without order: one per row, or a list; nulls are left out. Strings, whole
            numbers, truth values, dates, times, decimals, bytes; or a list of columns whose values together are one
            item. Releases give columns and types back.
        sequence: name of a column of lists, such as pages visited; whole numbers become their decimal strings. With
            `order`, of single events.
        tokenizer: "words" (NFC, lower case, URLs removed, runs of letters, marks and digits with apostrophes inside),
            "unicode" (words, numbers and emoji as ICU cuts them, Chinese, Japanese and Thai by dictionaries; needs `pip
            install voxpop[unicode]`), "whitespace", "characters", a compiled regular expression, or a callable from a
            list of texts to a list of lists of strings. For `text` only.
        sentences: cut each text into sentences first, so that phrases do not run across them. For `text` only.
        html: texts are HTML: tags, comments, scripts and styles are dropped before anything is cut, and entities become
            what they stand for. For `text` only.
        progress: whether to show progress on standard error; by default only on a terminal. What was left out is told
            there, unless False.
        memory: the most that the process may hold while it reads and extracts, such as "2GiB"; what does not fit goes
            to work files. By default as much as it takes, and of a Spark DataFrame half of this machine's. The result
            is the same.
        work_folder: where work files are made; by default the system's folder for temporary files.
        order: name of a column of times, dates or numbers: then each row is one event, `sequence` says what happened,
            and a user's events in this order are the user's sequence. Events of the same time come in order of their
            bytes; events without anything that happened are left out.
        session: the longest pause within a sequence, such as "30min" or, where `order` holds numbers, a number of the
            same unit; a longer one begins a new sequence.
        partitions: of a Spark DataFrame, into how many parts its users are placed; by default as many as tasks run at
            once, and none where all of Spark is on this machine, which then reads the rows itself. More make each
            smaller; order-dependent weightings release fewer items then.
        connection: where `source` is SQL, the database: an address (postgresql://, sqlite:///, duckdb:///) or an open
            connection.
        delimiter: of CSV, what separates the columns; by default a comma (a tab in .tsv), or whichever of semicolon,
            tab and bar alone gives the named columns.
        encoding: of CSV, how letters are written, by Python's name ("cp1252", "shift_jis"); by default UTF-8, or what
            the file's first bytes say.

    Returns:
        The corpus: private, held in memory or in work files; `Corpus.save` keeps it. Of a Spark DataFrame a
            `SparkCorpus`, which set union, n-grams, counts and sequences take alike.

    Raises:
        InputError: where not exactly one of text, tokens, items and sequence is given, `memory` is too little, or
            `delimiter` or `encoding` is given and the source is no CSV.
        SourceError: where the source is missing or broken, or a row has no user. A table without rows is no error.
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
    dialect = Dialect(delimiter, encoding)
    if sentences and kind != "text":
        raise InputError(f"sentences=True cuts texts; with {kind}= there are none.")
    if html and kind != "text":
        raise InputError(f"html=True strips texts; with {kind}= there are none.")
    if is_spark(source):
        spark = import_module("voxpop.spark.read")  # the one look upwards: a corpus on a cluster is another engine
        check_undescribed(dialect)
        cut = {"tokenizer": tokenizer, "sentences": sentences, "html": html, "order": order, "session": session}
        where = {"partitions": partitions, "memory": memory, "work_folder": work_folder, "progress": progress}
        wanted = spark.Wanted(column_names("user", user), kind, several, cut)
        corpus: Corpus = spark.read_spark(source, wanted, **where)
        return corpus
    if partitions is not None:
        raise InputError("`partitions` counts the parts of a Spark DataFrame; this source is read on this machine.")
    wide = ITEMS_AT_ONCE if kind == "items" else ROWS_AT_ONCE
    limit = None if memory is None else MemoryLimit.of(memory, work_folder)
    if events is not None:
        events.limit = limit
    column = keyed.content
    dictionary = column if kind == "items" else None
    batches = keyed.rows(
        open_source(
            source,
            keyed.wanted,
            wide,
            dictionary=dictionary,
            small=limit is not None,
            connection=connection,
            dialect=dialect,
        )
    )
    batches = track(batches, "reading", lambda each: each[1].num_rows, progress)
    rows = _with_users(batches, keyed.user, column, events)

    def encode(stretch: Stretch) -> Encoded:
        if kind == "text":
            return encode_by_text(stretch, as_lists, column, sentences=sentences, html=html)
        return encode_lists(stretch, stretch, column, kind)

    read_corpus = _read_at_once(rows, encode, kind) if limit is None else read_within(limit, rows, encode, kind)
    if read_corpus is None:  # an error would tell it from a table of one user
        read_corpus = _nobody(kind).within(limit)
    left_out = keyed.left_out + (0 if events is None else events.left_out)
    if left_out:
        tell(f'{left_out:,} of the values in "{column}" are null, and were left out.', progress)
    return replace(read_corpus, reading=tokeniser_name(tokenizer) if kind == "text" else kind, keys=keyed.keys)


def _with_users(batches: Batches, user: str, column: str, events: Events | None) -> Rows:
    """Pass on the users and the contents of each batch; of events their sequences."""
    rows = checked_users(batches, user)
    for where, first, batch in rows if events is None else events.sequences(rows, user, column):
        yield f"{where}, rows {first + 1:,} to {first + batch.num_rows:,}", batch.column(user), batch.column(column)


def _nobody(kind: str) -> Corpus:
    """Return the corpus of no users: it is released like any other, and nothing comes out."""
    return Corpus(np.empty(0, np.int32), np.zeros(1, np.int64), np.empty(0, np.uint64), string_array([]), kind)


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
