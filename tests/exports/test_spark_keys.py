"""The rows of a Spark table whose key was released."""

import os
import shutil
import sys

import pytest

import voxpop as vp

pytest.importorskip("pyspark", reason="pyspark is not installed")

ROWS = [("tea", 7, ["tea"]), ("coffee", 8, ["New York", "tea"]), (None, None, None), ("New York", -1, ["tea", "tea"])]


@pytest.fixture(scope="module")
def spark():
    """A local session of one thread."""
    if shutil.which("java") is None:
        pytest.skip("Java is not installed, which Spark needs")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("column", "kept"), [("word", ["New York", "tea"]), ("number", ["New York", "tea"]), ("gram", ["coffee", "tea"])]
)
def test_released_rows_are_kept(spark, released, column, kept):
    """Strings, whole numbers and lists; nulls never."""
    keys = released([("-1",), ("7",), ("New York",), ("tea",), ("New York", "tea")])
    table = spark.createDataFrame(ROWS, "word string, number int, gram array<string>")
    assert sorted(row.word for row in vp.exports.filter(keys, table, column).collect()) == kept


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_other_types_are_refused(spark, released):
    """Before any job runs."""
    from voxpop.errors import ColumnError

    table = spark.createDataFrame([(0.5,)], "half double")
    with pytest.raises(ColumnError, match="double"):
        vp.exports.filter(released([("tea",)]), table, "half")
