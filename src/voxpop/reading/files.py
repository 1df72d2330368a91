"""One file as Arrow batches: Parquet, Arrow, CSV, TSV, JSON and text, all but the first two also compressed.

Messages of readers quote the row that failed, so none of them is passed on: the messages of voxpop name the file, the
row or column if known, and the next step.
"""

import codecs
import csv
import io
import mmap
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from voxpop.errors import InputError, SourceError
from voxpop.reading.columns import Thing, check_columns, guarded, quieten, with_schema
from voxpop.reading.keys import is_string
from voxpop.reading.tables import check_schema, selected
from voxpop.reading.text_files import (
    CSV,
    SAID,
    UTF8,
    Header,
    check_quotes,
    codec_of,
    delimiter_of,
    json_array,
    json_lines,
    marked_encoding,
    not_of_encoding,
    transcoded,
)
from voxpop.reading.types import array_of_objects, typed
from voxpop.reading.wanted import Request

COMPRESSED: Final = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
TEXT_FILE: Final = ".txt"
_QUERY = "Give vp.SQL(query, {})."
INSTEAD: Final = {
    ".db": _QUERY.format('"sqlite:///..."'),
    ".sqlite": _QUERY.format('"sqlite:///..."'),
    ".duckdb": _QUERY.format('"duckdb:///..."'),
    ".xlsx": "Save the sheet as CSV, or read it with polars or pandas and give the table.",
}
"""What to do with files of other kinds."""
ARROW_MARK: Final = b"ARROW1"
LONGEST_BEGINNING = 1 << 12
BLOCK = 1 << 22
SMALL_BLOCK = 1 << 20
READER_ROOM = 192 << 20
"""Address space for threads and blocks of Arrow's readers of text: from 140 MiB on none was seen to wait for ever."""
FIRST_ROW: Final = (
    "The first row of CSV must name the columns, separated by commas, semicolons, tabs or bars: write such a row if "
    "the file has none."
)
FAILURES = (pa.ArrowException, OSError, EOFError, UnicodeDecodeError, zlib.error)


def file_batches(path: Path, request: Request) -> Iterator[pa.RecordBatch]:
    """Yield the wanted columns of one file; the ending of its name gives the format.

    Raises:
        InputError: if the request describes CSV and the file has another format.
        SourceError: if the file cannot be read; the message quotes nothing of it.
        ColumnError: if a column is missing.
    """
    suffix = suffix_of(path)
    if request.csv.given and suffix not in (".csv", ".tsv"):
        raise InputError(f"csv= describes files of CSV, and {path.name} has another format. Leave it out.")
    if suffix not in READERS:
        instead = INSTEAD.get(suffix, "Read it with polars or pandas and give the table.")
        raise SourceError(
            f"{path.name} has an ending that voxpop does not read. It reads {', '.join(READERS)}, all but Parquet and "
            f"Arrow also with {', '.join(COMPRESSED)} at the end. {instead}"
        )
    yield from READERS[suffix](path, request)


def declared_by(path: Path, csv: CSV, undeclared: pa.DataType) -> dict[str, pa.DataType] | None:
    """Return the types of the columns of a file of Parquet, Arrow or CSV; None for other formats."""
    suffix = suffix_of(path)
    if suffix in (".csv", ".tsv"):
        encoding = csv.encoding or marked_encoding(beginning(path))
        header = _header(path, [], "\t" if suffix == ".tsv" else ",", csv.delimiter, encoding)
        return dict.fromkeys(header.names or (), undeclared)
    with _explained(path, "is not a complete file"):
        if suffix == ".parquet":
            import pyarrow.parquet as pq

            schema = pq.read_schema(path)
        elif READERS.get(suffix) is _arrow_batches:
            with pa.OSFile(str(path), "rb") as stream:
                schema = _arrow_reader(stream).schema
        else:
            return None
        return dict(zip(schema.names, schema.types, strict=True))


def _csv_batches(path: Path, request: Request) -> Iterator[pa.RecordBatch]:
    first = 0
    for batch in _csv(path, request, "\t" if suffix_of(path) == ".tsv" else ",", _block(request)):
        arrays = [typed(batch.column(each.name), each, path.name, first) for each in request.columns]
        yield pa.RecordBatch.from_arrays(arrays, request.names)
        first += batch.num_rows


