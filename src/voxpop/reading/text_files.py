"""CSV files of any common dialect, and JSON lines.

For CSV, this module detects the delimiter, encoding and columns, and checks that quotes are closed. JSON lines contain
one JSON object per line. JSON lines are read without type inference (`voxpop.reading.types`).

Numbers are spelled by the rule of `spelling_of`, so 7 and "7" are the same value. Integers of any length are exact.
Other numbers are IEEE doubles, as in most JSON software.
"""

import codecs
import csv
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import numpy as np
import pyarrow as pa

from voxpop.errors import InputError, SourceError
from voxpop.files.progress import row_called
from voxpop.kernels.arrays import Bools, Int64s
from voxpop.kernels.threads import require_polars
from voxpop.kernels.words import END, MODE, OPENED, PLAIN, QUOTED, RETURNED, ROW, START, follow_quotes
from voxpop.reading.arrow import flattened, int64_array, lists_of
from voxpop.reading.columns import quieten
from voxpop.reading.keys import is_string
from voxpop.reading.types import AS_ROWS, Column, batch_of_rows, typed, typed_lists

if TYPE_CHECKING:
    import polars as pl

# Text in any encoding is converted to UTF-8. Invalid bytes are located, but never quoted.

UTF8 = "utf-8"
MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte order marks. Longer marks are first, because a shorter mark may be a prefix of a longer one."""


def known_encoding(name: str) -> str | None:
    """Return Python's canonical name for a text encoding, or None for an unknown encoding.

    Example:
        >>> known_encoding("Windows-1252"), known_encoding("UTF8"), known_encoding("base64")
        ('cp1252', 'utf-8', None)
    """
    try:
        "".encode(name)  # This raises an error for codecs that do not encode text.
        found = codecs.lookup(name).name
    except (LookupError, UnicodeError, ValueError):
        return None
    return UTF8 if found == "utf-8-sig" else found


def marked_encoding(head: bytes) -> str:
    """Return the encoding that the first bytes of a file declare, or UTF-8 by default.

    Example:
        >>> marked_encoding("a,b".encode("utf-16")), marked_encoding(b"a,b")
        ('utf-16', 'utf-8')
    """
    return next((name for mark, name in MARKS.items() if head.startswith(mark)), UTF8)


def codec_of(encoding: str) -> str:
    """Return the codec for an encoding, which skips a byte order mark."""
    return "utf-8-sig" if encoding == UTF8 else encoding


def transcoded(blocks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Yield blocks of another encoding as UTF-8, without the byte order mark.

    Raises:
        UnicodeError: If bytes are invalid in the encoding. The bytes before the invalid ones have already been yielded.
    """
    decoder = codecs.getincrementaldecoder(codec_of(encoding))()
    for block in chain(blocks, [b""]):
        try:
            yield decoder.decode(block, final=not block).encode(UTF8)
        except UnicodeDecodeError as error:
            # Yield the valid bytes before the error, so that their rows are counted. Errors name all single-byte codecs
            # "charmap". For other codecs, the name in the error includes the byte order.
            name = codec_of(encoding) if error.encoding == "charmap" else error.encoding
            with suppress(UnicodeError):
                yield error.object[: error.start].decode(name).removeprefix("\ufeff").encode(UTF8)
            raise


DELIMITERS = (",", ";", "\t", "|")
SAID = re.compile(r'"?sep=([!#-~\t ])"?\s*', re.IGNORECASE)
"""The first row that declares the delimiter, as spreadsheets read and write it."""


