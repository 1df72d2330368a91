"""Java, and sessions for the command line."""

import os
import re
import shutil
import subprocess
import sys
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from voxpop.corpus.reading.csv_text import Dialect
from voxpop.corpus.reading.encodings import UTF8
from voxpop.corpus.reading.files import SUFFIXES
from voxpop.corpus.reading.sources import check_undescribed
from voxpop.errors import InputError, SourceError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOCAL = re.compile(r"local(\[\s*(\*|\d+)\s*(,\s*\d+\s*)?\])?")
"""Masters whose tasks run in the Java of the driver; `local-cluster[...]` starts others."""
CONNECT = "sc://"
LEAST_JAVA = 17
VERSION = re.compile(r'version "(?:1\.)?(\d+)')
"""What `java -version` says; before Java 9 it was 1.8."""
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For Java on this machine: the work is done in Python, and half of Java's time went into optimising itself."""


def java() -> Path:
    """Return the program that runs Java: that of JAVA_HOME, else the one on the PATH.

    Raises:
        InputError: where there is none.
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
    """Refuse a Java that is too old, or does not start.

    Raises:
        InputError: saying which is wanted.
    """
    program = java()
    with suppress(OSError):
        told = subprocess.run([str(program), "-version"], capture_output=True, text=True, check=False)
        found = VERSION.search(told.stderr + told.stdout)
        if found is not None and int(found.group(1)) >= LEAST_JAVA:
            return
        if found is not None:
            raise InputError(
                f"Spark needs Java {LEAST_JAVA} or later, and {program} is {found.group(1)}. Set JAVA_HOME."
            )
    raise InputError(f"{program} does not start. Set JAVA_HOME to Java {LEAST_JAVA} or later.")


def start_session(master: str) -> "SparkSession":
    """Start a session, or join the one there is.

    Args:
        master: "local[*]", "spark://host:7077", "yarn", "k8s://..." or, for Spark Connect, "sc://host:15002".

    Raises:
        InputError: where pyspark or Java is missing, or the master cannot be reached.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise InputError("--engine spark needs pyspark: pip install 'voxpop[spark]', or use --engine local.") from None
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    builder: Any = SparkSession.builder.appName("voxpop")
    if master.startswith(CONNECT):
        return _started(builder.remote(master), master)
    java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = builder.master(master).config("spark.ui.showConsoleProgress", "false")
    if cores_of(master) is not None:
        builder = builder.config("spark.ui.enabled", "false")
        builder = builder.config("spark.driver.defaultJavaOptions", QUICK_JAVA)
        builder = builder.config("spark.python.daemon.module", "voxpop.spark.daemon")
    ahead = Thread(target=_import_ahead, daemon=True)
    ahead.start()  # while Java starts
    session = _started(builder, master)
    ahead.join()
    session.sparkContext.setLogLevel("FATAL")  # what fails is told by us, in one line
    return session


def _import_ahead() -> None:
    """Import what the driver needs anyway and takes seconds."""
    for name in ("numba", "pandas", "polars", "scipy.special"):
        import_module(name)


def _started(builder: Any, master: str) -> "SparkSession":
    try:
        session: SparkSession = builder.getOrCreate()
    except Exception as error:  # py4j, grpc and pyspark each have their own
        if not master.startswith(CONNECT):
            check_java()
        raise InputError(
            f"no Spark session could be started with --master {master} ({type(error).__name__}). Check the address, "
            "and try --master 'local[*]'."
        ) from error
    return session


def cores_of(master: str) -> int | None:
    """Return the cores of a master on this machine, None for a cluster."""
    match = LOCAL.fullmatch(master)
    if match is None:
        return None
    wanted = match.group(2) or "1"
    return (os.cpu_count() or 1) if wanted == "*" else int(wanted)


def open_frame(
    session: "SparkSession", sources: list[str], delimiter: str | None = None, encoding: str | None = None
) -> "DataFrame":
    """Return files as a DataFrame: Parquet, CSV, TSV or JSON lines, by the ending of their names.

    Args:
        session: where to read.
        sources: paths, folders or patterns, all of one kind, as the cluster sees them.
        delimiter: of CSV; a comma, or a tab in .tsv, where None.
        encoding: of CSV, one that Spark reads; UTF-8 where None.

    Raises:
        InputError: where it is said how CSV is written, and the files are none.
        SourceError: where the kind is unknown, or the files cannot be read.
    """
    from pyspark.errors import PySparkException

    try:
        frame: DataFrame = _reader(session, _kind_of(sources), delimiter, encoding)(sources)
        frame.columns  # noqa: B018  # Spark Connect looks at the files only now
    except PySparkException as error:
        raise SourceError(
            f"Spark cannot read {', '.join(sources)} ({error.getCondition() or type(error).__name__}). Check the path: "
            "every executor must be able to read it."
        ) from None
    return frame


def _reader(session: "SparkSession", kind: str, delimiter: str | None, encoding: str | None) -> Any:
    dialect = Dialect(delimiter, encoding)
    if kind in (".csv", ".tsv"):
        separator = delimiter or ("," if kind == ".csv" else "\t")
        # Java knows encodings by other names than Python, so this one goes on as it was given.
        options = {"quote": '"', "escape": '"', "sep": separator, "encoding": encoding or UTF8}
        return session.read.options(header=True, multiLine=True, **options).csv
    check_undescribed(dialect)
    return (lambda sources: session.read.parquet(*sources)) if kind == ".parquet" else session.read.json


def _kind_of(sources: list[str]) -> str:
    """Return the one ending of all names; that of a folder is that of the files in it."""
    names = [name for source in sources for name in _names(source)]
    found = {next((end for end in SUFFIXES if end in Path(name).suffixes), "") for name in names} - {""}
    if len(found) != 1:
        raise SourceError(
            f"Spark needs files of one kind, ending in {', '.join(SUFFIXES)}; "
            f"got {', '.join(sorted(found)) or 'none of them'} in {', '.join(sources)}."
        )
    return found.pop()


def _names(source: str) -> list[str]:
    path = Path(source)
    return [file.name for file in path.rglob("*")] if path.is_dir() and not path.suffix else [source]
