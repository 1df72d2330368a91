"""The first steps of every task on an executor, which set threads, load kernels and withhold messages of other code.

Every worker on a machine loads kernels that other workers have compiled, and saves the kernels that it compiles itself
(`kernels/_jit.py`). Files are written once and never changed. The name of their folder is a digest of everything that
machine code depends on. Without these files, every worker would compile kernels for tens of seconds.
"""

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from voxpop.errors import InternalError, MemoryLimitError, VoxpopError

if TYPE_CHECKING:
    import pyarrow as pa


def keep_machine_code() -> None:
    """Save the code of kernels that are imported after this call, and use the code that other processes saved.

    If there is no folder to which only this user may write, every process compiles kernels separately.
    """
    if "voxpop.kernels._jit" in sys.modules:
        return
    from voxpop.kernels import _jit
    from voxpop.kernels._kept import folders

    _jit.keep_overloads_in(next(map(str, folders()), None))


_WorkerTask = TypeVar("_WorkerTask", bound=Callable[..., "Iterator[pa.RecordBatch]"])


def task(work: _WorkerTask) -> _WorkerTask:
    """Run a task with the threads of its executor, without numba's cache of compiled kernels, and with safe errors.

    Sharing numba's cache among many processes crashed schedulers (docs/design/0005-spark.md). Therefore
    `keep_machine_code` stores kernels instead. Messages of other code can quote data, so only the types of its
    exceptions are passed on.
    """

    @wraps(work)
    def run(*args: Any, **keywords: Any) -> "Iterator[pa.RecordBatch]":
        with safely(work.__name__):
            yield from work(*args, **keywords)

    return cast(_WorkerTask, run)


@contextmanager
def safely(name: str) -> Iterator[None]:
    """Set up the worker for the task of this name, and replace messages that Voxpop did not write."""
    set_up()
    try:
        yield
    except VoxpopError:
        raise
    except MemoryError:
        raise MemoryLimitError(TOO_LARGE) from None
    except Exception as error:
        raise _safe(error) from None
    _leave_out_of_collections(name)


TOO_LARGE = (
    "a part of the table does not fit into the memory of its task. Read into more parts (partitions= of voxpop.read), "
    "or give tasks more memory (spark.executor.memoryOverhead, spark.executor.pyspark.memory)."
)
_SEEN: set[str] = set()
"""The names of the tasks that this worker has run."""


def _leave_out_of_collections(name: str) -> None:
    """Exclude the imported and compiled objects of a task from Python's garbage collection.

    Spark collects garbage after every task. This takes 0.1 seconds with the 160,000 objects of numba. A task that has
    already run in this worker imports and compiles almost nothing.
    """
    if name not in _SEEN and os.environ.get("VOXPOP_JIT_CACHE") == "0":
        _SEEN.add(name)
        gc.collect()
        gc.freeze()


def set_up() -> None:
    """Choose threads and caching before any slow import. Outside a Spark task, do nothing."""
    if "pyspark" not in sys.modules:  # every worker has already imported pyspark
        return
    import pyarrow as pa
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return
    cores = str(max(1, context.cpus()))
    os.environ["VOXPOP_JIT_CACHE"] = "0"
    for name in ("VOXPOP_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS"):
        os.environ[name] = cores
    pa.set_cpu_count(int(cores))
    keep_machine_code()


def _safe(error: Exception) -> VoxpopError:
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    place = "" if where is None else f" at {os.path.basename(where.tb_frame.f_code.co_filename)}:{where.tb_lineno}"
    return InternalError(
        f"a task failed with {type(error).__name__}{place}; its message is withheld, since it may quote private data. "
        "Try the same call on a small public table with the local engine."
    )
