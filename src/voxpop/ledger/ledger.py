"""The ledger of a team, with the budget of each data set and every release that was charged to it.

`caps.py` determines which further releases fit, and `runs.py` saves the result of a run together with its entry.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import ceil
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, final
from uuid import uuid4

from voxpop.errors import BudgetError, ExhaustedError, InputError, LedgerError
from voxpop.ledger.caps import MOST_ENTRIES, AccountLimits, may_run, shortage
from voxpop.ledger.entry import (
    Entry,
    check_charge,
    checked_label,
    is_text,
    labelled,
    paid_by,
    paying,
    pays,
    remaining_of,
    same_names,
    spelled_name,
)
from voxpop.ledger.storage import DAMAGED_LEDGER, changing, read_ledger
from voxpop.privacy.budget import Budget
from voxpop.privacy.composition import Total, total_of
from voxpop.privacy.guarantee import Guarantee
from voxpop.release.saving import SUMS, checksum

if TYPE_CHECKING:
    from voxpop.ledger.runs import LedgerRun

ENDED = {
    "finished": "is finished, because its result was returned or saved",
    "failed": "failed with an error, whose reason can depend on the noise",
    "reserved": "is a reserve",
}
"""The reasons why a run with an entry in these states does not run again."""
_STEP = 0.01
"""The difference between successive epsilons in `largest_epsilon`."""


@final
@dataclass(frozen=True, slots=True)
class LedgerAccount:
    """The budget of one data set and its charges. `Ledger.open` and `Ledger.account` return accounts.

    Attributes:
        path: The file of the ledger.
        name: The name of the data set.
    """

    path: Path
    name: str

    def run(self, label: str, save_to: str | PathLike[str] | None = None, *, overwrite: bool = False) -> "LedgerRun":
        """Return a run for the argument `ledger=`. The run is charged once, even if it is started several times.

        A run that was interrupted (a killed process, a power failure, Ctrl-C) may start again under its label. With
        `save_to`, the step that finishes the run also saves the release, so a job that is stopped later does not lose
        the release. If the job was stopped between finishing and saving, this method saves the release.

        Args:
            label: The name of the run in this data set, such as "2026-11-25".
            save_to: The folder for the result.
            overwrite: Whether to replace another result in the folder.

        Raises:
            InputError: The label is empty or too long.
            ReleaseError: The result of the finished run cannot be saved.

        Example:
            >>> import tempfile
            >>> import polars as pl
            >>> import voxpop as vp
            >>> table = pl.DataFrame({"who": range(1000), "what": ["tea", "milk"] * 500})
            >>> with tempfile.TemporaryDirectory() as here:
            ...     drinks = vp.Ledger(f"{here}/team.ledger").open("drinks", vp.Budget(3, 1e-6), create=True)
            ...     for attempt in (1, 2):
            ...         run = drinks.run("2026-11-25", save_to=f"{here}/words")
            ...         if not run.finished:
            ...             corpus = vp.read(table, user="who", items="what")
            ...             words = vp.Items(max_items_per_user=10).release(corpus, vp.Budget(2, 1e-8), ledger=run)
            ...     len(drinks.entries), vp.load(f"{here}/words") == words
            (1, True)
        """
        from voxpop.ledger.runs import LedgerRun

        if not isinstance(label, str) or not label.strip():
            raise InputError('the label of a run must be a nonempty string, such as "2026-11-25".')
        run = LedgerRun(self, checked_label(label), None if save_to is None else Path(save_to), overwrite)
        run.save_finished()
        return run

    def charge(self, guarantee: Guarantee, mechanism: str, label: str = "") -> Entry:
        """Charge a release before it reads the data.

        Releases by voxpop charge the account that is passed as `ledger`. Call this method for releases of other
        software.

        Args:
            guarantee: The guarantee of the release.
            mechanism: The kind of release, in a few public words.
            label: The label of a run. An unfinished run with this label, mechanism and guarantee is not charged again.

        Returns:
            The entry.

        Raises:
            ExhaustedError: Too little budget is left. Nothing was charged.
            LedgerError: The ledger cannot be read or written, or the run with this label has ended.
        """
        with changing(self.path) as datasets:
            entry = self._admitted(datasets, guarantee, mechanism, label)
            self._put(datasets, entry)
        return entry

    def reserve(self, plan: Any, times: int, label: str = "") -> Entry:
        """Charge a number of identical releases in advance, such as those of a weekly job for a year.

        The reserve then pays for releases with the mechanism and guarantee of this plan until the reserve is used up.
        The first entry of an account is composed exactly, because no result can have influenced it. Therefore the
        budget covers more identical releases with a reserve than with individual charges.

        Args:
            plan: The plan of every release, such as `vp.Items().plan(budget)`.
            times: The number of releases.
            label: A label for the reserve.

        Returns:
            The entry of the reserve.

        Raises:
            ExhaustedError: Too little budget is left. Nothing was charged.
            LedgerError: The ledger cannot be read or written, or has an entry with this label.

        Example:
            >>> import tempfile
            >>> import voxpop as vp
            >>> plan = vp.Items().plan(vp.Budget(0.5, 1e-8))
            >>> with tempfile.TemporaryDirectory() as here:
            ...     drinks = vp.Ledger(f"{here}/team.ledger").open("drinks", vp.Budget(3, 1e-6), create=True)
            ...     reserve = drinks.reserve(plan, 40, "every week")
            ...     drinks.remaining(reserve)
            40
        """
        if not isinstance(getattr(plan, "guarantee", None), Guarantee) or not callable(getattr(plan, "release", None)):
            raise InputError(
                "`plan` must be the plan of a release, such as `vp.Items().plan(budget)`. A series is charged once "
                "for all its nights, so give `ledger=` when it begins."
            )
        if type(times) is not int or times < 2:
            raise InputError("`times` is the number of identical releases, which must be a whole number of at least 2.")
        guarantee, mechanism = plan.guarantee, str(plan.to_dict()["mechanism"])
        with changing(self.path) as datasets:
            entries = self._parsed(datasets)[1]
            if labelled(entries, checked_label(label)):
                raise LedgerError(
                    f'"{self.name}" already has an entry with the label "{label}". Nothing was charged. Choose another '
                    "label."
                )
            entry = self._admitted(datasets, guarantee, mechanism, label, times=times)
            self._put(datasets, entry)
        return entry

    def remaining(self, reserve: Entry) -> int:
        """Return the number of releases that a reserve still pays for."""
        return remaining_of(self.entries, reserve)

    def finish(self, entry: Entry, result: Any = None, *, kept: str = "") -> None:
        """Record that a release is complete, before anyone sees it.

        Args:
            entry: The entry, as returned by `charge`.
            result: The result. The entry records its identifier.
            kept: The folder with the result until it is saved, or "".

        Raises:
            LedgerError: The run was started again in the meantime, so this result must be discarded.
        """
        release = _identifier(result) or (checksum(Path(kept, SUMS).read_bytes()) if kept else "")
        self._end(entry, state="finished", release=release, kept=kept)

    def fail(self, entry: Entry) -> None:
        """Record that a release raised an exception. The release remains charged, and its run cannot be repeated.

        Args:
            entry: The entry, as returned by `charge`.
        """
        self._end(entry, state="failed")

    def advance(self, number: int, before: str, after: str) -> None:
        """Record a night of a series with the checksum of the new state.

        Args:
            number: The number of the entry of the series.
            before: The checksum of the previous state in the entry, or "" before the first night.
            after: The checksum of the new state.

        Raises:
            LedgerError: The entry contains another checksum, because the state of the series was lost, restored or
                copied.
        """
        with changing(self.path) as datasets:
            entries = self._parsed(datasets)[1]
            stored = entries[number - 1] if 0 < number <= len(entries) else None
            if stored is None or stored.release not in (before, after):
                raise LedgerError(
                    f'The state of the series differs from the state in entry {number} of "{self.name}". It was '
                    "restored or copied, and its budget would be spent twice. Use the newest state, or start another "
                    "series, which is charged."
                )
            if stored.release != after:
                self._put(datasets, replace(stored, release=after))

    def fits(self, guarantee: Guarantee, mechanism: str = "") -> bool:
        """Return whether a release could be charged now. Another process may charge first.

        Args:
            guarantee: The guarantee of the release.
            mechanism: The kind of release, such as "items", which determines the reserves that may pay for it. By
                default, reserves are ignored.
        """
        check_charge(guarantee)
        budget, entries = self._parsed(read_ledger(self.path))
        paid = paying(entries, guarantee, mechanism) is not None
        return paid or may_run(budget, paid_by(entries), guarantee)

    def check(self, guarantee: Guarantee, mechanism: str = "", label: str = "") -> None:
        """Raise an error if `charge` would raise an error now."""
        self._admitted(read_ledger(self.path), guarantee, mechanism, label)

    @property
    def budget(self) -> Budget:
        """The budget of all releases together. This bound is valid even if later releases depend on earlier results."""
        return self._parsed(read_ledger(self.path))[0]

    @property
    def entries(self) -> list[Entry]:
        """All entries, in the order of charging."""
        return self._parsed(read_ledger(self.path))[1]

    @property
    def spent(self) -> Total | None:
        """The total of all entries (None for an empty account).

        The total contains the budget, and the composition of all entries, which is valid if all budgets were fixed in
        advance.
        """
        entries = self.entries
        return total_of([(each, entries[0].admission) for each in paid_by(entries)]) if entries else None

    def used(self) -> dict[str, dict[str, float]]:
        """Return the used part of each cap in each corner of `voxpop.ledger.caps`."""
        budget, entries = self._parsed(read_ledger(self.path))
        return AccountLimits.of(budget).used(paid_by(entries))

    def entry(self, label: str) -> Entry | None:
        """Return the entry of the run with this label, or None if there is no such run."""
        return labelled(self.entries, label)

    def largest_epsilon(self, mechanism: Any, delta: float) -> float:
        """Return the largest epsilon (a multiple of 0.01, or 0) of a release that could be charged now or is reserved.

        Args:
            mechanism: The configuration, such as `vp.Items()`.
            delta: The delta of the release.
        """
        budget, entries = self._parsed(read_ledger(self.path))
        before = paid_by(entries)

        def fits(steps: int) -> bool | None:
            try:
                return may_run(budget, before, mechanism.plan(Budget(round(steps * _STEP, 2), delta)).guarantee)
            except BudgetError:  # This epsilon is too small for any plan.
                return None

        low, high = 0, ceil(budget.epsilon / _STEP) + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if fits(middle) is False else (middle, high)
        charged = round(low * _STEP, 2) if low and fits(low) else 0.0
        return max([charged, *self._reserved(entries, mechanism, delta)])

    @staticmethod
    def _reserved(entries: Sequence[Entry], mechanism: Any, delta: float) -> Iterator[float]:
        """Yield the epsilons of releases that a reserve pays for."""
        for each in entries:
            if each.guarantee.delta == delta and remaining_of(entries, each):
                with suppress(BudgetError):  # No plan of this mechanism has this budget.
                    plan = mechanism.plan(Budget(each.guarantee.epsilon, delta))
                    if each.mechanism == plan.to_dict()["mechanism"] and pays(each, plan.guarantee):
                        yield each.guarantee.epsilon

    def _repeated(self, earlier: Entry, guarantee: Guarantee, mechanism: str) -> Entry:
        """Return the entry for another attempt at a run.

        Raises:
            LedgerError: The run has ended.
            InputError: The release differs from the charged release.
        """
        if earlier.state != "charged":
            raise LedgerError(
                f'Run "{earlier.label}" of "{self.name}" {ENDED[earlier.state]}, so it does not run again. Nothing was '
                "charged. Load the saved result, or choose another label, which is charged."
            )
        # Compare dictionaries, because guarantees that are equal may have different spends.
        if (mechanism, guarantee.to_dict()) != (earlier.mechanism, earlier.guarantee.to_dict()):
            raise InputError(
                f'Run "{earlier.label}" of "{self.name}" was charged for {earlier.mechanism} with {earlier.guarantee}. '
                "Repeat it with the same mechanism and budget, or choose another label, which is charged."
            )
        return replace(earlier, attempt=earlier.attempt + 1)

    def _end(self, entry: Entry, **ended: Any) -> None:
        with changing(self.path) as datasets:
            entries = self._parsed(datasets)[1]
            stored = entries[entry.number - 1] if 0 < entry.number <= len(entries) else None
            if stored is None or (stored.admission, stored.charged) != (entry.admission, entry.charged):
                raise InputError(
                    f'the entry does not belong to the account "{self.name}". Nothing was changed. Give the entry that '
                    "`charge` of this account returned."
                )
            if (stored.state, stored.attempt) != ("charged", entry.attempt):
                raise LedgerError(
                    f"Another process started {entry} again, so this result was discarded. Use the result of "
                    "the other process."
                )
            # The stored entry, not the entry of the caller, determines the charge.
            self._put(datasets, replace(stored, **ended))

    def _put(self, datasets: dict[str, Any], entry: Entry) -> None:
        datasets[self.name]["entries"][entry.number - 1 : entry.number] = [entry.to_dict()]

    def _admitted(
        self, datasets: dict[str, Any], guarantee: Guarantee, mechanism: str, label: str, times: int = 1
    ) -> Entry:
        """Return the entry of a release that may be charged, or of an unfinished run that may be repeated."""
        check_charge(guarantee)
        if not isinstance(mechanism, str) or not is_text(mechanism):
            raise InputError('the mechanism of a charge must be a string, such as "weekly sums".')
        label = checked_label(label)
        budget, entries = self._parsed(datasets)
        if earlier := labelled(entries, label):
            return self._repeated(earlier, guarantee, mechanism)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        entry = Entry(self.name, len(entries) + 1, mechanism, label, guarantee, now, budget, datasets[self.name]["id"])
        if times == 1:
            reserve = paying(entries, guarantee, mechanism)
            if reserve is not None:
                return replace(entry, reserve=reserve.number)
        before = paid_by(entries)
        if may_run(budget, before, guarantee, times):
            return entry if times == 1 else replace(entry, times=times, state="reserved")
        if len(before) + times > MOST_ENTRIES:
            raise ExhaustedError(
                f'"{self.name}" has {len(before):,} releases, and a data set can have at most {MOST_ENTRIES:,}. '
                "Nothing ran and nothing was charged. Use results that were released."
            )
        short = shortage(budget, before, guarantee, times)
        # A release of keys is planned as one of many releases, because other plans have no smaller total.
        keys = mechanism == "keys"
        kind = f"{'keys' if keys else 'items'} --delta {guarantee.delta:g}" if guarantee.delta else "sequences"
        how = " with --repeated" if keys else ""
        raise ExhaustedError(
            f'Not enough budget left in "{self.name}": {short}. Nothing ran and nothing was charged. Request less. '
            f"`voxpop ledger show {self.path} --for {kind}` prints the largest epsilon that fits{how}."
        )

    def _parsed(self, datasets: dict[str, Any]) -> tuple[Budget, list[Entry]]:
        try:
            mine = datasets[self.name]
            budget = Budget(**mine["budget"])
            entries = [Entry.from_dict(each, self.name, budget, mine["id"]) for each in mine["entries"]]
        except (KeyError, TypeError, ValueError) as error:
            raise LedgerError(f'{self.path} has no readable account "{self.name}". {DAMAGED_LEDGER}') from error
        return budget, entries


@final
class Ledger:
    """A ledger file, which contains the budget of each data set. The ledger rejects releases that exceed the budget.

    Create a data set once, with the budget of all its releases together. Every release is charged before it runs, so a
    release that crashes remains charged. Several processes may use one file.

    Args:
        path: The path of the file. A team uses one file on a shared disk. A relative path is resolved against the
            working directory.

    Example:
        >>> import tempfile
        >>> import polars as pl
        >>> import voxpop as vp
        >>> table = pl.DataFrame({"who": range(1000), "what": ["tea", "milk"] * 500})
        >>> corpus = vp.read(table, user="who", items="what")
        >>> with tempfile.TemporaryDirectory() as here:
        ...     ledger = vp.Ledger(f"{here}/team.ledger")
        ...     drinks = ledger.open("drinks", vp.Budget(epsilon=3, delta=1e-6), create=True)
        ...     words = vp.Items(max_items_per_user=10).release(corpus, vp.Budget(2, 1e-8), ledger=drinks)
        ...     drinks.fits(vp.Guarantee(2, 1e-8)), [entry.mechanism for entry in drinks.entries]
        (False, ['items'])
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        try:
            self._path = Path(path).resolve()
            self._path.exists()
        except (OSError, RuntimeError, ValueError) as error:  # no permission, a loop of links, or a long name
            raise LedgerError(
                f"the path of the ledger cannot be used: {getattr(error, 'strerror', None) or 'it is invalid'}. "
                "Check the path and the permissions of its folders."
            ) from None

    def open(self, name: str, budget: Budget, *, create: bool = False) -> LedgerAccount:
        """Return the account of a data set.

        Args:
            name: The name of the data set. Leading, trailing and repeated white space, case and the Unicode normal form
                make no difference.
            budget: The budget of all releases together. The budget cannot be changed later.
            create: Whether to create the data set, and the file if it does not exist. Use this option once, because
                creation fails if the data set already exists. By default, a missing file or data set raises an error,
                so a wrong folder or a misspelled name does not create a new budget.

        Raises:
            LedgerError: The data set has a different budget, its existence contradicts `create`, the file existed
                before and is now missing, or the file cannot be read or written.
        """
        if not isinstance(budget, Budget):
            raise InputError(f"a data set needs a budget, such as voxpop.Budget(8, 1e-6); got {type(budget).__name__}.")
        name = spelled_name(name)
        if not create:
            account = self.account(name)
            if account.budget != budget:
                known = account.budget
                raise LedgerError(
                    f'"{account.name}" in {self._path} has epsilon {known.epsilon:g} and delta {known.delta:g}, which '
                    "cannot be changed, because earlier releases relied on it. Open it with that budget, or use "
                    "`ledger.account(name)`."
                )
            return account
        if not self._path.parent.is_dir():
            raise LedgerError(f"{self._path.parent} is not a folder. Create it, or keep the ledger elsewhere.")
        with changing(self._path, create=True) as datasets:
            if same := same_names(datasets, name):
                raise LedgerError(
                    f'{self._path} has a data set "{same[0]}" already. Open it without `create=True`; another name for '
                    "the same people would be a second budget for them."
                )
            stated = {"epsilon": budget.epsilon, "delta": budget.delta}
            # A random identifier, because paths and names may be equal in the ledgers of two machines.
            datasets[name] = {"id": uuid4().hex, "budget": stated, "entries": []}
        return LedgerAccount(self._path, name)

    def account(self, name: str) -> LedgerAccount:
        """Return the account of an existing data set.

        Args:
            name: The name of the data set, as in `open`.

        Raises:
            LedgerError: The data set does not exist, or the file cannot be read.
        """
        datasets = read_ledger(self._path)
        found = [name] if name in datasets else same_names(datasets, spelled_name(name))
        if len(found) > 1:
            listed = ", ".join(map(repr, found))
            raise LedgerError(
                f"{self._path} has several data sets with this name: {listed}. Give one of these names exactly. If "
                "they are about the same people, use only one of them."
            )
        if not found:
            raise LedgerError(
                f'{self._path} has no data set "{name}"; it has {", ".join(datasets) or "none"}. Create it with '
                "`ledger.open(name, budget, create=True)` or `voxpop ledger init`."
            )
        return LedgerAccount(self._path, found[0])

    @property
    def names(self) -> list[str]:
        """The names of all data sets, in the order of their creation."""
        return list(read_ledger(self._path))

    def __repr__(self) -> str:
        return f"Ledger({str(self._path)!r})"


def _identifier(result: Any) -> str:
    """Return the identifiers of a result, and of the releases that it consists of or counts."""
    several = list(result.values()) if isinstance(result, Mapping) else [result]
    found = [getattr(each, "id", None) or getattr(getattr(each, "grams", None), "id", None) for each in several]
    return ", ".join(filter(None, found))
