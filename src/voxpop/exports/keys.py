"""The released keys that a table is compared with, and checks of the columns to compare."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import ColumnError, InputError
from voxpop.reading.arrow import joined
from voxpop.reading.keys import family

if TYPE_CHECKING:
    from voxpop.release.release import Release

Columns = str | Sequence[str] | None


def key_names(release: "Release", columns: Columns) -> list[str]:
    """Return the columns that hold keys.

    Raises:
        InputError: where neither the call nor the release names them, or there are too few or too many.
    """
    ours = [] if release.keys is None else release.keys.names
    names = [columns] if isinstance(columns, str) else list(columns or ours)
    if not names:
        raise InputError("this release holds words or grams, not the keys of a table: name the column to compare.")
    if len(names) != max(1, len(ours)):
        raise InputError(f"the keys of this release have {max(1, len(ours))} columns, got {len(names)} names.")
    return names


def wanted_types(release: "Release") -> list[Any]:
    """Return the type of each column of a key; strings for words, and null where nothing was released."""
    if not len(release):
        return [pa.null()] * max(1, 0 if release.keys is None else len(release.keys.columns))
    if release.keys is None or not release.keys.columns:
        return [pa.string()]
    return [each.type for each in release.keys.columns]


def check_type(kind: Any, wanted: Any, name: str) -> None:
    """Refuse to compare values that are spelled alike and are not the same; strings may stand for any type."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_null(kind) or pa.types.is_null(wanted):
        return
    mine, theirs = family(kind), family(wanted)
    by_spelling = (mine == "strings", theirs == "strings" and mine in ("whole numbers", "UUIDs"))
    if mine is None or (mine != theirs and not any(by_spelling)):
        raise ColumnError(
            f'the column "{name}" holds {kind}, and released keys are {theirs}, or lists of them for grams. Cast it to '
            "what was released."
        )


def released_items(release: "Release") -> Any:
    """Return the released grams of length 1 as strings."""
    single = release.grams.filter(pc.equal(release.grams["length"], 1))["gram"]
    return joined(pc.list_flatten(single)).cast(pa.large_string())


def check_columns_exist(names: Sequence[str], existing: Sequence[Any]) -> None:
    """Refuse columns that a table does not have.

    Raises:
        ColumnError: naming those that it has.
    """
    for name in names:
        if name not in existing:
            listed = ", ".join(f'"{each}"' for each in existing)
            raise ColumnError(f'the table has no column "{name}"; it has {listed}.')


def column_type(kind: str, types: Mapping[str, pa.DataType], whole: Collection[str]) -> pa.DataType:
    """Return the Arrow type that stands for a column of a database; one without a spelling for those that it has not.

    Args:
        kind: the database's words for a type; text in brackets is ignored.
        types: Arrow's by the database's words.
        whole: words for whole numbers.
    """
    base = kind.split("(")[0]
    return pa.int64() if base in whole else types.get(base, pa.float64())
