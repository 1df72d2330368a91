"""The memory limit for reading, encoding and extracting, and work files for data that does not fit.

A work file contains private data while the process runs. On Linux, the file is created without a name. On other
systems, it is unlinked immediately. Therefore no other process can open the file, and the system removes it when the
process ends for any reason.
"""

import ctypes
import mmap
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from voxpop.errors import InputError, MemoryLimitError, SourceError
from voxpop.kernels.arrays import Int32s

Array = NDArray[Any]


@final
class WorkFile:
    """Consecutive arrays in a file that only the owner can read and that is deleted when the process ends."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.size = 0
        self._file: Any = None
        with self._explained():
            self._file = tempfile.TemporaryFile(buffering=0, dir=folder, prefix="voxpop-work-")  # noqa: SIM115

    def append(self, array: Array) -> int:
        """Append an array, and return the position of its first byte."""
        begin = self.size
        self.write(begin, array)
        return begin

    def write(self, begin: int, array: Array) -> None:
        """Write an array at a byte offset."""
        left = memoryview(np.ascontiguousarray(array).data).cast("B") if array.size else memoryview(b"")
        with self._explained():
            self._file.seek(begin)
            while left:
                left = left[self._file.write(left) :]
        self.size = max(self.size, begin + array.nbytes)

    def read(self, begin: int, count: int, dtype: Any) -> Array:
        """Return `count` elements from a byte offset."""
        array = np.empty(count, dtype)
        left = memoryview(array.data).cast("B") if count else memoryview(b"")
        with self._explained():
            self._file.seek(begin)
            while left:
                got = self._file.readinto(left)
                if not got:
                    raise OSError("it was cut off")
                left = left[got:]
        return array

    def mapped(self, dtype: Any) -> Array:
        """Return the whole file as an array that is read and written page by page.

        The file is closed when the last view is deleted.
        """
        count = self.size // np.dtype(dtype).itemsize
        if count == 0:
            return np.empty(0, dtype)
        with self._explained():
            return np.memmap(self._file, dtype, "r+", shape=(count,))

    def close(self) -> None:
        """Free the disk space. Mapped arrays keep their space."""
        if self._file is not None:
            self._file.close()

    def __del__(self) -> None:
        self.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise SourceError(
                f"a work file in {self._folder} cannot be used: {error.strerror or error}. Work files take about "
                "three times the space of the tokens (4 bytes each); give another folder with work_folder= "
                "(--work-folder), or a larger memory= (--memory)."
            ) from None


def strings_of(starts: WorkFile, data: WorkFile) -> pa.LargeStringArray:
    """Map a file of starts (int64, one more than strings) and a file of bytes as strings, without reading the files."""
    places, letters = starts.mapped(np.int64), data.mapped(np.uint8)
    return pa.LargeStringArray.from_buffers(places.size - 1, pa.py_buffer(places), pa.py_buffer(letters))


MIB = 1 << 20
FIXED_MEMORY = 768 * MIB
"""The memory that any input needs for Python, the libraries, compiling the kernels and a few batches of rows."""
LEAST_MEMORY = 896 * MIB
M_MMAP_THRESHOLD = -3
"""The parameter of `mallopt`, from <malloc.h>."""
UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
UNITS |= {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}
CONTAINER = Path("/sys/fs/cgroup/memory.max")
WANTED = "a size such as 2GiB, 800MiB or 4GB, or a number of bytes"


@final
@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """A bound on the resident memory of the process.

    Attributes:
        total: The total limit in bytes.
        room: The number of bytes that data may occupy.
        folder: The folder for work files.
    """

    total: int
    room: int
    folder: Path

    @staticmethod
    def of(memory: Any, folder: Any = None) -> "MemoryLimit":
        """Return the limit that a caller requests.

        Args:
            memory: A number of bytes, or a size such as "2GiB".
            folder: The folder for work files. The default is the system's folder for temporary files.

        Raises:
            InputError: If the size cannot be parsed or is below the minimum for any work, or the folder cannot be
                written.
        """
        total = bytes_of(memory)
        if total < LEAST_MEMORY:
            raise InputError(
                f"`memory` must be at least {shown_size(LEAST_MEMORY)}, got {memory}, because Python and the libraries "
                f"alone take about {shown_size(FIXED_MEMORY)}."
            )
        where = Path(tempfile.gettempdir() if folder is None else folder)
        if not where.is_dir() or not os.access(where, os.W_OK | os.X_OK):
            raise InputError(f"work files cannot be written to {where}. Give an existing folder that you own.")
        # Make glibc return blocks of a megabyte to the system as soon as they are freed. By default, the minimum size
        # of such blocks grows over time.
        _call_libc("mallopt", M_MMAP_THRESHOLD, MIB)
        return MemoryLimit(total, total - FIXED_MEMORY, where)

    def file(self) -> WorkFile:
        """Return a new work file."""
        return WorkFile(self.folder)

    def require(self, size: int, what: str) -> None:
        """Raise an error for work that needs more memory than is available, before the system runs out of memory.

        Args:
            size: The required bytes. Messages contain only the next power of two, because the size depends on the data.
            what: The plural noun for the objects that need this memory.

        Raises:
            MemoryLimitError: If the limit is too low. The message contains a sufficient value of `memory`.
        """
        if size > self.room:
            enough = 1 << (size + self.total - self.room - 1).bit_length()
            raise MemoryLimitError(
                f"{what} do not fit into memory={shown_size(self.total)}, and cannot be kept on disk. About "
                f"{shown_size(enough)} would be enough; raise the limit, or use a machine with more memory."
            )


def stored(parts: Iterable[Int32s], limit: MemoryLimit | None) -> Int32s:
    """Return the concatenated arrays, in memory or, if there is a memory limit, mapped to a file."""
    if limit is None:
        return np.concatenate([np.empty(0, np.int32), *parts])
    file = limit.file()
    for part in parts:
        file.append(part)
    mapped: Int32s = file.mapped(np.int32)
    file.close()
    return mapped


def usual_limit() -> int:
    """Return the default limit, which is half the memory of the machine or container, and at least the minimum."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 2 * LEAST_MEMORY
    return max(LEAST_MEMORY, min(pages, _of_container()) // 2)


def _of_container() -> int:
    """Return the memory limit of this process in its Linux control group."""
    try:
        return int(CONTAINER.read_text())
    except (OSError, ValueError):  # there is no limit, or it is "max"
        return sys.maxsize


def bytes_of(memory: Any) -> int:
    """Return a size in bytes.

    Raises:
        InputError: If the argument is not a size.

    Example:
        >>> bytes_of("2GiB"), bytes_of("1.5 GB"), bytes_of(4096)
        (2147483648, 1500000000, 4096)
    """
    if isinstance(memory, int) and not isinstance(memory, bool):
        return memory
    match = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,6})?)\s*([A-Za-z]*)\s*", memory) if isinstance(memory, str) else None
    if match is None or match[2].lower() not in UNITS:
        raise InputError(f"`memory` must be {WANTED}, got {memory!r}.")
    return int(float(match[1]) * UNITS[match[2].lower()])


