"""Names for types of arrays. A docstring's int64 means `Int64s`."""

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Uint32s = NDArray[np.uint32]
Uint64s = NDArray[np.uint64]
Floats = NDArray[np.float64]

Texts = tuple[Bytes, Int64s]
"""The bytes of strings, one after the other, and where each begins (one more)."""

ONE_CAP = 2**30
"""Caps are whole multiples of 2^-30: the squares of those that fit into 1 add up exactly in 64 bits."""

RELEASED, DROPPED, UNDECIDED = 0, 1, 255
"""States of an item in adaptive rounds. Undecided: 2 to 255, by the weight that it can use; see `ScoreStep`."""
