"""Arrays as rows of a DataFrame, the settings and public arrays of a task, and cached states.

Executors keep a few arrays of their users from one pass to the next, and send arrays to each other through a shuffle.
These arrays are cut into pieces of one row each, so no row is large. A row contains its destination and its origin.
"""

import io
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, partial, wraps
from inspect import signature
from operator import itemgetter
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from voxpop.engine.spark.session import NOT_ADAPTIVE, ran
from voxpop.engine.spark.worker import task
from voxpop.errors import InputError
from voxpop.kernels.arrays import Int64s
from voxpop.reading.arrow import text_buffers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Arrays = dict[str, NDArray[Any]]
SparkBatches = Iterable[pa.RecordBatch]
AnswerBatches = Iterator[pa.RecordBatch]
SparkTask = Callable[..., AnswerBatches]
"""A task on a partition; see `voxpop.engine.spark.tasks`."""
Message = tuple[int, int, Arrays]
"""The destination, the sender, and the arrays."""

MESSAGES = "place int, sender int, piece int, name string, type string, data binary"
STATE_SCHEMA = pa.schema(
    {
        "place": pa.int32(),
        "sender": pa.int32(),
        "piece": pa.int32(),
        "name": pa.string(),
        "type": pa.string(),
        "data": pa.binary(),
    }
)
PIECE = 1 << 21
"""The maximum number of bytes in one row."""
BYTES_AT_ONCE = 1 << 24
"""The approximate number of bytes in a batch of rows that is passed to Spark."""
_FRAME_ROWS_AT_ONCE = 1 << 16
LOW_BITS = 31
"""The weights of sequential weightings can reach 2^61 in each partition, so they are summed in two parts."""
MOST_IN_CLOSURE = 1 << 18
"""The maximum number of bytes of public arrays in a closure. Together with `MOST_CLOSURE`, this is so small that Spark
does not write the closure to disk.
"""
MOST_CLOSURE = 1 << 19
"""The maximum number of bytes of settings in a closure. Spark writes closures above 2^20 bytes to disk, and keys must
not be on disk.
"""
SEED = 42
"""The seed of Spark's hash, which assigns numbers to partitions."""
_WORD_MASK = 2**32 - 1


def written(messages: Iterable[Message]) -> AnswerBatches:
    """Yield the rows of messages. The pieces of a message are numbered from 0."""
    rows: list[tuple[Any, ...]] = []
    size = 0
    for place, sender, arrays in messages:
        number = 0
        for name, array in arrays.items():
            content: Any = np.ascontiguousarray(array).reshape(-1)
            kind, content = content.dtype.str, content.view(np.uint8)
            for begin in range(0, max(content.size, 1), PIECE):
                rows.append((place, sender, number, name, kind, content[begin : begin + PIECE].tobytes()))
                number, size = number + 1, size + len(rows[-1][-1])
                if size > BYTES_AT_ONCE:
                    yield _rows_together(rows)
                    rows, size = [], 0
    if rows:
        yield _rows_together(rows)


def _rows_together(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, kind.type) for column, kind in zip(columns, STATE_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=STATE_SCHEMA)


def as_table(messages: Iterable[Message]) -> pa.Table:
    """Return the rows of messages as one table."""
    return pa.Table.from_batches(written(messages), STATE_SCHEMA)


def pieces(arrays: Arrays) -> AnswerBatches:
    """Yield the rows of the state of one partition."""
    return written([(0, 0, arrays)])


def received(rows: pa.Table) -> dict[int, Arrays]:
    """Return the writable arrays of each sender, in increasing order of senders."""
    if not rows.num_rows:  # in this case Spark returns a table without columns
        return {}
    found: dict[int, dict[tuple[str, str], list[tuple[int, Any]]]] = {}
    columns = (rows.column(name).to_pylist() for name in ("sender", "name", "type", "piece"))
    data = (value.as_buffer() for value in rows.column("data"))  # without a copy
    for sender, name, kind, piece, content in zip(*columns, data, strict=True):
        found.setdefault(sender, {}).setdefault((name, kind), []).append((piece, content))
    return {
        sender: {name: _joined_arrays(kind, parts) for (name, kind), parts in found[sender].items()}
        for sender in sorted(found)
    }


def _joined_arrays(kind: str, parts: list[tuple[int, Any]]) -> NDArray[Any]:
    return np.frombuffer(bytearray().join(content for _, content in sorted(parts, key=itemgetter(0))), kind)


