"""The registry of the inputs of `voxpop.read`.

The registry contains the functions that recognise and read each input, and the origin of its types.

Add a new source to `SOURCES`. The table in `docs/guides/types.md`, the test `tests/doors/test_one_user.py` and the
search for quoted data in `tests/faults/test_canaries.py` follow the registry, so they include every source.
"""

import glob
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from voxpop.errors import InputError, SourceError
from voxpop.files.progress import EXACT, rounded, tell
from voxpop.reading import databases, tables
from voxpop.reading.columns import Batches, guarded, portions, withheld
from voxpop.reading.files import READERS, SUFFIXES, TEXT_FILE, beginning, file_batches, suffix_of
from voxpop.reading.hidden import SKIPPED_NAMES, check_no_log, root_of, visible
from voxpop.reading.remote import is_remote, remote_batches
from voxpop.reading.types import typed
from voxpop.reading.wanted import Request

NO_TYPES: Final = "none: values are strings"
SQL_LIKE: Final = re.compile(r"\s*(select|with|from)\s", re.IGNORECASE)


class SourceKind(NamedTuple):
    """A kind of source.

    Attributes:
        name: The name in the documentation and in tests.
        types: The origin of its types, by format.
        recognises: A function that returns whether an object is of this kind.
        read: A function that yields the requested columns, unless another engine reads the source.
    """

    name: str
    types: Mapping[str, str]
    recognises: Callable[[Any], bool]
    read: Callable[[Any, Request], Batches]


def open_source(source: Any, request: Request) -> Batches:
    """Yield the requested columns of a source.

    Raises:
        InputError: If the request describes CSV and the source is a table, or the source is not in the registry.
        SourceError: If there is nothing to read, or the source cannot be read.
        ColumnError: If a column is missing.
    """
    found = source_of(source)
    if request.csv.given and found not in (FILES, OPENED):
        raise InputError("csv= describes CSV files, and this source is a table. Remove csv=.")
    with withheld():  # Some readers start here, others with their first batch.
        batches = guarded(iter(found.read(source, request)))
    return portions(batches, request.rows) if request.small else batches


def source_of(source: Any) -> SourceKind:
    """Return the entry of the registry for an object.

    Raises:
        InputError: If the object is not supported.
    """
    found = next((each for each in SOURCES if each.recognises(source)), None)
    if found is None:
        raise InputError(tables.MEANT.format(type(source).__name__))
    return found


def _read(source: Any, request: Request) -> Batches:
    return source_of(source).read(source, request)


def is_spark(source: Any) -> bool:
    """Return whether a source is a Spark DataFrame, without importing pyspark."""
    kind = type(source)
    return kind.__module__.partition(".")[0] == "pyspark" and kind.__name__ == "DataFrame"


def _are_paths(source: Any) -> bool:
    if isinstance(source, str | os.PathLike):
        return True
    some = source if isinstance(source, list | tuple) else ()
    return bool(some) and all(isinstance(each, str | os.PathLike) for each in some)


def _paths(source: Any, request: Request) -> Batches:
    """Yield the rows of files and addresses in their order, after checking that all files exist."""
    several = isinstance(source, list | tuple)
    paths = [os.fspath(each) for each in source] if several else [os.fspath(source)]
    places: list[Any] = []
    skipped = 0
    for number, path in enumerate(paths):
        if path in STANDARD_INPUT or is_remote(path):
            places.append(path)
            continue
        found, hidden = _files(path, number if several else None, other=request.csv.given)
        skipped += hidden
        places += [(file, _state(file), root_of(path)) for file in found]
    if skipped:
        tell(f"{rounded(skipped, exact=EXACT.get())} files {SKIPPED_NAMES}", request.options.progress)
    for place in places:
        if isinstance(place, str):
            opened = place in STANDARD_INPUT
            yield from opened_batches(sys.stdin.buffer, request) if opened else remote_batches(place, request)
            continue
        file, state, root = place
        # the name of a text file identifies the user
        name = "a text file" if suffix_of(file) == TEXT_FILE else file.name
        for batch in _with_folders(file, root, request):
            yield name, batch
        if _state(file) != state:
            raise SourceError(
                f"{name} changed while it was read, so the rows may be parts of two different tables. Wait until the "
                "file is complete, or read a copy."
            )


