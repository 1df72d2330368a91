"""The ledger of a team: the budget of each data set, and every release that was charged to it.

A further release may run if sums that are capped on every path allow it. Who looks at one release before choosing the
next makes the numbers of the next depend on the outcome of the last. Composed curves then promise nothing; sums with
caps fixed beforehand do. Three accounts are kept side by side, each with a third of delta, and a release may run as
long as one of them holds it with all that came before:

* plain: epsilons and deltas add up;
* gaussian: squares of mu add up, and so do the chances of novel items; nothing without a `Spend` goes in;
* mixed: half of epsilon is set aside for releases without a `Spend`, whose deltas count as chances.

A first release that fits the budget as a whole may always run: nothing was seen before it was chosen. The proof is
in docs/privacy/composition.md.
"""

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any, final

from voxpop.errors import BudgetError, InputError, LedgerError
from voxpop.ledger.storage import DAMAGED, held, lost, read_ledger, traces_of, write_ledger
from voxpop.privacy.budget import Budget
from voxpop.privacy.composition import compose, composed_delta
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.joint import ROUNDING
from voxpop.privacy.numerics import MOST_PASSES, walk_slack

MOST_ENTRIES = 1024
NOVEL_SHARE = Fraction(9, 10)
"""Part of an account's delta that pays for novel items; the rest pays for noise, which hardly needs more."""
WAYS = {
    "plain": "epsilons and deltas added up",
    "gaussian": "Gaussian noise added up exactly",
    "mixed": "half of epsilon for Gaussian noise, half for the rest",
}
"""How each account adds up, in words."""


@final
@dataclass(frozen=True, slots=True)
class Caps:
    """The limits of one account.

    Attributes:
        name: "plain", "gaussian" or "mixed".
        epsilon: of releases that go in by epsilon and delta.
        chance: of their deltas, and of the chances of novel items.
        square: of mu^2; 0 where nothing goes in by its spend.
    """

    name: str
    epsilon: Fraction
    chance: Fraction
    square: Fraction

    def used(self, guarantees: Sequence[Guarantee]) -> dict[str, float]:
        """Return which part of each cap releases use up; more than 1 is too much.

        Args:
            guarantees: of all releases, in any order.
        """
        epsilon, chance, square = Fraction(0), Fraction(0), Fraction(0)
        for each in guarantees:
            # A chance that is added, and no part of a pair, has no place in the proof of these sums.
            if each.spend is None or each.spend.apart or self.name == "plain":
                epsilon += Fraction(each.epsilon)
                chance += Fraction(each.delta)
            else:
                chance += Fraction(each.spend.novel)
                square += Fraction(each.spend.mu) ** 2
        pairs = {
            "epsilon": (epsilon, self.epsilon),
            "chance": (chance, self.chance),
            "mu squared": (square, self.square),
        }
        return {name: _part(sum_, cap) for name, (sum_, cap) in pairs.items()}

    def hold(self, guarantees: Sequence[Guarantee]) -> bool:
        """Return whether releases fit under every cap."""
        return all(part <= 1 for part in self.used(guarantees).values())


def accounts_of(budget: Budget) -> tuple[Caps, ...]:
    """Return the accounts of a data set's budget.

    Args:
        budget: the limit on the total cost of all releases to one user.

    Returns:
        The three accounts; only the plain one where delta is 0.
    """
    epsilon, delta = Fraction(budget.epsilon), Fraction(budget.delta)
    if delta == 0:
        return (Caps("plain", epsilon, delta, Fraction(0)),)
    third = delta / 3
    novel = third * NOVEL_SHARE
    return (
        Caps("plain", epsilon, third, Fraction(0)),
        Caps("gaussian", Fraction(0), novel, _square(budget.epsilon, float(novel), float(third))),
        Caps("mixed", epsilon / 2, novel, _square(budget.epsilon / 2, float(novel), float(third))),
    )


def may_run(budget: Budget, before: Sequence[Guarantee], now: Guarantee) -> bool:
    """Return whether a release may run after others.

    Args:
        budget: the limit on the total cost of all releases to one user.
        before: the guarantees that are already charged.
        now: the guarantee of the release.
    """
    if not before:
        return now.epsilon <= budget.epsilon and now.delta <= budget.delta
    every = [*before, now]
    return len(every) <= MOST_ENTRIES and any(caps.hold(every) for caps in accounts_of(budget))


