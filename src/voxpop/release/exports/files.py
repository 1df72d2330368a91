"""Files of a release, written whole or not at all."""

import json
import os
import re
import uuid
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from voxpop.errors import InputError, ReleaseError
from voxpop.release.exports.joining import joined
from voxpop.release.exports.keys import released_items
from voxpop.spelling import spelled

if TYPE_CHECKING:
    from voxpop.release.released import Released

FORMULA = re.compile("'*[=+\\-@\uff1d\uff0b\uff0d\uff20\\t\\r\\n]")
BREAKS = ("\n", "\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")


def as_text(release: "Released") -> bytes:
    """Return one gram per line, tokens with a space between them.

    Raises:
        InputError: where a token holds a line break, or two grams give the same line.
    """
    lines = joined(release, " ", "a text file")
    if any(mark in line for line in lines for mark in BREAKS):
        raise InputError("some released tokens hold line breaks, which a text file cannot keep. Write JSON instead.")
    return "".join(f"{line}\n" for line in lines).encode()


def as_json(release: "Released") -> bytes:
    """Return one object: the grams as lists of tokens, the guarantee and the plan."""
    content = {
        "statement": str(release.guarantee),
        "guarantee": release.guarantee.to_dict(),
        "plan": release.plan.to_dict(),
        "grams": [list(gram) for gram in release.each_gram()],
    }
    return (json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n").encode()


def as_csv(release: "Released") -> bytes:
    """Return the columns gram (tokens with a space between them) and length, then those of keys, with a header.

    Spreadsheets run what begins like a formula, so such strings get an apostrophe in front; see `guarded`.
    """
    import csv
    import io

    columns: dict[str, list[Any]] = {"gram": joined(release, " ", "a CSV file")}
    columns["length"] = release.grams["length"].to_pylist()
    keys = release.keys
    if keys is not None and keys.columns:
        table = keys.table(released_items(release))
        columns |= {name: _cells(table[name]) for name in keys.names}
    sink = io.StringIO(newline="")
    rows = csv.writer(sink, lineterminator="\r\n")  # either alone is then quoted, and begins no row of its own
    rows.writerow([guarded(name) for name in columns])
    cells = ([guarded(cell) if isinstance(cell, str) else cell for cell in each] for each in columns.values())
    rows.writerows(zip(*cells, strict=True))
    return sink.getvalue().encode()


def guarded(cell: str) -> str:
    """Return a string that no spreadsheet takes for a formula.

    Whatever begins with `=`, `+`, `-`, `@`, their full-width forms, a tab or a line break gets an apostrophe in front,
    and so does what would then read the same: leave one apostrophe out before any of these to have the string back.

    Example:
        >>> guarded("=1+1"), guarded("'=1+1"), guarded("'tis")
        ("'=1+1", "''=1+1", "'tis")
    """
    return f"'{cell}" if FORMULA.match(cell) else cell


def _cells(column: Any) -> list[Any]:
    """Return what stands in the cells of a column: numbers as they are, everything else as it is spelled."""
    plain = pa.chunked_array(column.chunks, column.type).combine_chunks()
    return list(plain.to_pylist() if pa.types.is_integer(plain.type) else spelled(plain, "key").to_pylist())


def as_arrow(release: "Released") -> bytes:
    """Return an Arrow IPC file (Feather 2) with the columns of `Release.to_arrow`."""
    sink = pa.BufferOutputStream()
    table = release.to_arrow()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    content: bytes = sink.getvalue().to_pybytes()
    return content


def as_parquet(release: "Released") -> bytes:
    """Return a Parquet file with the columns of `Release.to_arrow`."""
    from voxpop.release.grams import to_parquet

    return to_parquet(release.grams, release.keys)


def write(path: str | PathLike[str], make: Callable[[], bytes], *, overwrite: bool = False) -> None:
    """Write a file beside its place, then rename it.

    Args:
        path: where to.
        make: returns the contents.
        overwrite: whether an existing file is replaced.

    Raises:
        ReleaseError: where the file exists, or cannot be written.
    """
    target = Path(path)
    if target.is_dir():
        raise ReleaseError(f"{path} is a folder. Give the name of a file.")
    if target.exists() and not overwrite:
        raise ReleaseError(
            f"{path} is there already, and nothing is replaced unasked. Give another name, or say overwrite=True "
            "(--overwrite)."
        )
    content = make()
    fresh = target.with_name(f".{target.name}.voxpop-{uuid.uuid4().hex}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            fresh.write_bytes(content)
            os.replace(fresh, target)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        raise ReleaseError(
            f"{path} could not be written: {error.strerror or error}. Give a place that you may write to."
        ) from None
