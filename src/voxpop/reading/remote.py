"""Files behind an address, such as `s3://...` and `https://...`: polars streams Parquet, CSV, TSV and JSON lines.

Keys and regions come from where polars looks for them (environment, profiles).
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from voxpop.errors import InputError, SourceError
from voxpop.kernels.threads import require_polars
from voxpop.reading.arrow import joined
from voxpop.reading.columns import FEW_ROWS, Batches, check_columns, guarded, withheld
from voxpop.reading.tables import TABLE, arrow_batches
from voxpop.reading.text_files import UTF8, json_lines
from voxpop.reading.types import typed
from voxpop.reading.wanted import Request

if TYPE_CHECKING:
    import polars as pl

ADDRESS: Final = re.compile(r"(s3|s3a|gs|gcs|az|abfs|abfss|adl|azure|https?|hf)://", re.IGNORECASE)
UNREAD: Final = "the address cannot be read"


def is_remote(path: object) -> bool:
    """Return whether a path is an address that polars reads."""
    return isinstance(path, str) and ADDRESS.match(path) is not None


def remote_batches(address: str, request: Request) -> Batches:
    """Yield the wanted columns of the files behind an address, as they arrive.

    Raises:
        InputError: if polars is too old to stream, or the request describes CSV that polars does not read.
        SourceError: if the format is unknown, or the address cannot be read.
        ColumnError: if a column is missing.
    """
    import polars as pl

    require_polars()
    name = address.partition("?")[0].lower()
    plain = re.sub(r"\.(gz|zst)$", "", name)
    is_csv = plain.endswith((".csv", ".tsv"))
    if is_csv and request.csv.encoding not in (None, UTF8):
        raise InputError("CSV behind an address must be UTF-8. Download the file to read another encoding.")
    if request.csv.given and not is_csv:
        raise InputError("csv= describes files of CSV, and the address ends otherwise. Leave it out.")
    if plain.endswith((".jsonl", ".ndjson")):
        if not hasattr(pl, "scan_lines"):
            raise InputError("this polars does not stream lines: pip install -U polars.")
        lines = (_lines(frame) for frame in _streamed(lambda: pl.scan_lines(address), request))
        yield from ((TABLE, batch) for batch in json_lines(lines, request.columns, TABLE))
    elif is_csv:
        separator = request.csv.delimiter or ("\t" if plain.endswith(".tsv") else ",")
        first = 0
        # Every cell is text and an empty one is missing, as in local files.
        for frame in _streamed(lambda: pl.scan_csv(address, separator=separator, infer_schema=False), request):
            texts = frame.to_arrow()
            arrays = [typed(joined(texts[each.name]), each, TABLE, first) for each in request.columns]
            yield TABLE, pa.RecordBatch.from_arrays(arrays, request.names)
            first += frame.height
    elif name.endswith((".parquet", "/")):
        for frame in _streamed(lambda: _parquet(address), request):
            yield from arrow_batches(frame.to_arrow(), request)
    else:
        raise SourceError(
            "the address does not end in .parquet, .csv, .tsv, .jsonl or .ndjson, so its format is unknown. Read it "
            "with polars, pandas or fsspec and give the table."
        )


def _parquet(address: str) -> "pl.LazyFrame":
    """Return files of Parquet; polars would infer the types of columns that names of folders contain."""
    import polars as pl

    require_polars()
    plain = pl.scan_parquet(address, hive_partitioning=False)
    inside = plain.collect_schema().names()
    keys = [name for name in pl.scan_parquet(address).collect_schema().names() if name not in inside]
    return pl.scan_parquet(address, hive_schema=dict.fromkeys(keys, pl.String)) if keys else plain


def _streamed(scan: "Callable[[], pl.LazyFrame]", request: Request) -> "Iterator[pl.DataFrame]":
    """Yield parts of a table behind an address; of lines the one column they have."""
    import polars as pl

    require_polars()
    with withheld(UNREAD):
        table = scan()
        names = table.collect_schema().names()
        if names != ["line"]:
            check_columns(request.names, names, "the address")
            table = table.select(request.names)
        if hasattr(pl.LazyFrame, "collect_batches"):
            rows = min(request.rows, FEW_ROWS) if request.small else request.rows
            batches: Iterator[pl.DataFrame] = iter(
                table.collect_batches(chunk_size=rows, maintain_order=True, engine="streaming")
            )
        elif request.small:
            raise InputError(
                "this polars reads addresses whole, which no memory limit can bound: pip install -U polars."
            )
        else:
            batches = iter([table.collect()])
    yield from guarded(batches, partial(withheld, UNREAD))


def _lines(frame: "pl.DataFrame") -> bytes:
    return "\n".join([*frame.to_series().fill_null("").to_list(), ""]).encode()
