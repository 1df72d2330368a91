"""Machine code of kernels that is kept between runs: written once, whole, and never changed.

Every worker on a machine reads what others have compiled, and leaves what it compiles (`kernels/_overload_files.py`):
in a plain session, on Spark Connect and on a cluster, where nobody set our daemon. The folder's name is a digest of all
that the code depends on, so what is in it stays true.
"""

import os
import platform
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import blake2b
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from voxpop.errors import InternalError


def keep() -> None:
    """Keep the code of kernels that are imported from now on, and use what other processes have kept.

    Without a folder that this user alone may write into, every process compiles for itself.
    """
    if "voxpop.kernels._jit" in sys.modules:
        return
    from voxpop.kernels import _jit

    _jit.keep_overloads_in(next(map(str, _folders()), None))


def _folders() -> Iterator[Path]:
    """Yield folders that are ours, the best first."""
    name = f"kernels-{_digest()}"
    for base in _bases():
        with suppress(OSError, RuntimeError):
            folder = base() / name
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if is_ours(folder) and is_ours(folder.parent):
                yield folder


def _bases() -> Iterator[Callable[[], Path]]:
    """Yield where folders may be: executors have not always a home."""
    cache = os.environ.get("XDG_CACHE_HOME")
    yield lambda: (Path(cache) if cache else Path.home() / ".cache") / "voxpop"
    yield lambda: Path(tempfile.gettempdir()) / f"voxpop-{os.geteuid()}"


def is_ours(folder: Path) -> bool:
    """Say whether a folder is there that only this user can have written."""
    with suppress(OSError):
        status = folder.lstat()
        return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
    return False


def _digest() -> str:
    """Return a name for everything that machine code depends on."""
    from llvmlite import binding  # type: ignore[import-untyped]

    cpu = f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"
    parts = [sys.version, platform.machine(), cpu, version("numba"), version("llvmlite")]
    digest = blake2b("\n".join(parts).encode(), digest_size=12)
    package = find_spec("voxpop.kernels")
    if package is None:
        raise InternalError("the kernels of voxpop are not where its package is; install it anew.")
    for path in sorted(Path(next(iter(package.submodule_search_locations or ()))).glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
