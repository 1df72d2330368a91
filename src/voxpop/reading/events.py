"""Conversion of event rows to sequences. A sequence contains a user's events in order of time, up to a long pause.

A fixed hash assigns users to parts because one part fits into memory even if all parts together do not. If memory is
limited, parts are stored in a work file. Within a part, users are in the order of their first event in the rows. A
user's events are in order of time, and events with the same time are in the order of their bytes. Therefore the order
of the rows affects only the order of users.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import ColumnError, InputError, SourceError
from voxpop.files.progress import row_called
from voxpop.kernels.arrays import Floats, Int32s, Int64s
from voxpop.reading.arrow import array_of, int64_array, int_codes, lists_of, numbers_of
from voxpop.reading.columns import CountedBatches
from voxpop.reading.keys import family, is_string, spelled, type_named, value_type
from voxpop.reading.limited.memory import MemoryLimit, WorkFile
from voxpop.reading.types import first_misfit
from voxpop.reading.users import encode_users, numbered_users, spread

# Convert event times to sortable numbers, and the longest pause within a session to the same unit.

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
PAUSE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(s|sec(?:ond)?s?|min(?:ute)?s?|h|hours?|d|days?|w|weeks?)\s*")
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
MOMENTS, NUMBERS = "times", "numbers"

Times = Int64s | Floats


def kind_of_times(column: pa.Array) -> str | None:
    """Return the name of the type of the first time in a column of strings.

    All rows of a source must have this type, so the result does not depend on which rows are read together.

    Returns:
        "int64", "timestamp[us]" or "timestamp[us, tz=UTC]", which are mutually exclusive. None if the column is not a
        column of strings, or if its first row has no valid time.
    """
    first = column.slice(0, 1)
    if pa.types.is_dictionary(first.type):
        first = first.dictionary_decode()
    if is_string(first.type) and len(first) and not first.null_count:
        for kind in (pa.int64(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
            with suppress(pa.ArrowInvalid):
                _cast(kind, first)
                return str(kind)
    return None


def times_of(column: pa.Array, where: str, name: str, first: int, kind: str | None) -> tuple[Times, str]:
    """Return the time of each event.

    Args:
        column: Dates, times or their ISO 8601 spellings, which become microseconds (nanoseconds remain unchanged), or
            numbers, which remain unchanged.
        where: The source, for messages.
        name: The name of the column.
        first: The number of earlier rows of the column.
        kind: The result of `kind_of_times` for the first rows of the source.

    Returns:
        The times and their unit, which is "numbers" or a unit of time such as "us".

    Raises:
        SourceError: If an event has no time, or its time has an invalid spelling.
        ColumnError: If the column has the wrong type.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_floating(column.type):
        column = column.cast(pa.float64())
        column = pc.if_else(pc.is_nan(column), None, column)
    if column.null_count:
        row = first + 1 + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise SourceError(
            f'{where}, {row_called(row)}: the column "{name}" is empty, so the event has no place in the order. '
            "Fill it in or remove the row."
        )
    if is_string(column.type):
        column = _parsed(column, where, name, first, kind)
    if pa.types.is_floating(column.type):
        return numbers_of(column), NUMBERS
    try:
        return _whole_times(column, name)
    except pa.ArrowInvalid:
        pass
    raise ColumnError(
        f'the column "{name}" contains times that do not fit into 64 bits in microseconds, or numbers from 2^63 on. '
        "Correct such values, or cast the column to float64."
    )


def _whole_times(column: pa.Array, name: str) -> tuple[Int64s, str]:
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("us"))
    if pa.types.is_timestamp(column.type):
        unit = "ns" if column.type.unit == "ns" else "us"
        return numbers_of(column.cast(pa.timestamp(unit, column.type.tz)).cast(pa.int64())), unit
    if pa.types.is_integer(column.type):
        return numbers_of(column.cast(pa.int64())), NUMBERS
    raise ColumnError(
        f'the column "{name}" must contain times, dates or numbers to order events by, got {column.type}.'
    )


def _cast(kind: pa.DataType, texts: pa.Array) -> pa.Array:
    return texts.cast(pa.string()).cast(kind)


def _parsed(texts: pa.Array, where: str, name: str, first: int, kind: str | None) -> pa.Array:
    """Return spellings of times as integers or as timestamps.

    Raises:
        SourceError: If a row has a different kind of time. The message contains the row number but not the value.
    """
    row = 0
    if kind is not None:
        try:
            return _cast(type_named(kind), texts)
        except pa.ArrowInvalid:
            row = first_misfit(texts, partial(_cast, type_named(kind)))
    raise SourceError(
        f'{where}, {row_called(first + row + 1)}: the value in the column "{name}" is neither an integer nor an ISO '
        "8601 time such as 2026-11-22 05:56:10 or 2026-11-22T05:56:10Z, or not of the same kind as the first row. "
        'All times must have a time zone, or none of them. Correct the row, or declare the type: types={"'
        + name
        + '": "timestamp[ns]"} for times with more than six digits '
        'after the second, "float64" for numbers with a fraction.'
    )


