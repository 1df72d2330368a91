"""CSV as people export it: which delimiter and encoding, which columns, and quotes that are closed.

JSON lines: one JSON object in each line, read without inference of types (`voxpop.reading.types`).

A number is spelled by the rule of `spelling_of`, so 7 and "7" are the same value. Integers are exact at any length;
other numbers are IEEE doubles, as in most JSON software.
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
from voxpop.reading.arrow import flattened, int64_array, lists_of
from voxpop.reading.columns import quieten
from voxpop.reading.keys import is_string
from voxpop.reading.types import AS_ROWS, Column, batch_of_rows, typed, typed_lists

if TYPE_CHECKING:
    import polars as pl

# Text in any encoding, as UTF-8: invalid bytes are located, and never quoted.

UTF8 = "utf-8"
MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte order marks, longer ones first: the shorter begin alike."""


def known_encoding(name: str) -> str | None:
    """Return Python's own name of an encoding of text, None if Python has no such encoding.

    Example:
        >>> known_encoding("Windows-1252"), known_encoding("UTF8"), known_encoding("base64")
        ('cp1252', 'utf-8', None)
    """
    try:
        "".encode(name)  # codecs for other things than text are refused here
        found = codecs.lookup(name).name
    except (LookupError, UnicodeError, ValueError):
        return None
    return UTF8 if found == "utf-8-sig" else found


def marked_encoding(head: bytes) -> str:
    """Return the encoding that the first bytes of a file declare, UTF-8 if they declare none.

    Example:
        >>> marked_encoding("a,b".encode("utf-16")), marked_encoding(b"a,b")
        ('utf-16', 'utf-8')
    """
    return next((name for mark, name in MARKS.items() if head.startswith(mark)), UTF8)


def codec_of(encoding: str) -> str:
    """Return the codec of an encoding that leaves out a byte order mark."""
    return "utf-8-sig" if encoding == UTF8 else encoding


