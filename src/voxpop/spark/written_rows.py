"""Rows of a query as files that only this user may read, and that are gone when they are read."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING

from voxpop.corpus.reading.wanted import Wanted
from voxpop.errors import ColumnError, SourceError, VoxpopError
from voxpop.progress import tell
from voxpop.spark.failures import translated
from voxpop.spark.planning import with_setting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TRIES, BETWEEN = 50, 0.1
"""How often a folder is removed that tasks still write into, and seconds between."""
AS_STRINGS = {"void": "string", "array<void>": "array<string>"}
"""Types that only null has, which no file holds."""
EXACTLY = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
"""How times are written: as they are. Spark's default has nanoseconds, which end in 2262."""


def storable(rows: "DataFrame", wanted: Wanted) -> "DataFrame":
    """Return rows as files can hold them: a column that is always null is one of strings.

    Raises:
        ColumnError: where a length of time would come back as a number.
    """
    from pyspark.sql import functions as sql

    columns = []
    for name, field in zip(wanted.names, rows.schema, strict=True):
        kind = field.dataType.simpleString()
        if "interval" in kind:
            raise ColumnError(
                f'the column "{name}" must hold strings, whole numbers or others that have equality, got {kind}.'
            )
        columns.append(
            sql.col(field.name).cast(AS_STRINGS[kind]).alias(field.name) if kind in AS_STRINGS else field.name
        )
    return rows.select(*columns)


@contextmanager
def written_rows(rows: "DataFrame", folder: Path) -> Iterator[list[Path]]:
    """Write the rows into a folder that only this user may enter, for as long as they are read."""
    try:
        private = Path(tempfile.mkdtemp(dir=folder, prefix="voxpop-rows-")).resolve()
    except OSError as error:
        raise SourceError(
            f"rows cannot be handed over in {folder}: {error.strerror or error}. Name another folder (work_folder=, "
            "--work-folder)."
        ) from None
    try:
        _write(rows, f"file://{private / 'rows'}")
        yield sorted((private / "rows").glob("*.parquet"))
    finally:
        _remove(private)


def _remove(private: Path) -> None:
    """Remove a folder into which tasks of a query that failed may write for another moment."""
    for _ in range(TRIES):
        rmtree(private, ignore_errors=True)
        if not private.exists():
            return
        time.sleep(BETWEEN)
    tell(f"{private} holds private rows and cannot be removed now. Remove it.", True)


def _write(rows: "DataFrame", place: str) -> None:
    """Let Java write, with our words for what goes wrong: Spark's may quote rows.

    Raises:
        VoxpopError: where the query fails, or there is no room.
    """
    try:
        with ExitStack() as settings:
            for name, value in EXACTLY.items():
                settings.enter_context(with_setting(rows.sparkSession, name, value))
            # Without dictionaries a file is as large as what it holds: `most_held` goes by that.
            options = {"compression": "uncompressed", "parquet.enable.dictionary": "false"}
            rows.write.options(**options).parquet(place)
            return
    except Exception as error:  # py4j and pyspark each have their own
        failure = translated(str(error)) or _failure(error)
    raise failure


def _failure(error: Exception) -> VoxpopError:
    condition = getattr(error, "getCondition", lambda: None)()
    return SourceError(
        f"the query that gives the table fails on Spark ({condition or type(error).__name__}). What Spark says may "
        "quote rows, and is left out here: run the query by itself, such as with "
        "frame.write.format('noop').mode('overwrite').save()."
    )
