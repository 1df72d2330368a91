"""Folders for compiled kernels that only this user can write to, because machine code is loaded from them.

This module does not import numba, because Spark workers choose a folder before numba is imported.
"""

import os
import platform
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path

TEMPORARY = "voxpop-{}"


def folders() -> Iterator[Path]:
    """Yield this user's folders in order of preference.

    The names of the folders are digests of everything that machine code depends on.
    """
    name, caches = f"kernels-{_digest()}", os.environ.get("XDG_CACHE_HOME")
    homes: tuple[Callable[[], Path], ...] = (
        lambda: (Path(caches) if caches else Path.home() / ".cache") / "voxpop",  # the home directory may not exist
        lambda: Path(tempfile.gettempdir()) / TEMPORARY.format(os.geteuid()),
    )
    for home in homes:
        with suppress(OSError, RuntimeError):
            folder = home() / name
            folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            folder.mkdir(exist_ok=True, mode=0o700)
            tempfile.TemporaryFile(dir=folder).close()
            if is_ours(folder) and is_ours(folder.parent):
                yield folder


def is_temporary(folder: str) -> bool:
    """Return whether one of the folders from `folders` is temporary."""
    return Path(folder).parent.name == TEMPORARY.format(os.geteuid())


def is_ours(folder: Path) -> bool:
    """Return whether the folder exists and no other user can have written to it."""
    with suppress(OSError):
        status = folder.lstat()
        return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022
    return False


@cache
def digest_of_sources() -> str:
    """Return a digest of the bytes of all kernel files, because upgrades can preserve their times and sizes."""
    digest = blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _digest() -> str:
    """Return a name that identifies everything that machine code depends on."""
    from llvmlite import binding  # type: ignore[import-untyped]

    cpu = f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"
    parts = [sys.version, platform.machine(), cpu, version("numba"), version("llvmlite"), digest_of_sources()]
    return blake2b("\n".join(parts).encode(), digest_size=12).hexdigest()
