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
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import NullCache

from voxpop.kernels._overload_files import OverloadFiles

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
_FOLDER: list[str] = []


def jit(kernel: Kernel) -> Kernel:
    """Compile `kernel` on first use, without the GIL, without fast-math."""
    compiled: Any = numba.njit(nogil=True, error_model="numpy")(kernel)
    if hasattr(compiled, "enable_caching"):  # else kernels run as plain Python
        if os.environ.get("VOXPOP_JIT_CACHE", "1") != "0":
            _keep_while_sources_last(compiled)
        elif _FOLDER:
            compiled._cache = OverloadFiles(kernel, _FOLDER[0])
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


def keep_overloads_in(folder: str | None) -> None:
    """Keep the machine code of kernels that are imported from now on in files that are written once; None for none."""
    _FOLDER[:] = [] if folder is None else [folder]