def transcoded(blocks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Yield blocks in another encoding as UTF-8, without the byte order mark.

    Raises:
        UnicodeError: where bytes are not of the encoding; all before them has been yielded by then.
    """
    decoder = codecs.getincrementaldecoder(codec_of(encoding))()
    for block in chain(blocks, [b""]):
        try:
            yield decoder.decode(block, final=not block).encode(UTF8)
        except UnicodeDecodeError as error:
            # So that its rows are counted. Tables of letters all call themselves "charmap"; for the others the error
            # contains the byte order.
            name = codec_of(encoding) if error.encoding == "charmap" else error.encoding
            with suppress(UnicodeError):
                yield error.object[: error.start].decode(name).removeprefix("\ufeff").encode(UTF8)
            raise


DELIMITERS = (",", ";", "\t", "|")
SAID = re.compile(r'"?sep=([!#-~\t ])"?\s*', re.IGNORECASE)
"""A first row that names the delimiter, as spreadsheets read and write it."""


@final
@dataclass(frozen=True, slots=True)
class CSV:
    r"""How CSV files are written. Values that are None are detected.

    Attributes:
        delimiter: the ASCII character between columns; by default a comma (a tab in .tsv), or the only one of
            semicolon, tab and bar that gives the named columns.
        encoding: encoding of the text, by Python's name ("cp1252", "shift_jis"); by default UTF-8, or the encoding of
            the file's byte order mark.
        quote: '"' if cells with delimiters or line breaks are in double quotes, or "none" if quotes are plain
            characters, as in many files with tabs. By default double quotes, but a cell in quotes that contains a line
            break is an error between tabs, because two plain quotes would join the rows between them.
        escape: a backslash if one precedes quotes within quotes, as Spark and MySQL write them. The character after a
            backslash is taken as it is, and a cell of MySQL's \N is missing. By default quotes are doubled.

    Raises:
        InputError: if the delimiter is no single character, Python does not support the encoding, or quote or escape
            is another character.

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
            raise InputError("`escape` must be a backslash. Leave it out if quotes within cells are doubled.")
        if self.escape is not None and self.quote == "none":
            raise InputError('`escape` precedes quotes, and quote="none" makes them plain. Give one of the two.')

    @property
    def given(self) -> bool:
        """Whether any value is given."""
        return any(each is not None for each in (self.delimiter, self.encoding, self.quote, self.escape))

    @property
    def reading(self) -> dict[str, Any]:
        """How the csv module of Python reads a row."""
        if self.quote == "none":
            return {"quoting": csv.QUOTE_NONE}
        return {} if self.escape is None else {"escapechar": self.escape}


class Header(NamedTuple):
    """How a file of CSV begins.

    Attributes:
        names: of its columns; None where the file is empty.
        delimiter: the separator between them.
        above: number of rows above them: one where the first row declares the delimiter.
        csv: the caller's description of the file.
    """

    names: list[str] | None
    delimiter: str
    above: int = 0
    csv: CSV = CSV()


def delimiter_of(header: str, wanted: Sequence[str], usual: str, how: CSV | None = None) -> str:
    """Return the separator between the columns: the usual one, unless only another gives the wanted ones.

    Args:
        header: the first row of the file, unchanged.
        wanted: names of columns.
        usual: for files with this ending.
        how: the caller's description of the file.
    """
    reading = {} if how is None else how.reading
    for delimiter in (usual, *(each for each in DELIMITERS if each != usual)):
        if set(wanted) <= set(next(csv.reader([header], delimiter=delimiter, **reading), [])):
            return delimiter
    return usual


def whole_rows(blocks: Iterator[bytes], header: Header, where: str) -> Iterator[tuple[bytes, int]]:
    """Cut a file in UTF-8 at ends of rows, so that no reader has a part of a row, and check that quotes are closed.

    Args:
        blocks: the file, cut anywhere.
        header: its beginning; rows are counted from the names of columns.
        where: the file, for messages.

    Yields:
        Whole rows, the first time with the header, and the number of rows before them, with those above the header.

    Raises:
        SourceError: where a quoted field goes on behind its closing quote, or the file ends within one: the rest would
            be read as one cell, and lost. Where the blocks raise a UnicodeError.
    """
    from voxpop.kernels.words import END, MODE, OPENED, QUOTED, RETURNED, ROW

    state, delimiter = np.zeros(4, np.int64), np.uint8(ord(header.delimiter))
    held: list[bytes] = []
    before, closed, slash = 0, True, b""

    def name_of(which: int) -> str:
        """Name the row in which reading is, or in which a quote was opened."""
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
    "escape=\"\\\\\" (--escape '\\'). Otherwise correct the row: cells with quotes in them are quoted, and their own "
    "quotes doubled."
)


def _without_escapes(data: bytes) -> bytes:
    """Return bytes with an x in place of each backslash and of the byte after it, without a last backslash."""
    return re.sub(rb"\\.", b"xx", data, flags=re.DOTALL).removesuffix(b"\\")


def _follow(data: bytes, delimiter: np.uint8, state: Int64s, *, quoted: bool = True) -> bool:
    """Follow the quotes of a block; return whether all cells end at their closing quotes."""
    from voxpop.kernels.words import END, MODE, PLAIN, ROW, START, follow_quotes

    plain = not quoted or (state[MODE] in (START, PLAIN) and b'"' not in data and b"\r" not in data)
    if plain and data:
        # Most files have no quotes, and need no more than their rows counted.
        state[ROW] += data.count(b"\n")
        state[MODE] = START if data[-1] in (ord("\n"), int(delimiter)) else PLAIN
        state[END] = data.rfind(b"\n") + 1
        return True
    return bool(follow_quotes(np.frombuffer(data, np.uint8), delimiter, state))


def not_of_encoding(row: str) -> str:
    """Build the error for a row in another encoding."""
    return (
        f'{row} holds bytes that are not of the encoding. Name the right one, such as encoding="cp1252" (--encoding '
        "cp1252), or save the file as UTF-8."
    )


