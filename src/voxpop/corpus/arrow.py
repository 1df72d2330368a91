"""Arrow arrays as plain numpy arrays, without copies where that can be."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Texts = tuple[NDArray[np.uint8], NDArray[np.int64]]


def text_buffers(texts: pa.Array) -> Texts:
    """Return the UTF-8 bytes of a string array and where each text starts (one more); a null is an empty text."""
    if not pa.types.is_large_string(texts.type):
        texts = texts.cast(pa.large_string())
    if texts.null_count:
        texts = texts.fill_null("")
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    bytes_ = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    return bytes_, starts if starts.size else np.zeros(1, np.int64)


def int_codes(dictionary: pa.DictionaryArray) -> NDArray[np.int32]:
    """Return the codes of a dictionary array, -1 for null."""
    indices = dictionary.indices
    return whole_numbers(indices, missing=-1).astype(np.int32, copy=False)


def whole_numbers(array: pa.Array, missing: int = 0) -> NDArray[np.integer[Any]]:
    """Return an array of integers without a copy, nulls replaced; `to_numpy` would import pandas first."""
    if array.null_count:
        array = array.fill_null(missing)
    kind = np.dtype(array.type.to_pandas_dtype())
    values = array.buffers()[1]
    if values is None or not len(array):
        return np.empty(0, kind)
    return np.frombuffer(values, kind, len(array), array.offset * kind.itemsize)


def int64_array(numbers: Sequence[int] | NDArray[np.integer[Any]]) -> pa.Array:
    """Return an array of whole numbers; `pa.array` would import pandas first."""
    exact = np.array(numbers, np.int64)
    return pa.Array.from_buffers(pa.int64(), exact.size, [None, pa.py_buffer(exact)])


def string_array(texts: Sequence[str]) -> pa.LargeStringArray:
    """Return an array of strings; `pa.array` would import pandas first, which takes 60 MiB and half a second."""
    encoded = [text.encode() for text in texts]
    starts = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers)


def plain(array: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return one array of several chunks."""
    if isinstance(array, pa.ChunkedArray):
        return array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    return array