def laid_together(batches: SparkBatches, sent: bytes | None = None) -> tuple[Arrays, Arrays]:
    """Return the arrays of a partition and the public arrays. Both results are empty for an empty partition.

    Args:
        batches: The rows of the partition's state.
        sent: The public arrays from the closure. If None, the first piece contains the public arrays, if there are any.
    """
    held = list(batches)
    if not held:
        return {}, {}
    rows = pa.Table.from_batches(held)
    public: Arrays = {} if sent is None else unpacked_arrays(sent)
    if "public" in rows.column_names:
        for content in rows.column("public").drop_null().to_pylist():
            public = unpacked_arrays(content)
    return next(iter(received(rows).values()), {}), public


def on_state(work: Callable[..., AnswerBatches]) -> SparkTask:
    """Return a task that calls a function with the arrays of a nonempty partition and the public arrays.

    A function with a parameter `mine` receives the partition id that `numbered_state` wrote.
    """
    wants_number = "mine" in signature(work).parameters

    @wraps(work)
    def run(batches: SparkBatches, *, public: bytes | None = None, **settings: Any) -> AnswerBatches:
        held = list(batches)
        arrays, sent = laid_together(held, public)
        if arrays and wants_number:
            settings["mine"] = int(held[0].column("sender")[0].as_py())
        held.clear()  # the arrays are copies, so the rows would need the same memory again
        if arrays:
            yield from work(arrays, sent, **settings)

    return task(run)


def numbered_state(state: "DataFrame") -> "DataFrame":
    """Return a state with the partition id as the sender of each row."""
    from pyspark.sql import functions as sql

    return state.withColumn("sender", sql.spark_partition_id())


def packed(arrays: Arrays) -> bytes:
    """Return arrays as bytes, without pickling."""
    sink = io.BytesIO()
    np.savez(sink, allow_pickle=False, **arrays)
    return sink.getvalue()


def unpacked_arrays(content: bytes) -> Arrays:
    """Return the arrays that `packed` encoded."""
    with np.load(io.BytesIO(content), allow_pickle=False) as held:
        return {name: held[name] for name in held.files}


def run_with_public(state: "DataFrame", work: SparkTask, arrays: Arrays, schema: str = MESSAGES) -> "DataFrame":
    """Run a task on every partition with public arrays.

    Small arrays are sent in the closure, and large arrays by broadcast.

    A broadcast delivers the arrays with the first piece of a partition. A broadcast is a separate job, which takes
    longer than sending small arrays in a closure. Large arrays must not be in a closure, because Spark writes large
    closures to disk, and closures contain keys.
    """
    from pyspark.sql import functions as sql

    content = packed(arrays)
    if len(content) <= MOST_IN_CLOSURE:
        return state.mapInArrow(partial(work, public=content), schema)
    table = pa.table({"piece": pa.array([0], pa.int32()), "public": pa.array([content], pa.binary())})
    beside = state.sparkSession.createDataFrame(table)
    return state.join(sql.broadcast(beside), "piece", "left").mapInArrow(work, schema)


def closure(work: Callable[..., Any], **settings: Any) -> Callable[..., Any]:
    """Return a task with its settings. Settings that can contain keys are sent only in this way.

    Raises:
        InputError: If Spark would write the settings to disk.
    """
    from pyspark import cloudpickle

    dumps: Any = cloudpickle.dumps
    if len(dumps(settings)) > MOST_CLOSURE:
        raise InputError(
            "the weighting takes more than half a megabyte to send to executors, and Spark would write it to disk "
            "together with the keys of the noise. Make it smaller, for example by computing its tables when they are "
            "needed."
        )
    return partial(work, **settings)


def texts_of(arrays: Arrays) -> pa.LargeStringArray:
    """Return the strings that arrays store as bytes."""
    starts = np.ascontiguousarray(arrays["word_starts"], np.int64)
    return pa.LargeStringArray.from_buffers(starts.size - 1, pa.py_buffer(starts), pa.py_buffer(arrays["word_data"]))


def names_of(words: pa.Array) -> pa.BinaryArray:
    """Return the bytes of words, because Spark compares words by their bytes."""
    return words.cast(pa.large_binary()).cast(pa.binary())


def words_of(names: pa.Array) -> pa.LargeStringArray:
    """Return the words that `names_of` encoded."""
    return names.cast(pa.large_binary()).cast(pa.large_string())


