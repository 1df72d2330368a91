"""The only import of numba: one decorator, so that caching and threading are decided in one place.

`NUMBA_DISABLE_JIT=1` runs every kernel as plain Python, `NUMBA_BOUNDSCHECK=1` checks every index, and
`VOXPOP_JIT_CACHE=0` keeps compiled kernels out of `__pycache__` (use it where workers share a read-only install).
A kernel calls other kernels of its own file only: numba's cache does not notice an edit in another file.
"""

import os
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from voxpop.kernels._overload_files import OverloadFiles

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
_FOLDER: list[str] = []


def jit(kernel: Kernel) -> Kernel:
    """Compile `kernel` on first use, without the GIL, without fast-math."""
    cache = os.environ.get("VOXPOP_JIT_CACHE", "1") != "0"
    compiled = numba.njit(cache=cache, nogil=True, error_model="numpy")(kernel)
    if _FOLDER and not cache and hasattr(compiled, "_cache"):
        compiled._cache = OverloadFiles(kernel, _FOLDER[0])
    return cast(Kernel, compiled)


def keep_overloads_in(folder: str | None) -> None:
    """Keep the machine code of kernels that are imported from now on in files that are written once; None for none."""
    _FOLDER[:] = [] if folder is None else [folder]
