"""Failures of executors as voxpop's own errors, one line each."""

import re
from typing import TYPE_CHECKING

from voxpop import errors
from voxpop.errors import InputError, InternalError, MemoryLimitError, VoxpopError
from voxpop.spark.planning import as_written

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

RAISED = re.compile(r"^voxpop\.errors\.(\w+): (.*)$", re.MULTILINE)
PYTHON = "Set PYSPARK_PYTHON, or spark.pyspark.python, to a Python that has it before the session starts."
KNOWN: dict[str, tuple[type[InputError], str]] = {
    r"No module named '?(voxpop|pyarrow|numpy|numba|polars|scipy|cryptography)\b": (
        InputError,
        "the Python of the executors has no {}. Install voxpop there, in the version of the driver. " + PYTHON,
    ),
    r"Can't get attribute '(\w+)' on <module 'voxpop": (
        InputError,
        "the executors have another version of voxpop than the driver: theirs has no {}. Install the same on both.",
    ),
    r"PYTHON_VERSION_MISMATCH|Python in worker has different version": (
        InputError,
        "the executors run another version of Python than the driver. " + PYTHON.replace(" that has it", " of its own"),
    ),
    r'Cannot run program "?([^"\s]+)': (
        InputError,
        "the executors cannot start {}. " + PYTHON.replace(" that has it", " that they have"),
    ),
    r"No space left on device|DiskErrorException|Disk quota exceeded": (
        InputError,
        "a disk is full: shuffles and what is kept between passes lie in spark.local.dir, rows that are handed over on "
        "one machine in work_folder= (--work-folder). Free some, or name larger disks there.",
    ),
    r"java\.lang\.OutOfMemoryError": (
        MemoryLimitError,
        "Java had too little memory. Raise spark.driver.memory or spark.executor.memory before the session starts.",
    ),
    r"exited unexpectedly \(crashed\)|ExecutorLostFailure|Python worker exited|EOFException.*PythonRunner": (
        MemoryLimitError,
        "executors, or the Python of their tasks, were lost again and again, which mostly means too little memory. "
        "Read into more parts (partitions= of voxpop.read), or raise spark.executor.memoryOverhead.",
    ),
}
"""What Spark says where something is missing, and what to do: nothing of Spark's own words, which may quote rows."""


def answer(frame: "DataFrame") -> "pa.Table":
    """Return the rows of a frame; where a task raised one of our errors, or Spark one that we know, raise ours.

    Raises:
        VoxpopError: what a task raised, or what is missing. Errors of Spark that we do not know pass through.
    """
    try:
        with as_written(frame.sparkSession):
            return frame.toArrow()
    except Exception as error:  # py4j, grpc and pyspark each have their own
        found = translated(str(error))
        if found is None:
            raise
    raise found


def translated(text: str) -> VoxpopError | None:
    """Return the error of ours that a failure of Spark quotes or stands for, or None."""
    match = RAISED.search(text)
    if match is not None:
        kind = getattr(errors, match.group(1), InternalError)
        return kind(match.group(2)) if issubclass(kind, VoxpopError) else None
    for pattern, (known, advice) in KNOWN.items():
        found = re.search(pattern, text)
        if found is not None:
            return known(advice.format(*found.groups()))
    return None
