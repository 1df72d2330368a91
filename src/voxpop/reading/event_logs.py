"""Process event logs in XES files, and the standard names of their columns.

XES is an XML format. A log consists of traces (cases), and a trace consists of events. Traces and events have
attributes. A log is read block by block as a table of events. Attributes of a trace have the prefix `case:`, as in all
tools for event logs. This module does not use an existing XES parser, because the available parsers print values that
they cannot read, and accept a truncated file as complete.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from xml.parsers import expat

import pyarrow as pa

from voxpop.errors import InputError, SourceError
from voxpop.reading.columns import check_columns
from voxpop.reading.types import Column, typed

CASE, ACTIVITY, TIME = "case:concept:name", "concept:name", "time:timestamp"
STANDARD: Final = (
    ("user", (CASE, "ocel:oid", "case", "caseid")),
    ("sequence", (ACTIVITY, "ocel:activity", "activity")),
    ("order", (TIME, "ocel:timestamp", "timestamp", "completetimestamp", "time")),
)
"""The usual names of cases, activities and times (XES, OCEL and CSV), in lower case and without spaces, `_` or `-`."""
ATTRIBUTES = "The names of attributes of traces begin with `case:`, as in case:concept:name."


def standard_columns(names: Iterable[str], *, cases: bool = True) -> dict[str, str]:
    """Return the case, activity and time columns.

    The keys of the dictionary are the arguments of `voxpop.read` for these columns.

    Args:
        names: The names of all columns.
        cases: Whether to include the case column.

    Raises:
        InputError: If one of these columns is missing, or two columns have the same standard name.
    """
    known: dict[str, list[str]] = {}
    for name in names:
        known.setdefault("".join(each for each in name.lower() if each not in " _-"), []).append(name)
    found = {}
    for role, usual in STANDARD if cases else STANDARD[1:]:
        same = next((known[name] for name in usual if name in known), [])
        if len(same) != 1:
            fault = "several columns have" if same else "no column has"
            raise InputError(
                "give user= and exactly one of text=, tokens=, items= and sequence=; without these arguments the "
                f"source must be an event log, and {fault} a standard name for {role}= ({', '.join(usual)})."
            )
        found[role] = same[0]
    return found


def xes_batches(blocks: Iterable[bytes], columns: list[Column], where: str, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the requested attributes of the events of a log, as strings or as declared types.

    Args:
        blocks: The blocks of the file.
        columns: The names of attributes, with the prefix `case:` for attributes of traces.
        where: The name of the file, for messages.
        rows: The approximate maximum number of rows in a batch.

    Raises:
        SourceError: If the file is not one complete XES log. The message quotes no data.
        ColumnError: If an attribute occurs in no event.
    """
    log, done = _Log({each.name for each in columns}), 0
    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = log.start, log.end
    parser.EntityDeclHandler = log.entity
    for block in _and_last(blocks):
        try:
            parser.Parse(block, block == b"")
        except expat.ExpatError as error:
            fault = f"its XML is broken at line {error.lineno:,}"
            raise SourceError(f"{where} is not a complete XES log: {fault}. Write the log again.") from None
        if log.unsafe:
            raise SourceError(
                f"{where} declares entities, which may stand for other files and must not occur in an event log. "
                "Write the log again."
            )
        if block == b"" and log.root != "log":
            raise SourceError(f"{where} is XML, but not an XES log. Give a file that contains <log> and its traces.")
        if block == b"" and log.events:
            check_columns([each.name for each in columns], sorted(log.seen), where, declared=False, hint=ATTRIBUTES)
        while len(log.rows) >= rows or (block == b"" and log.rows):
            some, log.rows = log.rows[:rows], log.rows[rows:]
            arrays = [
                typed(pa.array([row.get(each.name) for row in some], pa.string()), each, where, done)
                for each in columns
            ]
            yield pa.RecordBatch.from_arrays(arrays, [each.name for each in columns])
            done += len(some)


def _and_last(blocks: Iterable[bytes]) -> Iterator[bytes]:
    yield from (block for block in blocks if block)
    yield b""


class _Log:
    """The private events of a log, which are collected during parsing."""

    def __init__(self, wanted: set[str]) -> None:
        self.rows: list[dict[str, str]] = []
        self.seen: set[str] = set()
        self.root, self.unsafe, self.events = "", False, 0
        self._wanted, self._path = wanted, [""]
        self._trace: dict[str, str] = {}
        self._event: dict[str, str] = {}
        self._events: list[dict[str, str]] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """Begin a trace or an event, or store an attribute of the innermost one. Nested attributes are skipped."""
        above, own = self._path[-1], name.rpartition(":")[2]
        self.root = self.root or own
        self._path.append(own)
        if own == "trace":
            self._trace, self._events = {}, []
        elif own == "event":
            self._event = {}
        elif above in ("trace", "event") and "value" in attributes:
            key = attributes.get("key", "") if above == "event" else f"case:{attributes.get('key', '')}"
            if key in self._wanted:
                self.seen.add(key)
                held = self._event if above == "event" else self._trace
                held[key] = _moment(attributes["value"]) if own == "date" else attributes["value"]

    def end(self, _: str) -> None:
        """End a trace or an event."""
        own = self._path.pop()
        if own == "event":
            self.events += 1
            if self._path[-1] == "trace":
                self._events.append(self._event)
            else:
                self.rows.append(self._event)
        elif own == "trace":
            self.rows += [{**event, **self._trace} for event in _apart(self._events)]

    def entity(self, *_: Any) -> None:
        """Record a declaration of an entity."""
        self.unsafe = True


def _apart(events: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the events of a trace.

    Events with the same time get times one microsecond apart, in the order of the file.
    """
    seen: Counter[str] = Counter()
    for event in events:
        time = event.get(TIME, "")
        if seen[time] and time.endswith("Z"):
            with suppress(ValueError, OverflowError):  # the event has no time, or is the last one
                event[TIME] = _moment((datetime.fromisoformat(time) + timedelta(microseconds=seen[time])).isoformat())
        seen[time] += 1
    return events


def _moment(value: str) -> str:
    """Convert a time to UTC, because all times of a column have a time zone or none has. Return other values as is."""
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return value
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat().replace("+00:00", "Z")
