"""Files behind an address, such as `s3://...` and `https://...`: polars streams them.

Parquet, CSV, TSV and JSON lines; keys and regions come from where polars looks for them (environment, profiles).
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from voxpop.corpus.reading.arrow_sources import TABLE, table_batches
from voxpop.corpus.reading.columns import Batches, check_columns
from voxpop.corpus.reading.csv_text import Dialect
from voxpop.corpus.reading.encodings import UTF8
from voxpop.corpus.reading.failures import without_quotes
from voxpop.corpus.reading.portions import FEW_ROWS
from voxpop.errors import InputError, SourceError

if TYPE_CHECKING:
    import polars as pl

ADDRESS = re.compile(r"(s3|s3a|gs|gcs|az|abfs|abfss|adl|azure|https?|hf)://", re.IGNORECASE)
UNREAD = "the address", "Check the address, and read it with polars by itself first."
SQL = re.compile(r"\s*(select|with|from)\s", re.IGNORECASE)


def is_remote(path: object) -> bool:
    """Say whether a path is an address that polars reads."""
    return isinstance(path, str) and ADDRESS.match(path) is not None


def remote_batches(address: str, columns: list[str], rows: int, *, small: bool, dialect: Dialect) -> Batches:
    """Yield the wanted columns of what is behind an address, as it comes.

    Args:
        address: of a file, or of several by a pattern.
        columns: names of the wanted columns.
        rows: about how many rows a batch may have.
        small: hold little of it.
        dialect: how CSV is written, as far as the caller says.

    Raises:
        InputError: where polars is too old to stream, or the encoding is one that it does not read.
        SourceError: where the address does not say what is behind it, or it cannot be read.
        ColumnError: where a column is missing.
    """
    with without_quotes(*UNREAD):
        table = scan(address, dialect)
        check_columns(columns, table.collect_schema().names(), TABLE)
        table = table.select(list(dict.fromkeys(columns)))
        batches = _streamed(table, rows, small=small)
    while True:
        with without_quotes(*UNREAD):
            batch = next(batches, None)
        if batch is None:
            return
        yield from table_batches(batch, columns, rows)


def _streamed(table: "pl.LazyFrame", rows: int, *, small: bool) -> "Iterator[pl.DataFrame]":
    if hasattr(table, "collect_batches"):
        rows = min(rows, FEW_ROWS) if small else rows
        return iter(table.collect_batches(chunk_size=rows, maintain_order=True, engine="streaming"))
    if small:
        raise InputError("this polars reads addresses whole, which no memory limit can bound: pip install -U polars.")
    return iter([table.collect()])


def scan(address: str, dialect: Dialect) -> "pl.LazyFrame":
    """Return the table behind an address, of which nothing has been read.

    Raises:
        InputError: where the caller says how CSV is written and this is none, or in an encoding that polars lacks.
        SourceError: where the address does not say what is behind it.
    """
    import polars as pl

    name = address.partition("?")[0].lower()
    plain = re.sub(r"\.(gz|zst)$", "", name)
    if plain.endswith((".csv", ".tsv")):
        if dialect.encoding not in (None, UTF8):
            raise InputError("behind an address CSV must be UTF-8: download the file, and give its path and encoding=.")
        usual = "\t" if plain.endswith(".tsv") else ","
        # As from files here: every cell is text, an empty one nothing.
        return pl.scan_csv(address, separator=dialect.delimiter or usual, infer_schema=False)
    if dialect.given:
        raise InputError(
            "delimiter= and encoding= say how CSV is written, and the address ends otherwise: leave them out."
        )
    if name.endswith((".parquet", "/")):
        return pl.scan_parquet(address)
    if plain.endswith((".jsonl", ".ndjson")):
        return pl.scan_ndjson(address)
    raise SourceError(
        "the address does not end in .parquet, .csv, .tsv, .jsonl or .ndjson, so it does not say what is behind it. "
        "Read it with polars, pandas or fsspec and give the table."
    )


def check_is_path(text: str) -> None:
    """Refuse what is no path and looks like something else, saying how that is given.

    Raises:
        InputError: for SQL and "-".
    """
    if SQL.match(text):
        raise InputError("this looks like SQL: give the database, too, as connection=...")
    if text == "-":
        raise InputError('"-" is no file: write standard input to a file first.')
