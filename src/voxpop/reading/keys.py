"""The items of a corpus as columns with names and types, and the conversion between rows and items.

An item of one column is the column's value as this module spells it. An item of several columns consists of the
spellings of their values, separated by bars. A backslash precedes each bar and backslash within a spelling, so two keys
never become one item.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any, Final, final
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import ColumnError
from voxpop.reading.arrow import joined, string_array

# Conversion of keys of any type to strings and back. Different values have different spellings.
#
# | type | spelling |
# |---|---|
# | string | itself |
# | whole number, truth value | `-7`, `true` |
# | date, time | `2026-11-22`, `05:56:10.25` |
# | date and time | `2026-11-22 05:56:10`, in UTC with a final `Z` if the column has a time zone |
# | decimal | `-1.5`, without zeros at the end |
# | bytes, UUID | hexadecimal digits, with hyphens for a UUID |
#
# Approximate fractions (floats) have no spelling, because two floats with the same printed form may differ.

DECIMALS = re.compile(r"decimal(32|64|128|256)\((\d+),\s*(-?\d+)\)")
ZONED = re.compile(r"timestamp\[(s|ms|us|ns), tz=(.+)\]")
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31 in days from 1970. Spelled years have four digits."""
MOST_DIGITS = 38
"""The maximum number of digits of a decimal in polars and most databases."""
TIME_OF_DAY = re.compile(r"(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\.(\d+))?", re.ASCII)
PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_UNIT = {"s": 0, "ms": 3, "us": 6, "ns": 9}


def is_string(kind: pa.DataType) -> bool:
    """Check whether a type is one of Arrow's string types."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_list(kind: pa.DataType) -> bool:
    """Check whether a type is one of Arrow's list types."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of a dictionary type, or any other type unchanged."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_uuid(kind: pa.DataType) -> bool:
    """Check whether a type is Arrow's UUID."""
    return getattr(kind, "extension_name", None) == "arrow.uuid"


def family(kind: pa.DataType) -> str | None:
    """Return a type's family, or None for types without a spelling. Only values of one family are compared."""
    types = pa.types
    tests = {
        "strings": is_string,
        "whole numbers": types.is_integer,
        "truth values": types.is_boolean,
        "dates": types.is_date,
        "times of day": types.is_time,
        "decimals": lambda each: types.is_decimal(each) and each.scale <= MOST_DIGITS,
        "bytes": _is_bytes,
        "UUIDs": is_uuid,
        "times": lambda each: types.is_timestamp(each) and each.tz is None,
        "times with a zone": lambda each: types.is_timestamp(each) and each.tz is not None and _is_zone(each.tz),
    }
    return next((name for name, test in tests.items() if test(kind)), None)


def _is_bytes(kind: pa.DataType) -> bool:
    types = pa.types
    tests = types.is_binary, types.is_large_binary, types.is_fixed_size_binary, types.is_binary_view
    return any(test(kind) for test in tests)


@cache
def _is_zone(name: str) -> bool:
    """Check whether Python supports a time zone. Times in other zones cannot be converted to Python values."""
    try:
        pa.lib.string_to_tzinfo(name)
    except (ValueError, ImportError, KeyError):
        return False
    return True


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of released keys of a column, which does not depend on how the column is stored.

    Decimals become decimal128 with a scale from 0 to the number of digits, because every file and table format has this
    type.
    """
    kind = value_type(kind)
    if is_string(kind) or is_uuid(kind) or pa.types.is_null(kind):
        return pa.string()
    if family(kind) == "bytes":
        return pa.binary()
    if family(kind) == "decimals":
        scale = max(0, kind.scale)
        return pa.decimal128(min(MOST_DIGITS, max(scale, kind.precision - min(0, kind.scale))), scale)
    return pa.date32() if pa.types.is_date(kind) else kind


def kind_of_values(kind: pa.DataType) -> tuple[str, pa.DataType] | None:
    """Return the family and the type of values, or of elements of lists.

    All tables of a source must have the same family and type. The result does not depend on how values are stored. Null
    declares no type (None), a dictionary has the type of its values, and all strings have one type.
    """
    kind = value_type(kind.value_type if is_list(kind) else kind)
    return None if pa.types.is_null(kind) else (str(family(kind)), plain_type(kind))


def type_named(name: str) -> pa.DataType:
    """Return the Arrow type with this name, as printed by `str`.

    Raises:
        ValueError: If no such type exists.
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
        values: Values of any type in the table above, which may be dictionary-encoded. Nulls remain.
        column: The name of the column, for messages.

    Raises:
        ColumnError: If the type has no spelling, or `unspelled` could not convert a value back to a Python value. Only
            this function decides which values have a spelling.
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
    stored = values.storage if name == "UUIDs" else _plain_decimals(values, column) if name == "decimals" else values
    coded = stored.dictionary_encode()
    return _SPELL[name](coded.dictionary, column).take(coded.indices)


