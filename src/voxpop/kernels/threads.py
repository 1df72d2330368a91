"""The number of threads to use, parallel work with ordered results, and a check for threads that were lost in a fork.

A forked process has only the thread that forked. Arrow and the C library start their threads again, and voxpop starts
new threads for each call. Polars does not start its threads again, so in the child process it would wait forever for
threads that exist only in the parent.
"""

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from itertools import chain, islice
from typing import TypeVar

from voxpop.errors import InputError

_ThreadTask = TypeVar("_ThreadTask")
_ThreadResult = TypeVar("_ThreadResult")

THREADS = int(os.environ.get("VOXPOP_THREADS", min(8, os.cpu_count() or 1)))


def in_order(work: Callable[[_ThreadTask], _ThreadResult], tasks: Iterable[_ThreadTask]) -> Iterator[_ThreadResult]:
    """Yield `work(task)` for each task in order, while threads compute a few results in advance.

    The threads have the context variables of the caller.

    A single task runs without threads, because starting and stopping threads takes longer than weighing the items of a
    few users. A search of small collections, which makes a hundred thousand calls, took 18 seconds with threads and
    takes 6 seconds without them.
    """
    coming = iter(tasks)
    first = list(islice(coming, 2))
    if len(first) < 2:
        yield from map(work, first)
        return
    ahead: deque[Future[_ThreadResult]] = deque()
    with ThreadPoolExecutor(THREADS) as threads:
        for task in chain(first, coming):
            ahead.append(threads.submit(copy_context().run, work, task))
            if len(ahead) > 2 * THREADS:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


POLARS = ("tokio-rt", "async-exec", *(f"polars-{digit}" for digit in range(10)))
"""Name prefixes of the threads that polars starts when it first does work."""
PROBED = 60.0
"""The time limit, in seconds, for polars to respond if it may have lost its threads."""
NOT_KNOWN, STARTED, LOST = 0, 1, 2


def _has_threads() -> bool:
    """Return whether polars has started its threads in this process; False on systems that do not list threads."""
    try:
        for number in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{number}/comm", encoding="utf-8", errors="replace") as file:
                if file.read().startswith(POLARS):
                    return True
    except OSError:
        pass
    return False


class _Polars:
    """The state of polars' threads in this process.

    Attributes:
        state: The state of these threads, which is unknown, started or lost.
        doubtful: Whether polars was imported before this module, in which case an earlier fork could have lost its
            threads.
    """

    def __init__(self) -> None:
        self.state, self.doubtful = NOT_KNOWN, "polars" in sys.modules

    def before_fork(self) -> None:
        if self.state == NOT_KNOWN and "polars" in sys.modules and _has_threads():
            self.state = STARTED

    def after_fork(self) -> None:
        if self.state == STARTED:
            self.state = LOST

    def probe(self) -> None:
        """Run a polars query in a thread. The query needs the threads of polars."""
        import polars as pl

        # The query has two computed columns and a sort, because selecting a single column would need no threads.
        work = pl.LazyFrame({"a": [2, 1]}).select(pl.col("a") + 1, (pl.col("a") * 2).alias("b")).sort("a")
        asked = threading.Thread(target=work.collect, daemon=True)
        asked.start()
        asked.join(PROBED)
        self.state = LOST if asked.is_alive() else NOT_KNOWN
        self.doubtful = False


_polars = _Polars()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_polars.before_fork, after_in_child=_polars.after_fork)


def require_polars() -> None:
    """Check, before each use of polars, that polars has not lost its threads in a fork.

    Raises:
        InputError: If polars has lost its threads so that a query would never return.
    """
    if _polars.state == NOT_KNOWN and _polars.doubtful and not _has_threads():
        _polars.probe()
    if _polars.state == LOST:
        raise InputError(
            "this process was forked after polars had started its threads. They do not exist here, so polars would "
            'wait forever. Start processes with "spawn" or "forkserver" (multiprocessing.get_context), or use polars '
            "only after the fork. Without polars, read Parquet, Arrow or CSV files, and use to_arrow or to_pandas."
        )


def one_ahead(items: Iterator[_ThreadResult]) -> Iterator[_ThreadResult]:
    """Yield an iterator's values, except None. A thread computes the next value while the caller works."""
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, None)
        while (found := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield found


def one_behind(work: Callable[[_ThreadTask], None], tasks: Iterable[_ThreadTask]) -> None:
    """Run `work(task)` for all tasks in order in another thread, while this thread fetches the next task."""
    with ThreadPoolExecutor(1) as thread:
        done: Future[None] | None = None
        for task in tasks:
            if done is not None:
                done.result()
            done = thread.submit(work, task)
        if done is not None:
            done.result()
