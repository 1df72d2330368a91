"""Files behind an address, such as `s3://...` and `https://...`: polars reads them.

Parquet, CSV, TSV and JSON lines; keys and regions come from where polars looks for them (environment, profiles).
"""

import re
from typing import TYPE_CHECKING

from voxpop.errors import InputError, SourceError

if TYPE_CHECKING:
    import polars as pl

ADDRESS = re.compile(r"(s3|s3a|gs|gcs|az|abfs|abfss|adl|azure|https?|hf)://", re.IGNORECASE)
SQL = re.compile(r"\s*(select|with|from)\s", re.IGNORECASE)


def is_remote(path: object) -> bool:
    """Say whether a path is an address that polars reads."""
    return isinstance(path, str) and ADDRESS.match(path) is not None


def scan(address: str) -> "pl.LazyFrame":
    """Return the table behind an address, of which nothing has been read.

    Raises:
        SourceError: where the address does not say what is behind it.
    """
    import polars as pl

    name = address.partition("?")[0].lower()
    plain = re.sub(r"\.(gz|zst)$", "", name)
    if name.endswith((".parquet", "/")):
        return pl.scan_parquet(address)
    if plain.endswith((".csv", ".tsv")):
        # As from files here: every cell is text, an empty one nothing.
        return pl.scan_csv(address, separator="\t" if plain.endswith(".tsv") else ",", infer_schema=False)
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
