"""Conversion of users and items, of any type and of several columns, to the two columns that the engine reads.

Users become integers or strings. Items become strings, as `voxpop.reading.keys` spells them. The names and types of the
items' columns are recorded, so that a release can restore them.
"""

from functools import reduce
from typing import final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import ColumnError
from voxpop.kernels.arrays import Bools
from voxpop.reading.arrow import array_of, flattened, lists_of, numbers_of, string_array
from voxpop.reading.columns import Batches
from voxpop.reading.keys import KeyColumn, Keys, family, is_list, is_string, spelled_rows, value_type
from voxpop.reading.shape import Shape
from voxpop.reading.wanted import Request

BETWEEN = ", "


@final
class KeyedRows:
    """The rows of a table during their conversion, with a description of their keys.

    Attributes:
        left_out: The number of null items.
        dropped: The number of rows that were dropped because they had no user.
        doubtful: The number of rows that were kept although the user is spelled like a missing value.
        user: The new name of the user column.
        content: The new name of the content column.
    """

    def __init__(self, request: Request) -> None:
        users, contents, order = request.users, request.columns, request.order
        self._order = [] if order is None else [order]
        self._users, self._contents = users, contents
        self.user, self.content = BETWEEN.join(users), BETWEEN.join(contents)
        self._are_items, self._shape = request.kind == "items", Shape(request)
        self.left_out = self.dropped = self.doubtful = 0
        self._drops, self._typed, self._tokenizer = request.drops, request.typed, request.tokenizer.name

    def rows(self, batches: Batches) -> Batches:
        """Yield batches of two columns, users and contents, with the order as a third column if there is one."""
        for where, batch in batches:
            try:
                batch = self._with_user(self._shape.fit(where, batch))
                users, contents = self._one_user(batch), self._one_content(batch)
            except ColumnError as error:
                raise ColumnError(f"{where}: {error}") from None
            others = [batch.column(name) for name in self._order]
            yield where, pa.RecordBatch.from_arrays([users, contents, *others], [self.user, self.content, *self._order])

    def _with_user(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that have a user, or all rows after counting users that look like a missing value."""
        columns = [batch.column(name) for name in self._users]
        missing = reduce(np.logical_or, map(_spelled_missing, columns, self._users))
        if not self._drops:
            self.doubtful += int(missing.sum())
            return batch
        missing = reduce(np.logical_or, (_truths(each.is_null()) for each in columns), missing)
        self.dropped += int(missing.sum())
        return batch.filter(array_of(~missing)) if missing.any() else batch

    @property
    def keys(self) -> Keys:
        """The columns of the items, with string as the default type. Words have no columns."""
        kinds = self._shape.kinds
        names = self._contents if self._are_items else []
        return Keys(tuple(KeyColumn(name, str(kinds.get(name, pa.string()))) for name in names))

    @property
    def families(self) -> dict[str, str]:
        """The type family of the user ids by column, or "" if no table declares a type."""
        return {name: self._shape.families.get(name, "") for name in self._users}

    def _one_user(self, batch: pa.RecordBatch) -> pa.Array:
        columns = [batch.column(name) for name in self._users]
        if len(columns) == 1 and _is_read_as_it_is(columns[0].type):
            return columns[0]
        return spelled_rows(columns, self._users)

    def _one_content(self, batch: pa.RecordBatch) -> pa.Array:
        columns = [batch.column(name) for name in self._contents]
        if self._typed is not None:
            return self._typed.tokens(columns, self._tokenizer)
        if not self._are_items:
            if is_list(columns[0].type):
                self.left_out += flattened(columns[0])[0].null_count
            return columns[0]
        plain = [flattened(column)[0] if is_list(column.type) else column for column in columns]
        if len(plain) > 1 and any(is_list(column.type) for column in columns):
            raise ColumnError(
                "each column of a composite item must have one value per row, but one of them contains lists."
            )
        if len(plain) == 1 and _is_read_as_it_is(plain[0].type):
            self.left_out += plain[0].null_count
            return columns[0]
        whole = spelled_rows(plain, self._contents)
        self.left_out += whole.null_count
        return _as_before(columns[0], whole) if len(plain) == 1 else whole


MISSING_TEXTS = ("", "NULL", "null", "NaN", "nan", "N/A", "n/a", "NA", "None")
"""Spellings of a missing user. The name of the column is also such a spelling, because it occurs in a repeated
header."""


def _spelled_missing(column: pa.Array, name: str) -> Bools:
    """Return, for each value, whether it is spelled like a missing value. The result is false for null."""
    if pa.types.is_dictionary(column.type):
        found = np.append(_spelled_missing(column.dictionary, name), False)
        return np.asarray(found[numbers_of(column.indices, missing=len(column.dictionary))])
    if not is_string(column.type):
        return np.zeros(len(column), np.bool_)
    return _truths(pc.is_in(column.cast(pa.large_string()), value_set=string_array([*MISSING_TEXTS, name])))


def _truths(values: pa.BooleanArray) -> Bools:
    """Return booleans without nulls as an array. This avoids `to_numpy`, which would import pandas."""
    return np.asarray(numbers_of(values.cast(pa.uint8())).astype(np.bool_))


def _is_read_as_it_is(kind: pa.DataType) -> bool:
    """Check whether the engine reads a type directly, as it does for strings and integers."""
    kind = value_type(kind)
    return pa.types.is_null(kind) or family(kind) in ("strings", "whole numbers")


def _as_before(column: pa.Array, texts: pa.Array) -> pa.Array:
    """Return strings as lists if their values were in lists."""
    return lists_of(texts, flattened(column)[1]) if is_list(column.type) else texts
