"""Progress of long stages: a bar on a terminal, a line in a notebook, nothing elsewhere unless asked for.

Progress goes to the operator's standard error and never into a release.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import TypeVar

Thing = TypeVar("Thing")
PATIENCE = 0.5
OFTEN = 0.2
"""Seconds before anything is shown, and from one showing to the next."""


def track(
    things: Iterable[Thing], stage: str, size_of: Callable[[Thing], int], shown: bool | None, unit: str = "rows"
) -> Iterator[Thing]:
    """Yield things, showing how many rows have gone by.

    Args:
        things: what is worked on.
        stage: a word for what is done.
        size_of: the number of rows in a thing.
        shown: whether to show; None means on a terminal or in a notebook.
        unit: what rows are called.

    Yields:
        The things.
    """
    terminal = sys.stderr.isatty()
    notebook = not terminal and _in_notebook()
    if not (terminal or notebook if shown is None else shown):
        yield from things
    elif notebook:
        yield from _in_one_line(things, stage, size_of, unit)
    elif terminal:
        yield from _with_bar(things, stage, size_of, unit)
    else:
        yield from _with_lines(things, stage, size_of, unit)


def tell(message: str, shown: bool | None) -> None:
    """Tell the operator something about the input on standard error, unless told not to."""
    if shown is not False:
        print(f"voxpop: {message}", file=sys.stderr)  # noqa: T201


def _with_bar(things: Iterable[Thing], stage: str, size_of: Callable[[Thing], int], unit: str) -> Iterator[Thing]:
    """Show a bar once it has taken a moment: what is done at once needs none, nor the import of what draws it."""
    begun, done, bar = perf_counter(), 0, None
    try:
        for thing in things:
            yield thing
            done += size_of(thing)
            if bar is None and perf_counter() - begun > PATIENCE:
                bar = _Bar(stage, unit)
            if bar is not None:
                bar.show(done)
    finally:
        if bar is not None:
            bar.progress.stop()


class _Bar:
    """A bar on the terminal, and how far it is."""

    def __init__(self, stage: str, unit: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn(f"{{task.completed:,}} {unit}"),
            TimeElapsedColumn(),
        )
        self.progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self.progress.add_task(stage, total=None)
        self.progress.start()

    def show(self, done: int) -> None:
        """Say how much is done."""
        self.progress.update(self._task, completed=done)


def _in_one_line(things: Iterable[Thing], stage: str, size_of: Callable[[Thing], int], unit: str) -> Iterator[Thing]:
    """Write over one line again and again, as notebooks show it, once it has taken a moment."""
    begun, said, done = perf_counter(), 0.0, 0
    for thing in things:
        yield thing
        done += size_of(thing)
        taken = perf_counter() - begun
        if taken > PATIENCE and taken - said > OFTEN:
            said = taken
            sys.stderr.write(f"\r{stage}: {done:,} {unit}, {taken:.0f} s")
    if said:
        sys.stderr.write(f"\r{stage}: {done:,} {unit}, {perf_counter() - begun:.1f} s\n")


def _in_notebook() -> bool:
    """Say whether a notebook's kernel runs this, without importing it."""
    kernel = sys.modules.get("ipykernel.zmqshell")
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return kernel is not None and isinstance(shell, kernel.ZMQInteractiveShell)


def _with_lines(things: Iterable[Thing], stage: str, size_of: Callable[[Thing], int], unit: str) -> Iterator[Thing]:
    rows = 0
    for thing in things:
        yield thing
        rows += size_of(thing)
        print(f"{stage}: {rows:,} {unit}", file=sys.stderr)  # noqa: T201
