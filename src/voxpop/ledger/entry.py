"""The entries of an account: releases that were charged, and reserves that pay for later ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from voxpop.ledger.caps import MOST_ENTRIES
from voxpop.privacy.budget import Budget
from voxpop.privacy.guarantee import Guarantee


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """One release that was charged to a data set.

    Attributes:
        dataset: The name of the data set.
        number: From 1 on, in the order of charging.
        mechanism: The kind of release, in a few words.
        label: The label of the run, or "".
        guarantee: The guarantee that was charged.
        charged: The time, in UTC.
        state: "charged", "finished", "failed" or "reserved". A failed release stays charged: its output may have been
            seen. A run that is only charged may be repeated under its label without a second charge.
        attempt: How many times the run was started. Only the last attempt can finish.
        release: The identifier of the release, once it is finished; of a saved model the digest of its files, as
            `voxpop verify` prints it.
        kept: The folder in which the result was kept until it was saved, or "".
        times: The number of equal releases that the entry pays for; more than one only in a reserve.
        reserve: The number of the reserve that paid for this release, or 0 if the entry itself was charged.
        budget: The budget of the data set.
    """

    dataset: str
    number: int
    mechanism: str
    label: str
    guarantee: Guarantee
    charged: str
    state: str = "charged"
    attempt: int = 1
    release: str = ""
    kept: str = ""
    times: int = 1
    reserve: int = 0
    budget: Budget | None = None

    def __str__(self) -> str:
        budget = f", budget ({self.budget.epsilon:g}, {self.budget.delta:g})" if self.budget else ""
        return f'entry {self.number} of "{self.dataset}"{budget}' + (f', run "{self.label}"' if self.label else "")

    def to_dict(self) -> dict[str, Any]:
        """Return the entry without the name and the budget of the data set, ready for JSON."""
        values = {name: getattr(self, name) for name in self.__slots__ if name not in ("dataset", "budget")}
        return {**values, "guarantee": self.guarantee.to_dict()}

    @staticmethod
    def from_dict(dataset: str, budget: Budget, values: Mapping[str, Any]) -> "Entry":
        """Return the entry that `to_dict` described."""
        guarantee = Guarantee.from_dict(values["guarantee"])
        entry = Entry(dataset, **{**values, "guarantee": guarantee, "budget": budget})
        numbers = (entry.number, entry.attempt, entry.times, entry.reserve)
        known = entry.state in ("charged", "finished", "failed", "reserved")
        if not known or any(type(each) is not int for each in numbers) or not 1 <= entry.times <= MOST_ENTRIES:
            raise ValueError("not an entry")
        return entry


def paid_by(entries: Sequence[Entry]) -> list[Guarantee]:
    """Return the guarantees that count: each of a reserve as often as it pays, none that a reserve paid for."""
    return [each.guarantee for each in entries for _ in range(0 if each.reserve else each.times)]


def pays(entry: Entry, guarantee: Guarantee) -> bool:
    """Return whether an entry is a reserve of releases with this guarantee, its spend included."""
    return entry.state == "reserved" and entry.guarantee.to_dict() == guarantee.to_dict()


def remaining_of(entries: Sequence[Entry], reserve: Entry) -> int:
    """Return the number of releases that an entry still pays for: 0 if it is no reserve."""
    if reserve.state != "reserved":
        return 0
    return reserve.times - sum(each.reserve == reserve.number for each in entries)


def labelled(entries: Sequence[Entry], label: str) -> Entry | None:
    """Return the entry with a label, or None."""
    return next((each for each in entries if label and each.label == label), None)


def is_text(string: str) -> bool:
    """Return whether a string can be written as UTF-8: it has no surrogates."""
    return not any("\ud800" <= each <= "\udfff" for each in string)
