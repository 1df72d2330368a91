"""Files that a query does nothing but read: this machine then reads them itself, and Spark has nothing to do.

Most tables begin as `spark.read.parquet(...)`. Where the optimized plan of a query is that and nothing else, Parquet
files of this machine hold its very rows. The plan is looked at after all of Spark's rules, so what filters or masks
rows, a cache or a format that keeps deleted rows apart is no such plan, and neither is what would turn a file's values
into others. Everything asked here is public: the query, the session, and the types of columns.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import parquet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SQL = "org.apache.spark.sql"
PROJECT = f"{SQL}.catalyst.plans.logical.Project"
ATTRIBUTE = f"{SQL}.catalyst.expressions.AttributeReference"
SCAN = (
    f"{SQL}.execution.datasources.LogicalRelation",
    f"{SQL}.execution.datasources.HadoopFsRelation",
    f"{SQL}.execution.datasources.parquet.ParquetFileFormat",
    f"{SQL}.execution.datasources.InMemoryFileIndex",
)
"""Node, relation, format and list of files: these classes and none that extend them."""
LENIENT = ("spark.sql.files.ignoreCorruptFiles", "spark.sql.files.ignoreMissingFiles")
ALIKE = {"string": pa.string(), "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16()}
ALIKE |= {"int": pa.int32(), "bigint": pa.int64()}
ALIKE |= {f"array<{name}>": pa.list_(kind) for name, kind in ALIKE.items()}
"""Types whose values are the same to Spark and to whoever reads the file; times, decimals and floats may not be."""


def scanned_files(frame: "DataFrame", names: list[str]) -> list[Path] | None:
    """Return the Parquet files of this machine whose rows a query gives as they are; None where it does more.

    Args:
        frame: a table of a session on this machine.
        names: the wanted columns.
    """
    if any(frame.sparkSession.conf.get(each) == "true" for each in LENIENT):
        return None
    index = _index(frame)
    files = None if index is None else _local(list(index.inputFiles()))
    wanted = {name: ALIKE.get(frame.schema[name].dataType.simpleString()) for name in names}
    return files if files is not None and all(_holds(file, wanted) for file in files) else None


def _index(frame: "DataFrame") -> Any:
    """Return Spark's list of the files that a plan reads, where it does nothing else."""
    java: Any = frame
    query = java._jdf.queryExecution()
    leaves = query.analyzed().collectLeaves()
    if [_class_of(leaves.apply(place)) for place in range(leaves.size())] != [SCAN[0]]:
        return None
    try:
        plan = query.optimizedPlan()
    except Exception:  # it computes what it can; who runs the query says what fails of it
        return None
    while _class_of(plan) == PROJECT:
        columns = plan.projectList()
        if any(_class_of(columns.apply(place)) != ATTRIBUTE for place in range(columns.size())):
            return None
        plan = plan.child()
    node, relation, kind, index = SCAN
    if _class_of(plan) != node or _class_of(plan.relation()) != relation:
        return None
    read = plan.relation()
    found = (_class_of(read.fileFormat()), _class_of(read.location())) == (kind, index)
    # Columns of folders' names are in no file; of options, only where files are does not say how they are read.
    told = read.options()
    plain = read.partitionSchema().size() == 0 and told.size() == int(told.contains("path"))
    return read.location() if found and plain else None


def _class_of(java: Any) -> str:
    return str(java.getClass().getName())


def _local(addresses: list[str]) -> list[Path] | None:
    """Return the paths of files on this machine that say they are Parquet."""
    parts = [urlsplit(each) for each in addresses]
    files = [Path(unquote(each.path)) for each in parts]
    here = all(part.scheme == "file" and file.suffix == ".parquet" for part, file in zip(parts, files, strict=True))
    return files if here and files else None


def _holds(file: Path, wanted: dict[str, pa.DataType | None]) -> bool:
    """Say whether a file has columns of these names and types, each once; of no type None is one."""
    try:
        schema = parquet.read_schema(file)
    except (OSError, pa.ArrowException):  # gone, damaged or encrypted: Spark says what it makes of it
        return False
    return all(
        schema.names.count(name) == 1 and _plain(schema.field(name).type) == kind for name, kind in wanted.items()
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return a type without its way of storing."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain(kind.value_type))
    texts = pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    return pa.string() if texts else kind
