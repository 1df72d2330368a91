"""The file of a ledger: one writer at a time, replaced in one step, checked whenever it is read, its owner's alone."""

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from voxpop.errors import LedgerError
from voxpop.files.folder import sync_folder

FORMAT, FORMAT_VERSION = "voxpop ledger", 1
PATIENCE = 60.0
"""Seconds to wait for another process; charging takes milliseconds."""
DAMAGED = (
    "It is damaged or was edited by hand, so what was spent is not known and nothing can be charged. Restore the "
    "newest copy you have, and be sure that nothing was released since."
)


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Keep every other process from writing a ledger.

    Raises:
        LedgerError: if another process holds it for a minute, or the folder cannot be written.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path.with_name(f".{path.name}.lock"), timeout=PATIENCE, mode=0o600)
    try:
        lock.acquire()
    except Timeout:
        raise LedgerError(f"{path} is held by another process; nothing was charged. Try again.") from None
    except OSError as error:
        raise LedgerError(f"{path} cannot be locked: {error.strerror or error}. Nothing was charged.") from None
    try:
        yield
    finally:
        lock.release()


def read_ledger(path: Path) -> dict[str, Any]:
    """Return the data sets of a ledger, by name.

    Raises:
        LedgerError: if there is no ledger, or it is damaged.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise LedgerError(
            f"{path} does not exist. Make it with `Ledger(path).open(name, budget)` or `voxpop ledger init`; if it did "
            "exist, restore it, since what was spent is not known."
        ) from None
    except OSError as error:
        raise LedgerError(f"{path} cannot be read: {error.strerror or error}.") from None
    try:
        parsed = json.loads(content)
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
    """Put a ledger in place, so that a crash at any moment leaves the old one or the new one. Call it while `held`.

    Raises:
        LedgerError: if it cannot be written; the file is then as it was.
    """
    head = {"format": FORMAT, "format_version": FORMAT_VERSION, "checksum": _checksum(datasets)}
    content = json.dumps({**head, "datasets": datasets}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    prefix = f".{path.name}.voxpop-new-"
    fresh = path.with_name(f"{prefix}{uuid.uuid4().hex}")
    try:
        for left in path.parent.glob(f"{_literal(prefix)}*"):  # a writer that was killed; nobody else writes now
            left.unlink(missing_ok=True)
        try:
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content.encode())
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, path)
        finally:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)
        sync_folder(path.parent)
    except OSError as error:
        raise LedgerError(f"{path} cannot be written: {error.strerror or error}. Nothing was charged.") from None


def _checksum(datasets: dict[str, Any]) -> str:
    canonical = json.dumps(datasets, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return f"sha256:{sha256(canonical.encode()).hexdigest()}"


def _literal(name: str) -> str:
    import glob

    return glob.escape(name)
