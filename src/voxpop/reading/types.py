"""Types of columns, which are declared by the source or by the caller and never inferred from values.

The schema of a table is public. A schema inferred from values would reveal whether one user's rows are present, and
could change the spelling or order of other users' rows. Only this module implements the rule:

* A source with declared types (Parquet, Arrow, databases with typed columns, pandas and polars dtypes) keeps its types.
* All other sources (CSV, JSON lines, Python objects, DB-API cursors, pandas object columns) are read as strings.
  `spelling_of` converts a value to a string, and its result depends only on this value.
* `types=` declares further types. A value that does not fit raises an error that contains the row number but never
  the value.

`docs/guides/types.md` describes the rule for users, and lists the source of types for every input.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Final, final
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import ColumnError, InputError, SourceError
from voxpop.files.progress import row_called
from voxpop.kernels.arrays import Int64s
from voxpop.reading.arrow import lists_of, string_array
from voxpop.reading.columns import check_columns
from voxpop.reading.keys import family, is_list, plain_type, type_named, unspelled, value_type

NAMED: Final = {
    "string": pa.string(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "bytes": pa.binary(),
    "float64": pa.float64(),
}
"""Short names, in addition to the names that Arrow prints."""
UNDECLARED: Final = pa.large_string()
AS_ROWS: Final = 'pandas writes rows with to_json(orient="records", lines=True)'
LONGEST_EXPONENT = 400
"""The maximum exponent that is written as digits. Decimals beyond the range of floats keep their exponent."""


@final
@dataclass(frozen=True, slots=True)
class Column:
    """A column to be read from a source.

    Attributes:
        name: The name in the source.
        declared: The type, if any, that the caller declares for its values or for the elements of its lists.
        lists: Whether each value is a list, or None for a column of lists and single elements.
    """

    name: str
    declared: pa.DataType | None = None
    lists: bool | None = False

    @property
    def undeclared_type(self) -> pa.DataType:
        """The Arrow type of this column in a source without declared types."""
        element = UNDECLARED if self.declared is None else self.declared
        return element if self.lists is False else pa.large_list(element)


def declared_types(types: Any, names: Iterable[str]) -> dict[str, str]:
    """Return the declared type of each column, as the name that Arrow prints.

    Raises:
        InputError: If `types` is not a dictionary from column names to types, or a type has no spelling.
    """
    if types is None:
        return {}
    if not isinstance(types, Mapping):
        raise InputError(
            f'types= must be a dictionary such as {{"price": "decimal(12, 2)"}}; got {type(types).__name__}.'
        )
    known = list(names)
    found = {}
    for name, given in types.items():
        if name not in known:
            raise InputError(f"types= declares a column that is not read; it may name {', '.join(known[:20])}.")
        try:
            found[name] = str(plain_type(given if isinstance(given, pa.DataType) else _type_named(str(given))))
            usable = family(type_named(found[name])) is not None or found[name] == "double"
        except (ValueError, TypeError, pa.ArrowException):
            usable = False
        if not usable:
            raise InputError(
                f'types= declares no known type for the column "{name}". Use int64, string, bool, date, time, '
                "timestamp, timestamp[us, tz=UTC], decimal(12, 2), bytes, or another type that pyarrow prints."
            )
    return found


def _type_named(name: str) -> pa.DataType:
    return NAMED.get(name) or type_named(re.sub(r"^decimal\((\d+),\s*", r"decimal128(\1, ", name))


def check_declared(columns: Sequence[Column], kinds: Iterable[pa.DataType]) -> None:
    """Check that types in the metadata of a source have the same families as the declared types.

    Raises:
        ColumnError: If the families differ.
    """
    for column, kind in zip(columns, kinds, strict=True):
        held = value_type(kind.value_type if is_list(kind) else kind)
        if column.declared is None or pa.types.is_null(held):
            continue
        element = plain_type(held)
        if column.declared != element and (family(element) is None or family(element) != family(column.declared)):
            raise ColumnError(
                f'the source declares {element} for the column "{column.name}", and types= {column.declared}. Cast '
                "the column in the source, or remove it from types=."
            )


def array_of_objects(values: Iterable[Any], column: Column, where: str, first: int) -> pa.Array:
    """Return Python values as an array of the type that the column has in a source without declared types.

    Args:
        values: One value for each row.
        column: The column of the values.
        where: The source, for messages.
        first: The number of earlier rows.

    Raises:
        SourceError: If a value does not fit the column. The message contains the row number but not the value.
    """
    rows = list(values)
    if column.lists is False:
        return typed(_spelled(rows, column, where, first), column, where, first)
    each = [_elements(row, column, where, first + number) for number, row in enumerate(rows)]
    sizes = np.array([0 if elements is None else len(elements) for elements in each], np.int64)
    flat = [element for elements in each if elements is not None for element in elements]
    texts = _spelled(flat, column, where, first, np.repeat(np.arange(len(each)), sizes))
    missing = pa.array([elements is None for elements in each], pa.bool_())
    return typed_lists(texts, sizes, missing, column, where, first)


def batch_of_rows(
    rows: Sequence[Mapping[Any, Any]], columns: Sequence[Column], where: str, first: int
) -> pa.RecordBatch:
    """Return the columns of rows without declared types. If a row has no entry for a column, the value is missing.

    Args:
        rows: A value for each name. `user.id` may also be the field `id` of the value `user`.
        columns: The columns to read.
        where: The source, for messages.
        first: The number of earlier rows. If `first` is 0, every column must occur in these rows.
    """
    names = [each.name for each in columns]
    if first == 0:
        nested = [
            name for name in names if "." in name and any(_value_of(row, name, _ABSENT) is not _ABSENT for row in rows)
        ]
        known = [*(str(name) for row in rows for name in row), *nested]
        hint = f"Each row must have one entry for each column ({AS_ROWS})."
        check_columns(names, list(dict.fromkeys(known)), where, declared=False, hint=hint)
    arrays = [array_of_objects([_value_of(row, each.name) for row in rows], each, where, first) for each in columns]
    return pa.RecordBatch.from_arrays(arrays, names)


_ABSENT: Final = object()


def _value_of(row: Mapping[Any, Any], name: str, missing: Any = None) -> Any:
    head, dot, rest = name.partition(".")
    if not dot or name in row:
        return row.get(name, missing)
    inner = row.get(head)
    return _value_of(inner, rest, missing) if isinstance(inner, Mapping) else missing


def typed_lists(
    texts: pa.Array, sizes: Int64s, missing: pa.BooleanArray, column: Column, where: str, first: int
) -> pa.Array:
    """Return lists of strings with these sizes as an array of `column.undeclared_type`.

    Args:
        texts: The spellings of the elements of all rows, or nulls.
        sizes: The number of elements in each row.
        missing: A mask of the rows that have no list.
        column: The column of the lists.
        where: The source, for messages.
        first: The number of earlier rows.
    """
    values = typed(texts, column, where, first, np.repeat(np.arange(sizes.size), sizes))
    lists = lists_of(values, sizes).cast(column.undeclared_type)
    return pc.if_else(missing, None, lists) if pc.any(missing).as_py() else lists


def typed(texts: pa.Array, column: Column, where: str, first: int, rows: Int64s | None = None) -> pa.Array:
    """Return strings as values of the type that the caller declares, or unchanged without a declared type.

    Args:
        texts: Spellings, or nulls.
        column: The column of the values.
        where: The source, for messages.
        first: The number of earlier rows.
        rows: The row of each text, counted from `first`. By default, there is one text in each row.

    Raises:
        SourceError: If a value does not fit the type. The message contains the row number but not the value.
    """
    kind = column.declared
    if kind is None or pa.types.is_string(kind):
        return texts.cast(UNDECLARED)
    try:
        return unspelled(texts.cast(UNDECLARED), kind)
    except (ValueError, ArithmeticError, pa.ArrowException):
        pass
    place = first_misfit(texts, lambda some: unspelled(some.cast(UNDECLARED), kind))
    raise _misfit(where, first + (place if rows is None else int(rows[place])), column.name, f"does not fit {kind}")


def first_misfit(texts: pa.Array, convert: Callable[[pa.Array], Any]) -> int:
    """Return the position of the first text that cannot be converted, found by bisection."""
    begin, end = 0, len(texts)
    while end - begin > 1:
        middle = (begin + end) // 2
        try:
            convert(texts.slice(begin, middle - begin))
            begin = middle
        except (ValueError, ArithmeticError, pa.ArrowException):
            end = middle
    return begin


def spelling_of(value: Any) -> str | None:
    """Return the spelling of a Python value, or None for a missing value.

    | value | spelling |
    |---|---|
    | string | itself |
    | integer | decimal digits: `-7` |
    | truth value | `true`, `false` |
    | decimal, float | shortest decimal digits without zeros at the end: `19.9`, `5` |
    | date, time | `2026-11-22`, `05:56:10.25` |
    | date and time | `2026-11-22 05:56:10`; with a time zone in UTC, with `Z` at the end |
    | bytes, UUID | hexadecimal digits; those of a UUID with hyphens |
    | None, NaN, NaT, NA | missing |

    Raises:
        TypeError: If the type has no spelling.
    """
    if value is None or isinstance(value, str):
        return None if value is None else str(value)
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Decimal):
        return _spelled_decimal(value)
    if isinstance(value, Real):
        return None if value != value else _spelled_decimal(Decimal(repr(float(value))))
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, datetime):
        moment = value if value.tzinfo is None else value.astimezone(UTC)
        nanoseconds = f"{getattr(value, 'nanosecond', 0):03d}" if getattr(value, "nanosecond", 0) else ""
        text = _without_zeros(f"{moment:%H:%M:%S}.{moment.microsecond:06d}{nanoseconds}")
        return f"{moment.date().isoformat()} {text}{'' if value.tzinfo is None else 'Z'}"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, time) and value.tzinfo is None:
        return _without_zeros(f"{value:%H:%M:%S}.{value.microsecond:06d}")
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(type(value).__name__)


def _spelled_decimal(value: Decimal) -> str | None:
    if value.is_nan():
        return None
    if not value:  # This includes -0.0, which is the same number.
        return "0"
    if not value.is_finite() or abs(value.adjusted()) > LONGEST_EXPONENT:
        return str(value)
    text = format(value, "f")
    return _without_zeros(text) if "." in text else text


def _without_zeros(text: str) -> str:
    return text.rstrip("0").rstrip(".")


def _spelled(values: Sequence[Any], column: Column, where: str, first: int, rows: Int64s | None = None) -> pa.Array:
    """Return the spellings of values as an array of strings."""
    try:
        texts: Any = values if set(map(type, values)) <= {str, type(None)} else list(map(spelling_of, values))
        return pa.array(texts, UNDECLARED) if None in texts else string_array(texts)
    except MemoryError:
        raise
    except Exception:  # Conversions raise many kinds of errors, for example str(10**5000).
        pass
    problems = enumerate(map(_problem_of, values))
    place, problem = next((place, problem) for place, problem in problems if problem is not None)
    raise _misfit(where, first + (place if rows is None else int(rows[place])), column.name, problem)


def _problem_of(value: Any) -> str | None:
    """Return the reason why a value has no spelling, or None for a missing value and for a value with a spelling."""
    try:
        (spelling_of(value) or "").encode()
    except UnicodeEncodeError:
        return "contains half of a surrogate pair, which is not Unicode text"
    except Exception:
        if isinstance(value, Integral):
            return "is a whole number of too many digits for Python"
        columns = f" ({AS_ROWS})" if isinstance(value, dict) else ""
        kind = f"is of the type {type(value).__name__}, which has no spelling{columns}, or not for this value"
        return f"{kind}; in a query, cast it to text"
    return None


def _elements(value: Any, column: Column, where: str, row: int) -> list[Any] | None:
    """Return the elements of a list, or a single value as a list if the column permits this."""
    if isinstance(value, list | tuple | set | frozenset) or getattr(value, "ndim", 0) == 1:
        return list(value.tolist() if hasattr(value, "tolist") else value)
    if column.lists is None:
        return [value]
    if value is None or value != value:
        return None
    raise _misfit(where, row, column.name, "is not a list")


def _misfit(where: str, row: int, name: str, problem: str) -> SourceError:
    return SourceError(
        f'{where}, {row_called(row + 1)}: the value in the column "{name}" {problem}. Correct the row, or declare '
        "another type in types=."
    )


def array_of_items(values: list[Any]) -> pa.Array:
    """Return the Python values of the public list `known` as one array.

    Arrow would drop the times of day if the first value were a date, so values of several kinds are rejected here.

    Raises:
        InputError: The values have several kinds, or a kind that no column of items can contain. The message contains
            the kinds but no value.
    """
    kinds = sorted({_kind_of_value(each) for each in values if each is not None})
    if len(kinds) > 1 and kinds != ["decimals", "whole numbers"]:
        raise not_items(f"values of several kinds: {', '.join(kinds[:20])}")
    if kinds == ["floats"]:
        raise not_items("floats, which only approximate numbers")
    try:
        return string_array(values) if kinds == ["strings"] and None not in values else pa.array(values)
    except UnicodeEncodeError:
        raise not_items("strings that are not valid Unicode") from None
    except OverflowError:
        raise not_items(f"{kinds[0]} that do not fit into 64 bits") from None
    except (pa.ArrowException, TypeError, ValueError):
        raise not_items(f"values that cannot be items: {kinds[0]}") from None


_KINDS: dict[str, Any] = {
    "truth values": (bool, np.bool_),
    "whole numbers": Integral,
    "decimals": Decimal,
    "floats": (float, np.floating),
    "dates and times": datetime,
    "dates": date,
    "bytes": bytes,
}
"""The kinds of Python values that Arrow could confuse. The first kind that fits counts."""


def _kind_of_value(value: Any) -> str:
    if isinstance(value, str):
        return "strings"
    if isinstance(value, datetime) and value.tzinfo is not None:
        return "dates and times with a zone"
    return next((name for name, types in _KINDS.items() if isinstance(value, types)), type(value).__name__)


def not_items(problem: str) -> InputError:
    """Return the error for a public list with values of a kind that items cannot have."""
    return InputError(
        f"`known` contains {problem}. Items are strings, or values of one kind such as whole numbers or dates; items "
        "of several columns are tuples. Convert these values, for example to strings, or remove them."
    )