def _with_folders(file: Path, root: Path, request: Request) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file. Columns from folder names below `root` (country=NL) contain strings."""
    parts: Mapping[str, str | None] = {}
    if "=" in (folders := str(file.parent.relative_to(root) if file != root else "")):
        from pyarrow import dataset

        scheme = dataset.HivePartitioning(pa.schema([(name, pa.string()) for name in request.names]))
        parts = dataset.get_partition_keys(scheme.parse(f"{folders}/{file.name}"))
    if parts.keys() >= {*request.names}:
        raise InputError("all columns are names of folders. Read at least one column from the files.")
    for batch in file_batches(file, replace(request, absent=frozenset(parts))):
        for place, each in enumerate(request.selection):
            if each.name in parts:
                value = pa.array([parts[each.name]], pa.large_string())
                texts = value.take(pa.array(bytes(batch.num_rows), pa.uint8()))
                batch = batch.add_column(place, each.name, typed(texts, each, file.name, 0))
        yield batch


def opened_batches(source: Any, request: Request) -> Batches:
    """Yield the rows of an open file or of standard input. The first bytes of the file determine the format.

    The bytes are copied to a temporary file without a name, because readers of CSV and Parquet need several passes.
    """
    with TemporaryDirectory() as folder, TemporaryFile() as copy:
        with withheld():
            if isinstance(source.read(0), str):
                copy.writelines(line.encode() for line in source)
            else:
                shutil.copyfileobj(source, copy)
            copy.flush()
        path = Path(folder, "the input")
        path.symlink_to(f"/proc/self/fd/{copy.fileno()}")
        for marks in (PACKED, FORMATS):
            head = beginning(path)
            ending = next((end for mark, end in marks.items() if head.lstrip().startswith(mark)), "")
            path = path.rename(Path(folder, f"the input{ending or ('.csv' if marks is FORMATS else '')}{path.suffix}"))
        for batch in file_batches(path, request):
            yield "the input", batch


STANDARD_INPUT: Final = ("-", "/dev/stdin")
PACKED: Final = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\x28\xb5\x2f\xfd": ".zst"}
FORMATS: Final = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"{": ".json", b"[": ".json"}


def _state(path: Path) -> tuple[int, ...] | None:
    """Return numbers that change if the contents of a file change, or None for a missing file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _files(text: str, number: int | None, *, other: bool = False) -> tuple[list[Path], int]:
    """Return the visible files of a path, folder or glob, in order, and the number of hidden tables that were skipped.

    Args:
        text: The path.
        number: The position of the path in a list of paths.
        other: Whether files with unknown suffixes are also tables.
    """
    if databases.DATABASE.match(text):  # The address may contain a password, so it is not quoted.
        raise InputError("the source is the address of a database. Give vp.SQL(query, address) in Python.")
    path = Path(text)
    try:
        is_folder, exists = path.is_dir(), path.exists()
        within = path.rglob("*") if is_folder else map(Path, glob.glob(text, recursive=True))
        every = sorted(file for file in within if file.is_file())
        seen = visible(every, path, path if is_folder else root_of(text))
        tables_of = [file for file in seen if suffix_of(file) in SUFFIXES]
        texts = seen if other else [file for file in seen if suffix_of(file) == TEXT_FILE]
        found = tables_of or texts if is_folder else seen
        hidden = len([file for file in {*every} - {*seen} if _is_table(file)])
    except (OSError, ValueError):  # for example, the text is too long for a path
        is_folder, exists, found, hidden = False, False, [], 0
    if exists:
        check_no_log([path.absolute() if is_folder else path.absolute().parent])
    check_no_log(dict.fromkeys(file.absolute().parent for file in found))
    if exists and not is_folder:
        return [path], 0
    if found:
        return found, hidden
    if is_folder or hidden:
        also = f" It also has files {SKIPPED_NAMES}" if hidden else ""
        what = "folder" if is_folder else "pattern"
        raise SourceError(f"the {what} {text} contains no table. Its files must end in {', '.join(SUFFIXES)}.{also}")
    if SQL_LIKE.match(text):
        raise InputError("the source looks like SQL. Give vp.SQL(query, connection).")
    if suffix_of(path) in SUFFIXES and not re.search(r"\s", text):  # Texts are never quoted.
        raise SourceError(f"there is no file, folder or pattern {text}; check the path.")
    if number is None:
        raise SourceError("there is no file, folder or pattern at the given path; check the path.")
    raise SourceError(
        f"a list of strings is read as paths, but number {number + 1} is not a file, folder or pattern. Check the "
        "paths; if the strings are texts, pass a table with a user column."
    )


def _is_table(file: Path) -> bool:
    """Return whether the name of a file is the name of a table. The suffix of a temporary file is ignored."""
    plain = Path(file.name.rstrip("~#"))
    return any(suffix_of(each) in READERS for each in (plain, plain.with_suffix("")))