def _json_batches(path: Path, request: Request) -> Iterator[pa.RecordBatch]:
    """Yield the rows of JSON lines, or of one array of objects, which begins with a bracket."""
    if beginning(path).lstrip()[:1] != b"[":
        yield from json_lines(_blocks(path, _block(request)), request.columns, path.name)
    elif request.small:
        raise InputError(
            f"{path.name} is one JSON array, which no memory limit can bound: write one object per line as .jsonl."
        )
    else:
        yield from json_array(b"".join(_blocks(path, BLOCK)), request.columns, path.name, request.rows)


def _text_batches(path: Path, request: Request) -> Iterator[pa.RecordBatch]:
    """Yield one row: the name of a text file without its endings, which identifies the user, and its text."""
    check_columns(request.names, ["file", "text"], "a table of text files")
    try:
        text = b"".join(_blocks(path, BLOCK)).decode("utf-8-sig")
    except (SourceError, UnicodeDecodeError) as error:  # which would quote the name of the user
        quieten(error)
        raise SourceError("a text file cannot be read. Save it as UTF-8, and check its permissions.") from None
    row = {"file": re.sub(r"\.txt(\.\w+)?$", "", path.name, flags=re.IGNORECASE), "text": text}
    arrays = [array_of_objects([row[each.name]], each, "a text file", 0) for each in request.columns]
    yield pa.RecordBatch.from_arrays(arrays, request.names)


def _block(request: Request) -> int:
    return SMALL_BLOCK if request.small else BLOCK


def beginning(path: Path) -> bytes:
    """Return the first bytes of a file, decompressed."""
    with _open(path) as stream, _explained(path, "cannot be read"):
        return bytes(stream.read(LONGEST_BEGINNING))


def suffix_of(path: Path) -> str:
    """Return the ending of a file's name, without that of its compression."""
    name = path.name.lower()
    ending = Path(name).suffix
    return Path(name.removesuffix(ending)).suffix if ending in COMPRESSED else ending


def parquet_batches(path: Path, request: Request) -> Iterator[pa.RecordBatch]:
    """Yield the wanted columns of a file of Parquet, whose schema declares the types."""
    import pyarrow.parquet as pq

    with _explained(path, "is not a complete Parquet file"):
        schema = pq.read_schema(path)
        texts = [name for name in schema.names if name == request.dictionary and is_string(schema.field(name).type)]
        buffering = {"pre_buffer": False, "buffer_size": 1 << 18} if request.small else {}
        file = pq.ParquetFile(path, read_dictionary=texts, **buffering)
    with file:
        _check_schema(path, request, schema)
        tops = {each for name in request.names for each in (name, name.partition(".")[0])}
        rows = _few_rows(file.metadata, tops, request.rows) if request.small else request.rows
        batches = guarded(file.iter_batches(rows, columns=request.names), partial(_explained, path, "is damaged"))
        for batch in with_schema(batches, schema):
            yield from _selected(batch, request)


def _selected(batch: pa.RecordBatch, request: Request) -> Iterator[pa.RecordBatch]:
    """Yield the wanted columns of a batch, and fields of its structs."""
    if {*request.names} <= {*batch.schema.names}:
        yield batch.select(request.names)
    else:
        table = selected(pa.Table.from_batches([batch]), request.names)
        yield from with_schema(iter(table.to_batches()), table.schema)


def _arrow_batches(path: Path, request: Request) -> Iterator[pa.RecordBatch]:
    """Yield the wanted columns of a file of Arrow (Feather), or of a stream in a file."""
    with pa.OSFile(str(path), "rb") as stream:
        with _explained(path, "is not a complete file of Arrow (Feather version 2)"):
            reader = _arrow_reader(stream)
        whole = isinstance(reader, pa.RecordBatchFileReader)
        batches = map(reader.get_batch, range(reader.num_record_batches)) if whole else iter(reader)
        _check_schema(path, request, reader.schema)
        checked = guarded(map(_validated, batches), partial(_explained, path, "is damaged"))
        for batch in with_schema(checked, reader.schema):
            for begin in range(0, max(1, batch.num_rows), request.rows):
                yield from _selected(batch.slice(begin, request.rows), request)


def _check_schema(path: Path, request: Request, schema: pa.Schema) -> None:
    try:
        check_schema(request, schema, path.name)
    except UnicodeDecodeError as error:
        quieten(error)
        raise SourceError(f"{path.name} is damaged: a column name is not UTF-8. Write the file again.") from None


