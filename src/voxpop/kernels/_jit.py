"""The only import of numba: one decorator, so that caching and threading are decided in one place.

`NUMBA_DISABLE_JIT=1` runs every kernel as plain Python, `NUMBA_BOUNDSCHECK=1` checks every index, and
`VOXPOP_JIT_CACHE=0` keeps compiled kernels out of `__pycache__` (use it where workers share a read-only install).
A kernel calls other kernels of its own file only: numba's cache does not notice an edit in another file.
"""

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import NullCache

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def jit(kernel: Kernel) -> Kernel:
    """Compile `kernel` on first use, without the GIL, without fast-math."""
    cache = os.environ.get("VOXPOP_JIT_CACHE", "1") != "0"
    return cast(Kernel, numba.njit(cache=cache, nogil=True, error_model="numpy")(kernel))


def keep_in(folder: str) -> str:
    """Keep the machine code of kernels that are imported from now on in a folder; return the one before."""
    config = vars(numba.config)
    before, config["CACHE_DIR"] = config["CACHE_DIR"], folder
    return str(before)


def forget_files(module: ModuleType) -> None:
    """Let the kernels of a module neither read nor write files any more."""
    for each in vars(module).values():
        if hasattr(each, "_cache"):
            each._cache = NullCache()
