"""One file as Arrow batches: Parquet, CSV, TSV and JSON lines, the last three also compressed.

Readers' own messages quote the row they stumbled over, so none of them is passed on: ours say which file, which row or
column where that is known, and what to do.
"""

import csv
import io
import mmap
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, final

import pyarrow as pa

from voxpop.corpus.reading.columns import check_columns
from voxpop.corpus.reading.csv_text import (
    FOUND,
    Dialect,
    FollowedQuotes,
    Header,
    check_header,
    delimiter_of,
    not_of_encoding,
    said_delimiter,
)
from voxpop.corpus.reading.encodings import LONGEST_MARK, UTF8, Transcoded, marked_encoding
from voxpop.corpus.reading.failures import quieten
from voxpop.errors import InputError, SourceError

SUFFIXES: Final = (".parquet", ".csv", ".tsv", ".jsonl", ".ndjson")
COMPRESSED: Final = {".gz": "gzip", ".zst": "zstd"}
_QUERY = "Give a query of it, and connection={}."
INSTEAD: Final = {
    ".db": _QUERY.format('"sqlite:///..."'),
    ".sqlite": _QUERY.format('"sqlite:///..."'),
    ".duckdb": _QUERY.format('"duckdb:///..."'),
    ".xlsx": "Save the sheet as CSV, or read it with polars or pandas and give the table.",
}
"""What to do with files of other kinds."""
BLOCK = 1 << 22
SMALL_BLOCK = 1 << 20
READER_ROOM = 192 << 20
"""Address space for threads and blocks of Arrow's readers of text: from 140 MiB on none was seen to wait for ever."""
FAILURES = (pa.ArrowException, OSError, EOFError, UnicodeDecodeError, zlib.error)


def is_readable(path: Path) -> bool:
    """Tell whether the file's name ends in something that can be read."""
    return _suffix(path) in SUFFIXES


def file_batches(
    path: Path,
    columns: list[str],
    rows: int,
    dictionary: str | None,
    *,
    small: bool = False,
    dialect: Dialect = FOUND,
) -> Iterator[pa.RecordBatch]:
    """Yield the wanted columns of one file.

    Args:
        path: of the file; its ending says what it is.
        columns: the wanted ones.
        rows: most rows of a batch of Parquet.
        dictionary: a column to keep dictionary-encoded where the file has it so.
        small: hold little of the file, at some cost in speed.
        dialect: how CSV is written, as far as the caller says.

    Raises:
        InputError: where the caller says how CSV is written, and this is none.
        SourceError: where the file cannot be read; the message quotes nothing of it.
        ColumnError: where a column is missing.
    """
    suffix, block = _suffix(path), SMALL_BLOCK if small else BLOCK
    if dialect.given and suffix not in (".csv", ".tsv"):
        raise InputError(f"delimiter= and encoding= say how CSV is written, and {path.name} is none: leave them out.")
    if suffix == ".parquet":
        yield from _parquet(path, columns, rows, dictionary, small=small)
    elif suffix in (".csv", ".tsv"):
        yield from _csv(path, columns, "\t" if suffix == ".tsv" else ",", dialect, block)
    elif suffix in (".jsonl", ".ndjson"):
        yield from _jsonl(path, columns, block)
    else:
        raise SourceError(
            f"{path.name} has an ending that voxpop does not read; it reads {', '.join(SUFFIXES)}, and all but Parquet "
            f"also with .gz or .zst behind. {INSTEAD.get(suffix, 'Read it with polars or pandas and give the table.')}"
        )


def _suffix(path: Path) -> str:
    name = path.name.lower()
    ending = Path(name).suffix
    return Path(name.removesuffix(ending)).suffix if ending in COMPRESSED else ending


def _parquet(
    path: Path, columns: list[str], rows: int, dictionary: str | None, *, small: bool
) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    with _explained(path, "is not a complete Parquet file"):
        schema = pq.read_schema(path)
        texts = [name for name in schema.names if name == dictionary and _is_text(schema.field(name).type)]
        buffering = {"pre_buffer": False, "buffer_size": 1 << 18} if small else {}
        file = pq.ParquetFile(path, read_dictionary=texts, **buffering)
    with file:
        with _explained(path, "has a column whose name cannot be read"):
            names = file.schema_arrow.names
        check_columns(columns, names, path.name)
        if small:
            rows = _few_rows(file.metadata, set(columns), rows)
        batches = file.iter_batches(rows, columns=list(dict.fromkeys(columns)))
        while True:
            with _explained(path, "is damaged"):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch


