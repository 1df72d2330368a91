"""Fixtures with a local Spark session that tries each task several times and writes all files into one folder."""

import os
import sys
from pathlib import Path

import polars as pl
import pytest
from framed import framed

import voxpop as vp
from support.look import read_engine
from voxpop.engine.spark.session import QUICK_JAVA
from voxpop.engine.spark.session import java as java_program
from voxpop.errors import InputError

ATTEMPTS = 4


@pytest.fixture(scope="session", autouse=True)
def pyspark():
    """Skip these tests if pyspark is missing."""
    return pytest.importorskip("pyspark", reason="no pyspark: run `make spark`, or pip install 'voxpop[spark]'")


@pytest.fixture(scope="session")
def java(pyspark):
    """Skip tests if Spark cannot start, and configure every later Java process to start quickly."""
    os.environ.setdefault("JDK_JAVA_OPTIONS", QUICK_JAVA)
    try:
        return java_program()
    except InputError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """Return the folder into which the session writes its blocks, shuffles and events."""
    folder = tmp_path_factory.mktemp("spark")
    (folder / "events").mkdir()
    return folder


@pytest.fixture(scope="session")
def spark(java, written):
    """Return a session with two cores.

    Query planning in Java takes most of the time, so queries are interpreted and plans are not checked. Sessions in
    separate processes (`test_once.py`, `test_errors_met.py`, `test_connect.py`, `test_cluster.py`) have Spark's default
    settings.
    """
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    here = Path(__file__).parent
    before = [path for path in [os.environ.get("PYTHONPATH")] if path]  # Workers import the tested package
    os.environ["PYTHONPATH"] = os.pathsep.join([str(here), str(here.parent), *before])  # and classes of tests.
    session = (
        SparkSession.builder.master(f"local[2,{ATTEMPTS}]")
        .appName("voxpop tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.codegen.wholeStage", "false")  # Otherwise, Java compiles code for each query.
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.lightweightPlanChangeValidation", "false")  # Do not check Spark's own planner.
        .config("spark.sql.dataFrameQueryContext.enabled", "false")  # Do not record a Python line per column.
        .config("spark.python.sql.dataFrameDebugging.enabled", "false")
        .config("spark.sql.execution.arrow.localRelationThreshold", "0")  # Otherwise, plans contain all rows.
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", str(written / "blocks"))
        .config("spark.eventLog.enabled", "true")
        .config("spark.eventLog.compress", "false")
        .config("spark.eventLog.dir", f"file://{written / 'events'}")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


PHRASES = ["thank you very much", "see you soon", "good morning everyone", "how are you", "very much so"]


@pytest.fixture(scope="session")
def talk():
    """Return a table of 600 users with several rows each. The rows are not sorted, and some texts are null."""
    rows = []
    for number in range(600):
        rows.append((number, PHRASES[number % 5]))
        rows.append((number, f"nobody else wrote this number{number}"))
    for number in range(600):
        rows.append((number, None if number % 7 == 0 else f"{PHRASES[(number // 5) % 5]}, {PHRASES[number % 3]}"))
    return pl.DataFrame(rows, schema={"who": pl.Int64, "what": pl.String}, orient="row")


@pytest.fixture
def collected(spark, monkeypatch):
    """Return a list of the tables that the driver collects. All other methods that collect rows are disabled."""
    from pyspark.sql.classic.dataframe import DataFrame

    tables, real = [], DataFrame.toArrow

    def to_arrow(frame):
        tables.append(real(frame))
        return tables[-1]

    def closed(*_, **__):
        raise AssertionError("the driver collected rows in another way")

    monkeypatch.setattr(DataFrame, "toArrow", to_arrow)
    for name in ("collect", "toPandas", "toLocalIterator", "take", "first", "head", "count", "show", "tail"):
        monkeypatch.setattr(DataFrame, name, closed)
    return tables


@pytest.fixture
def elsewhere(monkeypatch):
    """Treat the session as a cluster session, so that no rows are transferred to the local engine."""
    monkeypatch.setattr("voxpop.engine.spark.reading.is_here", lambda session: False)


@pytest.fixture
def read_both(spark):
    """Return a function that reads a table twice, locally and from Spark.

    If `partitions` is None, the rows from Spark are transferred to the local engine.
    """

    def read(table, partitions=3, **columns):
        columns = {"user": "who", **(columns or {"text": "what"})}
        return read_engine(table, **columns), read_engine(
            framed(spark, table), options=vp.ReadOptions(partitions=partitions), **columns
        )

    return read
