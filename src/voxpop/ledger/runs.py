"""Runs: a release that is charged once, however often it is started, and published once.

The order of the steps is charge, run, keep, finish, publish. The result is first kept in a folder that only the owner
can open, then the entry is marked as finished, and only then the result is returned or saved. So a run without a
finished entry has published nothing, and a finished run never runs again (docs/privacy/composition.md, claim 3).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from voxpop.errors import InputError, LedgerError
from voxpop.privacy.guarantee import Guarantee
from voxpop.release.keeping import check_output, keep, publish, remove_kept, save_new

if TYPE_CHECKING:
    from voxpop.ledger.ledger import Entry, LedgerAccount


@final
@dataclass(frozen=True, slots=True)
class LedgerRun:
    """One run of a data set: the `ledger=` of its release. `LedgerAccount.run` returns runs.

    Attributes:
        account: The account of the data set.
        label: The name of the run, or "" for a release that cannot be repeated.
        folder: The folder to save to, or None if the caller saves the result.
        overwrite: Whether to replace another result in the folder.
        save: Writes a result to a new folder, or None for `result.save`.
    """

    account: "LedgerAccount"
    label: str
    folder: Path | None = None
    overwrite: bool = False
    save: Callable[[Any, Path], None] | None = None

    @property
    def finished(self) -> bool:
        """Whether the run is complete, so that it does not run again."""
        entry = self.account.entry(self.label)
        return entry is not None and entry.state == "finished"

    def save_finished(self) -> None:
        """Save the result of a finished run that was stopped before its result was saved."""
        entry = self.account.entry(self.label)
        if self.folder is None or entry is None or not entry.kept:
            return
        if entry.state == "finished" and Path(entry.kept).parent.exists():
            publish(Path(entry.kept), self.folder, overwrite=self.overwrite)

    def charge(self, guarantee: Guarantee, mechanism: str) -> "Entry":
        """Check the folder, and charge the release or return the entry of its unfinished run."""
        if self.folder is not None and not self.finished:
            check_output(self.folder, mechanism, overwrite=self.overwrite)
        entry = self.account.charge(guarantee, mechanism, self.label)
        if self.folder is not None:
            for attempt in range(1, entry.attempt):  # kept by attempts that were stopped before they finished
                remove_kept(self.folder, self._key(entry, attempt))
        return entry

    def finish(self, entry: "Entry", result: Any) -> None:
        """Keep the result, mark the entry as finished, and save the result to the folder."""
        if self.folder is None:
            self.account.finish(entry, result)
            return
        if isinstance(result, Mapping):
            raise InputError("several releases cannot be saved to one folder. Leave out `save_to`, and repeat the run.")
        try:
            kept = keep(lambda new: self._save(result, new), self.folder, self._key(entry, entry.attempt))
        except Exception:  # such as a full disk: the reason may depend on the size of the result
            self.account.fail(entry)
            raise
        try:
            self.account.finish(entry, result, kept=str(kept))
        except LedgerError:
            if self.account.entries[entry.number - 1].attempt != entry.attempt:
                remove_kept(self.folder, self._key(entry, entry.attempt))
            raise
        publish(kept, self.folder, overwrite=self.overwrite)

    def fail(self, entry: "Entry") -> None:
        """Record that the release raised an exception."""
        self.account.fail(entry)

    def _save(self, result: Any, new: Path) -> None:
        if self.save is not None:
            self.save(result, new)
        elif self.folder is not None:
            save_new(result, new, self.folder, overwrite=self.overwrite)

    def _key(self, entry: "Entry", attempt: int) -> str:
        """Return a name of the kept result that no other run or attempt has."""
        whole = f"{self.account.path}\n{self.account.name}\n{entry.number}\n{entry.charged}"
        return f"{sha256(whole.encode()).hexdigest()[:16]}-{attempt}"
