"""Memory that a mapped file only lends us."""

import mmap

import numpy as np
from numpy.typing import NDArray


def forget_pages(array: NDArray[np.int32]) -> None:
    """Give back the pages of a read-only memory-mapped array; they are read again when they are needed.

    Arrays in memory, and systems that cannot do it, are left alone. So a pass over a saved corpus of any size keeps
    little of it resident.
    """
    mapped = getattr(array, "_mmap", None)
    if isinstance(mapped, mmap.mmap) and not array.flags.writeable and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)
