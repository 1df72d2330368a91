"""Arrays that tasks send each other through a shuffle: each to one place, in rows none of which is large."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from voxpop.arrays import Int64s
from voxpop.spark.frames import PIECE, TYPES, Arrays

MESSAGES = "place int, sender int, piece int, name string, data binary"
SCHEMA = pa.schema(
    {"place": pa.int32(), "sender": pa.int32(), "piece": pa.int32(), "name": pa.string(), "data": pa.binary()}
)
BYTES_AT_ONCE = 1 << 24
"""About so many bytes of rows go to Spark together."""
SEED = 42
"""Of the hash by which Spark finds the partition of a number."""
_WORD = 2**32 - 1

Message = tuple[int, int, Arrays]
Row = tuple[int, int, int, str, bytes]


def written(messages: Iterable[Message]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of messages: (place, sender, arrays)."""
    rows: list[Row] = []
    size = 0
    for row in _rows(messages):
        rows.append(row)
        size += len(row[-1])
        if size > BYTES_AT_ONCE:
            yield _together(rows)
            rows, size = [], 0
    if rows:
        yield _together(rows)


def as_table(messages: Iterable[Message]) -> pa.Table:
    """Return the rows of messages as one table."""
    return pa.Table.from_batches(written(messages), SCHEMA)


def received(rows: pa.Table) -> dict[int, Arrays]:
    """Return the arrays that each sender sent, senders rising; arrays may be written to."""
    if not rows.num_rows:  # Spark gives it no columns then
        return {}
    found: dict[int, dict[str, list[tuple[int, bytes]]]] = {}
    columns = (rows.column(name).to_pylist() for name in ("sender", "name", "piece", "data"))
    for sender, name, piece, data in zip(*columns, strict=True):
        found.setdefault(sender, {}).setdefault(name, []).append((piece, data))
    return {sender: {name: _array(name, parts) for name, parts in found[sender].items()} for sender in sorted(found)}


def spread(count: int) -> Int64s:
    """Return numbers that Spark's hash sends to partitions 0, 1, 2, ... of so many, one to each.

    Spark places by the hash of a number, and hashes of 0, 1, 2, ... leave a third of the partitions without any. Where
    a hash of another kind placed these numbers, the release would be the same, and some tasks longer.
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
    """Return Spark's hash of 32-bit numbers: Murmur3 (Appleby, 2011), x86, 32 bits."""
    mixed = numbers.astype(np.uint64) * np.uint64(0xCC9E2D51) & np.uint64(_WORD)
    mixed = (mixed << np.uint64(15) | mixed >> np.uint64(17)) & np.uint64(_WORD)
    mixed = mixed * np.uint64(0x1B873593) & np.uint64(_WORD)
    state = mixed ^ np.uint64(SEED)
    state = (state << np.uint64(13) | state >> np.uint64(19)) & np.uint64(_WORD)
    state = (state * np.uint64(5) + np.uint64(0xE6546B64)) & np.uint64(_WORD)
    state ^= np.uint64(4)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        state = (state ^ state >> np.uint64(shift)) * np.uint64(factor) & np.uint64(_WORD)
    state ^= state >> np.uint64(16)
    return state.astype(np.uint32).view(np.int32).astype(np.int64)


def _rows(messages: Iterable[Message]) -> Iterator[Row]:
    for place, sender, arrays in messages:
        for name, array in arrays.items():
            content: Any = np.ascontiguousarray(array, TYPES[name]).reshape(-1).view(np.uint8)
            for piece, begin in enumerate(range(0, max(content.size, 1), PIECE)):
                yield place, sender, piece, name, content[begin : begin + PIECE].tobytes()


def _together(rows: list[Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, kind.type) for column, kind in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _array(name: str, parts: list[tuple[int, bytes]]) -> NDArray[Any]:
    content = bytearray().join(data for _, data in sorted(parts))
    return np.frombuffer(content, TYPES[name])
