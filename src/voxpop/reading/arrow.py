"""Conversion between Arrow arrays and plain numpy arrays, without copies if possible.

This module avoids `to_numpy` and `pa.array`. If pandas is installed, both functions import it to check the type of
their argument. The import takes half a second of processor time and 60 MiB.

Users, words and grams are numbered with 32-bit integers.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from voxpop.errors import InputError
from voxpop.kernels.arrays import Int32s, Int64s, Texts

_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}
"""Arrow's names of floats. Arrow and numpy have the same names of integers. Before version 22, Arrow's own conversion
needs pandas."""


def text_buffers(texts: pa.Array) -> Texts:
    """Return the UTF-8 bytes of a string array, the start of each text, and the end of the last text.

    A null is an empty text.
    """
    if not pa.types.is_large_string(texts.type):
        texts = texts.cast(pa.large_string())
    if texts.null_count:
        texts = texts.fill_null(string_array([""])[0])
    _, offsets, data = texts.buffers()
    starts = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    bytes_ = np.frombuffer(data, np.uint8) if data is not None and data.size else np.empty(0, np.uint8)
    return bytes_, starts if starts.size else np.zeros(1, np.int64)


def int_codes(dictionary: pa.DictionaryArray) -> Int32s:
    """Return the codes of a dictionary array, with -1 for null."""
    indices = dictionary.indices
    return numbers_of(indices, missing=-1).astype(np.int32, copy=False)


def numbers_of(array: pa.Array, missing: int = 0) -> NDArray[Any]:
    """Return an array of numbers without a copy, with nulls replaced by `missing`.

    Raises:
        TypeError: If the elements are neither integers nor floats. Booleans are rejected because they are packed into
            bits.
    """
    if not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        raise TypeError(f"Expected an array of numbers, got one of {array.type}.")
    kind = np.dtype(_FLOATS.get(str(array.type), str(array.type)))
    if array.null_count:
        # pyarrow would import pandas for a Python number.
        array = array.fill_null(array_of(np.array([missing], kind))[0])
    values = array.buffers()[1]
    if values is None or not len(array):
        return np.empty(0, kind)
    return np.frombuffer(values, kind, len(array), array.offset * kind.itemsize)


def int64_array(numbers: Sequence[int] | NDArray[np.integer[Any]]) -> pa.Array:
    """Return an array of whole numbers."""
    return array_of(np.array(numbers, np.int64))


def array_of(values: NDArray[Any]) -> pa.Array:
    """Return a numpy array as an Arrow array of the same type. Numbers share memory with the input."""
    exact = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), values.size, [None, pa.py_buffer(exact)])


def string_array(texts: Sequence[str]) -> pa.LargeStringArray:
    """Return an array of strings."""
    encoded = [text.encode() for text in texts]
    starts = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers)


def decoded(column: pa.DictionaryArray) -> pa.Array:
    """Return the values of a dictionary array."""
    return column.dictionary.take(column.indices)


def joined(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a single array, without chunks and offsets."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return pa.concat_arrays(chunks) if chunks else pa.nulls(0, column.type)


def lists_of(elements: pa.Array, sizes: NDArray[np.integer[Any]]) -> pa.ListArray:
    """Return lists of these sizes from concatenated elements.

    pyarrow raises an error if 32 bits cannot number all elements.
    """
    ends = int64_array(np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)]))
    return pa.ListArray.from_arrays(ends.cast(pa.int32()), elements)


def flattened(lists: pa.Array) -> tuple[pa.Array, Int64s]:
    """Return the elements of lists, and the number of elements of each list (0 for null)."""
    large = lists.cast(pa.large_list(lists.type.value_type))
    return large.flatten(), numbers_of(large.value_lengths())


MOST_NUMBERS = 1 << 31
"""The first number that a signed 32-bit integer cannot represent. Larger numbers would give two objects one number."""


def check_width(count: int, what: str) -> None:
    """Raise an error if there are more objects than nonnegative signed 32-bit integers.

    Args:
        count: The number of distinct objects.
        what: The plural noun for the objects.

    Raises:
        InputError: If there are more than 2^31 objects.
    """
    if count > MOST_NUMBERS:
        raise InputError(
            f"more than 2^31 {what} cannot be numbered with 32 bits. Read the table on Spark, where each "
            "partition has separate numbers, into more partitions (partitions= of voxpop.read)."
        )
