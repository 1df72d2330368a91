"""Tests of common failures on clusters. Each error is one line with advice but without a Java stack trace."""

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from framed import framed

import voxpop as vp
from support.look import read_engine
from voxpop.engine.spark import session as sessions
from voxpop.engine.spark.reading import check_repeatable
from voxpop.engine.spark.session import KNOWN, translated
from voxpop.engine.spark.tasks import own_versions
from voxpop.errors import InputError, InternalError, MemoryLimitError

SOURCE = str(Path(vp.__file__).parents[1])
DRIVER = """
import os, resource, sys, warnings
sys.path.insert(0, sys.argv[1])
warnings.simplefilter("ignore")
import voxpop as vp
from pyspark.sql import SparkSession
from voxpop.errors import VoxpopError
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config(
    "spark.ui.showConsoleProgress", "false"
).getOrCreate()
spark.sparkContext.setLogLevel("OFF")
frame = spark.createDataFrame([(who, word) for who in range(90) for word in ("tea", "milk")], "who long, what string")

class Dying:
    def __call__(self, texts):
        os._exit(1)

class LittleMemory:
    def __call__(self, texts):
        taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + (64 << 20), resource.RLIM_INFINITY))
        cut = [text.split() for text in texts]
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return cut

def tell(table, **reading):
    try:
        read = vp.read(table, user="who", text="what", **reading)
        print(len(vp.papers.SetUnion(2, "weighted", accounting="joint").release(read, vp.Budget(4, 1e-6),
        seed=1)))
    except VoxpopError as error:
        print(type(error).__name__, error)

if sys.argv[2] == "memory":
    tell(frame, tokenizer=Dying(), options=vp.ReadOptions(partitions=1))
    long = spark.range(96).selectExpr("id AS who", "repeat('tea milk ', 25000) AS what")
    tell(long, tokenizer=LittleMemory(), options=vp.ReadOptions(partitions=1))
    tell(long, tokenizer=LittleMemory(), options=vp.ReadOptions(partitions=24))
else:
    tell(frame, options=vp.ReadOptions(partitions=1))
"""


def told(case="", **variables):
    """Return the last lines of a driver's output, without PYSPARK_PYTHON and PYTHONPATH unless they are given."""
    dropped = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYTHONPATH", "VIRTUAL_ENV")
    env = {name: value for name, value in os.environ.items() if name not in dropped}
    env |= {"SPARK_LOCAL_IP": "127.0.0.1", **variables}
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, SOURCE, case], capture_output=True, text=True, env=env, timeout=300, cwd=SOURCE
    )
    assert done.returncode == 0, done.stderr
    assert "java." not in done.stdout
    return done.stdout.splitlines()


@pytest.mark.slow
def test_workers_use_the_python_of_the_driver_by_default(java, tmp_path):
    """The Python of the driver can be in a virtual environment that is not on the PATH."""
    path = os.pathsep.join(each for each in ("/usr/bin", "/bin", str(Path(java).parent)))
    assert told(PATH=path, PYTHONPATH=SOURCE)[-1] == "2"


@pytest.mark.slow
def test_executors_without_voxpop_are_reported(java, tmp_path):
    """In this test, the Python of the executors has no packages."""
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    line = told(PYSPARK_PYTHON=str(bare))[-1]
    assert line.startswith("InputError the Python of the executors has no ")
    assert "PYSPARK_PYTHON" in line


@pytest.mark.slow
def test_executors_without_the_python_version_are_reported(java):
    """In this test, the path of the driver's Python does not exist on executors."""
    assert told(PYSPARK_PYTHON="/nowhere/python")[-1].startswith(
        "InputError the executors cannot start /nowhere/python."
    )


@pytest.mark.slow
def test_workers_that_crash_repeatedly_and_large_partitions_are_reported(java):
    """A crashed worker and a large partition each raise an error that suggests more partitions.

    With more partitions, the same table is released.
    """
    died, too_large, in_parts = told("memory")[-3:]
    assert died.startswith("MemoryLimitError executors")
    assert "partitions=" in died
    assert too_large.startswith("MemoryLimitError a part of the table does not fit into the memory of its task.")
    assert "partitions=" in too_large
    assert in_parts == "2"


