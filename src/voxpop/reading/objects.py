"""Python's own values as Arrow arrays: all of one type, for Arrow would cut times to dates where it met a date first.

The type of a column must not depend on one row more or less; otherwise the types in a release reveal the user of that
row. So types are never joined: a list of two types is refused.
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from numbers import Integral, Real
from typing import Any
from uuid import UUID

import pyarrow as pa

from voxpop.errors import ColumnError

KINDS = (
    (bool, "truth values"),
    (Integral, "whole numbers"),
    (str, "strings"),
    (datetime, "times"),
    (date, "dates"),
    (time, "times of day"),
    (Decimal, "decimals"),
    (bytes, "bytes"),
    (UUID, "UUIDs"),
    (Real, "fractions"),
)
LISTS = "lists"
QUICK: dict[type, str | None] = {
    type(None): None,
    bool: "truth values",
    int: "whole numbers",
    str: "strings",
    date: "dates",
    Decimal: "decimals",
    bytes: "bytes",
}
"""Types that fully determine the handling of a value, and are fast to check for a million values."""


def array_of_objects(values: Iterable[Any], column: str) -> pa.Array:
    """Return values as an array of the one type that they have; None is null, times with a zone are in UTC.

    Args:
        values: strings, whole numbers, truth values, dates, times, decimals, bytes or UUIDs, or lists of them.
        column: their name, for messages.

    Raises:
        ColumnError: where they are of several types, or of one that is no key; it names types, never a value.
    """
    rows = list(values)
    types = set(map(type, rows))
    kinds = {QUICK[each] for each in types} if types <= QUICK.keys() else {_kind(each) for each in rows}
    kinds -= {None}
    if len(kinds) > 1:
        raise ColumnError(f'the column "{column}" holds {" and ".join(sorted(map(str, kinds)))}; give it one type.')
    kind = next(iter(kinds), None)
    if kind == LISTS:
        return _lists(rows, column)
    if kind is None:
        return pa.nulls(len(rows))
    try:
        return _MAKE[kind](rows) if kind in _MAKE else pa.array(rows, from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        pass
    if kind == "strings":
        raise ColumnError(
            f'the column "{column}" holds half of a surrogate pair, which is not valid Unicode. Correct it.'
        )
    raise ColumnError(f'the column "{column}" holds {kind} that Arrow cannot hold together; cast them to strings.')


def _kind(value: Any) -> str | None:
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, list | tuple | set | frozenset) or hasattr(value, "__array__"):
        return LISTS if not isinstance(value, str) and getattr(value, "ndim", 1) == 1 else _scalar_kind(value)
    return _scalar_kind(value)


def _scalar_kind(value: Any) -> str | None:
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if type(value).__name__ in ("bool_", "bool"):
        return "truth values"
    name = next((name for kind, name in KINDS if isinstance(value, kind)), None)
    if name == "times" and value.tzinfo is not None:
        return "times with a zone"
    return name or f"values of type {type(value).__name__}"


def _lists(rows: list[Any], column: str) -> pa.Array:
    lists = [None if _kind(each) is None else list(each) for each in rows]
    flat = array_of_objects([value for each in lists if each is not None for value in each], column)
    ends = [0]
    for each in lists:
        ends.append(ends[-1] + (0 if each is None else len(each)))
    starts = pa.array([None if each is None else start for each, start in zip(lists, ends, strict=False)], pa.int64())
    offsets = pa.concat_arrays([starts, pa.array(ends[-1:], pa.int64())])
    return pa.LargeListArray.from_arrays(offsets, flat)


def _strings(rows: list[Any]) -> pa.Array:
    return pa.array([None if each is None else str(each) for each in rows], pa.large_string())


def _in_utc(rows: list[Any]) -> pa.Array:
    moments = [None if _kind(each) is None else each.astimezone(UTC) for each in rows]
    return pa.array(moments, pa.timestamp("us", "UTC"))


_MAKE: dict[str, Any] = {"UUIDs": _strings, "times with a zone": _in_utc}