def _few_rows(metadata: Any, columns: set[str], rows: int) -> int:
    """Return how many rows make a batch of about `SMALL_BLOCK` bytes, where rows are widest."""
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        size = bytes_of_columns(group, columns)
        if size > 0:
            rows = min(rows, max(1, SMALL_BLOCK * group.num_rows // size))
    return rows


def bytes_of_columns(group: Any, columns: set[str]) -> int:
    """Return what some columns of a row group of Parquet have in a file that is not compressed."""
    chunks = [group.column(place) for place in range(group.num_columns)]
    return sum(int(each.total_uncompressed_size) for each in chunks if each.path_in_schema.split(".")[0] in columns)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _csv(path: Path, columns: list[str], usual: str, dialect: Dialect, block: int) -> Iterator[pa.RecordBatch]:
    from pyarrow import csv as arrow_csv

    encoding = dialect.encoding or _marked(path)
    header = _header(path, columns, usual, dialect.delimiter, encoding)
    if header.names is None:
        return
    check_header(header.names, columns, path.name)
    convert = arrow_csv.ConvertOptions(
        include_columns=list(dict.fromkeys(columns)),
        column_types=dict.fromkeys(columns, pa.string()),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
    )
    parse = arrow_csv.ParseOptions(delimiter=header.delimiter, newlines_in_values=True)
    _check_room()
    # A pass of its own: Arrow reads in a thread, which waits for ever where it has no memory for Python's side.
    _follow_quotes(path, header, encoding, block, checked=encoding != UTF8)
    try:
        with _open(path) as stream:
            with _explained(path, "cannot be read as a table"):
                reader = arrow_csv.open_csv(
                    stream,
                    arrow_csv.ReadOptions(block_size=block, encoding=encoding, skip_rows=header.above),
                    parse_options=parse,
                    convert_options=convert,
                )
            yield from _read_all(reader, path)
    except _EncodingError:  # Arrow says that, and not where
        _follow_quotes(path, header, encoding, block, checked=True)
        raise


@final
class _EncodingError(SourceError):
    """Some cell is written in another encoding."""


def _follow_quotes(path: Path, header: Header, encoding: str, block: int, *, checked: bool) -> None:
    """See that all quotes are closed and, where `checked`, that all bytes are of the encoding."""
    with _open(path) as stream, _explained(path, "cannot be read as a table"):
        text = Transcoded(stream, encoding) if checked else stream
        quotes = FollowedQuotes(text, header.delimiter, path.name, header.above)
        while quotes.read(block):
            pass


def _marked(path: Path) -> str:
    """Return the encoding that a file's first bytes say."""
    with _open(path) as stream, _explained(path, "cannot be read"):
        return marked_encoding(stream.read(LONGEST_MARK))


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
    """Return how the file begins: a caller's delimiter beats one that the file names, and that one what is found."""
    with _open(path) as stream, _explained(path, "cannot be read as a table"):
        text = io.TextIOWrapper(io.BufferedReader(Transcoded(stream, encoding)), encoding=UTF8, newline="")
        try:
            first = _first_row(text)
            said = said_delimiter(first)
            if said is not None:
                first = _first_row(text)
            delimiter = given or said or delimiter_of(first, columns, usual)
            names = next(csv.reader(io.StringIO(first, newline=""), delimiter=delimiter), None)
            return Header(names, delimiter, above=int(said is not None))
        except (UnicodeError, csv.Error) as error:
            quieten(error)
            raise SourceError(f"{path.name}: {not_of_encoding('the first row')}") from None


def _first_row(text: io.TextIOBase) -> str:
    """Return the first row as it is, with the line breaks within its quotes."""
    row = ""
    for line in text:
        row += line
        if row.count('"') % 2 == 0 or len(row) > BLOCK:
            break
    return row


def _jsonl(path: Path, columns: list[str], block: int) -> Iterator[pa.RecordBatch]:
    from voxpop.corpus.reading.columns import check_columns

    if not _has_bytes(path):
        return
    wanted = list(dict.fromkeys(columns))
    with _open(path) as stream:
        found = _json_reader(stream, path, block).schema
        with _explained(path, "has a column whose name cannot be read"):
            names = found.names
        check_columns(columns, names, path.name)
    # Texts stay texts: whether all of them look like dates is for no reader to find out.
    schema = pa.schema([(name, _undated(found.field(name).type)) for name in wanted])
    with _open(path) as stream:
        for batch in _read_all(_json_reader(stream, path, block, schema), path):
            yield batch.select(wanted)


def _json_reader(stream: Any, path: Path, block: int, schema: pa.Schema | None = None) -> Any:
    from pyarrow import json as arrow_json

    _check_room()
    parse = arrow_json.ParseOptions(explicit_schema=schema, newlines_in_values=False, unexpected_field_behavior="infer")
    with _explained(path, "is not one JSON object per line"):
        return arrow_json.open_json(stream, arrow_json.ReadOptions(block_size=block), parse)


def _undated(kind: pa.DataType) -> pa.DataType:
    """Return a type without what was only guessed from the looks of strings, or from lists that are all empty."""
    if pa.types.is_list(kind):
        inner = pa.string() if pa.types.is_null(kind.value_type) else _undated(kind.value_type)
        return pa.list_(inner)
    return pa.string() if pa.types.is_timestamp(kind) else kind


def _has_bytes(path: Path) -> bool:
    with _open(path) as stream, _explained(path, "cannot be read"):
        while data := stream.read(1 << 16):
            if data.strip():
                return True
    return False


def _read_all(reader: Any, path: Path) -> Iterator[pa.RecordBatch]:
    """Yield all batches, saying after how many rows reading failed."""
    rows = 0
    while True:
        with _explained(path, f"cannot be read beyond about row {rows + 1:,}", rows):
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
        rows += batch.num_rows
        yield batch


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
def _explained(path: Path, what: str, done: int = 0) -> Iterator[None]:
    """Turn a reader's failure into ours, keeping where it happened and nothing that was read; `done` rows were."""
    try:
        yield
    except SourceError:
        raise
    except FAILURES as error:
        reason = _reason(error, done)
        refusal = _EncodingError if _is_of_encoding(error) else SourceError
        quieten(error)
        raise refusal(f"{path.name} {what}: {reason}") from None


def _is_of_encoding(error: BaseException) -> bool:
    return "UTF8" in str(error) or "UTF-8" in str(error) or isinstance(error, UnicodeDecodeError)


def _reason(error: BaseException, done: int) -> str:
    """Say what went wrong without quoting the reader, whose messages quote rows."""
    text = str(error)
    row = re.search(r"Row #(\d+)|in row (\d+)", text)
    place = _place(row, done) if row else ""
    widths = re.search(r"Expected (\d+) columns, got (\d+)", text)
    if widths:
        return f"{place}has {widths[2]} values where {widths[1]} are wanted. Mend the row or quote its values."
    if _is_of_encoding(error):
        return not_of_encoding(place.strip() or "it")
    if "JSON" in text:
        return f"{place}is not a JSON object with the types of the rows before. Mend the row."
    if "ompress" in text or "zlib" in text or "ZSTD" in text or "truncated" in text.lower():
        return "its compressed data is cut off or damaged. Copy the file again."
    if isinstance(error, PermissionError):
        return "it may not be read by this user."
    if "CSV" in text:
        return f"{place}cannot be split into columns. Check its quotes."
    return f"{place}it is cut off, damaged, or not what its name says. Copy or write the file again."


def _place(found: re.Match[str], done: int) -> str:
    """Name a row: readers of CSV count the header and all rows, those of JSON the rows of a block, from 0."""
    header_and_all, in_block = found.groups()
    return f"row {int(header_and_all) - 1:,} " if header_and_all else f"row {done + int(in_block) + 1:,} "
