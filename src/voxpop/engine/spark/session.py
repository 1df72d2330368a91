"""Spark sessions: Java and the master, the number of parallel tasks, settings of one plan, and errors without data."""

import os
import re
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from voxpop import errors
from voxpop.errors import InputError, InternalError, MemoryLimitError, SourceError, VoxpopError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

LOCAL = re.compile(r"local(\[\s*(\*|\d+)\s*(,\s*\d+\s*)?\])?")
"""The masters that run tasks in the Java process of the driver. `local-cluster[...]` starts other processes."""
CONNECT = "sc://"
LEAST_JAVA = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
"""The output of `java -version`. Versions before Java 9 are numbered 1.8 and lower."""
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The options for Java on this machine. Python does most of the work, and Java would spend half of its time on
optimising its own code.
"""


def java() -> Path:
    """Return the Java program of JAVA_HOME, or otherwise the program on the PATH.

    Raises:
        InputError: If neither exists.
    """
    home = os.environ.get("JAVA_HOME")
    found = Path(home, "bin", "java") if home else None
    if found is not None and found.is_file():
        return found
    on_path = shutil.which("java")
    if on_path is None:
        raise InputError(
            "Spark needs Java 17 or later, and neither JAVA_HOME nor the PATH has it. Install one (Debian: "
            "apt-get install openjdk-17-jre-headless), or use --engine local."
        )
    return Path(on_path)


def check_java() -> None:
    """Raise an InputError if Java is too old or cannot start."""
    program = java()
    with suppress(OSError):
        told = subprocess.run([str(program), "-version"], capture_output=True, text=True, check=False)
        found = _VERSION.search(told.stderr + told.stdout)
        if found is not None and int(found.group(1)) >= LEAST_JAVA:
            return
        if found is not None:
            raise InputError(
                f"Spark needs Java {LEAST_JAVA} or later, and {program} is {found.group(1)}. Set JAVA_HOME."
            )
    raise InputError(f"{program} does not start. Set JAVA_HOME to Java {LEAST_JAVA} or later.")


def start_session(master: str) -> "SparkSession":
    """Start a session for the command line, or return the active one.

    Args:
        master: "local[*]", "spark://host:7077", "yarn", "k8s://..." or, for Spark Connect, "sc://host:15002".

    Raises:
        InputError: If pyspark or Java is missing, or the master cannot be reached.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise InputError(
            "--engine spark needs pyspark. Install it with pip install 'pyspark>=4,<5' 'pandas<3', or use "
            "--engine local."
        ) from None
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    builder: Any = SparkSession.builder.appName("voxpop")
    if master.startswith(CONNECT):
        return _started(builder.remote(master), master)
    java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = builder.master(master).config("spark.ui.showConsoleProgress", "false")
    if LOCAL.fullmatch(master):
        builder = builder.config("spark.ui.enabled", "false")
        builder = builder.config("spark.driver.defaultJavaOptions", QUICK_JAVA)
    ahead = Thread(target=_import_ahead, daemon=True)
    ahead.start()  # runs in parallel with the start of Java
    session = _started(builder, master)
    ahead.join()
    session.sparkContext.setLogLevel("FATAL")  # voxpop reports failures in one line
    return session


def _import_ahead() -> None:
    for name in ("numba", "pandas", "polars", "scipy.special"):
        import_module(name)


def _started(builder: Any, master: str) -> "SparkSession":
    try:
        session: SparkSession = builder.getOrCreate()
    except Exception as error:  # py4j, grpc and pyspark raise different exceptions
        if not master.startswith(CONNECT):
            check_java()
        raise InputError(
            f"no Spark session could be started with --master {master} ({type(error).__name__}). Check the address, "
            "and try --master 'local[*]'."
        ) from error
    return session


def context_of(session: "SparkSession") -> Any:
    """Return the Spark context, or None on Spark Connect, which has no context."""
    try:
        return session.sparkContext
    except (AttributeError, NotImplementedError):
        return None


