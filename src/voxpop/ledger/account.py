"""The account of one data set: charged first, then the release runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Any, final

from voxpop.errors import BudgetError, InputError, LedgerError
from voxpop.ledger.caps import MOST_ENTRIES, PARTS, WAYS, accounts_of, may_run
from voxpop.ledger.entry import Entry
from voxpop.ledger.keeping import DAMAGED, held, read_ledger, write_ledger
from voxpop.privacy.budget import Budget
from voxpop.privacy.guarantee import Guarantee

NEIGHBOURS = Guarantee(1, 0).neighbours


@final
@dataclass(frozen=True, slots=True)
class LedgerAccount:
    """What one data set may cost its users, and what has been spent of it. Made by `Ledger.open` and `Ledger.account`.

    Attributes:
        path: file of the ledger.
        name: of the data set.
    """

    path: Path
    name: str

    def release(self, plan: Any, corpus: Any, seed: int | None = None) -> Any:
        """Charge what a plan guarantees, then run it.

        The charge stays whatever happens afterwards: a release that fails or is stopped may have been seen.

        Args:
            plan: of any mechanism.
            corpus: the data set that this account is about.
            seed: not allowed here: a release with a seed is not private, and no account could say what it costs.

        Returns:
            What the plan releases.

        Raises:
            BudgetError: if too little is left; then nothing ran and nothing was charged.
            LedgerError: if the ledger cannot be read or written; then nothing ran either.
        """
        if seed is not None:
            raise InputError(
                "a release with a seed is not private, so no ledger can hold it. Leave out one of the two."
            )
        number = self.charge(plan.guarantee, str(plan.to_dict().get("mechanism", type(plan).__name__)))
        result = plan.release(corpus)
        self._finish(number)
        entry = f'entry {number} of "{self.name}"'
        if isinstance(result, Mapping):  # of several data sets
            return {name: _naming(each, entry) for name, each in result.items()}
        return _naming(result, entry)

    def charge(self, guarantee: Guarantee, label: str) -> int:
        """Charge a release that runs outside voxpop, or by hand. Call it before anything touches the data.

        Args:
            guarantee: what the release promises.
            label: what it is, in a few public words.

        Returns:
            The number of the entry.

        Raises:
            BudgetError: if too little is left; then nothing was charged.
            LedgerError: if the ledger cannot be read or written.
        """
        _check(guarantee)
        with held(self.path):
            datasets = read_ledger(self.path)
            budget, entries = self._parsed(datasets)
            if not may_run(budget, [each.guarantee for each in entries], guarantee):
                raise BudgetError(self._refusal(budget, entries, guarantee))
            now = datetime.now(UTC).isoformat(timespec="seconds")
            entry = Entry(len(entries) + 1, label, guarantee, now, finished=False)
            datasets[self.name]["entries"].append(entry.to_dict())
            write_ledger(self.path, datasets)
        return entry.number

    def fits(self, guarantee: Guarantee) -> bool:
        """Say whether a release could be charged now; another process may still be faster."""
        _check(guarantee)
        budget, entries = self._parsed(read_ledger(self.path))
        return may_run(budget, [each.guarantee for each in entries], guarantee)

    def check(self, guarantee: Guarantee) -> None:
        """Refuse a release that could not be charged now, before any work is put into it.

        Raises:
            BudgetError: if too little is left.
        """
        _check(guarantee)
        budget, entries = self._parsed(read_ledger(self.path))
        if not may_run(budget, [each.guarantee for each in entries], guarantee):
            raise BudgetError(self._refusal(budget, entries, guarantee))

    @property
    def budget(self) -> Budget:
        """What all releases together may cost every user: what the ledger promises, however releases were chosen."""
        return self._parsed(read_ledger(self.path))[0]

    @property
    def entries(self) -> list[Entry]:
        """All charges, in their order."""
        return self._parsed(read_ledger(self.path))[1]

    @property
    def spent(self) -> Guarantee | None:
        """What all charges compose to, if no budget was chosen in view of an earlier release; None without any."""
        from voxpop.privacy.composition import compose

        entries = self.entries
        return compose([each.guarantee for each in entries]) if entries else None

    def used(self) -> dict[str, dict[str, float]]:
        """Return, for each way of adding up, which part of each of its caps is used; see `voxpop.ledger.caps`."""
        budget, entries = self._parsed(read_ledger(self.path))
        return {caps.name: caps.used([each.guarantee for each in entries]) for caps in accounts_of(budget)}

    def _finish(self, number: int) -> None:
        """Note that a release came back."""
        with held(self.path):
            datasets = read_ledger(self.path)
            _, entries = self._parsed(datasets)
            datasets[self.name]["entries"][number - 1] = entries[number - 1].finish().to_dict()
            write_ledger(self.path, datasets)

    def _parsed(self, datasets: dict[str, Any]) -> tuple[Budget, list[Entry]]:
        try:
            mine = datasets[self.name]
            budget = Budget(**mine["budget"])
            entries = [Entry.from_dict(each) for each in mine["entries"]]
        except (KeyError, TypeError, ValueError) as error:
            raise LedgerError(f'{self.path} has no account "{self.name}" that can be read. {DAMAGED}') from error
        return budget, entries

    def _refusal(self, budget: Budget, entries: list[Entry], now: Guarantee) -> str:
        head = (
            f'"{self.name}" has too little left for ({now.epsilon:g}, {now.delta:g}): its budget is '
            f"({budget.epsilon:g}, {budget.delta:g})"
        )
        tail = "Nothing ran and nothing was charged. Ask for less, or see `voxpop ledger show`."
        if not entries:
            return f"{head}. {tail}"
        if len(entries) >= MOST_ENTRIES:
            return f"{head}, and a data set takes at most {MOST_ENTRIES:,} releases. {tail}"
        every = [*(each.guarantee for each in entries), now]
        parts = [
            f"{WAYS[caps.name]}: {PARTS[name]} at {100 * part:.4g} %"
            for caps in accounts_of(budget)
            for name, part in caps.used(every).items()
            if 1 < part < inf  # a release without that kind of noise fits under no such sum
        ]
        said = "; ".join(parts)
        return f"{head}, and with what was spent before it is too much, however it is added up ({said}). {tail}"


def _naming(result: Any, entry: str) -> Any:
    """Return a release that names the entry which paid for it, where it can."""
    named = getattr(result, "charged", None)
    return result if named is None else named(entry)


def _check(guarantee: Guarantee) -> None:
    if not isinstance(guarantee, Guarantee):
        raise InputError(f"a charge is a guarantee, such as `plan.guarantee`; got {type(guarantee).__name__}.")
    if guarantee.unproved or not guarantee.private:
        raise InputError("a release that is not private cannot be charged: there is no budget that would cover it.")
    if guarantee.neighbours != NEIGHBOURS:
        raise InputError(f"a ledger adds up guarantees for {NEIGHBOURS}; this one is for {guarantee.neighbours}.")
    Budget(guarantee.epsilon, guarantee.delta)
