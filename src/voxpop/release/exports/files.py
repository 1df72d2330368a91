"""Files of a release, written whole or not at all."""

import json
import os
import uuid
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from voxpop.errors import InputError, ReleaseError
from voxpop.release.exports.joining import joined

if TYPE_CHECKING:
    from voxpop.release.release import Release

BREAKS = ("\n", "\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029")


def as_text(release: "Release") -> bytes:
    """Return one gram per line, tokens with a space between them.

    Raises:
        InputError: where a token holds a line break, or two grams give the same line.
    """
    lines = joined(release, " ", "a text file")
    if any(mark in line for line in lines for mark in BREAKS):
        raise InputError("some released tokens hold line breaks, which a text file cannot keep. Write JSON instead.")
    return "".join(f"{line}\n" for line in lines).encode()


def as_json(release: "Release") -> bytes:
    """Return one object: the grams as lists of tokens, the guarantee and the plan."""
    content = {
        "statement": str(release.guarantee),
        "guarantee": release.guarantee.to_dict(),
        "plan": release.plan.to_dict(),
        "grams": [list(gram) for gram in release],
    }
    return (json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n").encode()


def as_csv(release: "Release") -> bytes:
    """Return the columns gram (tokens with a space between them) and length, with a header."""
    import csv
    import io

    sink = io.StringIO(newline="")
    rows = csv.writer(sink, lineterminator="\n")
    rows.writerow(["gram", "length"])
    rows.writerows(zip(joined(release, " ", "a CSV file"), release.grams["length"].to_pylist(), strict=True))
    return sink.getvalue().encode()


def as_arrow(release: "Release") -> bytes:
    """Return an Arrow IPC file (Feather 2) with the columns gram and length."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, release.grams.schema) as writer:
        writer.write_table(release.grams.combine_chunks())
    content: bytes = sink.getvalue().to_pybytes()
    return content


def as_parquet(release: "Release") -> bytes:
    """Return a Parquet file with the columns gram and length."""
    from voxpop.release.grams import to_parquet

    return to_parquet(release.grams)


def write(path: str | PathLike[str], make: Callable[[], bytes]) -> None:
    """Write a file beside its place, then rename it.

    Args:
        path: where to; an existing file is replaced.
        make: returns the contents.

    Raises:
        ReleaseError: where the file cannot be written.
    """
    target = Path(path)
    if target.is_dir():
        raise ReleaseError(f"{path} is a folder. Give the name of a file.")
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
