"""The names and declared types of the columns of a table. Types are never inferred from values."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from voxpop.errors import InputError
from voxpop.reading import tables
from voxpop.reading.files import declared_by
from voxpop.reading.sources import first_file, is_spark
from voxpop.reading.text_files import CSV
from voxpop.reading.types import UNDECLARED, Column, declared_types


def declared_schema(source: Any, csv: CSV | None, types: Mapping[str, Any]) -> dict[str, pa.DataType]:
    """Return the type of each column, in order.

    Args:
        source: files of Parquet, Arrow or CSV, a table in memory, or a Spark DataFrame.
        csv: how CSV files are written.
        types: types that the source does not declare.

    Raises:
        InputError: if the source has no schema before it is read.
    """
    found = _schema(source, csv or CSV())
    if found is None:
        raise InputError(
            "this source has no schema before it is read. Give files of Parquet, Arrow or CSV, or a table of polars, "
            "pandas, pyarrow or Spark."
        )
    from voxpop.reading.keys import type_named

    return {**found, **{name: type_named(kind) for name, kind in declared_types(types, found).items()}}


def _schema(source: Any, csv: CSV) -> dict[str, pa.DataType] | None:
    kind = tables.kind_of(source)
    if is_spark(source):
        from voxpop.engine.spark.reading import arrow_schema

        return arrow_schema(source)
    if kind in ("polars.DataFrame", "polars.LazyFrame"):
        none = source.head(0)
        source, kind = (none if kind.endswith("DataFrame") else none.collect()), "polars"
    if kind in ("polars", "pandas.DataFrame"):
        return {str(name): tables.type_of(source[name][:0], Column(str(name))) for name in source.columns}
    if isinstance(source, Mapping):
        return {str(name): tables.type_of(values[:0], Column(str(name))) for name, values in source.items()}
    if isinstance(schema := getattr(source, "schema", None), pa.Schema):
        return dict(zip(schema.names, schema.types, strict=True))
    place = first_file(source)
    return None if place is None else declared_by(Path(place), csv, UNDECLARED)
