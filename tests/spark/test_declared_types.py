"""Tests that types depend on a schema instead of values, so one user does not affect types or rows of another."""

import pyarrow as pa
import pytest
from pyarrow import parquet

import voxpop as vp
from support.look import read_engine
from voxpop.engine.spark.reading import open_frame
from voxpop.errors import ColumnError

BUDGET = vp.Budget(4, 1e-8)
ROADS = pytest.mark.parametrize("partitions", [2, None], ids=["spread", "handed over"])


def collated(spark):
    """Return a table of one user whose id has 512 spellings."""
    ids = [""]
    for letter in "abcdefghi":
        ids = [each + case for each in ids for case in (letter, letter.upper())]
    rows = spark.createDataFrame([(each, "one person only", 1) for each in ids], "who string, what string, n int")
    return rows.selectExpr("collate(who, 'UTF8_LCASE') AS who", "collate(what, 'UNICODE_CI') AS what", "n")


@pytest.mark.parametrize("user", ["who", ["n", "who"], ["who", "n"]])
@ROADS
def test_users_with_a_collation_are_rejected(spark, user, partitions):
    """A column with a collation is rejected, because one user in Spark would become 512 users in Voxpop.

    The error names the column, the collation and the next step.
    """
    frame = collated(spark)
    assert frame.select("who").distinct().count() == 1
    with pytest.raises(ColumnError, match=r'"who" has the collation UTF8_LCASE.*collate\(`who`, \'UTF8_BINARY\'\)'):
        read_engine(frame, user=user, text="what", options=vp.ReadOptions(partitions=partitions))
    exact = frame.selectExpr("collate(who, 'UTF8_BINARY') AS who", "what", "n")
    assert (
        vp.Items()
        .release(read_engine(exact, user="who", text="what", options=vp.ReadOptions(partitions=partitions)), BUDGET)
        .to_list()
    )
    folded = frame.selectExpr("lower(collate(who, 'UTF8_BINARY')) AS who", "what", "n")
    read = read_engine(folded, user="who", text="what", options=vp.ReadOptions(partitions=partitions))
    assert vp.Items().release(read, BUDGET).to_list() == []


@ROADS
def test_items_with_a_collation_keep_their_spelling(spark, partitions):
    """Spellings that a collation treats as equal remain separate items, so no spelling depends on another user."""
    rows = [(number, "Tea" if number % 2 else "tEA") for number in range(800)]
    frame = spark.createDataFrame(rows, "who long, what string")
    plain = frame.selectExpr("who", "what", "array(what) AS list")
    other = frame.selectExpr("who", "collate(what, 'UTF8_LCASE') AS what", "array(collate(what, 'UTF8_LCASE')) AS list")
    assert other.select("what").distinct().count() == 1
    union = vp.papers.OptimalSelection()
    for how in ({"items": "what"}, {"tokens": "list"}):
        one, two = (
            union.release(
                read_engine(each, user="who", options=vp.ReadOptions(partitions=partitions), **how), BUDGET, seed=1
            )
            for each in (plain, other)
        )
        assert one.to_list() == two.to_list() == ["Tea", "tEA"]


@ROADS
def test_rows_are_read_from_the_query_instead_of_the_files(spark, tmp_path, partitions):
    """Reading the files directly would give different rows.

    The cases are a file that Spark skips, and columns that Spark identifies by their number.
    """
    folder = tmp_path / "skipped"
    folder.mkdir()
    parquet.write_table(pa.table({"who": range(100), "text": ["see you soon"] * 100}), folder / "part-0.parquet")
    opted = pa.table({"who": range(1000, 1500), "text": ["opted out"] * 500})
    parquet.write_table(opted, folder / "_metadata_optout.parquet")
    frame = spark.read.parquet(str(folder))
    read = read_engine(frame, user="who", text="text", options=vp.ReadOptions(partitions=partitions))
    assert vp.Items().release(read, BUDGET, seed=1).to_list() == ["see", "soon", "you"]

    from pyspark.sql import types

    fields = {"who": (pa.int64(), 4), "text": (pa.string(), 3), "person": (pa.int64(), 2)}
    schema = pa.schema(
        [pa.field(name, kind, metadata={"PARQUET:field_id": str(n)}) for name, (kind, n) in fields.items()]
    )
    table = pa.table({"who": range(500), "text": ["secret of one person"] * 500, "person": [7] * 500}, schema=schema)
    parquet.write_table(table, tmp_path / "numbered.parquet")
    wanted = [("who", types.LongType(), 2), ("text", types.StringType(), 3)]
    given = types.StructType([types.StructField(name, kind, True, {"parquet.field.id": n}) for name, kind, n in wanted])
    setting = "spark.sql.parquet.fieldId.read.enabled"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "true")
    try:
        frame = spark.read.schema(given).parquet(str(tmp_path / "numbered.parquet"))
        assert frame.select("who").distinct().count() == 1
        read = read_engine(frame, user="who", text="text", options=vp.ReadOptions(partitions=partitions))
        assert vp.Items().release(read, BUDGET, seed=1).to_list() == []
    finally:
        spark.conf.set(setting, before)


def test_only_one_check_uses_internals_of_spark():
    """Names that begin with an underscore are internal to Spark and can change without notice."""
    import re
    from pathlib import Path

    import voxpop.engine.spark

    text = "\n".join(path.read_text() for path in sorted(Path(voxpop.engine.spark.__file__).parent.glob("*.py")))
    used = re.findall(r"\b_(?:jdf|jvm|jsc|jsparkSession|sc|explain_string)\b", text)
    assert used.count("_jdf") == len(used) == 2  # They are in `reading.check_repeatable`.


def test_names_of_folders_are_strings(spark, tmp_path):
    """Otherwise, Spark would infer types from all folder names, so one folder could change the values of another."""
    for name in ("07", "8"):
        (tmp_path / f"what={name}").mkdir()
        parquet.write_table(pa.table({"who": [1]}), tmp_path / f"what={name}" / "0.parquet")
    frame = open_frame(spark, [str(tmp_path)])
    assert sorted(row.what for row in frame.select("what").collect()) == ["07", "8"]
