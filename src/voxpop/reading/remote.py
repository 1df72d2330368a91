"""Files at an address, such as `s3://...` or `https://...`. polars streams Parquet files and the lines of text files.

polars finds access keys and regions in the usual places (environment, profiles). A CSV file is copied to a temporary
file without a name and then read like a local file, so that the same rules apply.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import TYPE_CHECKING, Final

from voxpop.errors import InputError, SourceError
from voxpop.files.progress import EXACT, rounded, tell
from voxpop.kernels.threads import require_polars
from voxpop.reading.columns import FEW_ROWS, Batches, check_columns, guarded, withheld
from voxpop.reading.files import EMPTY, file_batches
from voxpop.reading.hidden import LOGS, is_hidden, log_message
from voxpop.reading.tables import arrow_batches
from voxpop.reading.text_files import UTF8, json_lines
from voxpop.reading.wanted import Request

if TYPE_CHECKING:
    import polars as pl

ADDRESS: Final = re.compile(r"(s3|s3a|gs|gcs|az|abfs|abfss|adl|azure|https?|hf)://", re.IGNORECASE)
THE_FILE: Final = "the file behind the address"
UNREAD: Final = "the address cannot be read"
_FILE: Final = "voxpop: the file of the row"


def is_remote(path: object) -> bool:
    """Return whether a path is an address that polars reads."""
    return isinstance(path, str) and ADDRESS.match(path) is not None


def remote_batches(address: str, request: Request) -> Batches:
    """Yield the requested columns of the files at an address, as they arrive.

    Raises:
        InputError: If polars is too old to stream, or the request describes CSV that polars does not read.
        SourceError: If the format is unknown, or the address cannot be read.
        ColumnError: If a column is missing.
    """
    import polars as pl

    require_polars()
    name = address.partition("?")[0].lower()
    plain = re.sub(r"\.(gz|zst)$", "", name)
    is_csv = plain.endswith((".csv", ".tsv"))
    if is_csv and request.csv.encoding not in (None, UTF8):
        raise InputError("CSV behind an address must be UTF-8. Download the file to read another encoding.")
    if request.csv.given and not is_csv:
        raise InputError("csv= describes CSV files, but the address has no suffix of a CSV file. Remove csv=.")
    if not is_csv and not plain.endswith((".jsonl", ".ndjson")) and not name.endswith((".parquet", "/")):
        raise SourceError(
            "the address does not end in .parquet, .csv, .tsv, .jsonl or .ndjson, so its format is unknown. Read it "
            "with polars, pandas or fsspec and give the table."
        )
    check_no_remote_log(address)
    if name.endswith((".parquet", "/")):
        for frame in _streamed(lambda: _parquet(address), request, address, request.names):
            yield from ((THE_FILE, batch) for _, batch in arrow_batches(frame.to_arrow(), request))
        return
    if not hasattr(pl, "scan_lines"):
        raise InputError(
            "this version of polars does not stream lines. Install a newer version with pip install -U polars."
        )
    frames = _streamed(lambda: pl.scan_lines(address, include_file_paths=_FILE), request, address, ["line"])
    if is_csv:
        yield from _csv(frames, plain[-4:], request)
    else:
        yield from (
            (THE_FILE, batch) for batch in json_lines(map(_json_lines, _some(frames)), request.selection, THE_FILE)
        )


def _some(frames: "Iterator[pl.DataFrame]") -> "Iterator[pl.DataFrame]":
    """Yield frames, and raise an error if all their lines are blank."""
    blank = True
    for frame in frames:
        blank = blank and not (frame["line"].str.strip_chars("\ufeff \t\r") != "").any()
        yield frame
    if blank:
        raise SourceError(EMPTY.format(THE_FILE))


def _csv(frames: "Iterator[pl.DataFrame]", suffix: str, request: Request) -> Batches:
    """Yield the rows of each CSV file, copied to a temporary file without a name."""
    parts = (part for frame in _some(frames) for part in frame.partition_by(_FILE, maintain_order=True))
    for _, lines in groupby(parts, lambda part: part[_FILE][0]):
        with TemporaryDirectory() as folder, TemporaryFile() as copy:
            copy.writelines(map(_json_lines, lines))
            copy.flush()
            path = Path(folder, f"the address{suffix}")
            path.symlink_to(f"/proc/self/fd/{copy.fileno()}")
            for batch in file_batches(path, request):
                yield THE_FILE, batch


def _parquet(address: str) -> "pl.LazyFrame":
    """Return Parquet files.

    Columns from folder names are read as strings, because polars would infer their types.
    """
    import polars as pl

    require_polars()
    plain = pl.scan_parquet(address, hive_partitioning=False)
    inside = plain.collect_schema().names()
    keys = [name for name in pl.scan_parquet(address).collect_schema().names() if name not in inside]
    hive = {"hive_schema": dict.fromkeys(keys, pl.String)} if keys else {"hive_partitioning": False}
    # For a single file, the column of file names would waste memory.
    file = _FILE if _root_of(address)[1] else None
    return pl.scan_parquet(address, include_file_paths=file, **hive)


def _streamed(
    scan: "Callable[[], pl.LazyFrame]", request: Request, address: str, names: list[str]
) -> "Iterator[pl.DataFrame]":
    """Yield parts of a table at an address, with the file of each row, without hidden files."""
    import polars as pl

    require_polars()
    with withheld(UNREAD):
        table = scan()
        existing = table.collect_schema().names()
        check_columns(names, [each for each in existing if each != _FILE], "the address")
        table = table.select(*names, *({_FILE} & {*existing}))
        if hasattr(pl.LazyFrame, "collect_batches"):
            rows = min(request.rows, FEW_ROWS) if request.small else request.rows
            batches: Iterator[pl.DataFrame] = iter(
                table.collect_batches(chunk_size=rows, maintain_order=True, engine="streaming")
            )
        elif request.small:
            raise InputError(
                "this version of polars reads a remote file as a whole, so memory= cannot limit it. Install a newer "
                "version with pip install -U polars."
            )
        else:
            batches = iter([table.collect()])
    yield from _visible(guarded(batches, partial(withheld, UNREAD)), address, request)


def _visible(frames: "Iterator[pl.DataFrame]", address: str, request: Request) -> "Iterator[pl.DataFrame]":
    """Yield the rows of the files below an address, without hidden files."""
    root, several = _root_of(address)
    depth, skipped = len(root.split("/")), set[str]()
    for frame in frames:
        if several:
            files = frame[_FILE].unique().to_list()
            hidden = [file for file in files if any(map(is_hidden, file.split("/")[depth:]))]
            skipped |= {*hidden}
            frame = frame.filter(~frame[_FILE].is_in(hidden)) if hidden else frame
        yield frame
    if skipped:
        count = rounded(len(skipped), exact=EXACT.get())
        tell(f"{count} files with hidden or temporary names behind the address were skipped.", request.options.progress)


def _root_of(address: str) -> tuple[str, bool]:
    """Return the folder of an address, and whether the address matches several files."""
    parts = address.split("/")
    place = next((place for place, part in enumerate(parts) if "*" in part), None)
    return ("/".join(parts[:place]) if place is not None else address.rstrip("/")), place is not None or not parts[-1]


REMOTE_LOGS: Final = {
    "_delta_log/*.json": "_delta_log",
    "metadata/*.metadata.json": "metadata/*.metadata.json",
    ".hoodie/hoodie.properties": ".hoodie",
    "_spark_metadata/0": "_spark_metadata",
}
"""One file of each log that can be opened without listing the folder, by name or pattern (see `LOGS`)."""


def check_no_remote_log(address: str) -> None:
    """Raise an error for an address of a table that lists its files in a log (see `voxpop.reading.hidden`)."""
    import polars as pl

    root, several = _root_of(address)
    if not several or not hasattr(pl, "scan_lines"):
        return
    for file, pattern in REMOTE_LOGS.items():
        try:
            found = pl.scan_lines(f"{root}/{file}").head(1).collect().height
        except Exception:  # There is no such file. If nothing can be opened, the reader reports this.
            continue
        if found:
            name, call = LOGS[pattern]
            raise SourceError(log_message(name, call.format("...")))


def _json_lines(frame: "pl.DataFrame") -> bytes:
    return "\n".join([*frame["line"].fill_null("").to_list(), ""]).encode()