def shortage(budget: Budget, before: Sequence[Guarantee], now: Guarantee) -> str:
    """Return which sum a release exceeds: spent, left and requested.

    Args:
        budget: The budget of the data set.
        before: The releases that were charged, fewer than `MOST_ENTRIES`.
        now: A release for which `may_run` is False.
    """
    if not before:
        name, cap, asked = ("epsilon", budget.epsilon, now.epsilon)
        if now.epsilon <= budget.epsilon:
            name, cap, asked = ("delta", budget.delta, now.delta)
        return f"{name}: 0 of {cap:g} spent, {cap:g} left, {asked:g} requested"
    # The account that comes closest to holding the release, and the cap that it exceeds most.
    closest = min(accounts_of(budget), key=lambda caps: max(caps.used([*before, now]).values()))
    parts = closest.used([*before, now])
    name = max(parts, key=parts.__getitem__)
    spent, asked = closest.used(before)[name], closest.used([now])[name]
    if name == "mu squared":
        left = max(0.0, 1 - spent)
        return f"Gaussian noise: {spent:.3g} of 1 spent, {left:.3g} left, {asked:.3g} requested"
    cap = float(closest.epsilon if name == "epsilon" else closest.chance)
    if not cap:
        return f"delta: 0 of 0 left, {now.delta:g} requested"
    share = f" (of the ledger's delta, {cap:.3g} counts here)" if name == "chance" else ""
    said = "epsilon" if name == "epsilon" else "delta"
    left = max(0.0, cap - spent * cap)
    return f"{said}: {spent * cap:.4g} of {cap:.4g} spent, {left:.4g} left, {asked * cap:.4g} requested{share}"


@lru_cache(maxsize=64)
def _square(epsilon: float, novel: float, delta: float) -> Fraction:
    """Return the largest mu^2 at which a chance of novel items and noise stay within delta, rounded down."""
    from voxpop.privacy.gaussian import delta as gaussian_delta

    room = delta * (1 - 1e-12) - MOST_ENTRIES * walk_slack(epsilon, MOST_PASSES)
    low, high = 0.0, 1e3
    for _ in range(200):
        middle = (low + high) / 2
        spent = (novel + (1 - novel) * gaussian_delta(epsilon + math.log1p(-novel), middle)) * ROUNDING
        low, high = (middle, high) if spent <= room else (low, middle)
    return Fraction(low) ** 2


def _part(total: Fraction, cap: Fraction) -> float:
    if total <= cap:
        return float(total / cap) if cap else 0.0
    return max(math.nextafter(1.0, 2.0), float(total / cap)) if cap else math.inf


