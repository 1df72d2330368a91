"""Replace a whole folder, so that a crash at any moment leaves either the old or the new folder.

The files are written to a folder `.NAME.voxpop-new-*` next to the target and synced. This folder then replaces the
target in one step. If the system cannot exchange two folders, the old one is temporarily renamed to `.NAME.voxpop-old`.
Readers also look for this folder, and the next write completes the replacement.
"""

import ctypes
import errno
import glob
import json
import os
import shutil
import stat
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

from voxpop.errors import ReleaseError, SourceError

AT_FDCWD = -100
RENAME_EXCHANGE = 2
UNSUPPORTED = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP})


def read_whole(path: Path) -> bytes:
    """Return the content of a regular file. A pipe or a device raises an error, because reading it might never end.

    Raises:
        OSError: The path is not a regular file, or the file cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        return file.read()


def parsed_json(content: bytes) -> Any:
    """Return the value of untrusted JSON.

    Raises:
        ValueError: The content is not JSON, is nested too deeply, repeats a name, or contains a number that is
            infinite, NaN or too long.
    """
    try:
        return json.loads(content, object_pairs_hook=_distinct, parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is repeated")
    return found


def _refuse(_: str) -> Any:
    raise ValueError("not finite")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError("not finite")
    return number


def write_file(path: str | PathLike[str], make: Callable[[], bytes], *, overwrite: bool = False) -> None:
    """Write one file, completely or not at all.

    Args:
        path: The path of the file.
        make: A function that returns the content. The function is not called if the file must not be written.
        overwrite: Whether to replace an existing file.

    Raises:
        ReleaseError: If the file exists or cannot be written.
    """
    target = Path(path)
    if target.is_dir():
        raise ReleaseError(f"{path} is a folder. Give the name of a file.")
    if target.exists() and not overwrite:
        raise ReleaseError(
            f"{path} already exists, so nothing was replaced. Give another name, or pass overwrite=True (--overwrite)."
        )
    content = make()
    fresh = target.with_name(f".{target.name}.voxpop-{uuid.uuid4().hex}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            fresh.write_bytes(content)
            os.replace(fresh, target)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        raise ReleaseError(
            f"{path} could not be written: {error.strerror or error}. Choose a path that you can write to."
        ) from None


def replace_folder(target: Path, files: Mapping[str, bytes], *, replace: bool = True) -> None:
    """Make `target` a folder of exactly these files, in one step.

    Args:
        target: The absolute path of a folder that is absent, empty or may be replaced.
        files: The contents by file name.
        replace: Whether to replace a folder that contains files.

    Raises:
        FileExistsError: If the folder contains files and `replace` is False.
        OSError: If any step fails. After an error, the target is unchanged.
    """
    replace_folder_by(target, lambda fresh: _write(fresh, files), replace=replace)


def replace_folder_by(target: Path, write: Callable[[Path], None], *, replace: bool = True) -> None:
    """Write a new folder with a function, and move it to `target` in one step.

    Args:
        target: The absolute path of a folder that is absent, empty or may be replaced.
        write: A function that creates the given folder, writes its files and syncs them.
        replace: Whether to replace a folder that contains files.

    Raises:
        FileExistsError: If the folder contains files and `replace` is False.
        OSError: If any step fails. After an error, the target is unchanged.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    _restore_displaced(target)
    with _cleared(target):
        fresh = target.with_name(f"{fresh_prefix(target.name)}{uuid.uuid4().hex}")
        try:
            write(fresh)
            if not replace:
                with suppress(OSError):
                    os.rmdir(target)  # fails unless the folder is empty
                if not _take_free_name(fresh, target):
                    raise FileExistsError(errno.EEXIST, "it contains files", str(target))
            elif _take_free_name(fresh, target) or exchange(fresh, target):
                sync(target.parent)
            else:
                _put_by_turns(fresh, target)
        finally:
            # After an exchange, this is the old folder. After a failure, it is the unfinished one.
            shutil.rmtree(fresh, ignore_errors=True)


def folder_to_read(target: Path) -> Path:
    """Return the folder with the contents of `target`, even after a crash in the middle of a replacement."""
    displaced = _displaced(target)
    return displaced if not target.exists() and displaced.exists() else target


def _displaced(target: Path) -> Path:
    whole = Path(os.path.abspath(target))
    return whole.with_name(f".{whole.name}.voxpop-old")


