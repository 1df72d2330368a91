"""CSV as people export it: which delimiter and encoding, which columns, and quotes that are closed."""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, final

import numpy as np

from voxpop.corpus.reading.encodings import known_encoding
from voxpop.corpus.reading.failures import quieten
from voxpop.errors import ColumnError, InputError, SourceError

DELIMITERS = (",", ";", "\t", "|")
SAID = re.compile(r'"?sep=([!#-~\t ])"?\s*', re.IGNORECASE)
NEAR = 0.75
"""How alike a name must be to be suggested; others are not shown, for the first row may be data."""


@final
@dataclass(frozen=True, slots=True)
class Dialect:
    """How files of CSV are written, as far as a caller says; what is None is found.

    Attributes:
        delimiter: what separates the columns, one character of ASCII.
        encoding: how letters are written, by Python's name.

    Raises:
        InputError: where either is none.
    """

    delimiter: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        mark = self.delimiter
        if mark is not None and not (
            isinstance(mark, str) and len(mark) == 1 and mark.isascii() and mark not in '"\r\n'
        ):
            raise InputError(
                f'`delimiter` must be one character of ASCII, such as ";" or a tab, and no quote or line break; got '
                f"{mark!r}."
            )
        if self.encoding is not None:
            known = known_encoding(self.encoding) if isinstance(self.encoding, str) else None
            if known is None:
                raise InputError(
                    f'`encoding` must be one that Python knows, such as "cp1252", "utf-16" or "shift_jis"; got '
                    f"{self.encoding!r}."
                )
            object.__setattr__(self, "encoding", known)

    @property
    def given(self) -> bool:
        """Whether a caller said anything."""
        return self.delimiter is not None or self.encoding is not None


FOUND: Final = Dialect()
"""Everything is found."""


class Header(NamedTuple):
    """How a file of CSV begins.

    Attributes:
        names: of its columns; None where the file is empty.
        delimiter: what separates them.
        above: how many rows are above them: one where the first row says what the delimiter is.
    """

    names: list[str] | None
    delimiter: str
    above: int = 0


def said_delimiter(row: str) -> str | None:
    """Return the delimiter that a first row names, as spreadsheets read and write it (`sep=;`); None for all others."""
    said = SAID.fullmatch(row)
    return said[1] if said else None


def delimiter_of(header: str, wanted: Sequence[str], usual: str) -> str:
    """Return what separates the columns: the usual one, unless only another gives the wanted ones.

    Args:
        header: the first row of the file, as it is.
        wanted: names of columns.
        usual: for files with this ending.
    """
    for delimiter in (usual, *(each for each in DELIMITERS if each != usual)):
        if set(wanted) <= set(next(csv.reader([header], delimiter=delimiter), [])):
            return delimiter
    return usual


def check_header(names: list[str], wanted: Sequence[str], where: str) -> None:
    """Refuse a header without the wanted columns, or with two of one name.

    Raises:
        ColumnError: for a missing column; what the first row holds is not shown, for without a header it is data.
        SourceError: for a column that is there twice.
    """
    import difflib

    for name in wanted:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1, cutoff=NEAR)
            hint = f' Did you mean "{close[0]}"?' if close else ""
            raise ColumnError(
                f'{where} has no column "{name}" in its first row, which has {len(names)}.{hint} Columns must be named '
                "there, and separated by commas, semicolons, tabs or bars; the row is not shown, for it may be data."
            )
        if names.count(name) > 1:
            raise SourceError(f'{where} has {names.count(name)} columns called "{name}"; rename all but one.')


@final
class FollowedQuotes(io.RawIOBase):
    """A stream whose quotes are followed as it goes by.

    Raises:
        SourceError: from a read, where a quoted field goes on behind its closing quote, or the file ends within one:
            what follows would be taken for one cell, and lost.
    """

    def __init__(self, stream: Any, delimiter: str, where: str, above: int = 0) -> None:
        """Follow a stream of UTF-8.

        Args:
            stream: what is read.
            delimiter: what separates cells.
            where: the file, for messages.
            above: how many rows are above the names of columns; rows are counted from there.
        """
        self._stream, self._where, self._above = stream, where, above
        self._delimiter = np.uint8(ord(delimiter))
        self._state = np.zeros(3, np.int64)

    def readable(self) -> bool:
        """Say yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the next bytes."""
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._follow(data)
        return len(data)

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; none at the end."""
        from voxpop.kernels.quotes import ROW

        try:
            data: bytes = self._stream.read() if size < 0 else self._stream.read(size)
        except UnicodeError as error:
            quieten(error)
            raise SourceError(f"{self._where}: {not_of_encoding(self._row(ROW))}") from None
        self._follow(data)
        return data

    def _follow(self, data: bytes) -> None:
        from voxpop.kernels.quotes import MODE, OPENED, PLAIN, QUOTED, ROW, START, follow_quotes

        fine = True
        if data and self._state[MODE] in (START, PLAIN) and b'"' not in data and b"\r" not in data:
            # Most files have no quotes, and need no more than their rows counted.
            self._state[ROW] += data.count(b"\n")
            self._state[MODE] = START if data[-1] in (ord("\n"), int(self._delimiter)) else PLAIN
        elif data:
            fine = bool(follow_quotes(np.frombuffer(data, np.uint8), self._delimiter, self._state))
        else:
            fine = bool(self._state[MODE] != QUOTED)
        if not fine:
            raise SourceError(
                f"{self._where}: a quote is opened in {self._row(OPENED)} and not closed before the next cell, so rows "
                "behind it would be swallowed. Mend the row: cells with quotes in them are quoted, and their own "
                "quotes doubled."
            )

    def _row(self, which: int) -> str:
        """Name the row in which reading is, or in which a quote was opened."""
        row = int(self._state[which]) - self._above
        return f"row {row:,}" if row > 0 else "the first row"


def not_of_encoding(row: str) -> str:
    """Say that a row is written in another encoding, and what to do."""
    return (
        f'{row} holds bytes that are not of the encoding. Name the right one, such as encoding="cp1252" (--encoding '
        "cp1252), or save the file as UTF-8."
    )
