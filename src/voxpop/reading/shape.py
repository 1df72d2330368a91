"""A common shape for all rows of a source, so that the conversion of a row does not depend on other rows or tables.

By the lemma of docs/privacy/rows.md, the users, items, tokens and times of a row are a function of this row and of
public declarations. Sources yield batches of possibly different types. `Shape` yields batches with one value type for
each content column and time column, and one family of ids for each user column, or raises an error.
"""

from collections.abc import Iterable, Mapping
from typing import Any, final

import pyarrow as pa

from voxpop.errors import ColumnError, SourceError
from voxpop.reading.arrow import decoded, flattened, lists_of
from voxpop.reading.columns import quieten
from voxpop.reading.keys import family, is_list, is_string, kind_of_values, plain_type, type_named
from voxpop.reading.wanted import Request


@final
class Shape:
    """The type of each column, from `types=` or from the first table that declares a type.

    Null declares no type, and a dictionary has the type of its values.

    Attributes:
        kinds: The value types of the content and time columns, by name.
        families: The families of the values of each column, by name.
    """

    def __init__(self, request: Request) -> None:
        self._declared = {name: type_named(kind) for name, kind in request.types.items()}
        self._users = request.users
        self.kinds = {name: plain_type(kind) for name, kind in self._declared.items() if name not in request.users}
        self.families = {name: str(family(kind)) for name, kind in self._declared.items() if name in request.users}

    def fit(self, where: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Convert a batch to plain values of the source's types.

        Raises:
            ColumnError: If a column has the wrong type, or ids have a different type family.
            SourceError: If a value does not fit the type that the caller declares.
        """
        names = batch.schema.names
        arrays = [_plain(column) for column in batch.columns]
        for place, (name, array) in enumerate(zip(names, arrays, strict=True)):
            if (kind := kind_of_values(array.type)) is None:
                continue
            own, found = kind
            known = self.families.setdefault(name, own)
            wanted = found if name in self._users else self.kinds.setdefault(name, found)
            if (own, found) == (known, wanted):
                continue
            if own != known or name not in self._declared or own != str(family(wanted)):
                raise mixed(name, (known, wanted), kind)
            arrays[place] = _cast(array, wanted, where, name)
        return pa.RecordBatch.from_arrays(arrays, names)


def mixed(name: str, one: tuple[str, pa.DataType], other: tuple[str, pa.DataType]) -> ColumnError:
    """Return the error for a column with two types."""
    alike, unknown = one[0] == other[0], "None" in (one[0], other[0])
    advice = f'Declare it, such as types={{"{name}": "{one[1]}"}}, or cast it' if alike else "Convert it"
    first, second = (each[alike or unknown] for each in (one, other))
    return ColumnError(
        f'the column "{name}" contains {first} in one table and {second} in another. It must have one type in '
        f"all tables and files, so that no row depends on other rows. {advice} in all of them."
    )


def _plain(column: pa.Array) -> pa.Array:
    """Return decoded values, except for dictionaries of strings or integers without null, which need no conversion."""
    if is_list(column.type):
        inner = column.type.value_type
        if not pa.types.is_dictionary(inner) and not pa.types.is_string_view(inner):
            return column
        elements, sizes = flattened(column)
        found = _plain(elements)
        return column if found is elements else lists_of(found, sizes)
    if pa.types.is_string_view(column.type):  # Few Arrow functions accept this type.
        return column.cast(pa.large_string())
    if not pa.types.is_dictionary(column.type):
        return column
    kind = column.type.value_type
    if pa.types.is_string_view(kind):
        column = pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(pa.large_string()))
    elif not is_string(kind) and not pa.types.is_integer(kind):
        return decoded(column)
    return decoded(column) if column.dictionary.null_count else column


def _cast(array: pa.Array, kind: pa.DataType, where: str, name: str) -> pa.Array:
    """Convert values to a type of the same family, or raise an error if a value would change."""
    try:
        if is_list(array.type):
            elements, sizes = flattened(array)
            return lists_of(_cast(elements, kind, where, name), sizes)
        return (decoded(array) if pa.types.is_dictionary(array.type) else array).cast(kind)
    except pa.ArrowException as error:
        quieten(error)
        raise SourceError(
            f'{where}: a value in the column "{name}" does not fit {kind}. Declare a wider type in types=.'
        ) from None


def unite(
    schemas: Iterable[tuple[str, Mapping[str, pa.DataType]]], declared: Mapping[str, Any]
) -> dict[str, pa.DataType]:
    """Return the columns of several files.

    All files must have the same columns, so that one user's file cannot change the columns.

    Args:
        schemas: For each file, a name for messages and the columns.
        declared: The columns that the caller declares, by name.

    Raises:
        ColumnError: If a file has different columns, or a column has two types.
    """
    whole: dict[str, pa.DataType] = {}
    for where, columns in schemas:
        if list(whole or columns) != list(columns):
            raise ColumnError(
                f"{where} has different columns from the files before it. All files must have the same columns in the "
                "same order, so that no file changes the columns of other files. Write all files with the same columns."
            )
        for name, kind in columns.items():
            one, other = kind_of_values(whole.get(name, kind)), kind_of_values(kind)
            if one is not None and other is not None and one != other and name not in declared:
                raise mixed(name, one, other)
            whole[name] = kind if one is None else whole.get(name, kind)
    return whole
