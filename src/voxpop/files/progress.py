"""Progress of long stages: a bar of rich on a terminal, a line of IPython in a notebook, lines elsewhere if requested.

`EventLog` are the steps of a command, for its log and its exit code.

Progress is shown to the operator and never part of a release. Saved notebooks keep it, so counts are rounded.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

from voxpop.errors import InputError
from voxpop.errors import shown as escaped

_Thing = TypeVar("_Thing")
_PATIENCE = 0.5
"""Seconds before a bar is shown."""
FEW = 100
"""Smaller counts are not shown."""


def track(
    things: Iterable[_Thing],
    stage: str,
    size_of: Callable[[_Thing], int],
    shown: bool | None,
    unit: str = "rows",
    *,
    exact: bool = False,
) -> Iterator[_Thing]:
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
    begun, done, show = perf_counter(), 0, None
    with ExitStack() as open_bars:
        for thing in things:
            yield thing
            done += size_of(thing)
            # Only rows are private; the numbers of rounds and lengths are public.
            text = f"{stage}: {rounded(done, exact=exact or unit != 'rows')} {unit}"
            if not (terminal or notebook):
                sys.stderr.write(f"{text}\n")
            elif perf_counter() - begun > _PATIENCE:
                show = show or (open_bars.enter_context(_bar(stage)) if terminal else _display(begun))
                show(text)


def tell(message: str, shown: bool | None) -> None:
    """Print a message about the input on standard error, unless `shown` is False."""
    if shown is not False:
        print(f"voxpop: {escaped(message)}", file=sys.stderr)  # noqa: T201


def rounded(count: int, *, exact: bool = False) -> str:
    """Return a private count for a message: of two digits, and none below 100, unless `exact`.

    Example:
        >>> rounded(7), rounded(12_345), rounded(12_345, exact=True)
        ('fewer than 100', 'about 12,000', '12,345')
    """
    if exact:
        return f"{count:,}"
    return "fewer than 100" if count < FEW else f"about {round(count, 2 - len(str(count))):,}"


EXACT: ContextVar[bool] = ContextVar("exact", default=False)
"""Whether messages about rows show exact numbers."""


@contextmanager
def exactly(exact: bool) -> Iterator[None]:
    """Show exact row numbers in the messages of a block, or rounded ones."""
    token = EXACT.set(exact)
    try:
        yield
    finally:
        EXACT.reset(token)


def row_called(number: int) -> str:
    """Return how a message names a row: the number of rows above it is a private count, and is rounded like others.

    Example:
        >>> row_called(12_345)
        'about row 12,000 (exactly with exact=True, --exact)'
        >>> with exactly(True):
        ...     row_called(12_345)
        'row 12,345'
    """
    if EXACT.get():
        return f"row {number:,}"
    place = "one of the first 100 rows" if number < FEW else f"about row {round(number, 2 - len(str(number))):,}"
    return f"{place} (exactly with exact=True, --exact)"


@contextmanager
def _bar(stage: str) -> Iterator[Callable[[str], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(stage, total=None)
        yield lambda text: bar.update(task, description=text)


def _display(begun: float) -> Callable[[str], None]:
    from IPython.display import display

    shown = display({"text/plain": ""}, raw=True, display_id=True)
    return lambda text: shown.update({"text/plain": f"{text}, {perf_counter() - begun:.1f} s"}, raw=True)


def _in_notebook() -> bool:
    """Return whether a notebook's kernel runs this code, without importing it."""
    kernel = sys.modules.get("ipykernel.zmqshell")
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return kernel is not None and isinstance(shell, kernel.ZMQInteractiveShell)


class EventLog:
    """The steps of one command: charged, read, saved and others. None contains data or numbers of rows.

    Attributes:
        facts: The facts of each event by its name.
    """

    def __init__(self, log: Path | None = None) -> None:
        """Begin without events.

        Args:
            log: A file to which each event is appended as one line of JSON.

        Raises:
            InputError: The file cannot be written.
        """
        self.facts: dict[str, dict[str, Any]] = {}
        self._log = log
        if log is not None:
            try:
                log.open("a").close()
            except OSError as error:
                raise InputError(f"--log {log} cannot be written: {error.strerror}. Choose another file.") from None

    def note(self, event: str, **facts: Any) -> None:
        """Add an event, and append it to the log."""
        self.facts[event] = facts
        if self._log is not None:
            line = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "event": event, **facts}
            with self._log.open("a") as file:
                file.write(json.dumps(line) + "\n")


EVENT_LOG: ContextVar[EventLog | None] = ContextVar("events", default=None)
"""The events of the command that runs; None outside of commands."""


def note(event: str, **facts: Any) -> None:
    """Add an event to those of the command that runs."""
    if (events := EVENT_LOG.get()) is not None:
        events.note(event, **facts)


def noted() -> dict[str, dict[str, Any]]:
    """Return the facts of the events of the command that runs, by their names."""
    return {} if (events := EVENT_LOG.get()) is None else events.facts
