"""One shape for all rows of a source, so that nothing after this point looks at other rows or tables.

The lemma of docs/privacy/rows.md: users, items, tokens and times of a row are a function of that row and of public
declarations. Sources yield batches of possibly different types. `Shape` passes them on with one value type for each
column of contents and times and one family of ids for each column of users, or refuses them.
"""

from typing import final

import pyarrow as pa

from voxpop.errors import ColumnError, SourceError
from voxpop.reading.arrow import flattened, lists_of
from voxpop.reading.columns import quieten
from voxpop.reading.keys import family, is_list, is_string, plain_type, type_named, value_type
from voxpop.reading.wanted import Wanted


@final
class Shape:
    """The type of each column, from `types=` or from the first table that declares one.

    Null declares no type, and a dictionary has the type of its values.

    Attributes:
        kinds: value types of the columns of contents and times, by name.
        families: families of the values of each column, by name.
    """

    def __init__(self, wanted: Wanted) -> None:
        self._declared = {name: type_named(kind) for name, kind in wanted.types.items()}
        self._users = wanted.users
        self.kinds = {name: plain_type(kind) for name, kind in self._declared.items() if name not in wanted.users}
        self.families = {name: str(family(kind)) for name, kind in self._declared.items() if name in wanted.users}

    def fit(self, where: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of plain values of these types.

        Raises:
            ColumnError: if a column has another type, or ids are of another family.
            SourceError: if a value does not fit the type that the caller declares.
        """
        names = batch.schema.names
        arrays = [_plain(column) for column in batch.columns]
        for place, (name, array) in enumerate(zip(names, arrays, strict=True)):
            kind = _element(array.type)
            if pa.types.is_null(kind):
                continue
            own = str(family(kind))
            known = self.families.setdefault(name, own)
            if own != known:
                raise _mixed(name, known, own, "Convert it")
            if name in self._users:
                continue
            kind = plain_type(kind)
            wanted = self.kinds.setdefault(name, kind)
            if kind == wanted:
                continue
            if name not in self._declared or own != str(family(wanted)):
                raise _mixed(name, str(wanted), str(kind), f'Declare it, types={{"{name}": "{wanted}"}}, or cast it')
            arrays[place] = _cast(array, wanted, where, name)
        return pa.RecordBatch.from_arrays(arrays, names)


def _mixed(name: str, one: str, other: str, advice: str) -> ColumnError:
    return ColumnError(
        f'the column "{name}" holds {one} in one table and {other} in another. It must have one type in all tables and '
        f"files, so that no row depends on others. {advice} in all of them."
    )


def _element(kind: pa.DataType) -> pa.DataType:
    return value_type(kind.value_type if is_list(kind) else kind)


def _plain(column: pa.Array) -> pa.Array:
    """Return values without a dictionary, unless it has strings or whole numbers and no null, which cost nothing."""
    if is_list(column.type):
        inner = column.type.value_type
        if not pa.types.is_dictionary(inner) and not pa.types.is_string_view(inner):
            return column
        elements, sizes = flattened(column)
        found = _plain(elements)
        return column if found is elements else lists_of(found, sizes)
    if pa.types.is_string_view(column.type):  # few functions of Arrow take it
        return column.cast(pa.large_string())
    if not pa.types.is_dictionary(column.type):
        return column
    kind, values = column.type.value_type, column.dictionary
    plain = is_string(kind) and not pa.types.is_string_view(kind)
    return column if values.null_count == 0 and (plain or pa.types.is_integer(kind)) else decoded(column)


def decoded(column: pa.DictionaryArray) -> pa.Array:
    """Return the values of a dictionary array."""
    return _plain(column.dictionary).take(column.indices)


def _cast(array: pa.Array, kind: pa.DataType, where: str, name: str) -> pa.Array:
    """Return values of a type of the same family; a value that would change is refused."""
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
