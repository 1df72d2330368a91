"""The rows of a table whose key was released: what is left of a group-by, so that its groups betray nobody.

Every kind of table keeps its own kind.
"""

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from voxpop.release.exports.keys import (
    DUCKDB,
    Columns,
    arrow_mask,
    key_names,
    kind_of,
    not_a_table,
    pandas_mask,
    polars_mask,
)

if TYPE_CHECKING:
    from voxpop.release.release import Release


def released_only(release: "Release", table: Any, columns: Columns) -> Any:
    """Return the rows whose key was released; see `Release.filter`."""
    names, kind = key_names(release, columns), kind_of(table)
    if kind in DUCKDB:
        from voxpop.release.exports.duckdb_keys import joined_rows

        return joined_rows(release, table, names)
    if kind == "pyspark.DataFrame":
        from voxpop.release.exports.spark_keys import joined_frame

        return joined_frame(release, table, names)
    if kind in ("polars.DataFrame", "polars.LazyFrame"):
        return table.filter(polars_mask(release, table, names))
    if kind == "pandas.DataFrame":
        return table[pandas_mask(release, table, names)]
    if isinstance(table, pa.Table | pa.RecordBatch):
        return table.filter(arrow_mask(release, table, names))
    raise not_a_table("filter", table)
