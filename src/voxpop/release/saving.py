"""Save a release: table, record and report in a folder, whole or not at all."""

import os
from collections.abc import Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from voxpop.errors import ReleaseError
from voxpop.files.folder import folder_to_read, fresh_prefix, replace_folder
from voxpop.release.record import (
    BESIDE,
    COUNTS,
    RANKING,
    RECORD,
    TABLE,
    checksum,
    is_record,
    same_but_for_words,
    write_record,
)

if TYPE_CHECKING:
    from voxpop.release.released import Released

REPLACEABLE = frozenset({TABLE, RECORD, *BESIDE, "report.html"})


def save_release(release: "Released", folder: str | PathLike[str], *, overwrite: bool = False) -> None:
    """Write the files of a release; see `Release.save`."""
    from voxpop.release.grams import to_parquet
    from voxpop.release.report import REPORT, report_of

    table = to_parquet(release.grams, release.keys)
    record = write_record(release, table)
    again = holds(folder, RECORD, record)
    target = check_target(folder, overwrite=overwrite or again)
    page = report_of(release, {TABLE: checksum(table), RECORD: checksum(record)})
    files = {TABLE: table, RECORD: record, REPORT: page} | (beside_in(target) if again else {})
    write_whole(target, files, folder, "release", replace=overwrite or again)


def write_whole(
    target: Path, files: Mapping[str, bytes], folder: str | PathLike[str], what: str, *, replace: bool
) -> None:
    """Write the files of a folder in one step.

    Args:
        target: the folder, resolved.
        files: content by name.
        folder: as the caller names it.
        what: it holds: "release" or "model".
        replace: whether what is there may be replaced.

    Raises:
        ReleaseError: if something is there, or it cannot be written.
    """
    try:
        replace_folder(target, files, replace=replace)
    except FileExistsError:
        raise already_there(folder, f"a {what}") from None
    except OSError as error:
        raise ReleaseError(
            f"{folder} could not be saved: {error.strerror or error}. No half of a {what} was left behind; "
            "put that right or give another folder, and save again."
        ) from error


def holds(folder: str | PathLike[str], name: str, record: bytes) -> bool:
    """Say whether a folder's record of this name is this one: equal releases have equal ones but for what is said."""
    try:
        return same_but_for_words((folder_to_read(Path(folder)) / name).read_bytes(), record)
    except OSError:
        return False


def beside_in(target: Path) -> dict[str, bytes]:
    """Return the files of counts and of a ranking in a folder, which saving the same release again keeps."""
    source = folder_to_read(target)
    return {name: (source / name).read_bytes() for name in BESIDE if (source / name).is_file()}


def check_target(folder: str | PathLike[str], *, overwrite: bool = False) -> Path:
    """Return the absolute path of a folder that a release can be saved to.

    Call it before anything is spent: a release that cannot be saved has used up its budget all the same.

    Args:
        folder: it may be new or empty.
        overwrite: whether it may also hold a release, which is then replaced.

    Returns:
        The path with every link resolved.

    Raises:
        ReleaseError: if it is a file, holds a release or anything else, or cannot be written.
    """
    target = target_folder(folder, "release")
    source = folder_to_read(target)
    if source.exists():
        _check_replaceable(source, folder)
        if not overwrite and (source / RECORD).is_file():
            more = {"noisy counts": COUNTS, "a ranking": RANKING}
            held = [name for name, file in more.items() if (source / file).is_file()]
            raise already_there(folder, " and ".join(["a release", *held]))
    _check_writable(target.parent, folder)
    return target


def target_folder(folder: str | PathLike[str], what: str) -> Path:
    """Return the absolute path of a folder to save to.

    Raises:
        ReleaseError: if it is a file, or the folder that work is done in.
    """
    target = Path(folder).resolve()
    if target.exists() and not target.is_dir():
        raise ReleaseError(f"{folder} is a file. A {what} is saved to a folder: give another name.")
    if target == Path.cwd():
        raise ReleaseError(f"{folder} is the folder you work in, and saving replaces it. Name a folder inside it.")
    return target


def already_there(folder: str | PathLike[str], what: str) -> ReleaseError:
    """Return the refusal to replace what somebody has spent budget on."""
    return ReleaseError(
        f"{folder} already holds {what}, which budget was spent on: nothing is replaced unasked. Give a new folder, or "
        "say overwrite=True (--overwrite)."
    )


def _check_replaceable(source: Path, folder: str | PathLike[str]) -> None:
    names = set(os.listdir(source))
    if not names:
        return
    if RECORD not in names or not is_record((source / RECORD).read_bytes()):
        raise ReleaseError(
            f"{folder} holds files and is not a release, so it is not replaced. "
            "Give a new folder, or empty this one yourself."
        )
    if strangers := sorted(names - REPLACEABLE):
        raise ReleaseError(
            f"{folder} holds a release and also {strangers[0]!r}, which saving would delete. "
            "Move what voxpop did not write elsewhere, or give a new folder."
        )


def _check_writable(parent: Path, folder: str | PathLike[str]) -> None:
    nearest = next(each for each in (parent, *parent.parents) if each.exists())
    if not nearest.is_dir():
        raise ReleaseError(f"{folder} cannot be made: {nearest} is a file. Give another folder.")
    if not may_write(nearest, Path(folder).name):
        raise ReleaseError(f"{folder} cannot be written: you may not write in {nearest}. Give another folder.")


def may_write(folder: Path, name: str = "") -> bool:
    """Say whether a folder can be made in another, by making one: rights alone do not tell of disks and mounts.

    Where a crash leaves it, the next save under that name removes it.
    """
    import tempfile

    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    try:
        made = tempfile.mkdtemp(prefix=fresh_prefix(name), dir=folder)
    except OSError:
        return False
    with suppress(OSError):  # somebody else's save may have removed it
        os.rmdir(made)
    return True
