"""Save tables, records and reports of results in a folder, completely or not at all, and read them again."""

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Optional

from voxpop.errors import ReleaseError
from voxpop.files.folder import folder_to_read, fresh_prefix, parsed_json, read_whole, replace_folder
from voxpop.privacy.guarantee import Guarantee
from voxpop.release.registry import load_object

if TYPE_CHECKING:
    from voxpop.release.result import Result

REPORT: Final = "report.html"
SUMS: Final = "SHA256SUMS"
"""The file with the checksums of all other files, in the format of `sha256sum --check`. A signature of this file covers
the report too."""
METADATA_KEY: Final = "metadata"
TRIES: Final = 8
DAMAGED_FOLDER: Final = "The folder was changed or is damaged. Copy it again from its source, or run the release again."


@dataclass(frozen=True, slots=True)
class ResultKind:
    """A kind of saved result and its files.

    Attributes:
        what: The name of the kind.
        record: The JSON file with the plan, the guarantee and the checksums.
        tables: The other files to read.
        made_by: The calls that write a folder of this kind, for messages.
        loader: The function, as `module:name`, that returns the result from its record, its tables and its release.
        others: Further files that may be in the folder.
        base: The kind of the release, if the result is saved in the folder of its release.
        version: The version of the format.
    """

    what: str
    record: str
    tables: tuple[str, ...]
    made_by: str
    loader: str
    others: tuple[str, ...] = ()
    base: Optional["ResultKind"] = None
    version: int = 1

    @property
    def format(self) -> str:
        """The name of this kind in the record."""
        return f"voxpop {self.what}"

    def is_in(self, folder: str | PathLike[str]) -> bool:
        """Return whether a folder contains a result of this kind."""
        return (folder_to_read(Path(folder)) / self.record).is_file()

    def load(self, folder: str | PathLike[str]) -> Any:
        """Return the result in a folder, as `voxpop.load` does."""
        base = None
        if self.base is not None:
            record, tables = self.base.read(folder)
            base = record, self.base.restored(record, tables, folder)
        return self.restored(*self.read(folder), folder, base)

    def restored(
        self,
        record: Mapping[str, Any],
        tables: Mapping[str, bytes],
        folder: str | PathLike[str],
        base: tuple[Mapping[str, Any], Any] | None = None,
    ) -> Any:
        """Restore the result of a folder from its record and its tables.

        Args:
            record: The record that `read` returned.
            tables: The tables that `read` returned.
            folder: The name of the folder, for messages.
            base: For counts and rankings, the record and the release that they belong to.

        Raises:
            ReleaseError: If the contents were changed together with their checksums.
        """
        try:
            if base is None:
                return load_object(self.loader)(record, tables)
            if record.get("release") != identity(base[0]):
                raise ValueError("of another release")
            return load_object(self.loader)(record, tables, base[1])
        except MemoryError:
            raise
        except Exception as error:  # The contents are untrusted, so any kind of error may occur.
            raise ReleaseError(
                f"the {self.what} in {folder} was changed after it was saved. {DAMAGED_FOLDER}"
            ) from error

    def check_target(self, folder: str | PathLike[str], *, overwrite: bool = False) -> Path:
        """Return the absolute path of a folder, after checking that a result of this kind can be saved there.

        Call this method before any budget is spent, because a release that cannot be saved spends its budget
        nonetheless.

        Args:
            folder: A new or empty folder or, for counts and rankings, the folder of their release.
            overwrite: Whether to replace a result of this kind in the folder.

        Raises:
            ReleaseError: If the path is a file, or the folder contains a result of this kind, contains other files or
                cannot be written.
        """
        target, holder = Path(folder).resolve(), self.base or self
        if target.exists() and not target.is_dir():
            raise ReleaseError(f"{folder} is a file. A {holder.what} is saved to a folder. Give another name.")
        if target == Path.cwd():
            raise ReleaseError(
                f"{folder} is the working directory, and saving would replace it. Name a folder inside it."
            )
        source = folder_to_read(target)
        names = set(os.listdir(source)) if source.exists() else set()
        if names and (holder.record not in names or not holder._wrote_file(source / holder.record)):
            raise ReleaseError(
                f"{folder} contains files and is not a {holder.what}, so it is not replaced. Give a new folder, or "
                "delete the files yourself."
            )
        if strangers := sorted(names - {holder.record, *holder.tables, *holder.others, REPORT, SUMS}):
            raise ReleaseError(
                f"{folder} contains a {holder.what} and also {strangers[0]!r}, which saving would delete. Move files "
                "that voxpop did not write elsewhere, or give a new folder."
            )
        if self.record in names and not overwrite:
            held = [self.what] if self.base else [f"a {self.what}", *(k.what for k in BESIDE if k.record in names)]
            raise _already_there(folder, " and ".join(held))
        _check_writable(target.parent, folder)
        return target

    def save(
        self,
        content: Mapping[str, Any],
        tables: Mapping[str, bytes],
        page: Callable[[Mapping[str, str]], bytes],
        folder: str | PathLike[str],
        *,
        overwrite: bool = False,
    ) -> None:
        """Write the folder of a result in one step.

        If the folder contains the same result, its counts and rankings remain.

        Args:
            content: The content of the record, without the checksums.
            tables: The contents of the other files, by name.
            page: A function that returns the report from the checksums of the files.
            folder: The folder, as in `check_target`.
            overwrite: Whether to replace a result, as in `check_target`.

        Raises:
            ReleaseError: If `check_target` rejects the folder.
        """
        record = self.record_of(content, tables)
        # The folder is checked before the report is made.
        self.check_target(folder, overwrite=overwrite or self._holds(folder, record))
        files = {**tables, self.record: record}
        files[REPORT] = page({name: checksum(each) for name, each in files.items()})
        self.put(files, folder, overwrite=overwrite)

    def put(self, files: Mapping[str, bytes], folder: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the files of a result, which may include counts and rankings, in one step.

        Args:
            files: The contents of the files, by name.
            folder: The folder, as in `check_target`. If the folder contains the same result, its counts and rankings
                remain.
            overwrite: Whether to replace a result, as in `check_target`.

        Raises:
            ReleaseError: If `check_target` rejects the folder, or the folder cannot be written.
        """
        again = self._holds(folder, files[self.record])
        target = self.check_target(folder, overwrite=overwrite or again)
        source = folder_to_read(target)
        added = [each for each in BESIDE if each.record in files]
        if added and not again and (source / self.record).exists():
            raise ReleaseError(
                f"{folder} contains another release. Save {added[0].what} to the folder of their release."
            )
        paths = {name: source / name for name in self.others if again and (source / name).is_file()}
        beside = {name: read_whole(path) for name, path in paths.items()}
        if added and not overwrite and any(files.get(name, old) != old for name, old in beside.items()):
            raise _already_there(folder, " and ".join(each.what for each in added))
        files = {**beside, **files}
        if any(each.record in files for each in BESIDE):  # The report includes counts and rankings.
            files[REPORT] = load_object(PAGE_OF_ALL)(files, folder)
        sums = {name: checksum(files[name]).removeprefix("sha256:") for name in sorted({*files} - {SUMS})}
        files[SUMS] = "".join(f"{each}  {name}\n" for name, each in sums.items()).encode()
        try:
            replace_folder(target, files, replace=overwrite or again)
        except FileExistsError:
            raise _already_there(folder, f"a {self.what}") from None
        except OSError as error:
            raise ReleaseError(
                f"{folder} could not be saved: {error.strerror or error}. The folder is unchanged. Solve this problem "
                "or give another folder, and save again."
            ) from error

    def record_of(self, content: Mapping[str, Any], tables: Mapping[str, bytes]) -> bytes:
        """Return the bytes of a record. Equal results have equal bytes."""
        from importlib import metadata

        heading = {"format": self.format, "format_version": self.version, "voxpop_version": metadata.version("voxpop")}
        whole = {**heading, **content, "checksums": {name: checksum(each) for name, each in tables.items()}}
        return (json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()

    def read(self, folder: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Return the record of a result, and its tables by file name, even while another process replaces the folder.

        Raises:
            ReleaseError: If the folder contains no result of this kind, is damaged, or has a different version.
        """
        for _ in range(TRIES):
            source = folder_to_read(Path(folder))
            files = {name: self._read(source, name, folder) for name in (self.record, *self.tables)}
            if self._read(source, self.record, folder) == files[self.record]:
                return self.checked(files, folder)
        raise ReleaseError(f"{folder} was replaced several times while it was read; try again.")

    def _read(self, source: Path, name: str, folder: str | PathLike[str]) -> bytes:
        try:
            return read_whole(source / name)
        except OSError as error:
            if not source.exists():
                raise ReleaseError(f"{folder} does not exist. Give a folder that {self.made_by} wrote.") from error
            if isinstance(error, FileNotFoundError):
                other = MODEL if self is RELEASE else RELEASE
                found = self.base is None and (source / other.record).is_file()
                raise self._absent(folder, f"it contains a {other.what}" if found else f"{name} is missing") from error
            is_file = isinstance(error, NotADirectoryError)
            reason = "it is a file" if is_file else f"{name} cannot be read: {error.strerror}"
            raise self._absent(folder, reason) from error

    def _absent(self, folder: str | PathLike[str], reason: str) -> ReleaseError:
        return ReleaseError(f"{folder} contains no {self.what}: {reason}. Give a folder that {self.made_by} wrote.")

    def checked(
        self, files: Mapping[str, bytes], folder: str | PathLike[str]
    ) -> tuple[dict[str, Any], dict[str, bytes]]:
        """Return the record and the tables of a result from the contents of its files.

        Raises:
            ReleaseError: If the files are damaged, or have a different version or kind.
        """
        where, record = Path(folder, self.record), files[self.record]
        tables = {name: files[name] for name in self.tables}
        try:
            parsed = parsed_json(record)
        except ValueError as error:
            raise ReleaseError(f"{where} is not readable JSON; it may be truncated. {DAMAGED_FOLDER}") from error
        if not self._wrote(record):
            raise ReleaseError(
                f"{where} was not written by voxpop as a {self.what}. Give a folder that {self.made_by} wrote."
            )
        if parsed.get("format_version") != self.version:
            raise ReleaseError(
                f"{where} has format version {parsed.get('format_version')!r}; this voxpop reads {self.version}. "
                "Use the version of voxpop that saved it, or a newer one."
            )
        for name, content in tables.items():
            if not isinstance(parsed.get("checksums"), dict) or parsed["checksums"].get(name) != checksum(content):
                raise ReleaseError(
                    f"{Path(folder, name)} is not the file that was saved, because its checksum differs. "
                    f"{DAMAGED_FOLDER}"
                )
        try:
            Guarantee.from_dict(parsed["guarantee"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ReleaseError(f"{where} has no readable guarantee. {DAMAGED_FOLDER}") from error
        return parsed, tables

    def _wrote(self, record: bytes) -> bool:
        """Return whether these bytes are a record of this kind, of any version."""
        try:
            return bool(parsed_json(record)["format"] == self.format)
        except (ValueError, KeyError, TypeError):
            return False

    def _wrote_file(self, path: Path) -> bool:
        try:
            return self._wrote(read_whole(path))
        except OSError:
            return False

    def _holds(self, folder: str | PathLike[str], record: bytes) -> bool:
        try:
            there = read_whole(folder_to_read(Path(folder)) / self.record)
            return identity(parsed_json(there)) == identity(parsed_json(record))
        except (OSError, ValueError, AttributeError):
            return False


TABLE_FILE = "release.parquet"
RELEASE = ResultKind(
    "release",
    "release.json",
    (TABLE_FILE,),
    "`release.save` or `voxpop items -o`",
    "voxpop.release.release:release_of",
    ("counts.parquet", "counts.json", "top.parquet", "top.json"),
)
COUNTS = ResultKind(
    "counts",
    "counts.json",
    ("counts.parquet", TABLE_FILE),
    "`release.count` or `voxpop count`",
    "voxpop.release.counts:counts_of",
    base=RELEASE,
)
RANKINGS = ResultKind(
    "rankings",
    "top.json",
    ("top.parquet", TABLE_FILE),
    "`release.top` or `voxpop top`",
    "voxpop.release.counts:top_of_record",
    base=RELEASE,
)
BESIDE = (COUNTS, RANKINGS)
PAGE_OF_ALL: Final = "voxpop.release.counts:page_of_all"
MODEL = ResultKind(
    "sequence model",
    "model.json",
    ("grams.parquet", "alphabet.parquet"),
    "`model.save` or `voxpop sequences -o`",
    "voxpop.mechanisms.sequences.model:model_of",
    ("synthetic.parquet",),
    version=5,
)
PROFILE = ResultKind(
    "profile",
    "profile.json",
    ("profile.parquet",),
    "`profile.save` or `voxpop profile -o`",
    "voxpop.release.profile:profile_of",
)
FOLDERS = (RELEASE, MODEL, PROFILE)
"""The kinds that have a folder."""


def kind_in(folder: str | PathLike[str]) -> ResultKind | None:
    """Return the kind of the saved result in a folder, or None if the folder contains no result."""
    return next((kind for kind in FOLDERS if kind.is_in(folder)), None)


def record_of(result: "Result") -> dict[str, Any]:
    """Return the fields of the record of a result."""
    said = result.metadata.to_dict()
    return {
        **({METADATA_KEY: said} if said else {}),
        "statement": str(result.guarantee),
        "guarantee": result.guarantee.to_dict(),
        "plan": result.plan.to_dict(),
        **_proved(result.plan),
    }


def _proved(plan: Any) -> dict[str, Any]:
    """Return the certificate of a plan and the transcript of its release. A manual list of words has no certificate."""
    certificate = getattr(plan, "certificate", None)
    if certificate is None:
        return {}
    return {"certificate": certificate.to_dict(), "transcript": getattr(plan, "transcript", [])}


def identity(record: Mapping[str, Any]) -> str:
    """Return a checksum of the content of a record except the operator's statements."""
    content = {name: value for name, value in record.items() if name != METADATA_KEY}
    return checksum(json.dumps(content, sort_keys=True).encode())


def checksum(content: bytes) -> str:
    """Return the checksum of a file in the format of records."""
    return f"sha256:{sha256(content).hexdigest()}"


def _already_there(folder: str | PathLike[str], what: str) -> ReleaseError:
    return ReleaseError(
        f"{folder} already contains {what}, which cost a budget, so nothing was replaced. Give a new folder, or pass "
        "overwrite=True (--overwrite)."
    )


def _check_writable(parent: Path, folder: str | PathLike[str]) -> None:
    nearest = next(each for each in (parent, *parent.parents) if each.exists())
    if not nearest.is_dir():
        raise ReleaseError(f"{folder} cannot be created, because {nearest} is a file. Give another folder.")
    made = None
    with suppress(OSError):
        # Create a folder as a test, because permissions do not cover disks and mounts. After a crash, the next save
        # with this name removes this folder.
        if os.access(nearest, os.W_OK | os.X_OK):
            made = tempfile.mkdtemp(prefix=fresh_prefix(Path(folder).name), dir=nearest)
    if made is None:
        raise ReleaseError(f"{folder} cannot be written, because you may not write in {nearest}. Give another folder.")
    with suppress(OSError):  # Another save may have removed it.
        os.rmdir(made)
