"""When events happened, as numbers that sort, and the longest pause within a session in the same unit."""

import re
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.arrays import Floats, Int64s
from voxpop.arrow import numbers_of
from voxpop.errors import ColumnError, InputError, SourceError
from voxpop.spelling import is_string

SECONDS = {"s": 1, "sec": 1, "min": 60, "h": 3600, "d": 86_400}
PAUSE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(s|sec|min|h|d)\s*")
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
MOMENTS, NUMBERS = "times", "numbers"

Times = Int64s | Floats


def times_of(column: pa.Array, where: str, name: str, first: int) -> tuple[Times, str]:
    """Return when each event happened.

    Args:
        column: dates, times or their ISO 8601 spelling, which become microseconds (nanoseconds stay what they are); or
            numbers, which stay what they are.
        where: what is read, for messages.
        name: of the column.
        first: rows of it that went by before.

    Returns:
        The times, and what they count: "numbers", or the unit of a second that they are in.

    Raises:
        SourceError: where an event has no time, or a spelling that is none.
        ColumnError: for other types.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    if column.null_count:
        row = first + 1 + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise SourceError(
            f'{where}, row {row:,}: the column "{name}" is empty, so the event has no place in the order.'
        )
    if is_string(column.type):
        column = _parsed(column, where, name)
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("us"))
    if pa.types.is_timestamp(column.type):
        unit = "ns" if column.type.unit == "ns" else "us"
        return numbers_of(column.cast(pa.timestamp(unit, column.type.tz)).cast(pa.int64())), unit
    if pa.types.is_integer(column.type):
        return numbers_of(column.cast(pa.int64())), NUMBERS
    if pa.types.is_floating(column.type):
        return numbers_of(column.cast(pa.float64())), NUMBERS
    raise ColumnError(f'the column "{name}" must hold times, dates or numbers to order events by, got {column.type}.')


def _parsed(column: pa.Array, where: str, name: str) -> pa.Array:
    try:
        return column.cast(pa.string()).cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        pass
    try:
        return column.cast(pa.string()).cast(pa.timestamp("us", "UTC"))
    except pa.ArrowInvalid:
        pass
    raise SourceError(
        f'{where}: the column "{name}" holds strings that are no times as 2026-11-22 05:56:10 or 2026-11-22T05:56:10Z, '
        "all with a time zone or all without. Convert them first."
    )


def pause_of(session: Any, unit: str) -> float | int | None:
    """Return the longest pause within a session in the unit of the times; None where nothing cuts.

    Raises:
        InputError: where it is no length of time, or a number is wanted because times are numbers.
    """
    if session is None:
        return None
    seconds = _seconds(session)
    if unit == NUMBERS:
        if seconds is not None or isinstance(session, bool) or not isinstance(session, int | float) or not session >= 0:
            raise InputError("the order of these events is a number, so session= must be one of the same unit.")
        return session
    if seconds is None:
        raise InputError(f'session= must be a length of time, such as "30min", "45s", "1h" or "1d"; got {session!r}.')
    return round(seconds * PER_SECOND[unit])


def check_session(session: Any) -> None:
    """Refuse what is neither a length of time nor a number, before anything is read."""
    if session is not None and _seconds(session) is None and not isinstance(session, int | float):
        raise InputError(f'session= must be a length of time, such as "30min", "45s", "1h" or "1d"; got {session!r}.')


def _seconds(session: Any) -> float | None:
    if isinstance(session, timedelta):
        return session.total_seconds()
    found = PAUSE.fullmatch(session) if isinstance(session, str) else None
    return float(found[1]) * SECONDS[found[2]] if found else None