@final
@dataclass(frozen=True, slots=True)
class CSV:
    r"""The dialect of CSV files. A value of None means that the property is detected.

    Attributes:
        delimiter: The ASCII character between columns. The default is a comma (a tab in .tsv), or the only one of
            semicolon, tab and bar that yields the named columns.
        encoding: The encoding of the text, by Python's name ("cp1252", "shift_jis"). The default is UTF-8, or the
            encoding of the file's byte order mark.
        quote: '"' if cells with delimiters or line breaks are in double quotes, or "none" if quotes are plain
            characters, as in many files with tabs. The default is double quotes, but if tabs separate cells, a quoted
            cell with a line break is an error, because two plain quotes would join the rows between them.
        escape: A backslash if backslashes precede quotes within quoted cells, as in files written by Spark and MySQL.
            The character after a backslash is used unchanged, and a cell with MySQL's \N is a missing value. By default
            quotes are doubled.

    Raises:
        InputError: If the delimiter is not a single character, Python does not support the encoding, or `quote` or
            `escape` has a value that is not listed above.

    Example:
        >>> import voxpop as vp
        >>> vp.CSV(delimiter=";", encoding="windows-1252")
        CSV(delimiter=';', encoding='cp1252', quote=None, escape=None)
    """

    delimiter: str | None = None
    encoding: str | None = None
    quote: str | None = None
    escape: str | None = None

    def __post_init__(self) -> None:
        mark = self.delimiter
        if mark is not None and not (
            isinstance(mark, str) and len(mark) == 1 and mark.isascii() and mark not in '"\r\n'
        ):
            raise InputError(
                '`delimiter` must be one ASCII character, such as ";" or a tab, and neither a quote nor a line break.'
            )
        if self.encoding is not None:
            known = known_encoding(self.encoding) if isinstance(self.encoding, str) else None
            if known is None:
                raise InputError(
                    '`encoding` must be an encoding that Python knows, such as "cp1252", "utf-16" or "shift_jis".'
                )
            object.__setattr__(self, "encoding", known)

        if self.quote not in (None, '"', "none"):
            raise InputError('`quote` must be \'"\' for cells in double quotes, or "none" for plain quotes.')
        if self.escape not in (None, "\\"):
            raise InputError("`escape` must be a backslash. Omit it if quotes within cells are doubled.")
        if self.escape is not None and self.quote == "none":
            raise InputError(
                '`escape` precedes quotes, but quote="none" makes quotes plain characters. Give one of the two.'
            )

    @property
    def given(self) -> bool:
        """Whether any value is given."""
        return any(each is not None for each in (self.delimiter, self.encoding, self.quote, self.escape))

    @property
    def reading(self) -> dict[str, Any]:
        """The arguments for Python's csv module."""
        if self.quote == "none":
            return {"quoting": csv.QUOTE_NONE}
        return {} if self.escape is None else {"escapechar": self.escape}


class Header(NamedTuple):
    """The beginning of a CSV file.

    Attributes:
        names: The names of its columns. An empty file has no names.
        delimiter: The separator between columns.
        above: The number of rows above the names, including a row that declares the delimiter.
        csv: The caller's description of the file.
    """

    names: list[str] | None
    delimiter: str
    above: int = 0
    csv: CSV = CSV()


def delimiter_of(header: str, wanted: Sequence[str], usual: str, how: CSV | None = None) -> str:
    """Return the separator between the columns.

    The result is the usual separator, unless only another separator yields these columns.

    Args:
        header: The first row of the file, unchanged.
        wanted: The names of required columns.
        usual: The usual separator of files with this suffix.
        how: The caller's description of the file.
    """
    reading = {} if how is None else how.reading
    for delimiter in (usual, *(each for each in DELIMITERS if each != usual)):
        if set(wanted) <= set(next(csv.reader([header], delimiter=delimiter, **reading), [])):
            return delimiter
    return usual


def whole_rows(blocks: Iterator[bytes], header: Header, where: str) -> Iterator[tuple[bytes, int]]:
    """Split a UTF-8 file at the ends of rows, because readers need whole rows, and check that quotes are closed.

    Args:
        blocks: The blocks of the file, which may end anywhere.
        header: The beginning of the file. Rows are counted from the row of column names.
        where: The file, for messages.

    Yields:
        Whole rows (starting with the header), and the number of rows before them, including rows above the header.

    Raises:
        SourceError: If a quoted field continues after its closing quote, or the file ends within a quoted field. In
            both cases, the rest would be read as one cell and lost. The error is also raised if the blocks raise a
            UnicodeError.
    """
    state, delimiter = np.zeros(4, np.int64), np.uint8(ord(header.delimiter))
    held: list[bytes] = []
    before, closed, slash = 0, True, b""

    def name_of(which: int) -> str:
        """Return a description of the current row, or of the row that opened the last quoted field."""
        row = int(state[which]) - header.above
        return row_called(row) if row > 0 else "the first row"

    try:
        for data in filter(None, blocks):
            if header.csv.escape is not None:
                data = slash + data
                shown = _without_escapes(data)
                data, slash = data[: len(shown)], data[len(shown) :]
            else:
                shown = data
            closed = _follow(shown, delimiter, state, quoted=header.csv.quote != "none")
            if not closed:
                break
            end, rows = int(state[END]), int(state[ROW] - (state[MODE] == RETURNED))
            if end and rows > header.above:
                yield b"".join([*held, data[:end]]), before
                held, before = [data[end:]], rows
            else:
                held.append(data)
    except UnicodeError as error:
        quieten(error)
        raise SourceError(f"{where}: {not_of_encoding(name_of(ROW))}") from None
    if not closed or state[MODE] == QUOTED:
        raise SourceError(
            f"{where}: a quote is opened in {name_of(OPENED)} and not closed before the next cell, so rows after it "
            f"would be lost. {QUOTES}"
        )
    if last := b"".join([*held, slash]):
        yield last, before