def weight_rows(names: pa.Array | Int64s, weights: Int64s) -> AnswerBatches:
    """Yield (name, high, low) with the weights in two parts, so that sums over all partitions cannot overflow."""
    parts = [pa.array(names), pa.array(weights >> LOW_BITS), pa.array(weights & ((1 << LOW_BITS) - 1))]
    batch = pa.RecordBatch.from_arrays(parts, ["name", "high", "low"])
    for begin in range(0, batch.num_rows, _FRAME_ROWS_AT_ONCE):
        yield batch.slice(begin, _FRAME_ROWS_AT_ONCE)


def word_arrays(words: pa.LargeStringArray) -> Arrays:
    """Return strings as arrays of their bytes."""
    data, starts = text_buffers(words)
    return {"word_data": data[starts[0] : starts[-1]], "word_starts": starts - starts[0]}


def spread_rows(count: int) -> Int64s:
    """For each partition 0, 1, 2, ..., return a number that Spark's hash assigns to this partition.

    Spark assigns a number to a partition by its hash, and the hashes of 0, 1, 2, ... skip a third of the partitions. If
    Spark used a different hash, the release would not change, but some tasks would take longer.
    """
    numbers = np.full(count, -1, np.int64)
    first = 0
    while (numbers < 0).any():
        some = np.arange(first, first + 4 * count)
        places, firsts = np.unique(_hashes(some) % count, return_index=True)
        free = numbers[places] < 0
        numbers[places[free]] = some[firsts[free]]
        first += some.size
    return numbers


def _hashes(numbers: Int64s) -> Int64s:
    """Return Spark's hash of 32-bit numbers, which is Murmur3 (Appleby, 2011) for x86 with 32 bits."""
    mixed = numbers.astype(np.uint64) * np.uint64(0xCC9E2D51) & np.uint64(_WORD_MASK)
    mixed = (mixed << np.uint64(15) | mixed >> np.uint64(17)) & np.uint64(_WORD_MASK)
    mixed = mixed * np.uint64(0x1B873593) & np.uint64(_WORD_MASK)
    state = mixed ^ np.uint64(SEED)
    state = (state << np.uint64(13) | state >> np.uint64(19)) & np.uint64(_WORD_MASK)
    state = (state * np.uint64(5) + np.uint64(0xE6546B64)) & np.uint64(_WORD_MASK)
    state ^= np.uint64(4)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        state = (state ^ state >> np.uint64(shift)) * np.uint64(factor) & np.uint64(_WORD_MASK)
    state ^= state >> np.uint64(16)
    return state.astype(np.uint32).view(np.int32).astype(np.int64)


class Holder:
    """An object that keeps partitions cached.

    The partitions remain on their executors, in memory or on local disk, until this object is collected.

    The object caches the last two states, because each state is computed from the previous state. If no state is
    computed until the last state is needed, all states have to be cached. Blocks that are lost with an executor are
    recomputed from the cached states or from the source.
    """

    def __init__(self, most: int | None = 2) -> None:
        self._most = most
        self._held: list[DataFrame] = []
        _start_to_let_go()
        weakref.finalize(self, _UNUSED.put, self._held)

    def hold(self, state: "DataFrame", *, theirs: bool = False) -> "DataFrame":
        """Cache a new state, and release the second-to-last state if it exists.

        Args:
            state: The state to cache when it is computed.
            theirs: Whether the state includes a query of the caller, which is planned with the settings of the session.
        """
        from pyspark import StorageLevel

        settings = {} if theirs else NOT_ADAPTIVE
        state = ran(state.sparkSession, state.persist, StorageLevel.MEMORY_AND_DISK, settings=settings)
        self._held.append(state)
        if self._most is not None and len(self._held) > self._most:
            self._held.pop(0).unpersist()
        return state


_UNUSED: "SimpleQueue[list[DataFrame]]" = SimpleQueue()
"""The states of collected holders. A finalizer may only add states to this queue, because `put` of this type of queue
is safe in a finalizer.
"""


def _let_go_of_unused() -> None:
    while True:
        for state in _UNUSED.get():
            with suppress(Exception):  # the session may have ended already
                state.unpersist()


@cache
def _start_to_let_go() -> Thread:
    """Start the thread that releases unused states, once per process.

    Python can collect a `Holder` at any time, even while a command of the current thread waits for Java's answer. A
    second command of the same thread would then break the connection. Each thread has a separate connection.
    """
    thread = Thread(target=_let_go_of_unused, name="voxpop-unpersist", daemon=True)
    thread.start()
    return thread
