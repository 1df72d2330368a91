"""Progress of long stages, and the events of a command.

Progress is shown as a bar (by rich) on a terminal, as a line in a notebook, and elsewhere as text lines if requested.
Progress is for the operator and is never part of a release. However, saved notebooks contain the progress, so counts
are rounded.

An `EventLog` contains the steps of a command, for its log and its exit code.
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
"""The number of seconds before a bar is shown."""
FEW = 100
"""The smallest count that is shown."""


def track(
    things: Iterable[_Thing],
    stage: str,
    size_of: Callable[[_Thing], int],
    shown: bool | None,
    unit: str = "rows",
    *,
    exact: bool = False,
) -> Iterator[_Thing]:
    """Yield the given objects, and show the number of processed rows.

    Args:
        things: The objects to process.
        stage: The name of the stage.
        size_of: A function that returns the number of rows in an object.
        shown: Whether to show progress. By default, progress is shown on a terminal or in a notebook.
        unit: The plural noun for rows.
        exact: Whether counts are exact. By default they are rounded.

    Yields: The objects.
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
            # Only the number of rows is private. The numbers of rounds and lengths are public.
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
    """Return a private count as text, rounded to two digits, or as "fewer than 100", unless `exact` is True.

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
    """Show exact or rounded row numbers in the messages of a `with` block."""
    token = EXACT.set(exact)
    try:
        yield
    finally:
        EXACT.reset(token)


def row_called(number: int) -> str:
    """Return the description of a row for a message.

    The number of rows above this row is a private count and is therefore rounded like other counts.

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
    """Return whether a notebook's kernel runs this code, without importing IPython."""
    kernel = sys.modules.get("ipykernel.zmqshell")
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return kernel is not None and isinstance(shell, kernel.ZMQInteractiveShell)


class EventLog:
    """The events of one command, such as "charged", "read" and "saved". Events contain neither data nor row counts.

    Attributes:
        facts: The facts of each event, by event name.
    """

    def __init__(self, log: Path | None = None) -> None:
        """Create a log without events.

        Args:
            log: The file for the events, with one line of JSON per event. By default, no file is written.

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
"""The events of the running command, or None outside of commands."""


def note(event: str, **facts: Any) -> None:
    """Add an event to the events of the running command."""
    if (events := EVENT_LOG.get()) is not None:
        events.note(event, **facts)


def noted() -> dict[str, dict[str, Any]]:
    """Return the facts of each event of the running command, by event name."""
    return {} if (events := EVENT_LOG.get()) is None else events.facts
