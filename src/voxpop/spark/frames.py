"""Arrays as rows, public arrays as a broadcast, and answers as arrays.

What an executor keeps of its users from one length to the next is a few arrays. They are cut into pieces, one row each,
so that no row is large; a task reads its pieces and lays them together again.
"""

import io
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from voxpop.arrays import Bytes, Int64s

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Arrays = dict[str, NDArray[Any]]
Task = Callable[..., Iterator[pa.RecordBatch]]
"""What runs on a partition; see `voxpop.spark.tasks`."""

STATE = "piece int, name string, data binary"
PIECE = 1 << 21
"""Bytes in one row."""
ROWS_AT_ONCE = 1 << 16
MOST_ROWS = 1 << 33
"""Spark's rising ids are the number of a partition times this, and the place of a row in it."""
MOST_IN_CLOSURE = 1 << 18
"""Bytes of public arrays in a closure: with `closures.MOST_CLOSURE` for all else below what Spark writes to disk."""
TYPES = {
    "tokens": np.int32,
    "user_start": np.int64,
    "user_key": np.uint64,
    "word_data": np.uint8,
    "word_starts": np.int64,
    "ids": np.int32,
    "left": np.int64,
    "aside": np.int32,
    "aside_start": np.int64,
    "first": np.int32,
    "symbols": np.int32,
    "places": np.int32,
    "items": np.int32,
    "bounds": np.int64,
    "reducer": np.int64,
    "user_names": np.uint64,
    "names": np.uint64,
    "senders": np.int64,
    "held_starts": np.int64,
    "held": np.int32,
    "weights": np.int64,
    "evidence": np.float64,
    "fates": np.uint8,
    "decided": np.uint8,
}


def pieces(arrays: Arrays) -> Iterator[pa.RecordBatch]:
    """Yield the rows that hold some arrays."""
    number = 0
    for name, array in arrays.items():
        content = np.ascontiguousarray(array, TYPES[name]).view(np.uint8)
        for begin in range(0, max(content.size, 1), PIECE):
            data = pa.array([content[begin : begin + PIECE].tobytes()], pa.binary())
            yield pa.RecordBatch.from_arrays(
                [pa.array([number], pa.int32()), pa.array([name], pa.string()), data], ["piece", "name", "data"]
            )
            number += 1


def laid_together(batches: Iterable[pa.RecordBatch], sent: bytes | None = None) -> tuple[Arrays, Arrays]:
    """Return the arrays of a partition, and the public ones that came along; none of an empty partition.

    Args:
        batches: the pieces.
        sent: public arrays that came with the closure; else they are beside the first piece, if there are any.
    """
    found: dict[str, list[tuple[int, bytes]]] = {}
    public: Arrays = {} if sent is None else unpacked(sent)
    for batch in batches:
        names, numbers, data = (batch.column(name).to_pylist() for name in ("name", "piece", "data"))
        for name, number, content in zip(names, numbers, data, strict=True):
            found.setdefault(name, []).append((number, content))
        if "public" in batch.schema.names:
            for content in batch.column("public").drop_null().to_pylist():
                public = unpacked(content)
    return {name: np.frombuffer(_joined(parts), TYPES[name]) for name, parts in found.items()}, public


def with_public(batches: Iterable[pa.RecordBatch], sent: bytes | None) -> Iterator[tuple[pa.RecordBatch, Arrays]]:
    """Yield batches of rows that are no pieces, each with the public arrays; see `laid_together`."""
    public: Arrays = {} if sent is None else unpacked(sent)
    for batch in batches:
        if not public and "public" in batch.schema.names:
            public = unpacked(batch.column("public").drop_null()[0].as_py())
        yield batch, public


def _joined(parts: list[tuple[int, bytes]]) -> bytearray:
    """Return the bytes of pieces in their order, writable."""
    return bytearray().join(content for _, content in sorted(parts))


def packed(arrays: Arrays) -> bytes:
    """Return arrays as bytes, without pickling."""
    sink = io.BytesIO()
    np.savez(sink, allow_pickle=False, **arrays)
    return sink.getvalue()


def unpacked(content: bytes) -> Arrays:
    """Return what `packed` made bytes of."""
    with np.load(io.BytesIO(content), allow_pickle=False) as held:
        return {name: held[name] for name in held.files}


def run_with_public(state: "DataFrame", work: Task, arrays: Arrays, schema: str) -> "DataFrame":
    """Run a task on every partition, with public arrays: small ones in its closure, others by a broadcast.

    A broadcast brings them beside the first piece of a partition, or beside the first row where rows are no pieces. It
    is a job of its own, which costs more than small arrays do; but large ones must not travel in a closure, since Spark
    writes large closures to disk, and keys travel in closures.
    """
    from pyspark.sql import functions as sql

    content = packed(arrays)
    if len(content) <= MOST_IN_CLOSURE:
        return state.mapInArrow(partial(work, public=content), schema)
    table = pa.table({"piece": pa.array([0], pa.int32()), "public": pa.array([content], pa.binary())})
    if "piece" not in state.columns:
        place = sql.monotonically_increasing_id().bitwiseAND(sql.lit(MOST_ROWS - 1))
        state = state.withColumn("piece", sql.when(place == 0, 0))
    beside = state.sparkSession.createDataFrame(table)
    return state.join(sql.broadcast(beside), "piece", "left").mapInArrow(work, schema)


def texts_of(data: Bytes, starts: Int64s) -> pa.LargeStringArray:
    """Return strings by their bytes."""
    exact = np.ascontiguousarray(starts, np.int64)
    return pa.LargeStringArray.from_buffers(exact.size - 1, pa.py_buffer(exact), pa.py_buffer(data))


def weight_rows(names: pa.Array | Int64s, weights: Int64s, low_bits: int) -> Iterator[Any]:
    """Yield (name, high, low): weights in two parts whose sums over all partitions cannot overflow."""
    low = weights & ((1 << low_bits) - 1) if low_bits < 63 else weights
    high = weights >> low_bits
    names = pa.array(names) if isinstance(names, np.ndarray) else names
    batch = pa.RecordBatch.from_arrays([names, pa.array(high), pa.array(low)], ["name", "high", "low"])
    for begin in range(0, batch.num_rows, ROWS_AT_ONCE):
        yield batch.slice(begin, ROWS_AT_ONCE)
