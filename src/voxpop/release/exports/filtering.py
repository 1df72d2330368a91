"""The rows of a table whose key was released: what is left of a group-by, so that its groups betray nobody.

Every kind of table keeps its own kind.
"""

from typing import TYPE_CHECKING, Any

from voxpop.release.exports.keys import Columns, engine_of, key_names, not_a_table, row_mask

if TYPE_CHECKING:
    from voxpop.release.released import Released


def released_only(release: "Released", table: Any, columns: Columns) -> Any:
    """Return the rows whose key was released; see `Release.filter`."""
    names, engine = key_names(release, columns), engine_of(table)
    if engine == "duckdb":
        from voxpop.release.exports.duckdb_keys import joined_rows

        return joined_rows(release, table, names)
    if engine == "spark":
        from voxpop.release.exports.spark_keys import joined_frame

        return joined_frame(release, table, names)
    if not engine:
        raise not_a_table("filter", table)
    mask = row_mask(release, table, names)
    return table[mask] if engine == "pandas" else table.filter(mask)
