"""JSON lines: one JSON object in each line, read without inference of types (`voxpop.reading.types`).

A number is spelled by the rule of `spelling_of`, so 7 and "7" are the same value. Integers are exact at any length;
other numbers are IEEE doubles, as in most JSON software.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import SourceError
from voxpop.reading.arrow import lists_of
from voxpop.reading.columns import check_columns
from voxpop.reading.types import Column, array_of_objects, typed

FEW_BYTES: Final = 1 << 16
"""Smaller blocks are decoded by Python's own module; for larger ones the import of polars pays."""
DOUBTFUL: Final = r"^(?:[\[{]|-?\d{19})"
"""Results of polars that may stand for a nested value, or for an integer beyond 64 bits."""
SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""Escapes that polars does not check for pairs."""


def json_lines(blocks: Iterator[bytes], columns: Sequence[Column], where: str) -> Iterator[pa.RecordBatch]:
    """Yield the columns of JSON lines.

    Args:
        blocks: bytes of the file, in order.
        columns: the columns to read; a line without one of them has a missing value.
        where: the file, for messages.

    Raises:
        SourceError: if a line is no JSON object, or a value does not fit; the message names the row.
        ColumnError: if the first block of lines has no value in a column.
    """
    first, left = 0, b""
    for block in blocks:
        data = left + block
        end = data.rfind(b"\n") + 1
        left = data[end:]
        if data[:end].strip():
            batch = json_batch(data[:end], columns, where, first)
            yield batch
            first += batch.num_rows
    if left.strip():
        yield json_batch(left, columns, where, first)


def json_batch(data: bytes, columns: Sequence[Column], where: str, first: int = 0) -> pa.RecordBatch:
    """Return the columns of some JSON lines.

    Args:
        data: whole lines in UTF-8.
        columns: the columns to read.
        where: the source, for messages.
        first: number of rows before these; the columns of the first rows must exist.
    """
    data = data.removeprefix(b"\xef\xbb\xbf") if first == 0 else data
    arrays = _by_polars(data, columns, where, first) if len(data) > FEW_BYTES and not SURROGATE.search(data) else None
    if arrays is None or (first == 0 and any(each.null_count == len(each) for each in arrays)):
        rows = _rows(data, where, first)
        if first == 0:
            names = list(dict.fromkeys(name for row in rows for name in row))
            check_columns([each.name for each in columns], names, where, declared=False)
        arrays = [array_of_objects([row.get(each.name) for row in rows], each, where, first) for each in columns]
    return pa.RecordBatch.from_arrays(arrays, [each.name for each in columns])


def _by_polars(data: bytes, columns: Sequence[Column], where: str, first: int) -> list[pa.Array] | None:
    """Return the columns as polars decodes them, or None if its result may differ from the rule for single values."""
    import polars as pl

    for lists in (False, True):
        shapes = [lists if each.lists is None else each.lists for each in columns]
        kinds = {each.name: pl.List(pl.String) if own else pl.String for each, own in zip(columns, shapes, strict=True)}
        try:
            frame = pl.read_ndjson(data, schema=kinds)
        except pl.exceptions.PolarsError:
            continue
        flat = [frame[name].explode() if kind == pl.List(pl.String) else frame[name] for name, kind in kinds.items()]
        if not any(each.str.contains(DOUBTFUL).any() for each in flat):
            return [_array(frame[each.name], each, where, first) for each in columns]
    return None


def _array(series: Any, column: Column, where: str, first: int) -> pa.Array:
    """Return strings, or lists of them, as an array of the column's undeclared type."""
    texts = series.to_arrow()
    if column.lists is False:
        return typed(texts, column, where, first)
    if pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type) or pa.types.is_string_view(texts.type):
        sizes = np.ones(len(texts), np.int64)
        return lists_of(typed(texts, column, where, first), sizes).cast(column.undeclared_type)
    lists = texts.cast(pa.large_list(pa.large_string()))
    sizes = series.list.len().fill_null(0).to_numpy().astype(np.int64)
    rows = np.repeat(np.arange(len(lists)), sizes)
    values = typed(lists.flatten(), column, where, first, rows.tolist() if column.declared is not None else None)
    made = lists_of(values, sizes).cast(column.undeclared_type)
    return pc.if_else(lists.is_null(), None, made) if lists.null_count else made


def _rows(data: bytes, where: str, first: int) -> list[dict[str, Any]]:
    """Return the objects of lines, decoded one by one."""
    rows: list[dict[str, Any]] = []
    for line in data.split(b"\n"):
        if line.strip():
            row = _object(line)
            if not isinstance(row, dict):
                raise SourceError(
                    f"{where}, row {first + len(rows) + 1:,}: the line is no JSON object in UTF-8. Correct the row."
                )
            rows.append(row)
    return rows


def _object(line: bytes) -> Any:
    try:
        return _DECODER.decode(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None


def _first_wins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose repeated names have their first values, as polars reads them."""
    return dict(reversed(pairs))


def _refuse(name: str) -> Any:
    raise ValueError(name)


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_first_wins, parse_constant=_refuse)