NEIGHBOURS = Guarantee(1, 0).neighbours
FIT = 0.25
"""A spend must account for at least this part of the stated delta. Those of all plans account for 0.6 or more."""


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """One release that was charged to a data set.

    Attributes:
        number: From 1 on, in the order of charging.
        label: The kind of release, in a few words.
        guarantee: The guarantee that was charged.
        charged: The time, in UTC.
        finished: Whether the release returned. An unfinished release stays charged: its output may have been seen.
    """

    number: int
    label: str
    guarantee: Guarantee
    charged: str
    finished: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the entry, ready for JSON."""
        return {
            "number": self.number,
            "label": self.label,
            "guarantee": self.guarantee.to_dict(),
            "charged": self.charged,
            "finished": self.finished,
        }

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "Entry":
        """Return the entry that `to_dict` described."""
        guarantee = Guarantee.from_dict(values["guarantee"])
        return Entry(
            int(values["number"]), str(values["label"]), guarantee, str(values["charged"]), bool(values["finished"])
        )


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

    def charge(self, guarantee: Guarantee, label: str) -> int:
        """Charge a release before it touches the data.

        Releases of voxpop charge their `ledger` themselves. Call this method for releases of other software.

        Args:
            guarantee: The guarantee of the release.
            label: The kind of release, in a few public words.

        Returns:
            The number of the entry.

        Raises:
            BudgetError: Not enough budget is left; nothing was charged.
            LedgerError: The ledger cannot be read or written.
        """
        _check(guarantee)
        with held(self.path):
            datasets = read_ledger(self.path)
            entries = self._refuse(datasets, guarantee)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            entry = Entry(len(entries) + 1, label, guarantee, now, finished=False)
            datasets[self.name]["entries"].append(entry.to_dict())
            write_ledger(self.path, datasets)
        return entry.number

    def finish(self, number: int) -> str:
        """Record that a release returned.

        Args:
            number: The number of its entry, as returned by `charge`.

        Returns:
            The name of the entry, as reports state it.
        """
        with held(self.path):
            datasets = read_ledger(self.path)
            _, entries = self._parsed(datasets)
            datasets[self.name]["entries"][number - 1] = replace(entries[number - 1], finished=True).to_dict()
            write_ledger(self.path, datasets)
        return f'entry {number} of "{self.name}"'

    def fits(self, guarantee: Guarantee) -> bool:
        """Return whether a release could be charged now. Another process may charge first."""
        _check(guarantee)
        budget, entries = self._parsed(read_ledger(self.path))
        return may_run(budget, [each.guarantee for each in entries], guarantee)

    def check(self, guarantee: Guarantee) -> None:
        """Refuse a release that could not be charged now.

        Raises:
            BudgetError: Not enough budget is left.
        """
        _check(guarantee)
        self._refuse(read_ledger(self.path), guarantee)

    @property
    def budget(self) -> Budget:
        """The budget of all releases together. It holds however later releases depend on earlier results."""
        return self._parsed(read_ledger(self.path))[0]

    @property
    def entries(self) -> list[Entry]:
        """All entries, in the order of charging."""
        return self._parsed(read_ledger(self.path))[1]

    @property
    def spent(self) -> Guarantee | None:
        """The composition of all entries, if no budget depended on an earlier result; None without entries."""
        entries = self.entries
        return compose([each.guarantee for each in entries]) if entries else None

    def used(self) -> dict[str, dict[str, float]]:
        """Return the used part of each cap, for each way to add up; see `voxpop.ledger.ledger`."""
        budget, entries = self._parsed(read_ledger(self.path))
        return {caps.name: caps.used([each.guarantee for each in entries]) for caps in accounts_of(budget)}

    def _refuse(self, datasets: dict[str, Any], guarantee: Guarantee) -> list[Entry]:
        """Return the entries, or raise a BudgetError if the release does not fit after them."""
        budget, entries = self._parsed(datasets)
        before = [each.guarantee for each in entries]
        if may_run(budget, before, guarantee):
            return entries
        if len(entries) >= MOST_ENTRIES:
            short = f"a data set takes at most {MOST_ENTRIES:,} releases"
        else:
            short = shortage(budget, before, guarantee)
        raise BudgetError(
            f'Not enough budget left in "{self.name}": {short}. Nothing ran and nothing was charged. Request less, or '
            f"see `voxpop ledger show {self.path}`."
        )

    def _parsed(self, datasets: dict[str, Any]) -> tuple[Budget, list[Entry]]:
        try:
            mine = datasets[self.name]
            budget = Budget(**mine["budget"])
            entries = [Entry.from_dict(each) for each in mine["entries"]]
        except (KeyError, TypeError, ValueError) as error:
            raise LedgerError(f'{self.path} has no readable account "{self.name}". {DAMAGED}') from error
        return budget, entries


@final
class Ledger:
    """A file with the budget of each data set. It refuses releases that exceed the budget.

    Create a data set once, with the budget of all its releases together. Every release is charged before it runs, so a
    release that crashes stays charged. Several processes may use one file.

    Args:
        path: The file; one for a team, on a disk that they share. A relative path starts at the working directory.

    Example:
        >>> import tempfile
        >>> import polars as pl
        >>> import voxpop as vp
        >>> table = pl.DataFrame({"who": range(1000), "what": ["tea", "milk"] * 500})
        >>> corpus = vp.read(table, user="who", items="what")
        >>> with tempfile.TemporaryDirectory() as here:
        ...     ledger = vp.Ledger(f"{here}/team.json")
        ...     drinks = ledger.open("drinks", vp.Budget(epsilon=3, delta=1e-6), create=True)
        ...     words = vp.SetUnion(limit=10).release(corpus, vp.Budget(2, 1e-8), ledger=drinks)
        ...     drinks.fits(vp.Guarantee(2, 1e-8)), [entry.label for entry in drinks.entries]
        (False, ['set union'])
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = Path(path).resolve()

    def open(self, name: str, budget: Budget, *, create: bool = False) -> LedgerAccount:
        """Return the account of a data set.

        Args:
            name: The name of the data set. White space at its ends, repeated white space, upper and lower case and the
                Unicode normal form make no difference.
            budget: The budget of all releases together. It cannot be changed later.
            create: Create the data set, and the file if there is none. Use it once: creation fails if the data set
                already exists. Without it, a file or a data set that does not exist is refused, so a script in the
                wrong folder and a misspelled name do not start a new budget.

        Raises:
            LedgerError: The data set has another budget; it exists, or does not exist, contrary to `create`; the file
                existed and is missing; or the file cannot be read or written.
        """
        if not isinstance(budget, Budget):
            raise InputError(f"a data set needs a budget, such as voxpop.Budget(8, 1e-6); got {type(budget).__name__}.")
        name = _spelled(name)
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
        # Before the lock is taken, which leaves a file.
        existed = bool(traces_of(self._path))
        with held(self._path):
            if existed and not self._path.exists():
                raise lost(self._path)
            datasets = read_ledger(self._path) if self._path.exists() else {}
            if same := _same(datasets, name):
                raise LedgerError(
                    f'{self._path} has a data set "{same[0]}" already. Open it without `create=True`; another name for '
                    "the same people would be a second budget for them."
                )
            wanted = {"epsilon": budget.epsilon, "delta": budget.delta}
            write_ledger(self._path, {**datasets, name: {"budget": wanted, "entries": []}})
        return LedgerAccount(self._path, name)

    def account(self, name: str) -> LedgerAccount:
        """Return the account of an existing data set.

        Args:
            name: The name of the data set; see `open`.

        Raises:
            LedgerError: There is no such data set, or the file cannot be read.
        """
        datasets = read_ledger(self._path)
        found = [name] if name in datasets else _same(datasets, _spelled(name))
        if len(found) > 1:
            listed = ", ".join(map(repr, found))
            raise LedgerError(
                f"{self._path} has several data sets of that name: {listed}. Give the name exactly as it stands there. "
                "If they are about the same people, use one of them only."
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


def _spelled(name: str) -> str:
    """Return the stored form of a name: NFC, white space at the ends removed and collapsed elsewhere."""
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"the name of a data set must be a string that is not empty, got {name!r}.")
    return " ".join(unicodedata.normalize("NFC", name).split())