def test_another_version_is_reported(spark, monkeypatch):
    """The driver and all executors must have the same version, because rules can differ between versions."""
    other = {**own_versions(), "voxpop": "0.0.1"}
    monkeypatch.setattr("voxpop.engine.spark.reading.own_versions", lambda: other)
    corpus = read_engine(
        framed(spark, pl.DataFrame({"who": [1], "what": ["tea"]})),
        user="who",
        text="what",
        options=vp.ReadOptions(partitions=2),
    )
    with pytest.raises(InputError, match=r"driver has voxpop 0\.0\.1, an executor .*must .* same version\. Install"):
        vp.papers.SetUnion(100, "weighted", accounting="joint").release(corpus, vp.Budget(1, 1e-6))


def test_tables_that_can_differ_between_readings_are_rejected(spark):
    """The tables contain random samples, row numbers, or results of nondeterministic functions."""
    from pyspark.sql import functions as sql

    frame = framed(spark, pl.DataFrame({"who": [1, 2], "what": ["tea", "milk"]}))
    anything = sql.udf(lambda text: text, "string").asNondeterministic()
    for changing in (
        frame.where(sql.rand() < 0.5),
        frame.withColumn("who", sql.monotonically_increasing_id()),
        frame.withColumn("what", sql.uuid()),
        frame.withColumn("what", anything("what")),
    ):
        with pytest.raises(InputError, match="Write it to a file first"):
            read_engine(changing, user="who", text="what")
    check_repeatable(frame.where("who > 1").groupBy("who").agg(sql.max("what").alias("what")))


@pytest.mark.parametrize(
    ("text", "kind", "advice"),
    [
        ("ModuleNotFoundError: No module named 'voxpop'", InputError, "has no voxpop"),
        ("No module named 'pyarrow.compute'", InputError, "has no pyarrow"),
        (
            "AttributeError: Can't get attribute 'weigh' on <module 'voxpop.engine.spark.tasks'",
            InputError,
            "different versions of voxpop",
        ),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9", InputError, "versions of Python"),
        ('java.io.IOException: Cannot run program "python9": error=2', InputError, "cannot start python9"),
        ("java.io.IOException: No space left on device", InputError, "spark.local.dir"),
        ("java.lang.OutOfMemoryError: Java heap space", MemoryLimitError, "spark.driver.memory"),
        ("ExecutorLostFailure (executor 1 exited caused by", MemoryLimitError, "memoryOverhead"),
    ],
)
def test_errors_of_spark_become_advice(text, kind, advice):
    """The translated error is one line of advice without the message of Spark."""
    found = translated(f"Job aborted due to stage failure: secret words\n\tat org.apache\n{text}\n\tat java.base")
    assert type(found) is kind
    assert advice in str(found)
    assert "\n" not in str(found)
    assert "secret" not in str(found)


def test_an_error_of_an_executor_keeps_its_message():
    """The message of an internal error contains its next step only once."""
    for error in (InternalError("a pass was lost"), InputError("`limit` must be at least 1.")):
        found = translated(f"Job aborted\nvoxpop.errors.{type(error).__name__}: {error}\n\tat java.base")
        assert type(found) is type(error)
        assert str(found) == str(error)


def test_unknown_errors_are_not_translated():
    """Every advice is one line."""
    assert translated("java.lang.IllegalStateException: never seen") is None
    assert all("\n" not in advice for _, advice in KNOWN.values())


@pytest.mark.parametrize(
    ("says", "error"), [('openjdk version "11.0.2"', "is 11"), ('java version "1.8.0_1"', "is 8"), ("?", "not start")]
)
def test_a_java_version_that_is_too_old_is_reported(monkeypatch, tmp_path, says, error):
    """The error contains the version of Java, or states that Java does not start. A sufficient version is accepted."""
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InputError, match=error):
        sessions.check_java()
    program.write_text("#!/bin/sh\necho 'openjdk version \"21\"' >&2\n")
    sessions.check_java()