def unspelled(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the values of a type from the strings that `spelled` returned.

    Raises:
        ValueError: If the strings are not values of this type. pyarrow's own errors are ValueErrors too.
    """
    name = family(kind)
    if name == "times of day":
        ticks = [None if text is None else _ticks(text, _UNIT[kind.unit]) for text in texts.to_pylist()]
        return pa.array(ticks, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    if name == "times with a zone":
        naive = pc.replace_substring_regex(texts, "Z$", "").cast(pa.timestamp(kind.unit))
        return naive.cast(pa.int64()).cast(kind)
    if name == "bytes":
        return pa.array([None if text is None else bytes.fromhex(text) for text in texts.to_pylist()], kind)
    if name == "decimals":
        return pa.array([None if text is None else Decimal(text) for text in texts.to_pylist()], kind)
    return texts.cast(kind)


def _refusal(kind: pa.DataType, column: str) -> ColumnError:
    if isinstance(kind, pa.BaseExtensionType) and kind.extension_name.startswith("pandas."):
        # for example pandas.period and pandas.interval
        way = 'Convert it in pandas to strings, with .astype("string"), or periods to times, with .dt.to_timestamp().'
        return ColumnError(f'the column "{column}" contains values of {kind.extension_name}. {way}')
    if isinstance(kind, pa.BaseExtensionType):
        way = "Cast it in the source to a plain type, such as cast(column as text) in a query."
    elif pa.types.is_floating(kind):
        way = (
            "Floats only approximate the numbers that they print. Cast them to whole numbers (pandas makes floats of "
            'whole numbers with gaps: .astype("Int64")), to decimals, or to strings.'
        )
    else:
        way = (
            "Keys are strings, whole numbers, truth values, dates, times, decimals, bytes or UUIDs, or several such "
            "columns; cast it to one of these."
        )
    return ColumnError(f'the column "{column}" contains {kind}. {way}')


def _spell_dates(dates: pa.Array, column: str) -> pa.Array:
    if pa.types.is_date64(dates.type):
        ticks, per_day = dates.cast(pa.int64()), PER_DAY["ms"]
        days = pc.divide(ticks, per_day)
        if pc.any(pc.not_equal(pc.multiply(days, per_day), ticks)).as_py():
            raise ColumnError(
                f'the column "{column}" contains dates with a time of day. Cast it to timestamps or dates.'
            )
        _check_range(ticks, FIRST_DAY * per_day, (LAST_DAY + 1) * per_day, column, YEARS)
        dates = days.cast(pa.int32()).cast(pa.date32())
    _check_range(dates.cast(pa.int32()), FIRST_DAY, LAST_DAY + 1, column, YEARS)
    return dates.cast(pa.large_string())


def _spell_moments(moments: pa.Array, column: str) -> pa.Array:
    kind, ticks = moments.type, moments.cast(pa.int64())
    per_day = PER_DAY[kind.unit]
    # In some time zones, parts of the first and the last day are in the years 0 and 10,000, which Python does not have.
    margin = 0 if kind.tz is None else 1
    first, end = (FIRST_DAY + margin) * per_day, (LAST_DAY + 1 - margin) * per_day
    if kind.unit == "ns":
        # Exclude the first and the last day that 64 bits can represent, because conversions of times on these days
        # overflow.
        first, end = -(2**63) + 2 * per_day, 2**63 - 2 * per_day
    _check_range(ticks, first, end, column, YEARS if kind.unit != "ns" else "times near the ends of nanoseconds")
    texts = _without_zeros(ticks.cast(pa.timestamp(kind.unit)).cast(pa.large_string()))
    return texts if kind.tz is None else pc.binary_join_element_wise(texts, _large("Z"), _large(""))


def _spell_times_of_day(times: pa.Array, column: str) -> pa.Array:
    ticks = times.cast(pa.int32() if times.type.bit_width == 32 else pa.int64())
    _check_range(ticks, 0, PER_DAY[times.type.unit], column, "times below 0:00 or from 24:00 on")
    if times.type.unit == "ns" and pc.any(pc.not_equal(pc.multiply(pc.divide(ticks, 1000), 1000), ticks)).as_py():
        raise ColumnError(
            f'the column "{column}" contains times of day with a finer unit than microseconds, which Python does not '
            "have. Cast it to time64[us] or to strings."
        )
    return _without_zeros(times.cast(pa.large_string()))


YEARS = "years before 1 or after 9999, or on their first or last day with a time zone"


def _check_range(ticks: pa.Array, first: int, end: int, column: str, problem: str) -> None:
    """Raise an error unless all values of a column are at least `first` and below `end`."""
    ends = pc.min_max(ticks)
    if ends["min"].is_valid and not first <= ends["min"].as_py() <= ends["max"].as_py() < end:
        raise ColumnError(f'the column "{column}" contains {problem}. Make such values null, or cast it to strings.')


def _large(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _without_zeros(texts: pa.Array) -> pa.Array:
    """Remove trailing zeros of fractions, so that a time has the same spelling in all units."""
    return pc.replace_substring_regex(pc.replace_substring_regex(texts, r"(\.\d*?)0+$", r"\1"), r"\.$", "")


def _plain_decimals(values: pa.Array, column: str) -> pa.Array:
    """Return decimals in the type that releases use for decimals."""
    # With a negative scale, pyarrow multiplies without a check for overflow, so large numbers would change.
    large = values.type.scale < 0 and any(
        value is not None and abs(value) >= 10**MOST_DIGITS for value in values.to_pylist()
    )
    with suppress(pa.ArrowInvalid):
        if not large:
            return values.cast(plain_type(values.type))
    raise ColumnError(
        f'the column "{column}" contains decimals of more than {MOST_DIGITS} digits. Cast it to fewer or to strings.'
    )


def _spell_decimals(values: pa.Array, _: str) -> pa.Array:
    texts = [format(value, "f") for value in values.to_pylist()]
    return string_array([text.rstrip("0").rstrip(".") if "." in text else text for text in texts])


_SPELL: dict[str, Any] = {
    "dates": _spell_dates,
    "times": _spell_moments,
    "times with a zone": _spell_moments,
    "times of day": _spell_times_of_day,
    "decimals": _spell_decimals,
    "bytes": lambda values, _: string_array([value.hex() for value in values.to_pylist()]),
    "UUIDs": lambda values, _: string_array([str(UUID(bytes=value)) for value in values.to_pylist()]),
}


def _ticks(text: str, digits: int) -> int:
    """Return a time of day in units of 10^-digits seconds."""
    found = TIME_OF_DAY.fullmatch(text)
    if found is None:
        raise ValueError("not a time of day")
    hours, minutes, seconds = map(int, found.groups()[:3])
    fraction = found[4] or ""
    if hours > 23 or minutes > 59 or seconds > 59 or len(fraction) > digits:
        raise ValueError("not a time of day of its type")
    ticks: int = (hours * 3600 + minutes * 60 + seconds) * 10**digits
    return ticks + int(fraction.ljust(digits, "0") or 0)


FIELD = re.compile(r"((?:[^|\\]|\\.)*)(?:\||$)", re.DOTALL)


@final
@dataclass(frozen=True, slots=True)
class KeyColumn:
    """One column of keys.

    Attributes:
        name: The name of the column.
        kind: The name of the Arrow type, as printed by pyarrow.
    """

    name: str
    kind: str

    @property
    def type(self) -> pa.DataType:
        """The Arrow type itself."""
        return type_named(self.kind)


@final
@dataclass(frozen=True, slots=True)
class Keys:
    """The source columns of items.

    Attributes:
        columns: The columns. Words have no separate column.

    Example:
        >>> import datetime
        >>> keys = Keys((KeyColumn("country", "string"), KeyColumn("day", "date32[day]")))
        >>> item = keys.item(("NL", datetime.date(2026, 11, 22)))
        >>> item
        'NL|2026-11-22'
        >>> keys.values(pa.array([item]))
        [('NL', datetime.date(2026, 11, 22))]
    """

    columns: tuple[KeyColumn, ...] = ()

    @staticmethod
    def from_list(columns: Any) -> "Keys":
        """Return keys from the list that `to_list` returned.

        Raises:
            KeyError, TypeError, ValueError: If the list has a different form.
        """
        keys = Keys(tuple(KeyColumn(str(each["name"]), str(each["type"])) for each in columns))
        if any(family(each.type) is None for each in keys.columns):
            raise ValueError("a type that keys cannot have")
        return keys

    def to_list(self) -> list[dict[str, str]]:
        """Return the names and types for JSON."""
        return [{"name": each.name, "type": each.kind} for each in self.columns]

    def without_types(self) -> "Keys":
        """Return the same columns as strings."""
        return Keys(tuple(KeyColumn(each.name, "string") for each in self.columns))

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [each.name for each in self.columns]

    def spell(self, columns: Sequence[pa.Array]) -> pa.LargeStringArray:
        """Return the item of each row, or null if one of its columns is null.

        Raises:
            ColumnError: If a type has no spelling.
        """
        return spelled_rows(columns, self.names or ["key"])

    def respelled(self, items: pa.Array) -> pa.Array:
        """Return the distinct items, as `spell` spells them.

        Otherwise, different spellings of a value, such as 1.50 or True in a file of strings, would be different items.

        Raises:
            ValueError: If items do not match these columns.

        Example:
            >>> Keys((KeyColumn("paid", "bool"),)).respelled(pa.array(["True", "true"])).to_pylist()
            ['true']
        """
        if all(is_string(each.type) for each in self.columns):
            return items
        try:
            return pc.unique(self.spell([joined(each) for each in self.table(items).columns]))
        except ArithmeticError:  # raised for decimals, and for numbers that are out of range
            raise ValueError("a value whose type differs from the type of its column") from None

    def table(self, items: pa.Array) -> pa.Table:
        """Return the columns of items.

        Raises:
            ValueError: If items do not match these columns.
        """
        texts = [items] if len(self.columns) == 1 else split_texts(items, len(self.columns))
        arrays = [unspelled(text, each.type) for text, each in zip(texts, self.columns, strict=True)]
        return pa.table(dict(zip(self.names, arrays, strict=True)))

    def values(self, items: pa.Array) -> list[Any]:
        """Return items as Python values: values of one column, tuples of several columns, or strings for words."""
        if not self.columns:
            return list(items.to_pylist())
        columns = [_python_values(joined(each)) for each in self.table(items).columns]
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

    def item(self, value: Any) -> str | None:
        """Return the item of a Python value, or None for a value that cannot be an item."""
        if not self.columns:
            return value if isinstance(value, str) else None
        parts = value if isinstance(value, tuple | list) else (value,)
        if len(parts) != len(self.columns):
            return None
        try:
            arrays = [_array(part, each.type) for part, each in zip(parts, self.columns, strict=True)]
            item: str | None = self.spell(arrays)[0].as_py()
        except (ValueError, TypeError, OverflowError, pa.ArrowException):
            return None
        return item


def _python_values(values: pa.Array) -> list[Any]:
    """Return Python values. Times finer than microseconds become pandas values, or numpy values without pandas."""
    try:
        return list(values.to_pylist())
    except (ValueError, ImportError):
        if not pa.types.is_timestamp(values.type):
            raise
        return list(values.to_numpy(zero_copy_only=False))


NO_KEYS: Final = Keys()
"""Items without separate columns."""


def spelled_rows(columns: Sequence[pa.Array], names: Sequence[str]) -> pa.LargeStringArray:
    """Return, for each row, the spellings of its columns joined with bars, or null if a column is null."""
    texts = [spelled(column, name) for column, name in zip(columns, names, strict=True)]
    return texts[0] if len(texts) == 1 else joined_texts(texts)


def joined_texts(texts: Sequence[pa.Array]) -> pa.LargeStringArray:
    """Return the joined strings of several columns, one per row, or null if one of them is null."""
    escaped = [pc.replace_substring(pc.replace_substring(each, "\\", "\\\\"), "|", "\\|") for each in texts]
    return pc.binary_join_element_wise(*escaped, pa.scalar("|", pa.large_string()))


def split_texts(items: pa.Array, count: int) -> list[pa.Array]:
    """Return the columns of strings that `joined_texts` joined.

    Raises:
        ValueError: If a different number of columns was joined.
    """
    if not pc.any(pc.match_substring(items, "\\")).as_py():  # nothing is escaped
        parts = pc.split_pattern(items, "|")
        if len(items) and pc.any(pc.not_equal(pc.list_value_length(parts), count)).as_py():
            raise ValueError("another number of columns")
        return [pc.list_element(parts, place).cast(pa.large_string()) for place in range(count)]
    rows = [list(_fields(item)) for item in items.to_pylist()]
    if any(len(row) != count for row in rows):
        raise ValueError("another number of columns")
    return [string_array([row[place] for row in rows]) for place in range(count)]


def _fields(item: str) -> Iterator[str]:
    """Yield the parts between bars that are not escaped by a backslash."""
    place = 0
    while True:
        found = FIELD.match(item, place)
        if found is None:
            raise ValueError("not a key of several columns")
        yield re.sub(r"\\(.)", r"\1", found[1], flags=re.DOTALL)
        if found.end() == len(item) and not item[found.end(1) :]:
            return
        place = found.end()


def _array(value: Any, kind: pa.DataType) -> pa.Array:
    """Return one value as an array of the given type, or raise an error if Arrow would round or truncate it."""
    array = pa.array([value], kind)
    if family(kind) == "dates" and isinstance(value, datetime):
        raise ValueError("a time is not a date")
    if family(kind) == "whole numbers" and isinstance(value, float):
        raise ValueError("a fraction is not a whole number")
    return array