def local_files(source: Any, *, other: bool = False) -> list[Path]:
    """Return the files of a source of local files, or an empty list for other sources. See `_files` for `other`."""
    several = isinstance(source, list | tuple)
    paths = [os.fspath(each) for each in (source if several else [source])] if _are_paths(source) else []
    if any(path in STANDARD_INPUT or is_remote(path) for path in paths):
        return []
    pairs = enumerate(paths)
    return [file for number, path in pairs for file in _files(path, number if several else None, other=other)[0]]


def _is_iterable(source: Any) -> bool:
    return isinstance(source, Iterable) and not isinstance(source, str | bytes)


FILES: Final = SourceKind(
    "files",
    {
        "Parquet and Arrow (Feather) files": "the schema of each file",
        "CSV and TSV files": NO_TYPES,
        "JSON and JSON lines files": NO_TYPES,
        "names of folders (country=NL/), text files": NO_TYPES,
        "addresses (s3://, https://)": "as for files of the same format",
    },
    _are_paths,
    _paths,
)
OPENED: Final = SourceKind(
    "opened",
    {"open files, standard input": "as for files of the same format"},
    lambda source: hasattr(source, "read") and hasattr(source, "seekable"),
    opened_batches,
)
SOURCES: Final = (
    FILES,
    OPENED,
    SourceKind(
        "query",
        {
            "queries of PostgreSQL and DuckDB": "the columns of the query",
            "queries of SQLite and other databases": NO_TYPES,
        },
        lambda source: isinstance(source, databases.SQL),
        databases.sql_batches,
    ),
    SourceKind(
        "polars",
        {"polars tables": "dtypes; object columns have no type, so values are strings"},
        lambda source: tables.kind_of_source(source) in ("polars.DataFrame", "polars.LazyFrame", "polars.Series"),
        tables.polars_batches,
    ),
    SourceKind(
        "pandas",
        {"pandas tables": "dtypes; object columns have no type, so values are strings"},
        lambda source: tables.kind_of_source(source) in ("pandas.DataFrame", "pandas.Series"),
        tables.pandas_batches,
    ),
    SourceKind(
        "pyarrow",
        {"pyarrow tables and batches": "the schema"},
        lambda source: isinstance(source, pa.Table | pa.RecordBatch),
        tables.arrow_batches,
    ),
    SourceKind(
        "pyarrow.dataset",
        {"pyarrow datasets, except of CSV and JSON": "the schema"},
        lambda source: hasattr(source, "scanner") and tables.kind_of_source(source).startswith("pyarrow."),
        tables.dataset_batches_of_pyarrow,
    ),
    SourceKind(
        "numpy",
        {"structured arrays of numpy": "dtypes; object columns have no type, so values are strings"},
        lambda source: isinstance(source, np.ndarray),
        tables.structured_batches,
    ),
    SourceKind("dataset", {"Hugging Face Datasets": "the features"}, tables.is_dataset, tables.dataset_batches),
    SourceKind(
        "cursor",
        {
            "DuckDB relations, cursors of ADBC": "the columns of the query",
            "other cursors of Python's DB-API": NO_TYPES,
        },
        databases.is_cursor,
        databases.cursor_batches,
    ),
    SourceKind(
        "stream",
        {"readers and objects with `__arrow_c_stream__` (Ibis, ...)": "the schema of the stream"},
        lambda source: isinstance(source, pa.RecordBatchReader) or hasattr(source, "__arrow_c_stream__"),
        tables.stream_batches,
    ),
    SourceKind(
        "array",
        {"objects with `__arrow_c_array__`": "the schema of the batch"},
        lambda source: hasattr(source, "__arrow_c_array__"),
        lambda source, request: tables.arrow_batches(pa.record_batch(source), request),
    ),
    SourceKind(
        "columns",
        {"dictionaries of columns": "dtypes of arrays; lists have no type, so values are strings"},
        lambda source: isinstance(source, Mapping),
        tables.columns_batches,
    ),
    SourceKind(
        "rows",
        {
            "lists and iterators of dictionaries, named tuples, dataclasses, rows of SQLAlchemy and sqlite3": NO_TYPES,
            "iterators of tables": "as for each table",
        },
        _is_iterable,
        lambda source, request: tables.iterable_batches(source, request, _read),
    ),
)
"""The first entry that recognises a source reads it."""


def types_table() -> str:
    """Return the table of all inputs and the origin of their types, in Markdown."""
    rows = [(kind, types) for each in SOURCES for kind, types in each.types.items()]
    rows.append(("Spark DataFrames", "the schema of the query"))
    return "\n".join(["| input | source of types |", "|---|---|", *(f"| {kind} | {types} |" for kind, types in rows)])