QUOTES: Final = (
    'If quotes are plain characters, give csv=vp.CSV(quote="none") (--quote none); if a backslash precedes them, '
    "escape=\"\\\\\" (--escape '\\'). Otherwise correct the row. Cells with quotes in them must be quoted, and these "
    "quotes must be doubled."
)


def _without_escapes(data: bytes) -> bytes:
    """Replace each backslash and the byte after it with two x, and remove a final backslash."""
    return re.sub(rb"\\.", b"xx", data, flags=re.DOTALL).removesuffix(b"\\")


def _follow(data: bytes, delimiter: np.uint8, state: Int64s, *, quoted: bool = True) -> bool:
    """Track the quotes of a block, and return whether all cells end at their closing quotes."""
    plain = not quoted or (state[MODE] in (START, PLAIN) and b'"' not in data and b"\r" not in data)
    if plain and data:
        # Most files have no quotes, so it is sufficient to count their rows.
        state[ROW] += data.count(b"\n")
        state[MODE] = START if data[-1] in (ord("\n"), int(delimiter)) else PLAIN
        state[END] = data.rfind(b"\n") + 1
        return True
    return bool(follow_quotes(np.frombuffer(data, np.uint8), delimiter, state))


def not_of_encoding(row: str) -> str:
    """Return the error message for a row in another encoding."""
    return (
        f'{row} contains bytes that are invalid in the encoding. Name the right encoding, such as encoding="cp1252" '
        "(--encoding cp1252), or save the file as UTF-8."
    )


FEW_BYTES: Final = 1 << 16
"""Python's json module decodes smaller blocks. The import of polars is worthwhile only for larger blocks."""
DOUBTFUL: Final = r"^(?:[\[{]|-0$|-?\d+[.eE][-+.\deE]*$|-?\d{17}0$|-?\d{19}|(?i:-?inf|nan))"
"""Texts of polars that may represent a nested value, an integer beyond 64 bits, or a double that polars prints
differently because two spellings are at the same distance. Doubles below 2^53 without a fraction have one spelling, and
larger doubles with 18 digits end with a zero."""
SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""Surrogate escapes. polars does not check that they are in pairs."""


def json_lines(blocks: Iterator[bytes], columns: Sequence[Column], where: str) -> Iterator[pa.RecordBatch]:
    """Yield the columns of JSON lines.

    Args:
        blocks: The bytes of the file, in order.
        columns: The columns to read. A line without one of these columns has a missing value.
        where: The file, for messages.

    Raises:
        SourceError: If a line is not a JSON object, or a value does not fit its column. The message contains the row
            number.
        ColumnError: If the first block of lines has no value in a column.
    """
    first, left = 0, b""
    for block in blocks:
        data = left + block
        end = data.rfind(b"\n") + 1
        left = data[end:]
        if data[:end].strip():
            batch = json_batch(data[:end], columns, where, first)
            yield batch
            first += batch.num_rows
    if left.strip():
        yield json_batch(left, columns, where, first)


def json_array(data: bytes, columns: Sequence[Column], where: str, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the columns of one JSON array of objects, `rows` objects at a time (see `json_lines`)."""
    found = _object(data.removeprefix(b"\xef\xbb\xbf"))
    if not isinstance(found, list):
        raise SourceError(
            f"{where} is not a JSON array in UTF-8. Check that it ends with a bracket, or write JSON lines."
        )
    for number, row in enumerate(found):
        if not isinstance(row, dict):
            raise SourceError(
                f"{where}, {row_called(number + 1)}: the element is not a JSON object ({AS_ROWS}). Correct it."
            )
    for first in range(0, len(found), rows):
        yield batch_of_rows(found[first : first + rows], columns, where, first)


def json_batch(data: bytes, columns: Sequence[Column], where: str, first: int = 0) -> pa.RecordBatch:
    """Return the columns of some JSON lines.

    Args:
        data: Whole lines in UTF-8.
        columns: The columns to read.
        where: The source, for messages.
        first: The number of earlier rows. If `first` is 0, every column must occur in these rows.
    """
    data = data.removeprefix(b"\xef\xbb\xbf") if first == 0 else data
    nested = any("." in each.name for each in columns)  # for example user.id, which may be a name or a path
    batch = _by_polars(data, columns, where, first) if len(data) > FEW_BYTES and not nested else None
    if batch is None or (first == 0 and any(each.null_count == len(each) for each in batch.columns)):
        return batch_of_rows(_rows(_lines(data), where, first), columns, where, first)
    return batch


