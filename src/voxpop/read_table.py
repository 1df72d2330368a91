"""Read a table of who wrote what, by the engine that it asks for."""

import os
from typing import Any, cast

from voxpop.choices import TextTokenizer
from voxpop.corpus.corpus import Corpus
from voxpop.corpus.reading.csv_text import Dialect
from voxpop.corpus.reading.read import read_here
from voxpop.corpus.reading.sources import check_undescribed, is_spark
from voxpop.corpus.reading.wanted import Wanted
from voxpop.errors import InputError


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
    columns = {"user": user, "text": text, "tokens": tokens, "items": items, "sequence": sequence}
    cut = {"tokenizer": tokenizer, "sentences": sentences, "html": html, "order": order, "session": session}
    wanted = Wanted.of(**columns, **cut)
    dialect = Dialect(delimiter, encoding)
    where: dict[str, Any] = {"progress": progress, "memory": memory, "work_folder": work_folder}
    if not is_spark(source):
        if partitions is not None:
            raise InputError("`partitions` counts the parts of a Spark DataFrame; this source is read on this machine.")
        return read_here(source, wanted, connection=connection, dialect=dialect, **where)
    from voxpop.spark.read import read_spark

    check_undescribed(dialect)
    # An engine of another type, which every release takes alike: callers need not tell them apart.
    return cast(Corpus, read_spark(source, wanted, partitions=partitions, **where))
