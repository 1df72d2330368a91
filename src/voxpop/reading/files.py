"""Read a Parquet, Arrow, CSV, TSV, JSON, XES or text file as Arrow batches.

All formats except the first two may be compressed.

The messages of readers quote the row that failed, so this module replaces them. The new messages contain the file, the
row or column if known, and the next step.
"""

import codecs
import csv
import io
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from voxpop.errors import InputError, SourceError, no_thread_started
from voxpop.files.progress import row_called
from voxpop.kernels.threads import in_order
from voxpop.reading.arrow import joined
from voxpop.reading.columns import NO_MEMORY, check_columns, guarded, quieten
from voxpop.reading.databases import format_of
from voxpop.reading.event_logs import ACTIVITY, CASE, TIME, xes_batches
from voxpop.reading.keys import is_string
from voxpop.reading.tables import check_schema, selected
from voxpop.reading.text_files import (
    CSV,
    QUOTES,
    SAID,
    UTF8,
    Header,
    codec_of,
    delimiter_of,
    json_array,
    json_lines,
    marked_encoding,
    not_of_encoding,
    transcoded,
    whole_rows,
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
    ".xls": "Save the sheet as CSV, or read it with polars or pandas and give the table.",
    ".xlsx": "Save the sheet as CSV, or read it with polars or pandas and give the table.",
}
"""Advice for files of other kinds."""
BLANK: Final = b" \t\r\n\0\xef\xbb\xbf\xff\xfe"
"""The bytes of blank lines and of byte order marks, including the marks of UTF-16."""
ARROW_MARK: Final = b"ARROW1"
LONGEST_BEGINNING = 1 << 12
BLOCK = 1 << 22
SMALL_BLOCK = 1 << 20
FIRST_ROW: Final = (
    "The first row of CSV must name the columns, separated by commas, semicolons, tabs or bars. Write such a row if "
    "the file has none."
)
FAILURES = (pa.ArrowException, OSError, EOFError, UnicodeDecodeError, zlib.error)


def file_batches(path: Path, request: Request) -> Iterator[pa.RecordBatch]:
    """Yield the requested columns of one file. The suffix of the file determines its format.

    Raises:
        InputError: If the request describes CSV but the file is not a CSV file.
        SourceError: If the file cannot be read. The message quotes no data.
        ColumnError: If a column is missing.
    """
    suffix = suffix_of(path)
    if request.csv.given:
        if suffix in INSTEAD or READERS.get(suffix, _csv_batches) not in (_csv_batches, _text_batches):
            raise InputError(f"csv= describes CSV files, but {path.name} is not a CSV file. Remove csv=.")
        suffix = ".csv"
    check_readable(path, suffix)
    if suffix != TEXT_FILE and suffix not in SELF_DESCRIBING:
        _check_not_empty(path)
    yield from READERS[suffix](path, request)


def check_readable(path: Path, suffix: str) -> None:
    """Raise an error if voxpop does not read files with this suffix. The message explains how to read a database."""
    if suffix in READERS:
        return
    found = format_of(path)
    known = suffix if found is None else f".{found}"
    instead = INSTEAD.get(known, f"{AS_CSV} Other formats are recognised in standard input. Give - or open(...).")
    raise SourceError(
        f"{path.name} has a suffix that voxpop does not read. It reads {', '.join(READERS)}, all but Parquet and Arrow "
        f"also with {', '.join(COMPRESSED)} at the end. {instead}"
    )


EMPTY: Final = (
    "{} is empty, so it has no user column. Check the job that writes it; a table without rows must have a header."
)
AS_CSV: Final = 'If it is CSV, name its separator: csv=vp.CSV(delimiter=","), --delimiter "," or --delimiter tab.'


