"""Keys of any type as strings and back: one spelling for each value, and one value for each spelling.

| type | spelling |
|---|---|
| string | itself |
| whole number, truth value | `-7`, `true` |
| date, time | `2026-11-22`, `05:56:10.25` |
| date and time | `2026-11-22 05:56:10`, in UTC with a `Z` behind it where the column has a time zone |
| decimal | `-1.5`, without zeros at the end |
| bytes, UUID | hexadecimal digits; those of a UUID with hyphens |

Fractions that are only approximately what they say (floats) have no spelling: two of them that print alike may differ.
"""

import re
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from voxpop.arrow import string_array
from voxpop.errors import ColumnError

DECIMALS = re.compile(r"decimal(32|64|128|256)\((\d+), (-?\d+)\)")
ZONED = re.compile(r"timestamp\[(s|ms|us|ns), tz=(.+)\]")
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31 in days from 1970: years of four digits, which is what a spelling has room for."""
PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
UNIT = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def is_string(kind: pa.DataType) -> bool:
    """Say whether a type is one of Arrow's strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_uuid(kind: pa.DataType) -> bool:
    """Say whether a type is Arrow's UUID."""
    return getattr(kind, "extension_name", None) == "arrow.uuid"


def family(kind: pa.DataType) -> str | None:
    """Return what values of a type are called, None for those without a spelling; only one family is compared."""
    types = pa.types
    tests = {
        "strings": is_string,
        "whole numbers": types.is_integer,
        "truth values": types.is_boolean,
        "dates": types.is_date,
        "times of day": types.is_time,
        "decimals": types.is_decimal,
        "bytes": lambda each: types.is_binary(each) or types.is_large_binary(each) or types.is_fixed_size_binary(each),
        "UUIDs": is_uuid,
        "times": lambda each: types.is_timestamp(each) and each.tz is None,
        "times with a zone": lambda each: types.is_timestamp(each) and each.tz is not None,
    }
    return next((name for name, test in tests.items() if test(kind)), None)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that released keys of a column have: the column's own, without its way of storing it."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if is_string(kind) or is_uuid(kind) or pa.types.is_null(kind):
        return pa.string()
    if family(kind) == "bytes":
        return pa.binary()
    return pa.date32() if pa.types.is_date(kind) else kind


def type_named(name: str) -> pa.DataType:
    """Return the type that `str` of it names.

    Raises:
        ValueError: where there is none.
    """
    if found := DECIMALS.fullmatch(name):
        width, digits, scale = map(int, found.groups())
        return getattr(pa, f"decimal{width}")(digits, scale)
    if found := ZONED.fullmatch(name):
        return pa.timestamp(found[1], found[2])
    return pa.type_for_alias(name)


def spelled(values: pa.Array, column: str) -> pa.LargeStringArray:
    """Return values as strings.

    Args:
        values: of any type of the table above, also dictionary-encoded; nulls stay.
        column: their name, for messages.

    Raises:
        ColumnError: for other types, and years before 1 or after 9999.
    """
    if pa.types.is_dictionary(values.type):
        return spelled(values.dictionary, column).take(values.indices)
    if pa.types.is_null(values.type):
        return values.cast(pa.large_string())
    name = family(values.type)
    if name is None:
        raise _refusal(values.type, column)
    if name in ("strings", "whole numbers", "truth values"):
        return values.cast(pa.large_string())
    coded = values.dictionary_encode() if name != "UUIDs" else values.storage.dictionary_encode()
    return _SPELL[name](coded.dictionary, column).take(coded.indices)


def unspelled(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return strings that `spelled` made as values of a type.

    Raises:
        ValueError: where they are not of it (pyarrow's own errors are of this kind, too).
    """
    name = family(kind)
    if name == "times of day":
        return _numbers([_ticks(text, UNIT[kind.unit]) for text in texts.to_pylist()], kind.bit_width, kind)
    if name == "times with a zone":
        naive = pc.replace_substring_regex(texts, "Z$", "").cast(pa.timestamp(kind.unit))
        return naive.cast(pa.int64()).cast(kind)
    if name == "bytes":
        return pa.array([bytes.fromhex(text) for text in texts.to_pylist()], kind)
    if name == "decimals":
        return pa.array([Decimal(text) for text in texts.to_pylist()], kind)
    return texts.cast(kind)


def _refusal(kind: pa.DataType, column: str) -> ColumnError:
    if pa.types.is_floating(kind):
        way = (
            "Floats are only approximately what they print. Cast them to whole numbers (pandas makes floats of whole "
            'numbers with gaps: .astype("Int64")), to decimals, or to strings.'
        )
    else:
        way = (
            "Keys are strings, whole numbers, truth values, dates, times, decimals, bytes or UUIDs, or several such "
            "columns; cast it to one of these."
        )
    return ColumnError(f'the column "{column}" holds {kind}. {way}')


def _spell_dates(days: pa.Array, column: str) -> pa.Array:
    days = days.cast(pa.date32())
    _check_years(days.cast(pa.int32()), 1, column)
    return days.cast(pa.large_string())


def _spell_moments(moments: pa.Array, column: str) -> pa.Array:
    kind, ticks = moments.type, moments.cast(pa.int64())
    _check_years(ticks, PER_DAY[kind.unit], column)
    texts = _without_zeros(ticks.cast(pa.timestamp(kind.unit)).cast(pa.large_string()))
    return texts if kind.tz is None else pc.binary_join_element_wise(texts, _large("Z"), _large(""))


def _check_years(ticks: pa.Array, per_day: int, column: str) -> None:
    ends = pc.min_max(ticks)
    if ends["min"].is_valid and not FIRST_DAY * per_day <= ends["min"].as_py() <= ends["max"].as_py() < (
        (LAST_DAY + 1) * per_day
    ):
        raise ColumnError(f'the column "{column}" holds years before 1 or after 9999; make them null or strings.')


def _large(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _without_zeros(texts: pa.Array) -> pa.Array:
    """Cut zeros off the end of fractions, so that all units of time spell alike."""
    return pc.replace_substring_regex(pc.replace_substring_regex(texts, r"(\.\d*?)0+$", r"\1"), r"\.$", "")


def _spell_decimals(values: pa.Array, _: str) -> pa.Array:
    texts = [format(value, "f") for value in values.to_pylist()]
    return string_array([text.rstrip("0").rstrip(".") if "." in text else text for text in texts])


_SPELL: dict[str, Any] = {
    "dates": _spell_dates,
    "times": _spell_moments,
    "times with a zone": _spell_moments,
    "times of day": lambda values, _: _without_zeros(values.cast(pa.large_string())),
    "decimals": _spell_decimals,
    "bytes": lambda values, _: string_array([value.hex() for value in values.to_pylist()]),
    "UUIDs": lambda values, _: string_array([str(UUID(bytes=value)) for value in values.to_pylist()]),
}


def _ticks(text: str, digits: int) -> int:
    """Return a time of day in units of so many digits behind the second."""
    whole, _, fraction = text.partition(".")
    hours, minutes, seconds = map(int, whole.split(":"))
    if len(fraction) > digits:
        raise ValueError("finer than its type")
    ticks: int = (hours * 3600 + minutes * 60 + seconds) * 10**digits
    return ticks + int(fraction.ljust(digits, "0") or 0)


def _numbers(ticks: list[int], bits: int, kind: pa.DataType) -> pa.Array:
    return pa.array(ticks, pa.int32() if bits == 32 else pa.int64()).cast(kind)
