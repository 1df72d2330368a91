"""Save results: tables, records and reports in a folder, completely or not at all."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from voxpop.errors import ReleaseError
from voxpop.reading.folder import folder_to_read, fresh_prefix, replace_folder

if TYPE_CHECKING:
    from voxpop.release.result import About, Result

FORMAT = "voxpop release"
FORMAT_VERSION = 1
ADDITION_VERSION: Final = 1
TABLE = "release.parquet"
RECORD = "release.json"
REPORT = "report.html"
MODEL_RECORD = "model.json"
MODEL_LOADER = "voxpop.mechanisms.sequences.model:load_model"
ABOUT = "about"
COUNTS, COUNTS_RECORD = "counts.parquet", "counts.json"
RANKING, RANKING_RECORD = "top.parquet", "top.json"
BESIDE = (COUNTS, COUNTS_RECORD, RANKING, RANKING_RECORD)
REPLACEABLE = frozenset({TABLE, RECORD, *BESIDE, REPORT})
DAMAGED = "The folder is damaged: copy it again from where it came, or make the release again."


@dataclass(frozen=True, slots=True)
class Record:
    """The parts of a `release.json` that a reader needs."""

    plan: dict[str, Any]
    guarantee: dict[str, Any]
    checksum: str
    reading: str = ""
    keys: list[dict[str, str]] | None = None
    about: dict[str, str] = field(default_factory=dict)
    id: str = ""


def stated(result: "Result") -> dict[str, Any]:
    """Return the fields of a result's record."""
    return {
        **about_entry(result.about),
        "statement": str(result.guarantee),
        "guarantee": result.guarantee.to_dict(),
        "plan": result.plan.to_dict(),
    }


def record_bytes(kind: str, version: int, content: Mapping[str, Any]) -> bytes:
    """Return a record as JSON: with its kind, version, voxpop version and content."""
    from importlib import metadata

    heading = {"format": kind, "format_version": version, "voxpop_version": metadata.version("voxpop")}
    return (json.dumps({**heading, **content}, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def parsed_record(content: bytes, where: str, kind: str, otherwise: str) -> dict[str, Any]:
    """Return the content of a record of some kind.

    Args:
        content: its bytes.
        where: its name in messages.
        kind: which kind it should be of.
        otherwise: the message where it is of another kind.

    Raises:
        ReleaseError: if it is no such record, or no record at all.
    """
    try:
        parsed = json.loads(content)
    except ValueError as error:
        raise ReleaseError(f"{where} is not readable JSON; it may be truncated. {DAMAGED}") from error
    if not isinstance(parsed, dict) or parsed.get("format") != kind:
        raise ReleaseError(otherwise)
    return parsed


def read_record(content: bytes, where: str) -> Record:
    """Return the content of a `release.json`.

    Raises:
        ReleaseError: if it is not one, is damaged, or is of a version this voxpop cannot read.
    """
    parsed = _parse(content, where)
    version = parsed.get("format_version")
    if version != FORMAT_VERSION:
        raise ReleaseError(
            f"{where} has format version {version!r}; this voxpop reads {FORMAT_VERSION}. "
            "Use the version of voxpop that saved it, or a newer one."
        )
    try:
        numbers, promise, reading = dict(parsed["plan"]), dict(parsed["guarantee"]), str(parsed.get("reading", ""))
        said = dict(parsed.get(ABOUT, {}))
        record = Record(
            numbers,
            promise,
            str(parsed["checksums"][TABLE]),
            reading,
            parsed.get("keys"),
            said,
            str(parsed.get("id", "")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ReleaseError(f"{where} is incomplete. {DAMAGED}") from error
    return record


def about_entry(about: "About") -> dict[str, dict[str, str]]:
    """Return the entry of a record about its making, if present."""
    said = about.to_dict()
    return {ABOUT: said} if said else {}


def identity(record: bytes) -> str:
    """Return a checksum of the content of a record, without the words about it."""
    content = {name: value for name, value in json.loads(record).items() if name != ABOUT}
    return checksum(json.dumps(content, sort_keys=True).encode())


def is_record(content: bytes) -> bool:
    """Check whether these bytes are a `release.json`, of any version."""
    try:
        _parse(content, "")
    except ReleaseError:
        return False
    return True


def checksum(content: bytes) -> str:
    """Return the checksum of a file as `release.json` writes it."""
    return f"sha256:{sha256(content).hexdigest()}"


def _parse(content: bytes, where: str) -> dict[str, Any]:
    return parsed_record(content, where, FORMAT, f"{where} was not written by voxpop: this folder is not a release.")


def write_whole(
    target: Path, files: Mapping[str, bytes], folder: str | PathLike[str], what: str, *, replace: bool
) -> None:
    """Write the files of a folder in one step.

    Args:
        target: the folder, resolved.
        files: content by name.
        folder: as the caller names it.
        what: it holds: "release" or "model".
        replace: whether existing files may be replaced.

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
    """Return whether the record of this name in a folder is this one, but for the words about it."""
    try:
        return identity((folder_to_read(Path(folder)) / name).read_bytes()) == identity(record)
    except (OSError, ValueError, AttributeError):
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
    check_writable(target.parent, folder)
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
    """Build the error for replacing a result that has used budget."""
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


def check_writable(parent: Path, folder: str | PathLike[str]) -> None:
    """Refuse a folder that cannot be made in `parent`.

    Raises:
        ReleaseError: if `parent` is a file or cannot be written to.
    """
    nearest = next(each for each in (parent, *parent.parents) if each.exists())
    if not nearest.is_dir():
        raise ReleaseError(f"{folder} cannot be made: {nearest} is a file. Give another folder.")
    if not may_write(nearest, Path(folder).name):
        raise ReleaseError(f"{folder} cannot be written: you may not write in {nearest}. Give another folder.")


def may_write(folder: Path, name: str = "") -> bool:
    """Check whether a folder can be made in another, by making one: permissions do not cover disks and mounts.

    Where a crash leaves it, the next save under that name removes it.
    """
    import tempfile

    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    try:
        made = tempfile.mkdtemp(prefix=fresh_prefix(name), dir=folder)
    except OSError:
        return False
    with suppress(OSError):  # another save may have removed it
        os.rmdir(made)
    return True
