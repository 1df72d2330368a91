"""Conversion of tables to Spark DataFrames."""

import pyarrow as pa


def framed(spark, table):
    """Return a polars table as a Spark DataFrame."""
    arrow = table.to_arrow()
    texts = (pa.types.is_string_view, pa.types.is_large_string)
    plain = [f.with_type(pa.string()) if any(test(f.type) for test in texts) else f for f in arrow.schema]
    return spark.createDataFrame(arrow.cast(pa.schema(plain)))
