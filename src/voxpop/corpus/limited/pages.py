"""Memory given back: pages that a mapped file only lends us, and what allocators keep."""

import mmap
import os
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

AROUND = 1 << 20
"""Bytes before the first that are given back again: reading a page brings its neighbours (on Linux 64 KiB), also those
behind, and threads are a step apart. Without it a pass over 400 MB in steps of 260 kB left 46 MB resident."""


def forget_pages(array: NDArray[Any], begin: int = 0, end: int | None = None) -> None:
    """Give back the pages of a memory-mapped array; they are read again when they are needed.

    What was written stays: it is the file's. Arrays in memory, and systems that cannot do it, are left alone. So a pass
    over a corpus of any size keeps little of it resident.

    Args:
        array: all of a mapped file, not a part of it.
        begin: the first element to give back.
        end: the end of those; None for all.
    """
    mapped = getattr(array, "_mmap", None)
    if not isinstance(mapped, mmap.mmap) or array.mode == "c" or not hasattr(mmap, "MADV_DONTNEED"):  # type: ignore[attr-defined]
        return
    head = array.offset % mmap.ALLOCATIONGRANULARITY  # type: ignore[attr-defined]
    first = max(0, head + begin * array.itemsize - AROUND) // mmap.PAGESIZE * mmap.PAGESIZE
    last = len(mapped) if end is None else min(len(mapped), head + end * array.itemsize)
    if last > first:
        mapped.madvise(mmap.MADV_DONTNEED, first, last - first)


def release_unused() -> None:
    """Ask the allocators to give freed memory back to the system."""
    import ctypes

    pa.default_memory_pool().release_unused()
    if os.name == "posix":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc alone has it
        if trim is not None:
            trim(0)
