"""The file of a ledger: locked during changes, replaced in one step, checked when read, private to its owner."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from voxpop.errors import LedgerError
from voxpop.reading.folder import parsed_json, read_whole, replace_file, sync

FORMAT, FORMAT_VERSION = "voxpop ledger", 2
PATIENCE = 60.0
"""Seconds to wait for another process; charging takes milliseconds."""
DAMAGED = (
    "The file is damaged or was edited, so what was spent is unknown and nothing can be charged. Restore the newest "
    "copy, and make sure that nothing was released since."
)
MARK = "A voxpop ledger exists beside this file. Do not delete it: a lost ledger must not start at zero.\n"


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Lock a ledger against other processes.

    Raises:
        LedgerError: Another process holds the lock for a minute, or the folder cannot be written.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(_lock_of(path), timeout=PATIENCE, mode=0o600)
    try:
        lock.acquire()
    except Timeout:
        raise LedgerError(f"{path} is locked by another process. Nothing was charged. Try again.") from None
    except OSError as error:
        raise LedgerError(
            f"{path} cannot be locked: {error.strerror or error}. Nothing was charged. "
            "Check the permissions of its folder."
        ) from None
    try:
        yield
    finally:
        lock.release()


def traces_of(path: Path) -> list[Path]:
    """Return the files that show that a ledger exists or existed here: its marker and its lock."""
    return [each for each in (_marker_of(path), _lock_of(path)) if each.exists()]


def lost(path: Path) -> LedgerError:
    """Build the error for a ledger that existed and is missing."""
    listed = " and ".join(str(each) for each in traces_of(path))
    return LedgerError(
        f"{path} is missing, but it existed: {listed} shows it. What was spent is unknown, so nothing can be charged. "
        "Restore the newest copy of the ledger to this path, and make sure that nothing was released since. Only if "
        f"nothing was ever released under this ledger: delete {listed} and create it again."
    )


def read_ledger(path: Path) -> dict[str, Any]:
    """Return the data sets of a ledger, by name.

    Raises:
        LedgerError: There is no ledger, or it is damaged.
    """
    try:
        content = read_whole(path)
    except FileNotFoundError:
        if traces_of(path):
            raise lost(path) from None
        raise LedgerError(
            f"{path} does not exist. Check the path and the working directory. If no ledger was ever kept for this "
            "data, create it once with `Ledger(path).open(name, budget, create=True)` or `voxpop ledger init`."
        ) from None
    except OSError as error:
        raise LedgerError(f"{path} cannot be read: {error.strerror or error}.") from None
    try:
        parsed = parsed_json(content)
    except ValueError:
        raise LedgerError(f"{path} is not readable JSON. {DAMAGED}") from None
    if not isinstance(parsed, dict) or parsed.get("format") != FORMAT:
        raise LedgerError(f"{path} is not a ledger that voxpop wrote. Give another file.")
    if parsed.get("format_version") != FORMAT_VERSION:
        raise LedgerError(f"{path} was written by another version of voxpop; use that one, or a newer one.")
    datasets = parsed.get("datasets")
    if not isinstance(datasets, dict) or parsed.get("checksum") != _checksum(datasets):
        raise LedgerError(f"{path} is not as it was written: its checksum differs. {DAMAGED}")
    return datasets


def write_ledger(path: Path, datasets: dict[str, Any]) -> None:
    """Replace a ledger, so that a crash at any moment leaves the old file or the new file. Call it while `held`.

    Raises:
        LedgerError: The file cannot be written; it is unchanged.
    """
    head = {"format": FORMAT, "format_version": FORMAT_VERSION, "checksum": _checksum(datasets)}
    content = json.dumps({**head, "datasets": datasets}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        replace_file(path, content.encode())
        _mark(path)
        sync(path.parent)
    except OSError as error:
        raise LedgerError(
            f"{path} cannot be written: {error.strerror or error}. Nothing was charged. "
            "Check the permissions and the free space."
        ) from None


def _mark(path: Path) -> None:
    """Write the marker next to a ledger if it is missing: at creation, and for ledgers of earlier versions."""
    with suppress(FileExistsError):
        descriptor = os.open(_marker_of(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(MARK.encode())


def _marker_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.exists")


def _lock_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


def _checksum(datasets: dict[str, Any]) -> str:
    canonical = json.dumps(datasets, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return f"sha256:{sha256(canonical.encode()).hexdigest()}"