def _check_not_empty(path: Path) -> None:
    """Raise an error for a file without rows. Failed jobs leave such files, which have no user column.

    A valid table without rows has a header, or is the JSON array [].

    Raises:
        SourceError: If a text file contains only blank lines.
    """
    with _open(path) as stream, _explained(path, "cannot be read"):
        for block in iter(lambda: bytes(stream.read(BLOCK)), b""):
            if block.strip(BLANK):
                return
    raise SourceError(EMPTY.format(path.name))


def declared_by(path: Path, csv: CSV, undeclared: pa.DataType) -> dict[str, pa.DataType] | None:
    """Return the types of the columns of a Parquet, Arrow or CSV file, or None for other formats."""
    suffix = suffix_of(path)
    if is_csv_file(path) or csv.given:
        encoding = csv.encoding or marked_encoding(beginning(path))
        header = _header(path, [], "\t" if suffix == ".tsv" else ",", csv, encoding)
        return dict.fromkeys(header.names or (), undeclared)
    if READERS.get(suffix) is _xes_batches:
        return dict.fromkeys((CASE, ACTIVITY, TIME), undeclared)  # Other columns are unknown until the last event.
    with _explained(path, "is not a complete file"):
        if suffix == ".parquet":
            import pyarrow.parquet as pq

            schema = pq.read_schema(path)
        elif READERS.get(suffix) is _arrow_batches:
            with pa.OSFile(str(path), "rb") as stream:
                schema = _arrow_reader(stream).schema
        else:
            check_readable(path, suffix)
            return None
        return dict(zip(schema.names, schema.types, strict=True))


def is_csv_file(path: Path) -> bool:
    """Return whether a file name is the name of a CSV file."""
    return suffix_of(path) in (".csv", ".tsv")


def _csv_batches(path: Path, request: Request) -> Iterator[pa.RecordBatch]:
    first = 0
    for table in _csv(path, request, "\t" if suffix_of(path) == ".tsv" else ",", _block(request)):
        arrays = [typed(joined(table[each.name]), each, path.name, first) for each in request.selection]
        yield pa.RecordBatch.from_arrays(arrays, request.names)
        first += table.num_rows


def _json_batches(path: Path, request: Request) -> Iterator[pa.RecordBatch]:
    """Yield the rows of JSON lines, or of one array of objects, which is recognised by its opening bracket."""
    if beginning(path).lstrip()[:1] != b"[":
        yield from json_lines(_blocks(path, _block(request)), request.selection, path.name)
    elif request.small:
        raise InputError(
            f"{path.name} is one JSON array, so memory= cannot limit it. Write one object per line as .jsonl."
        )
    else:
        yield from json_array(b"".join(_blocks(path, BLOCK)), request.selection, path.name, request.rows)


def _xes_batches(path: Path, request: Request) -> Iterator[pa.RecordBatch]:
    yield from xes_batches(_blocks(path, _block(request)), request.selection, path.name, request.rows)


def _text_batches(path: Path, request: Request) -> Iterator[pa.RecordBatch]:
    """Yield one row with the user and the text of a text file.

    The name of the file without suffixes identifies the user.
    """
    check_columns(request.names, ["file", "text"], "a table of text files", hint=AS_CSV)
    try:
        text = b"".join(_blocks(path, BLOCK)).decode("utf-8-sig")
    except (SourceError, UnicodeDecodeError) as error:  # These errors would quote the name of the user.
        quieten(error)
        raise SourceError("a text file cannot be read. Save it as UTF-8, and check its permissions.") from None
    row = {"file": re.sub(r"\.txt(\.\w+)?$", "", path.name, flags=re.IGNORECASE), "text": text}
    arrays = [array_of_objects([row[each.name]], each, "a text file", 0) for each in request.selection]
    yield pa.RecordBatch.from_arrays(arrays, request.names)


def _block(request: Request) -> int:
    return SMALL_BLOCK if request.small else BLOCK


def beginning(path: Path) -> bytes:
    """Return the first bytes of a file, decompressed."""
    with _open(path) as stream, _explained(path, "cannot be read"):
        return bytes(stream.read(LONGEST_BEGINNING))


