"""The decorator that compiles kernels. Only this module imports numba, so caching and threading are set in one place.

`NUMBA_DISABLE_JIT=1` runs every kernel as plain Python, `NUMBA_BOUNDSCHECK=1` checks every index, and
`VOXPOP_JIT_CACHE=0` disables the cache of compiled kernels (use it if workers share a read-only installation). Cached
machine code becomes stale if any file in this folder changes. Numba itself checks only the kernel's own file, so it
would miss an edit to a kernel that this kernel calls.

Any number of processes may read and write the cached machine code, because its files never change. Numba's own cache
replaces its index before it writes the file that the index names, and two concurrent writers can assign the same file
to two signatures. This cache has no index. Instead, the path of a file identifies its content. The file name encodes a
kernel and the types of its arguments, and the folder name encodes the sources, the compiler and the processor. A file
gets its final name only when it is complete.
"""

import os
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps

from voxpop.kernels._kept import digest_of_sources, folders, is_ours, is_temporary

_rebuild: Callable[..., Any] = CompileResult._rebuild
_dumps: Callable[..., bytes] = dumps
DIGEST = 16
"""The number of bytes in the digest at the beginning of a file."""


class OverloadFiles(NullCache):
    """The cache of one kernel. Numba calls `load_overload` and `save_overload`."""

    def __init__(self, kernel: Callable[..., Any], folder: str) -> None:
        """Cache the code of a kernel in a folder that no other user can write to, because code is loaded from it."""
        self._name = f"{kernel.__module__.rpartition('.')[2]}.{kernel.__qualname__}"
        self._folder = Path(folder)

    def path_of(self, types: Any) -> Path:
        """Return the path of the code for arguments of these types."""
        return self._folder / f"{self._name}-{blake2b(str(types).encode(), digest_size=12).hexdigest()}"

    def load_overload(self, types: Any, target: Any) -> Any:
        """Return the compiled code; None for a missing or damaged file, so that numba compiles the kernel again."""
        with suppress(Exception):
            content = self.path_of(types).read_bytes()
            if _digest(content[DIGEST:]) == content[:DIGEST]:
                target.refresh()
                return _rebuild(target, *pickle.loads(content[DIGEST:]))
        return None

    def save_overload(self, types: Any, code: Any) -> None:
        """Write code to a temporary file and rename it. If this fails, the next process compiles the kernel again."""
        with suppress(Exception):
            if code.library.has_dynamic_globals or code.lifted:
                return
            content: bytes = _dumps(code._reduce())
            _write_whole(self.path_of(types), _digest(content) + content)


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file under a temporary name, then rename it. If this fails, remove the temporary file."""
    with NamedTemporaryFile(dir=path.parent, prefix=f"{path.name}.", delete=False) as unfinished:
        aside = Path(unfinished.name)
        try:
            unfinished.write(content)
            unfinished.flush()
            aside.replace(path)
        except OSError:
            aside.unlink(missing_ok=True)


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=DIGEST).digest()


# A fork waits until no thread is compiling. Otherwise the child would wait forever for the lock of that thread.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
_FOLDER: list[str] = []


def jit(kernel: Kernel) -> Kernel:
    """Compile `kernel` on first use, without the GIL and without fast-math."""
    compiled: Any = numba.njit(nogil=True, error_model="numpy")(kernel)
    if hasattr(compiled, "enable_caching"):  # otherwise kernels run as plain Python
        if os.environ.get("VOXPOP_JIT_CACHE", "1") != "0":
            _keep_while_sources_last(compiled, kernel)
        elif _FOLDER:
            compiled._cache = OverloadFiles(kernel, _FOLDER[0])
    return cast(Kernel, compiled)


def _keep_while_sources_last(compiled: Any, kernel: Callable[..., Any]) -> None:
    """Cache machine code in numba's folder, or else in a folder of voxpop, until a file in this folder changes."""
    with suppress(RuntimeError, OSError):  # numba finds no folder in a read-only installation without a home directory
        if _has_home() or os.environ.get("NUMBA_CACHE_DIR"):
            compiled.enable_caching()
    index: Any = getattr(compiled._cache, "_cache_file", None)
    if hasattr(index, "_source_stamp") and _is_trusted(Path(compiled._cache.cache_path)):
        index._source_stamp = digest_of_sources()
        compiled._cache = _Forgiving(compiled._cache)
    else:
        folder = _own_folder()
        compiled._cache = NullCache() if folder is None else OverloadFiles(kernel, folder)


def _has_home() -> bool:
    """Return whether this user has a home directory.

    Without a home directory, numba uses a folder named `~` in the working directory.
    """
    return bool(os.environ.get("XDG_CACHE_HOME")) or os.path.expanduser("~") != "~"


def _is_trusted(path: Path) -> bool:
    """Check that no other user can write to the cache, because the home directory can be shared (such as /tmp)."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    inside = path.parent == Path(__file__).parent or (chosen and path.is_relative_to(os.path.abspath(chosen)))
    return bool(inside) or (is_ours(path) and is_ours(path.parent))


@cache
def _own_folder() -> str | None:
    """Return a safe folder for the code of all kernels, or None if no folder is safe.

    Print a message if the folder is temporary.
    """
    folder = next(map(str, folders()), None)
    if folder is None or is_temporary(folder):
        place = "by every process again" if folder is None else f"in {folder}"
        sys.stderr.write(
            f"voxpop: kernels are compiled {place}, because neither the installation nor a home directory is "
            "writable. To choose another folder, set NUMBA_CACHE_DIR to one that only you can write to.\n"
        )
    return folder


class _Forgiving:
    """A numba cache that compiles kernels again if files are damaged or the disk is full."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        if name == "_cache":  # true while the object is being copied
            raise AttributeError(name)
        return getattr(self._cache, name)

    def load_overload(self, types: Any, target: Any) -> Any:
        """Return the compiled code; None for a missing or damaged file."""
        with suppress(Exception):
            return self._cache.load_overload(types, target)
        return None

    def save_overload(self, types: Any, code: Any) -> None:
        """Write the compiled code, or do nothing if the disk is full."""
        with suppress(OSError):
            self._cache.save_overload(types, code)


def keep_overloads_in(folder: str | None) -> None:
    """Use a cache of write-once files for all kernels that are imported after this call.

    If None, the cache is disabled.
    """
    _FOLDER[:] = [] if folder is None else [folder]