def _arrow_reader(stream: pa.NativeFile) -> Any:
    whole = stream.read(len(ARROW_MARK)) == ARROW_MARK
    stream.seek(0)
    return (pa.ipc.open_file if whole else pa.ipc.open_stream)(stream)


def _validated(batch: pa.RecordBatch) -> pa.RecordBatch:
    batch.validate(full=True)  # Arrow believes the file, and damaged offsets would end the process
    return batch


READERS: Final[dict[str, Callable[[Path, Request], Iterator[pa.RecordBatch]]]] = {
    ".parquet": parquet_batches,
    **dict.fromkeys((".arrow", ".feather", ".ipc"), _arrow_batches),
    **dict.fromkeys((".csv", ".tsv"), _csv_batches),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), _json_batches),
    TEXT_FILE: _text_batches,
}
"""By the ending of a file's name."""
SUFFIXES: Final = tuple(suffix for suffix in READERS if suffix != TEXT_FILE)
"""Endings of tables. A folder is read as texts only if it contains none of them."""


def _few_rows(metadata: Any, columns: set[str], rows: int) -> int:
    """Return the number of rows in a batch of about `SMALL_BLOCK` bytes, where rows are widest."""
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        chunks = [group.column(place) for place in range(group.num_columns)]
        size = sum(each.total_uncompressed_size for each in chunks if each.path_in_schema.split(".")[0] in columns)
        if size > 0:
            rows = min(rows, max(1, SMALL_BLOCK * group.num_rows // size))
    return rows


def _csv(path: Path, request: Request, usual: str, block: int) -> Iterator[pa.RecordBatch]:
    from pyarrow import csv as arrow_csv

    columns, encoding = request.names, request.csv.encoding or marked_encoding(beginning(path))
    header = _header(path, columns, usual, request.csv.delimiter, encoding)
    if header.names is None:
        return
    check_columns(columns, header.names, path.name, declared=False, hint=FIRST_ROW)
    convert = arrow_csv.ConvertOptions(
        include_columns=columns,
        column_types=dict.fromkeys(columns, pa.string()),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
    )
    parse = arrow_csv.ParseOptions(delimiter=header.delimiter, newlines_in_values=True)
    _check_room()
    # A separate pass: Arrow reads in a thread, which waits for ever where it has no memory for Python's side.
    _follow_quotes(path, header, encoding, block, checked=encoding != UTF8)

    def batches(*, threads: bool) -> Iterator[pa.RecordBatch]:
        read = arrow_csv.ReadOptions(block_size=block, encoding=encoding, skip_rows=header.above, use_threads=threads)
        with _open(path) as stream:
            with _explained(path, "cannot be read as a table", header.above):
                reader = arrow_csv.open_csv(stream, read, parse_options=parse, convert_options=convert)
            yield from _read_all(path, lambda: next(reader, None), lambda batch: batch.num_rows, header.above)

    try:
        yield from batches(threads=True)
    except SourceError:  # several threads count no rows, and bytes of another encoding are reported without their row
        _follow_quotes(path, header, encoding, block, checked=True)
        deque(batches(threads=False), maxlen=0)
        raise


def _follow_quotes(path: Path, header: Header, encoding: str, block: int, *, checked: bool) -> None:
    """See that all quotes are closed and, where `checked`, that all bytes are of the encoding."""
    with _open(path) as stream, _explained(path, "cannot be read as a table"):
        blocks = iter(lambda: bytes(stream.read(block)), b"")
        check_quotes(transcoded(blocks, encoding) if checked else blocks, header, path.name)


def _check_room() -> None:
    """Refuse where Arrow's threads would lack memory: they would wait for ever, or end the process.

    Raises:
        MemoryError: where so much address space is not to be had; nothing of it is used here.
    """
    try:
        mmap.mmap(-1, READER_ROOM).close()
    except OSError:
        raise MemoryError(f"reading text needs {READER_ROOM >> 20} MiB of address space.") from None


def _header(path: Path, columns: list[str], usual: str, given: str | None, encoding: str) -> Header:
    """Return the beginning of the file; the caller's delimiter precedes a declared one, and that a detected one."""
    with _open(path) as stream, _explained(path, "cannot be read as a table"):
        # Those of later rows are reported with their row.
        text = io.TextIOWrapper(stream, codec_of(encoding), MARKED, newline="")
        try:
            first, above = _first_row(text, columns, usual)
            said = SAID.fullmatch(first)
            if said:
                first, more = _first_row(text, columns, usual)
                above += 1 + more
            if "\0" in first:
                order = "le" if first.index("\0") % 2 else "be"
                raise SourceError(
                    f"{path.name} looks like UTF-16 without a byte order mark. Name the encoding: "
                    f'vp.CSV(encoding="utf-16-{order}") (--encoding utf-16-{order}).'
                )
            first.encode(UTF8)
            delimiter = given or (said and said[1]) or delimiter_of(first, columns, usual)
            names = next(csv.reader(io.StringIO(first, newline=""), delimiter=delimiter), None)
            return Header(names, delimiter, above)
        except (UnicodeError, csv.Error) as error:
            quieten(error)
            raise SourceError(f"{path.name}: {not_of_encoding('the first row')}") from None


def _mark(error: UnicodeError) -> tuple[str, int]:
    """Replace bytes that are not of the encoding with half of a surrogate pair, which no text holds."""
    return "\ud800", error.end  # type: ignore[attr-defined]


MARKED: Final = "voxpop-marked"
codecs.register_error(MARKED, _mark)


def _first_row(text: io.TextIOBase, columns: list[str], usual: str) -> tuple[str, int]:
    """Return the first row unchanged, with the line breaks within its quotes, and the number of lines above it.

    Lines above it are blank, or comments that begin with # and do not name the columns.
    """
    row, above = "", 0
    for line in text:
        cells = next(csv.reader([line], delimiter=delimiter_of(line, columns, usual)), [])
        if not row and (not line.strip() or (line.startswith("#") and not {*columns} <= {*cells})):
            above += 1
            continue
        row += line
        if row.count('"') % 2 == 0 or len(row) > BLOCK:
            break
    return row, above


def _blocks(path: Path, block: int) -> Iterator[bytes]:
    with _open(path) as stream:
        yield from _read_all(path, lambda: stream.read(block) or None, lambda data: data.count(b"\n"))


def _read_all(
    path: Path, read: Callable[[], Thing | None], rows_of: Callable[[Thing], int], above: int = 0
) -> Iterator[Thing]:
    """Yield all parts until None; errors state the number of rows before the failure, counted from the header."""
    rows = 0
    while True:
        with _explained(path, f"cannot be read beyond about row {rows + 1:,}", above):
            part = read()
        if part is None:
            return
        rows += rows_of(part)
        yield part


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """Open a file for reading, decompressed by its ending."""
    with _explained(path, "cannot be opened"):
        stream = pa.OSFile(str(path), "rb")
        compression = COMPRESSED.get(path.suffix.lower())
        if compression:
            stream = pa.CompressedInputStream(stream, compression)
    with stream:
        yield stream


@contextmanager
def _explained(path: Path, what: str, above: int = 0) -> Iterator[None]:
    """Convert a reader's error into one of voxpop, with its place and without any data."""
    try:
        yield
    except SourceError:
        raise
    except FAILURES as error:
        found = ROW.search(str(error))
        row = f"row {int(found[1]) - 1 - above:,}" if found else ""  # Arrow counts the header, and the rows above it
        widths = WIDTHS.search(str(error))
        if widths:
            reason = f"the row has {widths[2]} values, but the header has {widths[1]} columns. Quote the values."
        else:
            reason = _reason(error, row)
        if widths and row:
            message = f"{path.name}, {row}: {reason} Otherwise correct the row."
        else:
            message = f"{path.name} {what}: {reason}"
        quieten(error)
        raise SourceError(message) from None


ROW: Final = re.compile(r"Row #(\d+)")
WIDTHS: Final = re.compile(r"Expected (\d+) columns, got (\d+)")


def _reason(error: BaseException, row: str) -> str:
    """Describe the error without quoting the reader, whose messages quote rows."""
    text, place = str(error), f"{row} " if row else ""
    if "UTF8" in text or "UTF-8" in text or isinstance(error, UnicodeDecodeError):
        return not_of_encoding(row or "it")
    if "ompress" in text or "zlib" in text or "ZSTD" in text or "truncated" in text.lower():
        return "its compressed data is cut off or damaged. Copy the file again."
    if isinstance(error, PermissionError):
        return "it may not be read by this user."
    if "CSV" in text:
        return f"{place}cannot be split into columns. Check its quotes."
    return f"{place}it is cut off, damaged, or not what its name says. Copy or write the file again."