def shown_size(size: int) -> str:
    """Return a size in the usual notation.

    Example:
        >>> shown_size(1 << 31), shown_size(1 << 29), shown_size(1536 << 20)
        ('2GiB', '512MiB', '1536MiB')
    """
    for unit, name in ((1 << 30, "GiB"), (MIB, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{name}"
    return f"{size / MIB:.1f}MiB"


# Functions that return memory to the system. The memory is either pages of a mapped file, or memory that allocators
# keep.


AROUND = 1 << 20
"""The number of bytes before the first element that are released again. Reading a page also reads its neighbours (on
Linux 64 KiB), including later pages, and threads are one step apart. Without this, a pass over 400 MB in steps of 260
kB left 46 MB resident."""


def forget_pages(array: NDArray[Any], begin: int = 0, end: int | None = None) -> None:
    """Release the pages of a memory-mapped array, which are read again when needed.

    Written data remains, because it belongs to the file. Arrays in memory, and systems without support, are unaffected.
    Therefore a pass over a corpus of any size keeps only a small part of it resident.

    Args:
        array: The array of a whole mapped file, not a part of it.
        begin: The first element to release.
        end: The index after the last element to release. The default is the end of the array.
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
    """Make the allocators return freed memory to the system."""
    pa.default_memory_pool().release_unused()
    _call_libc("malloc_trim", 0)


def _call_libc(name: str, *arguments: int) -> None:
    """Call a glibc function if the C library has it."""
    if os.name == "posix":
        function = getattr(ctypes.CDLL(None), name, None)
        if function is not None:
            function(*arguments)
