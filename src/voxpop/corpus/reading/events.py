"""Rows of events to sequences: each user's events in order of time, cut into sessions where nothing happens for long.

Users are dealt into parts by a fixed hash, so that one part after the other fits where all together do not; parts wait
in a work file if memory is bounded. Within a part users come by their first event in the rows, their events by time,
and events of the same time by the bytes of what happened, so that nothing depends on the order of the rows but the
order of users.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.arrays import Int32s, Int64s
from voxpop.arrow import array_of, int64_array, int_codes, lists_of, numbers_of, plain
from voxpop.corpus.limited.memory import MemoryLimit
from voxpop.corpus.limited.work_file import WorkFile
from voxpop.corpus.reading.columns import Counted
from voxpop.corpus.reading.event_times import Times, check_session, pause_of, times_of
from voxpop.corpus.reading.users import encode_users, spread
from voxpop.errors import ColumnError, InputError
from voxpop.spelling import family, spelled

PARTS = 256
SHARE_OF_PART = 16
"""A part takes this many times its own size while it is sorted."""
SHARE_WAITING = 8
"""Rows wait in memory until they take this part of the room, and are then written together."""
SESSIONS_AT_ONCE = 1 << 15
EVENTS = "the events"


def check_events(kind: str, order: Any, session: Any) -> None:
    """Check how a call of `read` wants events to become sequences, if rows are events.

    Raises:
        InputError: where order or session do not fit the call.
    """
    if order is None:
        if session is not None:
            raise InputError("session= cuts events in order of time: name the column of times as order=.")
        return
    if kind != "sequence" or not isinstance(order, str):
        raise InputError("order= names the column by which events become sequences, and goes with sequence=.")
    check_session(session)


@final
@dataclass(slots=True)
class Events:
    """How events become sequences.

    Attributes:
        order: column that says when.
        session: the longest pause within a session; None for one sequence a user.
        limit: of memory.
        left_out: events without anything that happened, which are left out.
    """

    order: str
    session: Any = None
    limit: MemoryLimit | None = None
    left_out: int = 0
    _unit: str | None = field(default=None, init=False)

    def sequences(self, batches: Counted, user: str, column: str) -> Counted:
        """Yield users and their sequences.

        Args:
            batches: where events come from, how many went before, and users, what happened, and when.
            user: column of users, whole numbers or strings.
            column: of what happened.

        Yields:
            The same with batches of two columns: a user, and one of the user's sequences. One user's are together.
        """
        store, done = _Parts(self.limit), 0
        for batch in self._checked(batches, user, column):
            store.add(batch)
        for part in store.parts():
            if self.limit is not None:
                self.limit.require(SHARE_OF_PART * part.nbytes, "the events of some users")
            for batch in self._sessions(part, user, column):
                yield EVENTS, done, batch
                done += batch.num_rows

    def _checked(self, batches: Counted, user: str, column: str) -> Iterator[pa.RecordBatch]:
        """Yield users, strings and times, all of one type each, without events that say nothing."""
        for where, first, batch in batches:
            times, unit = times_of(batch.column(self.order), where, self.order, first)
            if self._unit not in (None, unit):
                raise ColumnError(
                    f'the column "{self.order}" holds times of several kinds; give it one type everywhere.'
                )
            self._unit = unit
            symbols = spelled(_single(batch.column(column), column), column)
            rows = pa.RecordBatch.from_arrays(
                [batch.column(user), symbols, array_of(times)], ["user", "symbol", "time"]
            )
            held = symbols.is_valid()
            self.left_out += batch.num_rows - int(pc.sum(held).as_py() or 0)
            yield rows if symbols.null_count == 0 else rows.filter(held)

    def _sessions(self, part: pa.Table, user: str, column: str) -> Iterator[pa.RecordBatch]:
        owners = part["user"]
        codes, _ = encode_users(owners.chunks)
        symbols = plain(part["symbol"]).dictionary_encode()
        ranks = np.empty(len(symbols.dictionary), np.int64)
        # By code: the symbol's place in the order of bytes, which breaks ties of one time.
        ranks[numbers_of(pc.array_sort_indices(symbols.dictionary)).astype(np.int64)] = np.arange(ranks.size)
        times = _numbers(part["time"])
        # By user, then time, then symbol: the order of rows has no part in it.
        order = np.lexsort((ranks[int_codes(symbols)], times, codes))
        starts = _starts(codes[order], times[order], pause_of(self.session, str(self._unit)))
        whole = plain(owners)
        for begin in range(0, starts.size, SESSIONS_AT_ONCE):
            mine = starts[begin : begin + SESSIONS_AT_ONCE]
            end = starts[begin + mine.size] if begin + mine.size < starts.size else order.size
            rows = order[mine[0] : end]
            lists = lists_of(symbols.take(int64_array(rows)).dictionary_decode(), np.diff([*mine.tolist(), int(end)]))
            yield pa.RecordBatch.from_arrays([whole.take(int64_array(order[mine])), lists], [user, column])


def _single(column: pa.Array, name: str) -> pa.Array:
    if family(column.type.value_type if pa.types.is_dictionary(column.type) else column.type) is None and not (
        pa.types.is_null(column.type)
    ):
        raise ColumnError(
            f'order= takes one event a row, and the column "{name}" holds {column.type}. Give strings or whole '
            "numbers, or leave order= out where each row holds a whole list."
        )
    return column


def _numbers(column: pa.ChunkedArray) -> Times:
    return np.concatenate([numbers_of(chunk) for chunk in column.chunks])


def _starts(codes: Int32s, times: Times, pause: float | int | None) -> Int64s:
    """Return where sequences begin, of events in order."""
    begins = np.ones(codes.size, np.bool_)
    begins[1:] = codes[1:] != codes[:-1]
    if pause is not None:
        # A pause of exactly the given length still belongs to the session.
        begins[1:] |= np.diff(times) > pause
    return np.flatnonzero(begins)


@final
class _Parts:
    """Rows by the part of their user: in memory, or in a work file."""

    __slots__ = ("_file", "_held", "_most", "_schema", "_waiting", "_written")

    def __init__(self, limit: MemoryLimit | None) -> None:
        self._most = 0 if limit is None else limit.room // SHARE_WAITING
        self._file: WorkFile | None = None if limit is None else limit.file()
        self._waiting: list[list[pa.RecordBatch]] = [[] for _ in range(PARTS)]
        self._written: list[list[tuple[int, int]]] = [[] for _ in range(PARTS)]
        self._held = 0
        self._schema: pa.Schema | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Deal the rows of a batch."""
        if batch.num_rows == 0:
            return
        codes, keys = encode_users([batch.column("user")])
        # The upper eight bits of a mixed key: all rows of a user in one of 256 parts.
        part = (spread(keys) >> np.uint64(56)).astype(np.int64)[codes]
        order = np.argsort(part, kind="stable")
        ends = np.searchsorted(part[order], np.arange(PARTS + 1))
        dealt = batch.take(int64_array(order))
        for number in np.flatnonzero(np.diff(ends)).tolist():
            self._waiting[number].append(dealt.slice(int(ends[number]), int(ends[number + 1] - ends[number])))
        self._held += dealt.nbytes
        if self._file is not None and self._held > self._most:
            self._write(self._file)

    def parts(self) -> Iterator[pa.Table]:
        """Yield the rows of each part that has any."""
        if self._file is not None and any(self._written):
            self._write(self._file)
        for waiting, written in zip(self._waiting, self._written, strict=True):
            batches = [*self._read(written), *waiting]
            waiting.clear()
            if batches:
                yield pa.Table.from_batches(batches)

    def _write(self, file: WorkFile) -> None:
        for waiting, written in zip(self._waiting, self._written, strict=True):
            if waiting:
                batch = pa.Table.from_batches(waiting).combine_chunks().to_batches()[0]
                self._schema = batch.schema
                content = np.frombuffer(batch.serialize(), np.uint8)
                written.append((file.append(content), content.size))
                waiting.clear()
        self._held = 0

    def _read(self, written: list[tuple[int, int]]) -> Iterator[pa.RecordBatch]:
        if self._file is not None:
            for begin, size in written:
                yield pa.ipc.read_record_batch(pa.py_buffer(self._file.read(begin, size, np.uint8)), self._schema)
