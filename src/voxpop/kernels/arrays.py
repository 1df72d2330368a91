"""Names for array types. In docstrings, int64 means `Int64s`."""

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
"""The concatenated bytes of strings, and the position where each string begins (one more entry than strings)."""

ONE_CAP = 2**30
"""The unit of caps. Caps are multiples of 2^-30, so 64 bits represent the sum of their squares exactly if it is at most
1.
"""

RELEASED, DROPPED, UNDECIDED = 0, 1, 255
"""The states of an item in adaptive rounds. Undecided items have a state from 2 to 255, which depends on the weight
that they can use; see `ScoreStep`.
"""
NOTHING_LISTED = np.empty(0, np.uint8)
"""The marks of listed items if there is no public list."""