def pause_of(session_gap: Any, unit: str) -> float | int | None:
    """Return the longest pause within a session in the unit of the times, or None without a limit.

    Raises:
        InputError: If the argument is not a duration, or if times are numbers and the argument is not a number.
    """
    if session_gap is None:
        return None
    seconds = _seconds(session_gap)
    if unit == NUMBERS:
        if (
            seconds is not None
            or isinstance(session_gap, bool)
            or not isinstance(session_gap, int | float)
            or not session_gap >= 0
        ):
            raise InputError("the order of these events is a number, so session_gap= must be one of the same unit.")
        return session_gap
    if seconds is None:
        raise _no_length(session_gap)
    return round(seconds * PER_SECOND[unit])


def _no_length(session_gap: Any) -> InputError:
    return InputError(
        f'session_gap= must be a length of time, such as "30min", "45 seconds", "1h" or "1 day"; got {session_gap!r}.'
    )


def _seconds(session_gap: Any) -> float | None:
    if isinstance(session_gap, timedelta):
        return session_gap.total_seconds()
    found = PAUSE.fullmatch(session_gap) if isinstance(session_gap, str) else None
    return float(found[1]) * SECONDS[found[2][0]] if found else None


_PARTS = 256
SHARE_OF_PART = 16
"""The memory needed to sort a part, as a multiple of its size."""
SHARE_WAITING = 8
"""Rows are collected until they take one eighth (1 / 8) of the available memory, and are then written together."""
SESSIONS_AT_ONCE = 1 << 15
_THE_EVENTS = "the events"


def check_events(kind: str, order: Any, session_gap: Any) -> None:
    """Check the arguments of `read` that convert events to sequences.

    Raises:
        InputError: If `order` or `session_gap` is invalid for this call.
    """
    if order is None:
        if session_gap is not None:
            raise InputError("session_gap= cuts events in order of time. Name the time column as order=.")
        return
    if kind != "sequence" or not isinstance(order, str):
        raise InputError("order= applies only to sequence=. Remove it, or read the events with sequence=.")
    if session_gap is not None and _seconds(session_gap) is None and not isinstance(session_gap, int | float):
        raise _no_length(session_gap)


@final
@dataclass(slots=True)
class Events:
    """The rule for converting events to sequences.

    Attributes:
        order: The time column.
        session_gap: The longest pause within a session. By default, each user has one sequence.
        limit: The memory limit.
        kind: The kind of times that are strings; see `kind_of_times`. By default, the first row determines the kind.
        left_out: The number of skipped events, which are the events with null content.
    """

    order: str
    session_gap: Any = None
    limit: MemoryLimit | None = None
    kind: str | None = None
    left_out: int = 0
    _unit: str | None = field(default=None, init=False)

    def sequences(self, batches: CountedBatches, user: str, column: str) -> CountedBatches:
        """Yield users and their sequences.

        Args:
            batches: The source of each batch, the number of earlier events, and the batch of users, contents and times.
            user: The name of the user column, which contains integers or strings.
            column: The name of the content column.

        Yields:
            The source of each batch, the number of earlier sequences, and the batch. Each batch has two columns, the
            user and one of the user's sequences. A user's sequences are adjacent.
        """
        store, done = _Parts(self.limit), 0
        for batch in self._checked(batches, user, column):
            store.add(batch)
        for part in store.parts():
            if self.limit is not None:
                self.limit.require(SHARE_OF_PART * part.nbytes, "the events of some users")
            for batch in self._sessions(part, user, column):
                yield _THE_EVENTS, done, batch
                done += batch.num_rows

    def _checked(self, batches: CountedBatches, user: str, column: str) -> Iterator[pa.RecordBatch]:
        """Yield users, strings and times, each of one type, without empty events."""
        for where, first, batch in batches:
            moments = batch.column(self.order)
            self.kind = self.kind or kind_of_times(moments)
            times, unit = times_of(moments, where, self.order, first, self.kind)
            if self._unit not in (None, unit):
                raise ColumnError(
                    f'the column "{self.order}" contains times of several kinds; give it one type everywhere.'
                )
            self._unit = unit
            symbols = spelled(_single(batch.column(column), column), column)
            rows = pa.RecordBatch.from_arrays(
                [batch.column(user), symbols, array_of(times)], ["user", "symbol", "time"]
            )
            held = symbols.is_valid()
            self.left_out += batch.num_rows - int(pc.sum(held).as_py() or 0)
            yield rows if symbols.null_count == 0 else rows.filter(held)

    def _sessions(self, part: pa.Table, user: str, column: str) -> Iterator[pa.RecordBatch]:
        owners = part["user"]
        codes, _, _ = encode_users([numbered_users(chunk) for chunk in owners.chunks])
        symbols = part["symbol"].combine_chunks().dictionary_encode()
        ranks = np.empty(len(symbols.dictionary), np.int64)
        # For each code, the rank of its symbol among all symbols in the order of their bytes. This rank orders events
        # with the same time.
        ranks[numbers_of(pc.array_sort_indices(symbols.dictionary)).astype(np.int64)] = np.arange(ranks.size)
        times = np.concatenate([numbers_of(chunk) for chunk in part["time"].chunks])
        # Sort by user, then time, then symbol, so that the order of rows has no influence.
        order = np.lexsort((ranks[int_codes(symbols)], times, codes))
        starts = _starts(codes[order], times[order], pause_of(self.session_gap, str(self._unit)))
        whole = owners.combine_chunks()
        for begin in range(0, starts.size, SESSIONS_AT_ONCE):
            mine = starts[begin : begin + SESSIONS_AT_ONCE]
            end = starts[begin + mine.size] if begin + mine.size < starts.size else order.size
            rows = order[mine[0] : end]
            lists = lists_of(symbols.take(int64_array(rows)).dictionary_decode(), np.diff([*mine.tolist(), int(end)]))
            yield pa.RecordBatch.from_arrays([whole.take(int64_array(order[mine])), lists], [user, column])