def is_here(session: "SparkSession") -> bool:
    """Return whether all of Spark runs on this machine, in a single Java process that this process started."""
    context = context_of(session)
    return context is not None and LOCAL.fullmatch(str(context.master)) is not None


def use_own_python(session: "SparkSession") -> None:
    """Use the current Python for workers on this machine, unless the user chose another Python.

    By default, Spark uses the first `python3` on the PATH. If a virtual environment is not activated, Voxpop is missing
    from this Python.
    """
    context = context_of(session)
    if context is None or not str(context.master).startswith("local"):
        return
    if "PYSPARK_PYTHON" not in os.environ and context.getConf().get("spark.pyspark.python") is None:
        context.pythonExec = sys.executable


DYNAMIC = "spark.dynamicAllocation.enabled"
SETTING = "spark.sql.shuffle.partitions"
QUIET = 2.0
"""The number of seconds without a new executor after which all executors are assumed to have registered."""
MOST_SECONDS = 30.0
EVERY = 0.2
MOST_COUNTED = 1 << 14
"""The maximum number of parallel tasks that are counted on Spark Connect."""
_CONNECT_CORES: "WeakKeyDictionary[Any, int]" = WeakKeyDictionary()


def cores(session: "SparkSession") -> int:
    """Return the number of tasks that run in parallel. The number never depends on a table.

    With dynamic allocation, Spark starts and stops executors according to the amount of work, so their number depends
    on the data. In this case, the configured number `spark.sql.shuffle.partitions` is returned.
    """
    if str(session.conf.get(DYNAMIC, "false")).lower() == "true":
        return int(session.conf.get(SETTING) or 1)
    context = context_of(session)
    if context is not None:
        return int(context.defaultParallelism)
    if session not in _CONNECT_CORES:
        from pyspark.sql import functions as sql

        parts = session.range(MOST_COUNTED).select(sql.spark_partition_id().alias("part")).distinct()
        _CONNECT_CORES[session] = answer(parts).num_rows
    return _CONNECT_CORES[session]


def settled_cores(session: "SparkSession") -> int:
    """Return the number of tasks that run in parallel. On a cluster, wait until its executors have registered."""
    context = context_of(session)
    if context is not None and not is_here(session):
        session.range(1).count()  # Spark waits for the first executor; before that, it reports two cores
        _wait_for_executors(context)
    return cores(session)


def _wait_for_executors(context: Any) -> None:
    """Wait until the number of cores has not changed for a while."""
    start = changed = time.monotonic()
    known = context.defaultParallelism
    while time.monotonic() - start < MOST_SECONDS:
        time.sleep(EVERY)
        there = context.defaultParallelism
        if there != known:
            known, changed = there, time.monotonic()
        if time.monotonic() - changed > QUIET:
            return


def at_least_two(count: int) -> int:
    """Return the number of partitions for a shuffle of two joined tables.

    If all rows are in a single partition, Spark does not treat them as partitioned by a column, and would shuffle both
    tables again.
    """
    return max(count, 2)


NOT_ADAPTIVE = {"spark.sql.adaptive.enabled": "false"}
"""Adaptive execution runs every shuffle as a separate job in order to measure sizes, but the sizes are known here."""
_SparkResult = TypeVar("_SparkResult")
_LOCK = Lock()
_DEPTH: dict[tuple[int, str], tuple[int, str]] = {}


@contextmanager
def with_setting(session: "SparkSession", name: str, value: str) -> Iterator[None]:
    """Change a setting of a session, and restore it when the last thread that changed it has finished."""
    key = id(session), name
    with _LOCK:
        depth, before = _DEPTH.get(key, (0, ""))
        if not depth:
            before = str(session.conf.get(name))
            session.conf.set(name, value)
        _DEPTH[key] = depth + 1, before
    try:
        yield
    finally:
        with _LOCK:
            depth, before = _DEPTH[key]
            _DEPTH[key] = depth - 1, before
            if depth == 1:
                del _DEPTH[key]
                session.conf.set(name, before)


