"""Progress of long stages: a bar of rich on a terminal or in a notebook, lines elsewhere if requested.

Progress goes to the operator's standard error and never into a release. Saved notebooks keep it, so counts are rounded.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

Thing = TypeVar("Thing")
PATIENCE = 0.5
"""Seconds before a bar is shown."""
FEW = 100
"""Smaller counts are not shown."""


def track(
    things: Iterable[Thing],
    stage: str,
    size_of: Callable[[Thing], int],
    shown: bool | None,
    unit: str = "rows",
    *,
    exact: bool = False,
) -> Iterator[Thing]:
    """Yield things, showing the number of processed rows.

    Args:
        things: the objects to process.
        stage: the name of the work.
        size_of: the number of rows in a thing.
        shown: whether to show; None means on a terminal or in a notebook.
        unit: name of a row.
        exact: whether counts are exact; by default they are rounded.

    Yields:
        The things.
    """
    terminal, notebook = sys.stderr.isatty(), _in_notebook()
    if not (terminal or notebook if shown is None else shown):
        yield from things
        return
    begun, done, bar, text = perf_counter(), 0, None, ""
    try:
        for thing in things:
            yield thing
            done += size_of(thing)
            taken = perf_counter() - begun
            # Only rows are private; the numbers of rounds and lengths are public.
            text = f"{stage}: {rounded(done, exact=exact or unit != 'rows')} {unit}"
            if terminal and bar is None and taken > PATIENCE:
                bar = _started(stage)
            if bar is not None:
                bar.update(bar.task_ids[0], description=text)
            elif notebook and taken > PATIENCE:
                sys.stderr.write(f"\r{text}, {taken:.0f} s")
            elif not terminal and not notebook:
                sys.stderr.write(f"{text}\n")
    finally:
        if bar is not None:
            bar.stop()
    if notebook and not terminal and perf_counter() - begun > PATIENCE:
        sys.stderr.write(f"\r{text}, {perf_counter() - begun:.1f} s\n")


def tell(message: str, shown: bool | None) -> None:
    """Print a message about the input on standard error, unless `shown` is False."""
    if shown is not False:
        print(f"voxpop: {message}", file=sys.stderr)  # noqa: T201


def rounded(count: int, *, exact: bool = False) -> str:
    """Return a private count for a message: of two digits, and none below 100, unless `exact`.

    Example:
        >>> rounded(7), rounded(12_345), rounded(12_345, exact=True)
        ('fewer than 100', 'about 12,000', '12,345')
    """
    if exact:
        return f"{count:,}"
    return "fewer than 100" if count < FEW else f"about {round(count, 2 - len(str(count))):,}"


def _started(stage: str) -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task(stage, total=None)
    bar.start()
    return bar


def _in_notebook() -> bool:
    """Return whether a notebook's kernel runs this code, without importing it."""
    kernel = sys.modules.get("ipykernel.zmqshell")
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return kernel is not None and isinstance(shell, kernel.ZMQInteractiveShell)