def _single(column: pa.Array, name: str) -> pa.Array:
    if family(value_type(column.type)) is None and not pa.types.is_null(column.type):
        raise ColumnError(
            f'order= takes one event per row, and the column "{name}" contains {column.type}. Give strings or whole '
            "numbers, or remove order= if each row contains a whole list."
        )
    return column


def _starts(codes: Int32s, times: Times, pause: float | int | None) -> Int64s:
    """Return the positions in sorted events at which sequences begin."""
    begins = np.ones(codes.size, np.bool_)
    begins[1:] = codes[1:] != codes[:-1]
    if pause is not None:
        # A pause of exactly the given length still belongs to the session.
        begins[1:] |= np.diff(times) > pause
    return np.flatnonzero(begins)


@final
class _Parts:
    """Rows grouped by the part of their user, in memory or in a work file."""

    def __init__(self, limit: MemoryLimit | None) -> None:
        self._most = 0 if limit is None else limit.room // SHARE_WAITING
        self._file: WorkFile | None = None if limit is None else limit.file()
        self._waiting: list[list[pa.RecordBatch]] = [[] for _ in range(_PARTS)]
        self._written: list[list[tuple[int, int]]] = [[] for _ in range(_PARTS)]
        self._held = 0
        self._schema: pa.Schema | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Assign the rows of a batch to their parts."""
        if batch.num_rows == 0:
            return
        codes, keys, _ = encode_users([numbered_users(batch.column("user"))])
        # The upper eight bits of a mixed key assign all rows of a user to one of the 256 parts.
        part = (spread(keys) >> np.uint64(56)).astype(np.int64)[codes]
        order = np.argsort(part, kind="stable")
        ends = np.searchsorted(part[order], np.arange(_PARTS + 1))
        dealt = batch.take(int64_array(order))
        for number in np.flatnonzero(np.diff(ends)).tolist():
            self._waiting[number].append(dealt.slice(int(ends[number]), int(ends[number + 1] - ends[number])))
        self._held += dealt.nbytes
        if self._file is not None and self._held > self._most:
            self._write(self._file)

    def parts(self) -> Iterator[pa.Table]:
        """Yield the rows of each nonempty part."""
        if self._file is not None and any(self._written):
            self._write(self._file)
        for waiting, written in zip(self._waiting, self._written, strict=True):
            batches = [*self._read(written), *waiting]
            waiting.clear()
            if batches:
                yield pa.Table.from_batches(batches)

    def _write(self, file: WorkFile) -> None:
        for waiting, written in zip(self._waiting, self._written, strict=True):
            if waiting:
                batch = pa.Table.from_batches(waiting).combine_chunks().to_batches()[0]
                self._schema = batch.schema
                content = np.frombuffer(batch.serialize(), np.uint8)
                written.append((file.append(content), content.size))
                waiting.clear()
        self._held = 0

    def _read(self, written: list[tuple[int, int]]) -> Iterator[pa.RecordBatch]:
        if self._file is not None:
            for begin, size in written:
                yield pa.ipc.read_record_batch(pa.py_buffer(self._file.read(begin, size, np.uint8)), self._schema)