def _same(names: "Mapping[str, Any] | Sequence[str]", name: str) -> list[str]:
    """Return the stored names that count as the same name: two names for one data set would be two budgets."""

    def key(each: str) -> str:
        return unicodedata.normalize("NFC", " ".join(unicodedata.normalize("NFC", each).split()).casefold())

    return [each for each in names if key(each) == key(name)]


def _check(guarantee: Guarantee) -> None:
    if not isinstance(guarantee, Guarantee):
        raise InputError(f"a charge must be a guarantee, such as `plan.guarantee`; got {type(guarantee).__name__}.")
    if guarantee.unproved or not guarantee.private:
        raise InputError(
            "a release with a seed is not private, and no budget covers it. Leave out the seed to charge it."
        )
    if guarantee.neighbours != NEIGHBOURS:
        raise InputError(f"guarantees in a ledger must be for {NEIGHBOURS}; this one is for {guarantee.neighbours}.")
    Budget(guarantee.epsilon, guarantee.delta)
    # A spend below the stated pair would make further releases fit that the pair excludes.
    needed = guarantee.delta if guarantee.spend is None else composed_delta(guarantee.epsilon, [guarantee], plain=False)
    if needed < FIT * guarantee.delta:
        raise InputError(
            f"the spend of this guarantee does not fit ({guarantee.epsilon:g}, {guarantee.delta:g}): it accounts for a "
            f"delta of {needed:.2g} only. Leave out `spend`, or state the epsilon and delta that follow from it."
        )