def suffix_of(path: Path) -> str:
    """Return the suffix of a file's name, without the suffix of its compression."""
    name = path.name.lower()
    ending = Path(name).suffix
    return Path(name.removesuffix(ending)).suffix if ending in COMPRESSED else ending


def parquet_batches(path: Path, request: Request) -> Iterator[pa.RecordBatch]:
    """Yield the requested columns of a Parquet file, which declares the types in its schema."""
    import pyarrow.parquet as pq

    with _explained(path, "is not a complete Parquet file"):
        schema = pq.read_schema(path)
        texts = [each.name for each in schema if each.name == request.repeated and is_string(each.type)]
        buffering = {"pre_buffer": False, "buffer_size": 1 << 18} if request.small else {}
        file = pq.ParquetFile(path, read_dictionary=texts, **buffering)
    with file:
        yield _check_schema(path, request, schema)
        tops = {each for name in request.names for each in (name, name.partition(".")[0])}
        rows = _few_rows(file.metadata, tops, request.rows) if request.small else request.rows
        batches = guarded(file.iter_batches(rows, columns=request.names), partial(_explained, path, "is damaged"))
        for batch in batches:
            yield from _selected(batch, request)


def _selected(batch: pa.RecordBatch, request: Request) -> Iterator[pa.RecordBatch]:
    """Yield the requested columns of a batch, and fields of its structs."""
    if {*request.names} <= {*batch.schema.names}:
        yield batch.select(request.names)
    else:
        yield from selected(pa.Table.from_batches([batch]), request.names).to_batches()


def _arrow_batches(path: Path, request: Request) -> Iterator[pa.RecordBatch]:
    """Yield the requested columns of an Arrow (Feather) file, or of a file that contains an Arrow stream."""
    with pa.OSFile(str(path), "rb") as stream:
        with _explained(path, "is not a complete file of Arrow (Feather version 2)"):
            reader = _arrow_reader(stream)
        whole = isinstance(reader, pa.RecordBatchFileReader)
        batches = map(reader.get_batch, range(reader.num_record_batches)) if whole else iter(reader)
        yield _check_schema(path, request, reader.schema)
        for batch in guarded(map(_validated, batches), partial(_explained, path, "is damaged")):
            for begin in range(0, batch.num_rows, request.rows):
                yield from _selected(batch.slice(begin, request.rows), request)


def _check_schema(path: Path, request: Request, schema: pa.Schema) -> pa.RecordBatch:
    try:
        return check_schema(request, schema, path.name)
    except UnicodeDecodeError as error:
        quieten(error)
        raise SourceError(
            f"{path.name} is damaged, because a column name is not UTF-8. Write the file again."
        ) from None


def _arrow_reader(stream: pa.NativeFile) -> Any:
    whole = stream.read(len(ARROW_MARK)) == ARROW_MARK
    stream.seek(0)
    return (pa.ipc.open_file if whole else pa.ipc.open_stream)(stream)


def _validated(batch: pa.RecordBatch) -> pa.RecordBatch:
    batch.validate(full=True)  # Arrow does not check files, and invalid offsets would crash the process.
    return batch


READERS: Final[dict[str, Callable[[Path, Request], Iterator[pa.RecordBatch]]]] = {
    ".parquet": parquet_batches,
    **dict.fromkeys((".arrow", ".feather", ".ipc"), _arrow_batches),
    **dict.fromkeys((".csv", ".tsv"), _csv_batches),
    **dict.fromkeys((".jsonl", ".ndjson", ".json"), _json_batches),
    ".xes": _xes_batches,
    TEXT_FILE: _text_batches,
}
"""The reader for each suffix of a file name."""
SELF_DESCRIBING: Final = tuple(suffix for suffix, read in READERS.items() if read in (parquet_batches, _arrow_batches))
SUFFIXES: Final = tuple(suffix for suffix in READERS if suffix != TEXT_FILE)
"""The suffixes of tables. A folder is read as texts only if it contains none of them."""


