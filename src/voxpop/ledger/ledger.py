"""The ledger of a team: what every release has spent on each data set."""

from os import PathLike
from pathlib import Path
from typing import final

from voxpop.errors import InputError, LedgerError
from voxpop.ledger.account import LedgerAccount
from voxpop.ledger.keeping import held, read_ledger, write_ledger
from voxpop.privacy.budget import Budget


@final
class Ledger:
    """A file that knows what was spent on each data set, and lets no release run that would be too much.

    A data set is opened once, with the budget that all releases from it may cost together. Every release is charged
    before it runs, so a crash errs on the safe side. Several processes may use one file.

    Args:
        path: of the file; one for a team, on a disk they share.

    Example:
        >>> import tempfile
        >>> import polars as pl
        >>> import voxpop as vp
        >>> table = pl.DataFrame({"who": range(1000), "what": ["tea", "milk"] * 500})
        >>> corpus = vp.read(table, user="who", items="what")
        >>> with tempfile.TemporaryDirectory() as here:
        ...     drinks = vp.Ledger(f"{here}/team.json").open("drinks", vp.Budget(epsilon=3, delta=1e-6))
        ...     words = vp.SetUnion(limit=10).release(corpus, vp.Budget(2, 1e-8), ledger=drinks)
        ...     drinks.fits(vp.Guarantee(2, 1e-8)), [entry.label for entry in drinks.entries]
        (False, ['set union'])
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = Path(path).resolve()

    def open(self, name: str, budget: Budget) -> LedgerAccount:
        """Return the account of a data set, opening it where there is none.

        Args:
            name: of the data set.
            budget: what all releases from it may cost together. It cannot be changed later.

        Raises:
            LedgerError: if it was opened with another budget, or the file cannot be read or written.
        """
        if not isinstance(name, str) or not name.strip():
            raise InputError(f"the name of a data set must be a string that is not empty, got {name!r}.")
        if not isinstance(budget, Budget):
            raise InputError(f"a data set needs a budget, such as voxpop.Budget(8, 1e-6); got {type(budget).__name__}.")
        wanted = {"epsilon": budget.epsilon, "delta": budget.delta}
        if not self._path.parent.is_dir():
            raise LedgerError(f"{self._path.parent} is not a folder; make it, or keep the ledger elsewhere.")
        with held(self._path):
            datasets = read_ledger(self._path) if self._path.exists() else {}
            if name not in datasets:
                write_ledger(self._path, {**datasets, name: {"budget": wanted, "entries": []}})
            elif datasets[name]["budget"] != wanted:
                known = datasets[name]["budget"]
                raise LedgerError(
                    f'"{name}" was opened with epsilon {known["epsilon"]:g} and delta {known["delta"]:g}, which '
                    "cannot be changed: what was released relied on it."
                )
        return LedgerAccount(self._path, name)

    def account(self, name: str) -> LedgerAccount:
        """Return the account of a data set that was opened before.

        Args:
            name: of the data set.

        Raises:
            LedgerError: if there is none, or the file cannot be read.
        """
        names = self.names
        if name not in names:
            raise LedgerError(
                f'{self._path} has no data set "{name}"; it has {", ".join(names) or "none"}. Open it with '
                "`ledger.open(name, budget)` or `voxpop ledger init`."
            )
        return LedgerAccount(self._path, name)

    @property
    def names(self) -> list[str]:
        """The names of all data sets, in order of their opening."""
        return list(read_ledger(self._path))

    def __repr__(self) -> str:
        return f"Ledger({str(self._path)!r})"
