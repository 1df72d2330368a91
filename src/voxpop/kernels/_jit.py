"""The only import of numba: one decorator, so that caching and threading are decided in one place.

`NUMBA_DISABLE_JIT=1` runs every kernel as plain Python, `NUMBA_BOUNDSCHECK=1` checks every index, and
`VOXPOP_JIT_CACHE=0` keeps compiled kernels out of `__pycache__` (use it where workers share a read-only install).
Machine code that is kept goes stale with any file of this folder: numba itself looks at the kernel's own file only, and
so would miss an edit of a kernel that it calls.
"""

import os
from collections.abc import Callable
from functools import cache
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import NullCache

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def jit(kernel: Kernel) -> Kernel:
    """Compile `kernel` on first use, without the GIL, without fast-math."""
    compiled = numba.njit(nogil=True, error_model="numpy")(kernel)
    if os.environ.get("VOXPOP_JIT_CACHE", "1") != "0" and hasattr(compiled, "enable_caching"):
        _keep_while_sources_last(compiled)
    return cast(Kernel, compiled)


def _keep_while_sources_last(compiled: Any) -> None:
    """Keep machine code in files whose stamp is all of this folder; without a place for the stamp keep none."""
    compiled.enable_caching()
    index: Any = getattr(compiled._cache, "_cache_file", None)
    if hasattr(index, "_source_stamp"):
        index._source_stamp = digest_of_sources()
    else:
        compiled._cache = NullCache()


@cache
def digest_of_sources() -> str:
    """Return a digest of all kernel files: their bytes, since times and sizes may be the same after an upgrade."""
    digest = blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


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
