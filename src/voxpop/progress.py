"""Progress of long stages: a bar on a terminal, nothing elsewhere unless asked for.

Progress goes to the operator's standard error and never into a release.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Thing = TypeVar("Thing")


def track(
    things: Iterable[Thing], stage: str, size_of: Callable[[Thing], int], shown: bool | None, unit: str = "rows"
) -> Iterator[Thing]:
    """Yield things, showing how many rows have gone by.

    Args:
        things: what is worked on.
        stage: a word for what is done.
        size_of: the number of rows in a thing.
        shown: whether to show; None means on a terminal only.
        unit: what rows are called.

    Yields:
        The things.
    """
    terminal = sys.stderr.isatty()
    if not (terminal if shown is None else shown):
        yield from things
    elif terminal:
        yield from _with_bar(things, stage, size_of, unit)
    else:
        yield from _with_lines(things, stage, size_of, unit)


def tell(message: str, shown: bool | None) -> None:
    """Tell the operator something about the input on standard error, unless told not to."""
    if shown is not False:
        print(f"voxpop: {message}", file=sys.stderr)  # noqa: T201


def _with_bar(things: Iterable[Thing], stage: str, size_of: Callable[[Thing], int], unit: str) -> Iterator[Thing]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn(f"{{task.completed:,}} {unit}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(stage, total=None)
        for thing in things:
            yield thing
            progress.advance(task, size_of(thing))


def _with_lines(things: Iterable[Thing], stage: str, size_of: Callable[[Thing], int], unit: str) -> Iterator[Thing]:
    rows = 0
    for thing in things:
        yield thing
        rows += size_of(thing)
        print(f"{stage}: {rows:,} {unit}", file=sys.stderr)  # noqa: T201
