"""Users and items of any type, and of several columns, converted to the input of the engine: one column of each.

Users become whole numbers or strings, items strings as `voxpop.reading.keys` spells them. The names and types of the
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
from voxpop.reading.keys import (
    KeyColumn,
    Keys,
    family,
    is_list,
    is_string,
    plain_type,
    spelled_rows,
    type_named,
    value_type,
)
from voxpop.reading.wanted import Wanted

BETWEEN = ", "
WIDEST_DECIMAL = 76


@final
class KeyedRows:
    """Rows during conversion, and the description of their keys.

    Attributes:
        left_out: number of null items.
        dropped: number of rows without a user that were left out.
        doubtful: number of rows that were kept and whose user is spelled like a missing value.
        user: the new name of the column of users.
        content: the new name of the column of content.
    """

    def __init__(self, wanted: Wanted) -> None:
        users, contents, order = wanted.users, wanted.columns, wanted.order
        self._order = [] if order is None else [order]
        self._users, self._contents = users, contents
        self.user, self.content = BETWEEN.join(users), BETWEEN.join(contents)
        self._kinds: list[set[pa.DataType]] | None = [set() for _ in contents] if wanted.kind == "items" else None
        self.left_out = self.dropped = self.doubtful = 0
        self._drops, self._typed, self._tokenizer = wanted.drops, wanted.typed, wanted.tokenizer
        # A source without a schema, such as a CSV, yields no batch if it has no rows.
        self._declared = {name: {plain_type(type_named(kind))} for name, kind in wanted.types.items()}
        self._user_families: list[set[str]] = [set() for _ in users]

    def rows(self, batches: Batches) -> Batches:
        """Yield batches of two columns: users and content; after them the order, if there is one."""
        for where, batch in batches:
            try:
                batch = self._with_user(batch)
                users, contents = self._one_user(batch), self._one_content(batch)
            except ColumnError as error:
                raise ColumnError(f"{where}: {error}") from None
            others = [batch.column(name) for name in self._order]
            yield where, pa.RecordBatch.from_arrays([users, contents, *others], [self.user, self.content, *self._order])

    def _with_user(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that have a user, or count those whose user only looks missing."""
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
        """The columns of the items that went by; none where these are words."""
        if self._kinds is None:
            return Keys()
        pairs = zip(self._contents, self._kinds, strict=True)
        kinds = {name: seen or self._declared.get(name, set()) for name, seen in pairs}
        return Keys(tuple(KeyColumn(name, str(_joint(each, name))) for name, each in kinds.items()))

    def _one_user(self, batch: pa.RecordBatch) -> pa.Array:
        columns = [batch.column(name) for name in self._users]
        if len(columns) == 1 and _is_read_as_it_is(columns[0].type):
            return columns[0]
        for column, name, seen in zip(columns, self._users, self._user_families, strict=True):
            _note(column.type, seen, name)
        return spelled_rows(columns, self._users)

    def _one_content(self, batch: pa.RecordBatch) -> pa.Array:
        columns = [batch.column(name) for name in self._contents]
        if self._typed is not None:
            return self._typed.tokens(columns, self._tokenizer)
        if self._kinds is None:
            return columns[0]
        plain = [flattened(column)[0] if is_list(column.type) else column for column in columns]
        if len(plain) > 1 and any(is_list(column.type) for column in columns):
            raise ColumnError(
                "each column of a composite item must have one value per row, but one of them contains lists."
            )
        for each, name, kinds in zip(plain, self._contents, self._kinds, strict=True):
            _note(each.type, {str(family(kind)) for kind in kinds}, name)
            if not pa.types.is_null(each.type):
                kinds.add(plain_type(each.type))
        if len(plain) == 1 and _is_read_as_it_is(plain[0].type):
            self.left_out += plain[0].null_count
            return columns[0]
        whole = spelled_rows(plain, self._contents)
        self.left_out += whole.null_count
        return _as_before(columns[0], whole) if len(plain) == 1 else whole


MISSING = ("", "NULL", "null", "NaN", "nan", "N/A", "n/a", "NA", "None")
"""Users that are spelled like a missing value; so is the name of the column, of which a repeated header consists."""


def _spelled_missing(column: pa.Array, name: str) -> Bools:
    """Return which values are spelled like a missing value; null is not."""
    if pa.types.is_dictionary(column.type):
        found = np.append(_spelled_missing(column.dictionary, name), False)
        return np.asarray(found[numbers_of(column.indices, missing=len(column.dictionary))])
    if not is_string(column.type):
        return np.zeros(len(column), np.bool_)
    return _truths(pc.is_in(column.cast(pa.large_string()), value_set=string_array([*MISSING, name])))


def _truths(values: pa.BooleanArray) -> Bools:
    """Return truth values that are never null; `to_numpy` would import pandas."""
    return np.asarray(numbers_of(values.cast(pa.uint8())).astype(np.bool_))


def _is_read_as_it_is(kind: pa.DataType) -> bool:
    """Check whether the engine reads a type without a spelling: strings and whole numbers, coded or not."""
    kind = value_type(kind)
    return pa.types.is_null(kind) or family(kind) in ("strings", "whole numbers")


def _note(kind: pa.DataType, seen: set[str], name: str) -> None:
    """Refuse a column of two families: values with equal spellings would be the same key."""
    kind = value_type(kind)
    if pa.types.is_null(kind):
        return
    seen.add(str(family(kind)))
    if len(seen) > 1:
        raise ColumnError(f'the column "{name}" holds {" and ".join(sorted(seen))}. Give it one type in all files.')


def _as_before(column: pa.Array, texts: pa.Array) -> pa.Array:
    """Return strings in the lists that their values came in, if in any."""
    return lists_of(texts, flattened(column)[1]) if is_list(column.type) else texts


def _joint(kinds: set[pa.DataType], name: str) -> pa.DataType:
    """Return one type that holds the values of all."""
    if len(kinds) <= 1:
        return next(iter(kinds), pa.string())
    if family(next(iter(kinds))) == "decimals":
        scale = max(kind.scale for kind in kinds)
        # The finest scale of all, so that no digit is lost.
        return pa.decimal256(WIDEST_DECIMAL, scale)
    try:
        fields = [pa.schema([("key", kind)]) for kind in sorted(kinds, key=str)]
        return pa.unify_schemas(fields, promote_options="permissive").field("key").type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        listed = " and ".join(sorted(map(str, kinds)))
        raise ColumnError(f'the column "{name}" holds {listed}. Give it one type in all files.') from None
