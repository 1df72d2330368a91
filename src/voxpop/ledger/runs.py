"""Runs, which are charged once and published once even if they are started several times.

The order of the steps is charge, run, keep, finish, publish. The result is first kept in a folder that only the owner
can open. Then the entry is marked as finished, and only after that is the result returned or saved. Therefore a run
without a finished entry has published nothing, and a finished run never runs again (docs/privacy/composition.md,
claim 3).
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from voxpop.errors import InputError, LedgerError, ReleaseError
from voxpop.files.folder import folder_to_read, read_whole
from voxpop.files.progress import note
from voxpop.ledger.entry import is_text
from voxpop.privacy.guarantee import Guarantee
from voxpop.release.counts import Addition
from voxpop.release.saving import COUNTS, MODEL, PROFILE, RANKINGS, RELEASE, kind_in

if TYPE_CHECKING:
    from voxpop.ledger.entry import Entry
    from voxpop.ledger.ledger import LedgerAccount

SPACE = 64 << 20
"""The number of free bytes that must be available before a release is charged. Releases are usually much smaller."""
_MARK = "voxpop-kept-"
UNFINISHED = "unfinished"
"""The name of a file that marks a kept result of a run that may still be repeated. Such a result must not be published
before the run has finished."""
KINDS = {"counts": COUNTS, "top": RANKINGS, "sequences": MODEL, "profile": PROFILE}
"""The kinds of results by mechanism. The kind of all other mechanisms is `RELEASE`."""


def check_output(folder: Path, mechanism: str, *, overwrite: bool = False) -> None:
    """Check before the charge that a result can be saved.

    Args:
        folder: The output folder.
        mechanism: The mechanism of the result.
        overwrite: Whether to replace another result in the folder.

    Raises:
        ReleaseError: The folder cannot be written, has other content, or is on a disk that is almost full.
    """
    if not is_text(os.path.abspath(folder)):
        raise ReleaseError(
            "the folder to save to must have a name in UTF-8, because the ledger records it. Nothing ran and nothing "
            "was charged. Give another folder."
        )
    target = KINDS.get(mechanism, RELEASE).check_target(folder, overwrite=overwrite)
    if free_space(target) < SPACE:
        raise ReleaseError(
            f"{folder} cannot be saved because its disk has less than {SPACE >> 20} MiB of free space. Nothing ran and "
            "nothing was charged. Free some space, or give a folder on another disk."
        )


def free_space(folder: Path) -> int:
    """Return the number of free bytes on the disk of a folder, which may not exist yet."""
    whole = folder.absolute()
    return shutil.disk_usage(next(each for each in (whole, *whole.parents) if each.exists())).free


def save_new(result: Any, new: Path, folder: Path, *, overwrite: bool = False) -> None:
    """Save a result to a new folder. For counts and rankings, first copy their release from the output folder."""
    if isinstance(result, Addition):
        shutil.copytree(folder_to_read(folder), new)
    result.save(new, overwrite=overwrite)


def keep(save: Callable[[Path], None], folder: Path, key: str, *, unfinished: bool = False) -> Path:
    """Save a result to a new folder that only the owner can open.

    This folder is next to the output folder, or in another place if it cannot be written there.

    Args:
        save: A function that writes the result to a folder.
        folder: The output folder of the result.
        key: A unique name for the result.
        unfinished: Whether the run may still be repeated. If the run may be repeated, only `publish` with `finished`
            may save the result.

    Returns:
        The folder with the result.

    Raises:
        ReleaseError: The result cannot be written anywhere.
    """
    failure: Exception | None = None
    for holder in _holders(folder, key):
        try:
            # A folder next to the target may be shared with other users, but the folders of voxpop are private.
            shared = holder.parent == Path(os.path.abspath(folder)).parent
            holder.parent.mkdir(mode=0o777 if shared else 0o700, parents=True, exist_ok=True)
            holder.mkdir(mode=0o700)
            if unfinished:
                (holder / UNFINISHED).touch()
            save(holder / folder.name)
            return holder / folder.name
        except BaseException as error:
            shutil.rmtree(holder, ignore_errors=True)
            if not isinstance(error, ReleaseError | OSError):
                raise
            failure = failure or error
    raise ReleaseError(
        f"{failure} No other folder could store the result, so it is lost. Make space on a disk before the next run."
    )


def publish(kept: Path, folder: Path, *, overwrite: bool = False, finished: bool = False) -> None:
    """Save a kept result to its output folder, and remove the kept copy.

    Args:
        kept: The folder that `keep` returned.
        folder: The output folder.
        overwrite: Whether to replace another result in the folder.
        finished: Whether the run is finished in the ledger.

    Raises:
        ReleaseError: The folder cannot be written or has other content, or the run is not finished. In all cases the
            kept copy remains.
    """
    kind = kind_in(kept)
    if _MARK not in kept.parent.name or not kept.parent.exists() or (kind is None and kept.exists()):
        raise ReleaseError(f"{kept} is not a kept result. Give the folder in the message of the save that failed.")
    if finished:
        (kept.parent / UNFINISHED).unlink(missing_ok=True)
    if (kept.parent / UNFINISHED).exists():
        raise ReleaseError(
            f"{kept} belongs to a run that was interrupted before it was finished in its ledger. Start the run again "
            "under its label. It is not charged again."
        )
    try:
        if kind is not None:  # Otherwise another process published it.
            kind.read(kept)  # This checks the files.
            kind.put({each.name: read_whole(each) for each in sorted(kept.iterdir())}, folder, overwrite=overwrite)
            # The mark prevents a partial copy from being mistaken for a result.
            kept.rename(kept.with_name(f"{kept.name}.published"))
    except (ReleaseError, OSError) as error:
        if kept.exists():
            raise ReleaseError(
                f"{error} The result is not lost. It is in {kept}, which only you can open. Save it with `voxpop "
                f"resume {kept} -o FOLDER`."
            ) from error
    shutil.rmtree(kept.parent, ignore_errors=True)


def remove_kept(folder: Path, key: str) -> None:
    """Remove a kept result that must not be published."""
    for holder in _holders(folder, key):
        shutil.rmtree(holder, ignore_errors=True)


def _holders(folder: Path, key: str) -> list[Path]:
    """Return the folders that may contain a kept result, in order of preference."""
    target = Path(os.path.abspath(folder))
    found = [target.with_name(f".{target.name}.{_MARK}{key}")]
    with suppress(RuntimeError):  # There is no home directory.
        found.append(Path.home() / ".voxpop" / f"{_MARK}{key}")
    return [*found, Path(tempfile.gettempdir()) / f"{_MARK}{key}"]


@final
@dataclass(frozen=True, slots=True)
class LedgerRun:
    """A run of a data set, to be passed as `ledger=` to its release. `LedgerAccount.run` returns runs.

    Attributes:
        account: The account of the data set.
        label: The name of the run, or "" for a release that cannot be repeated.
        folder: The output folder. Without a folder, the caller saves the result.
        overwrite: Whether to replace another result in the folder.
        save: A function that writes a result to a new folder, by default `save_new`.
    """

    account: "LedgerAccount"
    label: str
    folder: Path | None = None
    overwrite: bool = False
    save: Callable[[Any, Path], None] | None = None

    @property
    def finished(self) -> bool:
        """Whether the run is complete. A complete run does not run again."""
        entry = self.account.entry(self.label)
        return entry is not None and entry.state == "finished"

    def save_finished(self) -> None:
        """Save the result of a finished run that was stopped before its result was saved."""
        entry = self.account.entry(self.label)
        if self.folder is None or entry is None or not entry.kept:
            return
        if entry.state == "finished" and Path(entry.kept).parent.exists():
            publish(Path(entry.kept), self.folder, overwrite=self.overwrite, finished=True)

    def charge(self, guarantee: Guarantee, mechanism: str) -> "Entry":
        """Check the folder, and charge the release or return the entry of its unfinished run."""
        if self.folder is not None and not self.finished:
            check_output(self.folder, mechanism, overwrite=self.overwrite)
        entry = self.account.charge(guarantee, mechanism, self.label)
        if self.folder is not None:
            # These results were kept by attempts that were stopped before they finished.
            for attempt in range(1, entry.attempt):
                remove_kept(self.folder, self._key(entry, attempt))
        note("charged", entry=str(entry), attempt=entry.attempt)
        return entry

    def finish(self, entry: "Entry", result: Any) -> None:
        """Keep the result, mark the entry as finished, and save the result to the folder."""
        note("released")
        folder, overwrite = self.folder, self.overwrite
        if folder is None:
            self.account.finish(entry, result)
            return
        if isinstance(result, Mapping):
            raise InputError("several releases cannot be saved to one folder. Remove `save_to`, and repeat the run.")
        try:
            key = self._key(entry, entry.attempt)
            save = self.save or (lambda made, new: save_new(made, new, folder, overwrite=overwrite))
            kept = keep(lambda new: save(result, new), folder, key, unfinished=bool(self.label))
        except Exception:  # The failure may depend on the result, for example on its size if the disk is full.
            self.account.fail(entry)
            raise
        try:
            self.account.finish(entry, result, kept=str(kept))
            publish(kept, folder, overwrite=overwrite, finished=True)
        except LedgerError:
            if self.account.entries[entry.number - 1].attempt != entry.attempt:
                remove_kept(folder, key)
            raise
        finally:
            if self.account.entries[entry.number - 1].kept and kept.exists():
                note("kept", folder=str(kept))

    def fail(self, entry: "Entry") -> None:
        """Record that the release raised an exception."""
        note("failed")
        self.account.fail(entry)

    def _key(self, entry: "Entry", attempt: int) -> str:
        """Return a name for the kept result that is unique to this run and attempt."""
        whole = f"{entry.ledger}\n{entry.dataset}\n{entry.number}\n{entry.charged}"
        return f"{sha256(whole.encode()).hexdigest()[:16]}-{attempt}"
