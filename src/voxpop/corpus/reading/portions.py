"""Batches of about a megabyte, from sources that count rows: these may be numbers or whole books."""

from collections.abc import Iterator
from itertools import chain

import pyarrow as pa

from voxpop.corpus.reading.columns import Batches

FEW_ROWS = 64
"""To ask a source for at once within a bound: rows of a megabyte each are then held 64 at a time."""
PORTION = 1 << 20
"""Bytes."""


def portions(batches: Batches, rows: int) -> Batches:
    """Pass rows on in their order: large batches are split, and small ones put together.

    Args:
        batches: as a source gives them.
        rows: most rows of those that are put together.
    """
    held: list[pa.RecordBatch] = []
    size, count, place = 0, 0, ""
    for where, piece in chain.from_iterable(_split(*each) for each in batches):
        own = _own_bytes(piece)
        full = size + own > PORTION or count + piece.num_rows > rows
        if held and (full or where != place or not _fit(held[0], piece)):
            yield place, _joined(held)
            held, size, count = [], 0, 0
        held.append(piece)
        size, count, place = size + own, count + piece.num_rows, where
    if held:
        yield place, _joined(held)


def _split(where: str, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield a batch in halves of halves, until each has few bytes or is one row."""
    if batch.num_rows < 2 or _own_bytes(batch) <= PORTION:
        yield where, batch
        return
    half = batch.num_rows // 2
    yield from _split(where, batch.slice(0, half))
    yield from _split(where, batch.slice(half))


def _own_bytes(batch: pa.RecordBatch) -> int:
    """Return the bytes of a batch's rows, without the dictionaries that its slices share."""
    return int(batch.nbytes - batch.slice(0, 0).nbytes)


def _fit(first: pa.RecordBatch, second: pa.RecordBatch) -> bool:
    """Say whether two batches can be one: dictionaries would have to be made one first."""
    coded = any(pa.types.is_dictionary(kind) for kind in first.schema.types)
    return not coded and bool(first.schema.equals(second.schema))


def _joined(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)
