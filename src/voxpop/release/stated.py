"""What an operator can state something about before it is saved: releases and models."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from typing import Self

from voxpop.release.about import About


class Stated(ABC):
    """Something released, with what is said of it for the report, and a way to save both."""

    about: About

    @abstractmethod
    def _with_about(self, about: About) -> Self:
        """Return the same with other words about it."""

    @abstractmethod
    def _save(self, folder: str | PathLike[str], *, overwrite: bool) -> None:
        """Write the folder, what is said of it included."""

    def save(
        self,
        folder: str | PathLike[str],
        *,
        title: str | None = None,
        dataset: str | None = None,
        purpose: str | None = None,
        operator: str | None = None,
        date: str | None = None,
        overwrite: bool = False,
    ) -> None:
        """Save to a folder, whole or not at all; `voxpop.load` reads it back.

        The folder of a release gets `release.parquet` (the grams), `release.json` (plan and guarantee) and
        `report.html`, a page for whoever signs the release off; that of a model its grams, its alphabet, the same
        record and the same page. Their bytes depend on the release alone, and on what you say of it.

        Args:
            folder: where to; it may be new, empty, or hold this very release or model.
            title: of the report. This and the next four are public by your word, and stand in the report for whoever
                signs it; what is left out stays as it was.
            dataset: which data this was made from.
            purpose: what it is for.
            operator: who made it.
            date: the day, as 2026-11-22; today where anything of these is said and no day is known.
            overwrite: whether to replace another release or model that is there, and its counts, in one step.

        Raises:
            ReleaseError: if the folder holds anything else, or cannot be written.
        """
        said = {"title": title, "dataset": dataset, "purpose": purpose, "operator": operator, "date": date}
        self.saying(said)._save(folder, overwrite=overwrite)

    def saying(self, said: Mapping[str, str | None]) -> Self:
        """Return the same with what is said of it for the report, by the names of `save`."""
        return self._with_about(self.about.stated(said))

    def charged(self, entry: str) -> Self:
        """Return the same, naming the entry of the ledger that was charged for it."""
        return self._with_about(replace(self.about, ledger=entry))
