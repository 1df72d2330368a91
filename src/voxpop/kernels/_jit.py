"""The only import of numba: one decorator, so that caching and threading are decided in one place.

`NUMBA_DISABLE_JIT=1` runs every kernel as plain Python, `NUMBA_BOUNDSCHECK=1` checks every index, and
`VOXPOP_JIT_CACHE=0` keeps compiled kernels out of `__pycache__` (use it where workers share a read-only install).
Machine code that is kept goes stale with any file of this folder: numba itself looks at the kernel's own file only, and
so would miss an edit of a kernel that it calls.

Any number of processes may read and write the kept machine code, because its files never change. The cache of numba
replaces an index before the file that the index names, and two writers may give two signatures the same file. Here
there is no index: the name of a file states its content (a kernel and the types of its arguments; the name of the
folder states sources, compiler and processor), and a file gets its name when it is complete.
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
"""Bytes of the digest that a file begins with."""


class OverloadFiles(NullCache):
    """The cache of one kernel. Its methods for numba are `load_overload` and `save_overload`."""

    def __init__(self, kernel: Callable[..., Any], folder: str) -> None:
        """Keep the code of a kernel in a folder to which no other user can write, since code is loaded from it."""
        self._name = f"{kernel.__module__.rpartition('.')[2]}.{kernel.__qualname__}"
        self._folder = Path(folder)

    def path_of(self, types: Any) -> Path:
        """Return where the code for arguments of these types is."""
        return self._folder / f"{self._name}-{blake2b(str(types).encode(), digest_size=12).hexdigest()}"

    def load_overload(self, types: Any, target: Any) -> Any:
        """Return compiled code, or None where it is not there or damaged: then it is compiled."""
        with suppress(Exception):
            content = self.path_of(types).read_bytes()
            if _digest(content[DIGEST:]) == content[:DIGEST]:
                target.refresh()
                return _rebuild(target, *pickle.loads(content[DIGEST:]))
        return None

    def save_overload(self, types: Any, code: Any) -> None:
        """Write code aside, then give the file its name; where that cannot be, the next process compiles again."""
        with suppress(Exception):
            if code.library.has_dynamic_globals or code.lifted:
                return
            content: bytes = _dumps(code._reduce())
            _write_whole(self.path_of(types), _digest(content) + content)


def _write_whole(path: Path, content: bytes) -> None:
    """Write a file under another name, then give it its own; where that cannot be, leave nothing."""
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


# A fork waits until no thread compiles: the child would wait for ever for the lock of such a thread.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
_FOLDER: list[str] = []


def jit(kernel: Kernel) -> Kernel:
    """Compile `kernel` on first use, without the GIL, without fast-math."""
    compiled: Any = numba.njit(nogil=True, error_model="numpy")(kernel)
    if hasattr(compiled, "enable_caching"):  # else kernels run as plain Python
        if os.environ.get("VOXPOP_JIT_CACHE", "1") != "0":
            _keep_while_sources_last(compiled, kernel)
        elif _FOLDER:
            compiled._cache = OverloadFiles(kernel, _FOLDER[0])
    return cast(Kernel, compiled)


def _keep_while_sources_last(compiled: Any, kernel: Callable[..., Any]) -> None:
    """Keep machine code in files whose stamp is all of this folder; without a place for them, in a folder of voxpop."""
    with suppress(RuntimeError, OSError):  # numba finds no folder: a read-only installation without a home
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
    """Return whether numba would not take the folder `~` of the working directory for the home of this user."""
    return bool(os.environ.get("XDG_CACHE_HOME")) or os.path.expanduser("~") != "~"


def _is_trusted(path: Path) -> bool:
    """Check that no other user can write to a cache, which may be in a home that is shared, such as /tmp."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    inside = path.parent == Path(__file__).parent or (chosen and path.is_relative_to(os.path.abspath(chosen)))
    return bool(inside) or (is_ours(path) and is_ours(path.parent))


@cache
def _own_folder() -> str | None:
    """Return the folder for the code of all kernels, None if there is no safe one; print a line if it is temporary."""
    folder = next(map(str, folders()), None)
    if folder is None or is_temporary(folder):
        place = "by every process again" if folder is None else f"in {folder}"
        sys.stderr.write(
            f"voxpop: kernels are compiled {place}, because neither the installation nor a home can be written. To "
            "change the folder, set NUMBA_CACHE_DIR to one that only you can write to.\n"
        )
    return folder


class _Forgiving:
    """A cache of numba whose files may be damaged or on a full disk: then kernels are compiled again."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        if name == "_cache":  # while it is copied
            raise AttributeError(name)
        return getattr(self._cache, name)

    def load_overload(self, types: Any, target: Any) -> Any:
        """Return compiled code, or None if it is not there or damaged."""
        with suppress(Exception):
            return self._cache.load_overload(types, target)
        return None

    def save_overload(self, types: Any, code: Any) -> None:
        """Write code, or do nothing if the disk is full."""
        with suppress(OSError):
            self._cache.save_overload(types, code)


def keep_overloads_in(folder: str | None) -> None:
    """Keep the machine code of kernels that are imported from now on in files that are written once; None for none."""
    _FOLDER[:] = [] if folder is None else [folder]
