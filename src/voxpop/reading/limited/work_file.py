"""A file that holds private data while the process lives.

It has no name where the system can make such a file (Linux), and is unlinked at once elsewhere. So no other process can
open it, and the system removes it when the process ends for any reason.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from voxpop.errors import SourceError

Array = NDArray[Any]


@final
class WorkFile:
    """Arrays one behind the other, owner-only, gone with the process."""

    __slots__ = ("_file", "_folder", "size")

    size: int

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.size = 0
        self._file: Any = None
        with self._explained():
            self._file = tempfile.TemporaryFile(buffering=0, dir=folder, prefix="voxpop-work-")  # noqa: SIM115

    def append(self, array: Array) -> int:
        """Append an array, and return the byte at which it begins."""
        begin = self.size
        self.write(begin, array)
        return begin

    def write(self, begin: int, array: Array) -> None:
        """Write an array at a byte."""
        left = memoryview(np.ascontiguousarray(array).data).cast("B") if array.size else memoryview(b"")
        with self._explained():
            self._file.seek(begin)
            while left:
                left = left[self._file.write(left) :]
        self.size = max(self.size, begin + array.nbytes)

    def read(self, begin: int, count: int, dtype: Any) -> Array:
        """Return `count` elements from a byte on."""
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
        """Return the whole file as an array that is read and written page by page, and closes with the last view."""
        count = self.size // np.dtype(dtype).itemsize
        if count == 0:
            return np.empty(0, dtype)
        with self._explained():
            return np.memmap(self._file, dtype, "r+", shape=(count,))

    def close(self) -> None:
        """Give the disk space back; mapped arrays keep their space."""
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
    """Return strings whose beginnings (int64, one more) and bytes two files hold, without reading them."""
    places, letters = starts.mapped(np.int64), data.mapped(np.uint8)
    return pa.LargeStringArray.from_buffers(places.size - 1, pa.py_buffer(places), pa.py_buffer(letters))