def _by_polars(data: bytes, columns: Sequence[Column], where: str, first: int) -> pa.RecordBatch | None:
    """Return the columns as polars decodes them, or None for data that polars cannot decode.

    polars may decode some rows differently from the rule for single values, so these rows are decoded one by one.
    Whether a row is decoded separately depends only on the row.
    """
    found, names = None, [each.name for each in columns]
    for lists in sorted({False, any(each.lists is None for each in columns)}):
        found = _frame(data, columns, lists) or found
        if found is not None and not found[1].any():
            break
    if found is None:
        return None
    frame, doubtful = found
    unchecked = SURROGATE.search(data) is not None
    lines = _lines(data) if unchecked or doubtful.any() else []
    if unchecked:
        doubtful = doubtful | np.array([SURROGATE.search(line) is not None for line in lines])
    try:
        if not doubtful.any():
            return pa.RecordBatch.from_arrays([_array(frame[each.name], each, where, first) for each in columns], names)
        frame = frame.filter(~doubtful)
        sure = [_array(frame[each.name], each, where, first) for each in columns]
        rows = _rows([lines[place] for place in np.flatnonzero(doubtful)], where, 1)
        others = batch_of_rows(rows, columns, where, 1).columns
    except SourceError:  # The decoder for single rows also finds the row of the error.
        return None
    # int64 (rows), the position of each row if the doubtful rows are appended to the other rows.
    order = int64_array(np.where(doubtful, frame.height + np.cumsum(doubtful), np.cumsum(~doubtful)) - 1)
    return pa.RecordBatch.from_arrays(
        [pa.concat_arrays(pair).take(order) for pair in zip(sure, others, strict=True)], names
    )


def _frame(data: bytes, columns: Sequence[Column], lists: bool) -> "tuple[pl.DataFrame, Bools] | None":
    """Return strings or lists of strings, and a mask of the doubtful rows, or None if polars cannot read the rows."""
    import polars as pl

    require_polars()
    kinds: dict[str, Any] = {}
    for each in columns:
        kinds[each.name] = pl.List(pl.String) if (lists if each.lists is None else each.lists) else pl.String
    try:
        frame = pl.read_ndjson(data, schema=kinds)
    except pl.exceptions.PolarsError:
        return None
    if frame.height != data.count(b"\n") + (not data.endswith(b"\n")) and frame.height != len(_lines(data)):
        return None
    # If single values are allowed, null is a value, even among lists.
    either = [each.name for each in columns if each.lists is None and lists]
    frame = frame.with_columns(pl.col(name).fill_null(pl.lit([None], pl.List(pl.String))) for name in either)
    tests = [
        (pl.col(name) if kind == pl.String else pl.col(name).list.join("\n", ignore_nulls=True))
        .str.contains(DOUBTFUL if kind == pl.String else f"(?m){DOUBTFUL}")
        .fill_null(False)
        for name, kind in kinds.items()
    ]
    return frame, frame.select(pl.any_horizontal(tests)).to_series().to_numpy()


def _array(series: Any, column: Column, where: str, first: int) -> pa.Array:
    """Return strings, or lists of strings, as an array of `column.undeclared_type`."""
    texts = series.to_arrow()
    if column.lists is False:
        return typed(texts, column, where, first)
    if is_string(texts.type):
        single = np.ones(len(texts), np.int64)
        return lists_of(typed(texts, column, where, first), single).cast(column.undeclared_type)
    return typed_lists(*flattened(texts), texts.is_null(), column, where, first)


def _lines(data: bytes) -> list[bytes]:
    return [line for line in data.split(b"\n") if line.strip()]


def _rows(lines: Sequence[bytes], where: str, first: int) -> list[dict[str, Any]]:
    """Return the objects of the lines, decoded one by one."""
    rows: list[dict[str, Any]] = []
    for line in lines:
        row = _object(line)
        if not isinstance(row, dict):
            raise SourceError(f"{where}, {row_called(first + len(rows) + 1)}: {_not_an_object(line, row)}")
        rows.append(row)
    return rows


def _not_an_object(line: bytes, found: Any) -> str:
    """Return why a line is not a row. The message depends on the form of the line, and quotes no data."""
    if re.search(rb"\b(NaN|Infinity)\b", line):
        return "NaN and Infinity are not JSON. Write null for a missing number."
    if found is None and line.strip() in (b"{", b"[", b"[{"):
        return "the line is not a complete JSON object. Write each object on one line, as jq -c does, or one array."
    return "the line is not a JSON object in UTF-8. Correct the row."


def _object(line: bytes) -> Any:
    try:
        return _DECODER.decode(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None


def _refuse(name: str) -> Any:
    raise ValueError(name)


_DECODER: Final = json.JSONDecoder(object_pairs_hook=lambda pairs: dict(reversed(pairs)), parse_constant=_refuse)
"""If a name occurs several times in an object, its first value counts, as in polars."""
