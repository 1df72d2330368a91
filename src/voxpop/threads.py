"""How many threads work at a time, and work handed out to them whose results come back in order."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

THREADS = int(os.environ.get("VOXPOP_THREADS", min(8, os.cpu_count() or 1)))


def in_order(work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
    """Yield `work(task)` in the order of the tasks, a few of them worked on ahead by threads."""
    ahead: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(THREADS) as threads:
        for task in tasks:
            ahead.append(threads.submit(work, task))
            if len(ahead) > 2 * THREADS:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
