"""CSV as people export it: which delimiter, which columns, and quotes that are closed."""

import csv
import io
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from voxpop.errors import ColumnError, SourceError

DELIMITERS = (",", ";", "\t", "|")
NEAR = 0.75
"""How alike a name must be to be suggested; others are not shown, for the first row may be data."""


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

    def __init__(self, stream: Any, delimiter: str, where: str) -> None:
        self._stream, self._where = stream, where
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
        data: bytes = self._stream.read() if size < 0 else self._stream.read(size)
        self._follow(data)
        return data

    def _follow(self, data: bytes) -> None:
        from voxpop.kernels.quotes import MODE, OPENED, PLAIN, QUOTED, ROW, START, follow_quotes

        row = None
        if data and self._state[MODE] in (START, PLAIN) and b'"' not in data and b"\r" not in data:
            # Most files have no quotes, and need no more than their rows counted.
            self._state[ROW] += data.count(b"\n")
            self._state[MODE] = START if data[-1] in (ord("\n"), int(self._delimiter)) else PLAIN
        elif data:
            fine = follow_quotes(np.frombuffer(data, np.uint8), self._delimiter, self._state)
            row = None if fine else self._state[OPENED]
        elif self._state[MODE] == QUOTED:
            row = self._state[OPENED]
        if row is not None:
            place = f"row {int(row):,}" if row else "the first row"
            raise SourceError(
                f"{self._where}: a quote is opened in {place} and not closed before the next cell, so rows behind it "
                "would be swallowed. Mend the row: cells with quotes in them are quoted, and their own quotes doubled."
            )
