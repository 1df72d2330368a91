"""What the items of a corpus are as columns: their names and types, and the way from rows to items and back.

An item of one column is that column's value as `voxpop.spelling` spells it. An item of several joins their spellings
with bars; a backslash stands before each bar and backslash that they hold themselves, so no two keys become one item.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, final

import pyarrow as pa
import pyarrow.compute as pc

from voxpop.arrow import joined, string_array
from voxpop.spelling import family, plain_type, spelled, type_named, unspelled

FIELD = re.compile(r"((?:[^|\\]|\\.)*)(?:\||$)", re.DOTALL)


@final
@dataclass(frozen=True, slots=True)
class KeyColumn:
    """One column of keys.

    Attributes:
        name: of the column.
        kind: its Arrow type, in the words that pyarrow prints.
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
    """The columns that items came from.

    Attributes:
        columns: none where items are words, which have no column of their own.

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
    def of(fields: Sequence[pa.Field]) -> "Keys":
        """Return the keys of some columns of a table."""
        return Keys(tuple(KeyColumn(field.name, str(plain_type(field.type))) for field in fields))

    @staticmethod
    def from_list(columns: Any) -> "Keys":
        """Return what `to_list` wrote down.

        Raises:
            KeyError, TypeError, ValueError: where it is not that.
        """
        keys = Keys(tuple(KeyColumn(str(each["name"]), str(each["type"])) for each in columns))
        if any(family(each.type) is None for each in keys.columns):
            raise ValueError("a type that keys cannot have")
        return keys

    def to_list(self) -> list[dict[str, str]]:
        """Return names and types, ready for JSON."""
        return [{"name": each.name, "type": each.kind} for each in self.columns]

    def without_types(self) -> "Keys":
        """Return the same columns as strings."""
        return Keys(tuple(KeyColumn(each.name, "string") for each in self.columns))

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [each.name for each in self.columns]

    def spell(self, columns: Sequence[pa.Array]) -> pa.LargeStringArray:
        """Return the item of each row; null where one of its columns is.

        Raises:
            ColumnError: for types without a spelling.
        """
        texts = [spelled(each, name) for each, name in zip(columns, self.names or ["key"], strict=True)]
        return texts[0] if len(texts) == 1 else joined_texts(texts)

    def table(self, items: pa.Array) -> pa.Table:
        """Return the columns of items.

        Raises:
            ValueError: where items are not of these columns.
        """
        texts = [items] if len(self.columns) == 1 else _split(items, len(self.columns))
        arrays = [unspelled(text, each.type) for text, each in zip(texts, self.columns, strict=True)]
        return pa.table(dict(zip(self.names, arrays, strict=True)))

    def values(self, items: pa.Array) -> list[Any]:
        """Return items as Python values: of one column its values, of several tuples, of words strings."""
        if not self.columns:
            return list(items.to_pylist())
        columns = [_as_python(each) for each in self.table(items).columns]
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

    def item(self, value: Any) -> str | None:
        """Return the item that a Python value names, or None where it names none."""
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


WORDS: Final = Keys()
"""Items without columns of their own."""


def joined_texts(texts: Sequence[pa.Array]) -> pa.LargeStringArray:
    """Return the strings of several columns as one string a row; null where one of them is."""
    escaped = [pc.replace_substring(pc.replace_substring(each, "\\", "\\\\"), "|", "\\|") for each in texts]
    return pc.binary_join_element_wise(*escaped, pa.scalar("|", pa.large_string()))


def _split(items: pa.Array, count: int) -> list[pa.Array]:
    rows = [list(_fields(item)) for item in items.to_pylist()]
    if any(len(row) != count for row in rows):
        raise ValueError("another number of columns")
    return [string_array([row[place] for row in rows]) for place in range(count)]


def _fields(item: str) -> Iterator[str]:
    """Yield the parts between bars that no backslash stands before."""
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
    """Return one value as an array of a type; what Arrow would round or cut to fit is refused."""
    array = pa.array([value], kind)
    if family(kind) == "dates" and isinstance(value, datetime):
        raise ValueError("a time is no date")
    if family(kind) == "whole numbers" and isinstance(value, float):
        raise ValueError("a fraction is no whole number")
    return array


def _as_python(column: pa.ChunkedArray) -> list[Any]:
    """Return a column as Python's own values; times finer than Python's stay what they are, as pandas has them."""
    return list(joined(column).to_pylist())
