"""Tests of work in other threads, including the order of results, the fetching thread, and raised errors."""

import threading
from collections.abc import Iterator

import pytest

from voxpop.kernels.threads import in_order, one_ahead, one_behind


@pytest.mark.parametrize("tasks", [0, 1, 2, 3, 100])
def test_results_are_in_order_and_a_single_task_needs_no_thread(tasks):
    """The tasks are the elements of an iterator. The error of a task is raised when the result of this task is read."""
    worked_in = set()

    def work(task: int) -> int:
        worked_in.add(threading.get_ident())
        return 10 // (task - 50)

    found, given = [], in_order(work, iter(range(tasks)))
    if tasks > 50:
        with pytest.raises(ZeroDivisionError):
            found.extend(given)
    else:
        found.extend(given)
    assert found == [10 // (task - 50) for task in range(min(tasks, 50))]
    assert (threading.get_ident() in worked_in) == (tasks == 1)


def test_one_ahead_keeps_the_order_and_raises_errors():
    """The items may be any values except None. An error during fetching is raised when the item is requested."""
    assert list(one_ahead(iter([1, 0, (), 2]))) == [1, 0, (), 2]
    assert list(one_ahead(iter([]))) == []

    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("two")

    given = one_ahead(broken())
    assert next(given) == 1
    with pytest.raises(ValueError, match="two"):
        next(given)


def test_one_worker_keeps_the_order_and_raises_errors():
    """The caller's thread fetches tasks, another thread works on them, and no task runs after a task that failed."""
    here, done, got_in, done_in = threading.get_ident(), [], set(), set()

    def tasks() -> Iterator[int]:
        for number in range(5):
            got_in.add(threading.get_ident())
            yield number

    def work(number: int) -> None:
        done_in.add(threading.get_ident())
        if number == 3 and len(done) == 8:
            raise ValueError("three")
        done.append(number)

    one_behind(work, tasks())
    assert done == [0, 1, 2, 3, 4]
    assert got_in == {here}
    assert here not in done_in
    with pytest.raises(ValueError, match="three"):
        one_behind(work, tasks())
    assert done == [0, 1, 2, 3, 4, 0, 1, 2]
