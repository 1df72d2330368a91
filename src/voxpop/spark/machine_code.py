"""Machine code of kernels that is kept between runs: written once, whole, and never changed.

numba's own cache is not safe for writers that meet: it replaces an index before the file that the index names, and two
of them may give two signatures the same file. Here one process writes a folder that nobody else knows, and gives it its
name when everything is in it. The name is a digest of all that the code depends on, so what has a name stays true.
"""

import os
import platform
import shutil
import sys
import tempfile
from contextlib import suppress
from hashlib import blake2b
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from voxpop.errors import InternalError


def folder_of(listed: str) -> Path:
    """Return where the code of these kernels belongs.

    Args:
        listed: kernels and their types, in any form that differs where they do.
    """
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "voxpop" / f"kernels-{_digest(listed)}"


def is_ours(folder: Path) -> bool:
    """Say whether a folder is there that only this user can have written."""
    with suppress(OSError):
        status = folder.stat()
        return status.st_uid == os.geteuid() and not status.st_mode & 0o022
    return False


def begin(folder: Path) -> Path | None:
    """Return a new folder beside it to write into, None where that cannot be."""
    with suppress(OSError):
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return Path(tempfile.mkdtemp(prefix="unfinished-", dir=folder.parent))
    return None


def publish(written: Path, folder: Path) -> None:
    """Give what was written its name, unless another process was first."""
    with suppress(OSError):
        written.rename(folder)
    remove(written)


def remove(folder: Path | None) -> None:
    """Remove a folder, if it is there."""
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _digest(listed: str) -> str:
    """Return a name for everything that machine code depends on."""
    from llvmlite import binding  # type: ignore[import-untyped]

    cpu = f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"
    parts = [listed, sys.version, platform.machine(), cpu, version("numba"), version("llvmlite")]
    digest = blake2b("\n".join(parts).encode(), digest_size=12)
    package = find_spec("voxpop.kernels")
    if package is None:
        raise InternalError("the kernels of voxpop are not where its package is; install it anew.")
    for path in sorted(Path(next(iter(package.submodule_search_locations or ()))).glob("*.py")):
        # numba takes a source for the same where its path, time and size are.
        digest.update(f"{path} {path.stat().st_mtime_ns}".encode() + path.read_bytes())
    return digest.hexdigest()