def _few_rows(metadata: Any, columns: set[str], rows: int) -> int:
    """Return the number of rows in a batch of about `SMALL_BLOCK` bytes, computed from the widest row group."""
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        chunks = [group.column(place) for place in range(group.num_columns)]
        size = sum(each.total_uncompressed_size for each in chunks if each.path_in_schema.split(".")[0] in columns)
        if size > 0:
            rows = min(rows, max(1, SMALL_BLOCK * group.num_rows // size))
    return rows


def _csv(path: Path, request: Request, usual: str, block: int) -> Iterator[pa.Table]:
    """Yield the cells of a file in whole rows, because Arrow loses line breaks within quotes at the ends of blocks."""
    from pyarrow import csv as arrow_csv

    columns, encoding = request.names, request.csv.encoding or marked_encoding(beginning(path))
    header = _header(path, columns, usual, request.csv, encoding)
    if header.names is None:
        raise SourceError(EMPTY.format(path.name))
    check_columns(columns, header.names, path.name, declared=False, hint=FIRST_ROW)
    convert = arrow_csv.ConvertOptions(
        include_columns=columns,
        column_types=dict.fromkeys(columns, pa.string()),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
    )
    plain, escape = request.csv.quote == "none", request.csv.escape
    parse = arrow_csv.ParseOptions(
        delimiter=header.delimiter,
        newlines_in_values=not plain,
        quote_char=False if plain else '"',
        escape_char=escape or False,
    )

    def rows(*, checked: bool) -> Iterator[tuple[bytes, int]]:
        with _open(path) as stream, _explained(path, "cannot be read as a table"):
            blocks = iter(lambda: bytes(stream.read(block)), b"")
            yield from whole_rows(transcoded(blocks, encoding) if checked else blocks, header, path.name)

    def cells(part: tuple[bytes, int]) -> pa.Table:
        data, before = part
        begin = {"column_names": header.names} if before else {"skip_rows": header.above}
        read = arrow_csv.ReadOptions(block_size=max(len(data), 1), use_threads=False, **begin)
        if escape is not None:
            data = re.sub(MISSING_OF_MYSQL % ((re.escape(header.delimiter.encode()),) * 2), rb"\1", data)
        with _explained(path, "cannot be read as a table", header.above - before):
            table = arrow_csv.read_csv(pa.py_buffer(data), read, parse, convert)
        if header.delimiter == "\t" and request.csv.quote is None and b'"' in data:
            _check_lines(data, 0 if before else header.above, table.num_rows + (not before), path.name)
        return table

    try:
        yield from in_order(cells, rows(checked=encoding != UTF8))
    except SourceError:  # Invalid bytes of another encoding are reported with their row.
        deque(rows(checked=True), maxlen=0)
        raise


MISSING_OF_MYSQL: Final = rb"(^|[\r\n]|%b)\\N(?=$|[\r\n]|%b)"


def _check_lines(data: bytes, above: int, rows: int, where: str) -> None:
    """Raise an error for quoted cells that contain line breaks.

    Raises:
        SourceError: If there are more lines than rows. The quotes may be plain characters, and the rows between two
            quotes would then be lost.
    """
    lines = data.split(b"\n", above)[-1].splitlines()
    if sum(map(bool, lines)) != rows:
        raise SourceError(
            f"{where}: between tabs, a cell in quotes contains a line break. If the quotes are plain characters, rows "
            'would be lost, so give csv=vp.CSV(quote="none") (--quote none). If cells have line breaks, give '
            "csv=vp.CSV(quote='\"') (--quote '\"')."
        )


def _header(path: Path, columns: list[str], usual: str, how: CSV, encoding: str) -> Header:
    """Return the beginning of the file.

    The caller's delimiter has priority over a declared delimiter, and a declared delimiter over a detected one.
    """
    with _open(path) as stream, _explained(path, "cannot be read as a table"):
        # Invalid bytes in later rows are reported with their row.
        text = io.TextIOWrapper(stream, codec_of(encoding), MARKED, newline="")
        try:
            first, above = _first_row(text, columns, usual, how)
            said = SAID.fullmatch(first)
            if said:
                first, more = _first_row(text, columns, usual, how)
                above += 1 + more
            if "\0" in first:
                order = "le" if first.index("\0") % 2 else "be"
                raise SourceError(
                    f"{path.name} looks like UTF-16 without a byte order mark. Name the encoding: "
                    f'vp.CSV(encoding="utf-16-{order}") (--encoding utf-16-{order}).'
                )
            first.encode(UTF8)
            delimiter = how.delimiter or (said and said[1]) or delimiter_of(first, columns, usual, how)
            names = next(csv.reader(io.StringIO(first, newline=""), delimiter=delimiter, **how.reading), None)
            return Header(names, delimiter, above, how)
        except (UnicodeError, csv.Error) as error:
            quieten(error)
            raise SourceError(f"{path.name}: {not_of_encoding('the first row')}") from None


def _mark(error: UnicodeError) -> tuple[str, int]:
    """Replace bytes that the encoding does not allow with half of a surrogate pair, which does not occur in text."""
    return "\ud800", error.end  # type: ignore[attr-defined]


MARKED: Final = "voxpop-marked"
codecs.register_error(MARKED, _mark)


def _first_row(text: io.TextIOBase, columns: list[str], usual: str, how: CSV) -> tuple[str, int]:
    """Return the first row unchanged, with the line breaks within quotes, and the number of lines above it.

    These lines are blank, or they are comments that begin with # and do not contain the column names.
    """
    row, above = "", 0
    for line in text:
        delimiter = delimiter_of(line, columns, usual, how)
        cells = next(csv.reader([line], delimiter=delimiter, **how.reading), [])
        if not row and (not line.strip() or (line.startswith("#") and not {*columns} <= {*cells})):
            above += 1
            continue
        row += line
        if how.quote == "none" or row.count('"') % 2 == 0 or len(row) > BLOCK:
            break
    return row, above


def _blocks(path: Path, block: int) -> Iterator[bytes]:
    rows = 0
    with _open(path) as stream:
        while True:
            with _explained(path, f"cannot be read beyond {row_called(rows + 1)}"):
                data = stream.read(block)
            if not data:
                return
            rows += data.count(b"\n")
            yield data


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """Open a file for reading, and decompress it according to its suffix."""
    with _explained(path, "cannot be opened"):
        stream = pa.OSFile(str(path), "rb")
        compression = COMPRESSED.get(path.suffix.lower())
        if compression:
            stream = pa.CompressedInputStream(stream, compression)
    with stream:
        yield stream


@contextmanager
def _explained(path: Path, what: str, above: int = 0) -> Iterator[None]:
    """Convert a reader's error into a voxpop error with a location and without data."""
    try:
        yield
    except (SourceError, MemoryError):
        raise
    except FAILURES as error:
        found = ROW.search(str(error))
        row = row_called(int(found[1]) - 1 - above) if found else ""  # Arrow counts the header and the rows above it.
        widths = WIDTHS.search(str(error))
        if no_thread_started(error):
            quieten(error)
            raise MemoryError(NO_MEMORY) from None
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
    """Return a description of the error without the reader's message, because it quotes rows."""
    text, place = str(error), f"{row} " if row else ""
    if "UTF8" in text or "UTF-8" in text or isinstance(error, UnicodeDecodeError):
        return not_of_encoding(row or "it")
    if "ompress" in text or "zlib" in text or "ZSTD" in text or "truncated" in text.lower():
        return "its compressed data is truncated or damaged. Copy the file again."
    if isinstance(error, PermissionError):
        return "this user may not read it."
    if "CSV" in text:
        return f"{place}cannot be split into columns. {QUOTES}"
    return f"{place}it is truncated or damaged, or its name does not match its format. Copy or write the file again."