def fresh_prefix(name: str) -> str:
    """Return the prefix of the names of unfinished folders. The next write removes leftovers of crashes."""
    return f".{name}.voxpop-new-"


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    os.mkdir(folder)
    for name, content in files.items():
        with open(folder / name, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    sync(folder)


def _take_free_name(fresh: Path, target: Path) -> bool:
    if target.exists():
        return False
    try:
        os.rename(fresh, target)
    except OSError:
        if not target.exists():
            raise
        return False  # Another writer has taken the name in the meantime.
    return True


def _put_by_turns(fresh: Path, target: Path) -> None:
    """Replace a folder in two steps if one step is not possible.

    `folder_to_read` and the next write handle a crash in between.
    """
    displaced = _displaced(target)
    os.rename(target, displaced)
    try:
        os.rename(fresh, target)
    except OSError:
        os.rename(displaced, target)
        raise
    sync(target.parent)
    shutil.rmtree(displaced, ignore_errors=True)


def _restore_displaced(target: Path) -> None:
    displaced = _displaced(target)
    if not displaced.exists():
        return
    if target.exists():
        shutil.rmtree(displaced, ignore_errors=True)
    else:
        os.rename(displaced, target)


@contextmanager
def _cleared(target: Path) -> Iterator[None]:
    """Remove leftovers of crashed writers unless another process is writing here, and mark the folder as used."""
    try:
        import fcntl
    except ImportError:  # On Windows, leftovers remain and are harmless.
        yield
        return
    descriptor = os.open(target.parent, os.O_RDONLY)
    try:
        # Do not wait, because a shell may have a lock on this folder while it runs this process.
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for entry in os.scandir(target.parent):
                if entry.name.startswith(fresh_prefix(target.name)):
                    shutil.rmtree(entry.path, ignore_errors=True)
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def replace_file(path: Path, content: bytes) -> None:
    """Replace a private file in one step, so that a crash leaves either the old or the new file.

    Call `sync` afterwards.

    The caller must exclude other writers, because new files are removed as leftovers of a killed writer.

    Raises:
        OSError: If the file cannot be written. After an error, the file is unchanged.
    """
    prefix = fresh_prefix(path.name)
    fresh = path.with_name(f"{prefix}{uuid.uuid4().hex}")
    for left in path.parent.glob(f"{glob.escape(prefix)}*"):
        left.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Sync the names in a folder, or the content of a file, so that they survive a power failure."""
    if os.name == "nt":  # Windows cannot open folders.
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def exchange(first: Path, second: Path) -> bool:
    """Exchange two folders of one file system in one step, so that both names exist at all times.

    Args:
        first: The path of an existing folder.
        second: The path of another existing folder.

    Returns:
        True if the folders were exchanged, False if this system or file system does not support the exchange.

    Raises:
        OSError: If the system supports the exchange but the exchange failed.
    """
    if not sys.platform.startswith("linux"):
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    ctypes.set_errno(0)
    if rename(AT_FDCWD, os.fsencode(first), AT_FDCWD, os.fsencode(second), RENAME_EXCHANGE) == 0:
        return True
    failure = ctypes.get_errno()
    if failure in UNSUPPORTED:
        return False
    raise OSError(failure, os.strerror(failure), str(first), None, str(second))


def entries_of(given: object) -> list[Any]:
    """Return the entries of a public list. The caller checks their types.

    Args:
        given: An iterable, or the path of a text file with one entry per line. Leading and trailing spaces and empty
            lines are ignored. Any other value becomes the only entry.

    Raises:
        SourceError: The file cannot be read.
    """
    if not isinstance(given, str | PathLike):
        return list(given) if isinstance(given, Iterable) and not isinstance(given, bytes) else [given]
    return [line for part in lines_of(given) for line in part]


def lines_of(path: str | PathLike[str], most: int = 1 << 17) -> Iterator[list[str]]:
    """Yield the lines of a public list in parts, without leading and trailing spaces and without empty lines.

    Args:
        path: A text file with one entry per line.
        most: The maximum number of lines to read at once.

    Raises:
        SourceError: The file cannot be read.
    """
    try:
        with Path(path).open(encoding="utf-8-sig") as file:
            while lines := list(islice(file, most)):
                yield [text for line in lines for each in line.splitlines() if (text := each.strip())]
    except (OSError, ValueError):
        raise SourceError(
            f"{path} cannot be read as a list of words. It must be a text file in UTF-8 with one word per line."
        ) from None
