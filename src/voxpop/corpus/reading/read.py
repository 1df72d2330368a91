"""Read a table of who wrote what on this machine, from top to bottom."""

import os
from dataclasses import replace
from typing import Any

import numpy as np

from voxpop.arrow import string_array
from voxpop.corpus.corpus import Corpus
from voxpop.corpus.limited.memory import MemoryLimit
from voxpop.corpus.reading.columns import Batches, Rows, checked_users
from voxpop.corpus.reading.csv_text import FOUND, Dialect
from voxpop.corpus.reading.events import Events
from voxpop.corpus.reading.keyed import KeyedRows
from voxpop.corpus.reading.layout import build_corpus
from voxpop.corpus.reading.sources import ITEMS_AT_ONCE, ROWS_AT_ONCE, open_source
from voxpop.corpus.reading.spilling import Encode, read_within
from voxpop.corpus.reading.stretches import Stretch
from voxpop.corpus.reading.tokenisers import list_tokeniser
from voxpop.corpus.reading.tokens import Encoded, encode_by_text, encode_lists
from voxpop.corpus.reading.users import encode_users
from voxpop.corpus.reading.wanted import Wanted
from voxpop.progress import tell, track


def read_here(
    source: Any,
    wanted: Wanted,
    *,
    progress: bool | None = None,
    memory: str | int | None = None,
    work_folder: str | os.PathLike[str] | None = None,
    connection: Any = None,
    dialect: Dialect = FOUND,
) -> Corpus:
    """Read a table in batches; rows of one user may come in any order and from any number of files.

    Args:
        source: anything that `voxpop.read` takes but a DataFrame of Spark, as are all that follow.
        wanted: the columns, and what becomes of them.
        progress: whether to show progress.
        memory: the most that the process may hold.
        work_folder: where work files are made.
        connection: the database that `source` is a query of.
        dialect: how CSV is written, as far as the caller says.

    Raises:
        InputError: where `memory` is too little, or `dialect` says something and the source is no CSV.
        SourceError: where the source is missing or broken, or a row has no user. A table without rows is no error.
        ColumnError: where a column is missing or of a type that does not fit.
    """
    kind, keyed = wanted.kind, KeyedRows(wanted)
    limit = None if memory is None else MemoryLimit.of(memory, work_folder)
    events = None if wanted.order is None else Events(wanted.order, wanted.session, limit)
    batches = keyed.rows(
        open_source(
            source,
            wanted.names,
            ITEMS_AT_ONCE if kind == "items" else ROWS_AT_ONCE,
            dictionary=wanted.repeated,
            small=limit is not None,
            connection=connection,
            dialect=dialect,
        )
    )
    batches = track(batches, "reading", lambda each: each[1].num_rows, progress)
    rows, as_lists = _with_users(batches, keyed.user, keyed.content, events), list_tokeniser(wanted.tokenizer)

    def encode(stretch: Stretch) -> Encoded:
        if kind == "text":
            return encode_by_text(stretch, as_lists, keyed.content, sentences=wanted.sentences, html=wanted.html)
        return encode_lists(stretch, stretch, keyed.content, kind)

    corpus = _read_at_once(rows, encode, kind) if limit is None else read_within(limit, rows, encode, kind)
    if corpus is None:  # an error would tell it from a table of one user
        corpus = _nobody(kind).within(limit)
    left_out = keyed.left_out + (0 if events is None else events.left_out)
    if left_out:
        tell(f'{left_out:,} of the values in "{keyed.content}" are null, and were left out.', progress)
    return replace(corpus, reading=wanted.reading, keys=keyed.keys)


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