RAISED = re.compile(r"^voxpop\.errors\.(\w+): (.*?)(?: SQLSTATE: \w+)?$", re.MULTILINE)
PYTHON = "Set PYSPARK_PYTHON, or spark.pyspark.python, to a Python that has it before the session starts."
KNOWN: dict[str, tuple[type[InputError], str]] = {
    r"No module named '?(voxpop|pyarrow|numpy|numba|polars|scipy|cryptography)\b": (
        InputError,
        "the Python of the executors has no {}. Install voxpop there, in the version of the driver. " + PYTHON,
    ),
    r"Can't get attribute '(\w+)' on <module 'voxpop": (
        InputError,
        "the executors and the driver have different versions of voxpop. The executors lack {}. Install the same on "
        "both.",
    ),
    r"PYTHON_VERSION_MISMATCH|Python in worker has different version": (
        InputError,
        "the executors and the driver run different versions of Python. "
        + PYTHON.replace(" that has it", " of its own"),
    ),
    r'Cannot run program "?([^"\s]+)': (
        InputError,
        "the executors cannot start {}. " + PYTHON.replace(" that has it", " that they have"),
    ),
    r"No space left on device|DiskErrorException|Disk quota exceeded": (
        InputError,
        "a disk is full. Shuffles and states between passes lie in spark.local.dir, rows that are handed over on one "
        "machine in work_folder= (--work-folder). Free some space, or name larger disks there.",
    ),
    r"java\.lang\.OutOfMemoryError": (
        MemoryLimitError,
        "Java had too little memory. Raise spark.driver.memory or spark.executor.memory before the session starts.",
    ),
    r"exited unexpectedly \(crashed\)|ExecutorLostFailure|Python worker exited|EOFException.*PythonRunner": (
        MemoryLimitError,
        "executors, or the Python of their tasks, were lost again and again, mostly because of too little memory. "
        "Read into more parts (partitions= of voxpop.read), or raise spark.executor.memoryOverhead.",
    ),
    r"MALFORMED_RECORD_IN_PARSING|MALFORMED_CSV_RECORD|CSVHeaderChecker": (
        SourceError,
        "a file of the table has a row that is not JSON, or a row of CSV with more or fewer values than columns, or a "
        "header unlike that of the first file. Correct the file.",
    ),
}
"""Failures of Spark, and the next step for each one. Spark's own text is never passed on, because it may quote rows."""


def answer(frame: "DataFrame") -> "pa.Table":
    """Return the rows of a frame, or raise a VoxpopError that quotes no data."""
    return ran(frame.sparkSession, frame.toArrow)


def ran(
    session: "SparkSession",
    query: Callable[..., _SparkResult],
    *given: Any,
    settings: Mapping[str, str] = NOT_ADAPTIVE,
) -> _SparkResult:
    """Return the result of a query that runs with some settings, or raise a VoxpopError that quotes no data."""
    try:
        with ExitStack() as changed:
            for name, value in settings.items():
                changed.enter_context(with_setting(session, name, value))
            return query(*given)
    except Exception as error:  # py4j, grpc and pyspark raise different exceptions
        failure = failure_of(error)
    raise failure


def failure_of(error: Exception) -> VoxpopError:
    """Return the error to raise for a failed query. An unknown failure is described only by Spark's error condition."""
    condition = getattr(error, "getCondition", lambda: None)()
    return translated(str(error)) or SourceError(
        f"the query that gives the table fails on Spark ({condition or type(error).__name__}). Spark's message may "
        "quote rows, and is not shown here. Run the query separately, for example with "
        "frame.write.format('noop').mode('overwrite').save()."
    )


def translated(text: str) -> VoxpopError | None:
    """Return the VoxpopError that a failure of Spark quotes or corresponds to; None for other failures."""
    match = RAISED.search(text)
    if match is not None:
        kind = getattr(errors, match.group(1), InternalError)
        return kind(match.group(2).removesuffix(errors.PLEASE_REPORT)) if issubclass(kind, VoxpopError) else None
    for pattern, (known, advice) in KNOWN.items():
        found = re.search(pattern, text)
        if found is not None:
            return known(advice.format(*found.groups()))
    return None