FEW_BYTES: Final = 1 << 16
"""Smaller blocks are decoded by Python's own module; for larger ones the import of polars pays."""
DOUBTFUL: Final = r"^(?:[\[{]|-0$|-?\d+[.eE][-+.\deE]*$|-?\d{17}0$|-?\d{19}|(?i:-?inf|nan))"
"""Texts of polars that may stand for a nested value, for a double, which polars prints otherwise where two spellings
are equally near, or for an integer beyond 64 bits. Doubles below 2^53 without a fraction have one spelling, and larger
ones of 18 digits end with a zero."""
SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""Escapes that polars does not check for pairs."""


def json_lines(blocks: Iterator[bytes], columns: Sequence[Column], where: str) -> Iterator[pa.RecordBatch]:
    """Yield the columns of JSON lines.

    Args:
        blocks: bytes of the file, in order.
        columns: the columns to read; a line without one of them has a missing value.
        where: the file, for messages.

    Raises:
        SourceError: if a line is no JSON object, or a value does not fit; the message names the row.
        ColumnError: if the first block of lines has no value in a column.
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
    """Yield the columns of one JSON array of objects, `rows` of them at a time; see `json_lines`."""
    found = _object(data.removeprefix(b"\xef\xbb\xbf"))
    if not isinstance(found, list):
        raise SourceError(f"{where} is no JSON array in UTF-8. Check that it ends with a bracket, or write JSON lines.")
    for number, row in enumerate(found):
        if not isinstance(row, dict):
            raise SourceError(
                f"{where}, {row_called(number + 1)}: the element is no JSON object ({AS_ROWS}). Correct it."
            )
    for first in range(0, len(found), rows):
        yield batch_of_rows(found[first : first + rows], columns, where, first)


def json_batch(data: bytes, columns: Sequence[Column], where: str, first: int = 0) -> pa.RecordBatch:
    """Return the columns of some JSON lines.

    Args:
        data: whole lines in UTF-8.
        columns: the columns to read.
        where: the source, for messages.
        first: number of rows before these; the columns of the first rows must exist.
    """
    data = data.removeprefix(b"\xef\xbb\xbf") if first == 0 else data
    nested = any("." in each.name for each in columns)  # such as user.id, which may be a name or a path
    batch = _by_polars(data, columns, where, first) if len(data) > FEW_BYTES and not nested else None
    if batch is None or (first == 0 and any(each.null_count == len(each) for each in batch.columns)):
        return batch_of_rows(_rows(_lines(data), where, first), columns, where, first)
    return batch


def _by_polars(data: bytes, columns: Sequence[Column], where: str, first: int) -> pa.RecordBatch | None:
    """Return the columns as polars decodes them, or None if it cannot.

    Rows that polars may decode otherwise than the rule for single values are decoded one by one. Whether a row is one
    of them depends on this row only.
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
    except SourceError:  # the other way also finds its row
        return None
    # int64 (rows): the place of each row among the sure ones, which the others follow.
    order = int64_array(np.where(doubtful, frame.height + np.cumsum(doubtful), np.cumsum(~doubtful)) - 1)
    return pa.RecordBatch.from_arrays(
        [pa.concat_arrays(pair).take(order) for pair in zip(sure, others, strict=True)], names
    )


def _frame(data: bytes, columns: Sequence[Column], lists: bool) -> "tuple[pl.DataFrame, Bools] | None":
    """Return strings, or lists of them, and which rows are doubtful; None if polars cannot read all rows so."""
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
    # Null is a value where single values may be, also next to lists.
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
    """Return strings, or lists of them, as an array of the column's undeclared type."""
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
    """Return the objects of lines, decoded one by one."""
    rows: list[dict[str, Any]] = []
    for line in lines:
        row = _object(line)
        if not isinstance(row, dict):
            raise SourceError(f"{where}, {row_called(first + len(rows) + 1)}: {_not_an_object(line, row)}")
        rows.append(row)
    return rows


def _not_an_object(line: bytes, found: Any) -> str:
    """Return why a line is no row; the words depend on its form, and quote nothing."""
    if re.search(rb"\b(NaN|Infinity)\b", line):
        return "NaN and Infinity are no JSON. Write null for a missing number."
    if found is None and line.strip() in (b"{", b"[", b"[{"):
        return "the line is no complete JSON object. Write each object on one line, as jq -c does, or one array."
    return "the line is no JSON object in UTF-8. Correct the row."


def _object(line: bytes) -> Any:
    try:
        return _DECODER.decode(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None


def _refuse(name: str) -> Any:
    raise ValueError(name)


_DECODER: Final = json.JSONDecoder(object_pairs_hook=lambda pairs: dict(reversed(pairs)), parse_constant=_refuse)
"""Repeated names of an object have their first values, as polars reads them."""
