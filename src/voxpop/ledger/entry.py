"""The entries of an account, which are charged releases and reserves that pay for later releases."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from voxpop.errors import InputError
from voxpop.ledger.caps import MOST_ENTRIES
from voxpop.privacy.budget import Budget
from voxpop.privacy.composition import Admission, composed_delta
from voxpop.privacy.guarantee import Guarantee

_NEIGHBOURS = Guarantee(1, 0).neighbours
FIT = 0.25
"""The minimum part of the stated delta that a spend must account for. The spends of all plans account for at least
0.6."""
LONGEST_LABEL = 200
SHARED = ("dataset", "budget", "ledger")


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """A release that was charged to a data set.

    Attributes:
        dataset: The name of the data set.
        number: The number of the entry, counted from 1 in the order of charging.
        mechanism: The kind of release, in a few words.
        label: The label of the run, or "".
        guarantee: The guarantee that was charged.
        charged: The time, in UTC.
        state: "charged", "finished", "failed" or "reserved". A failed release remains charged, because its output may
            have been seen. A run in the state "charged" may be repeated under its label without a second charge.
        attempt: The number of times that the run was started. Only the last attempt can finish.
        release: The identifier of the finished release, or the digest of the files of a saved model, as `voxpop verify`
            prints it.
        kept: The folder with the result until it is saved, or "".
        times: The number of identical releases that the entry pays for. The number is above 1 only for a reserve.
        reserve: The number of the reserve that paid for this release, or 0 if the entry itself was charged.
        budget: The budget of the data set.
        ledger: The random name of the account, which does not depend on the location of the file.
    """

    dataset: str
    number: int
    mechanism: str
    label: str
    guarantee: Guarantee
    charged: str
    budget: Budget
    ledger: str
    state: str = "charged"
    attempt: int = 1
    release: str = ""
    kept: str = ""
    times: int = 1
    reserve: int = 0

    def __str__(self) -> str:
        return str(self.admission)

    @property
    def admission(self) -> Admission:
        """The part of the entry that a result records."""
        return Admission(self.dataset, self.number, self.label, self.budget, self.ledger)

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as a dictionary for JSON, without the fields that all entries of its data set share."""
        values = {name: getattr(self, name) for name in self.__slots__ if name not in SHARED}
        return {**values, "guarantee": self.guarantee.to_dict()}

    @staticmethod
    def from_dict(values: Mapping[str, Any], dataset: str, budget: Budget, ledger: str) -> "Entry":
        """Return the entry from the dictionary that `to_dict` returned."""
        guarantee = Guarantee.from_dict(values["guarantee"])
        entry = Entry(**{**values, "guarantee": guarantee, "dataset": dataset, "budget": budget, "ledger": ledger})
        numbers = (entry.number, entry.attempt, entry.times, entry.reserve)
        known = entry.state in ("charged", "finished", "failed", "reserved")
        if not known or any(type(each) is not int for each in numbers) or not 1 <= entry.times <= MOST_ENTRIES:
            raise ValueError("not an entry")
        return entry


def paid_by(entries: Sequence[Entry]) -> list[Guarantee]:
    """Return the charged guarantees.

    The guarantee of a reserve occurs once for each release that it pays for. Releases that a reserve paid for are
    excluded.
    """
    return [each.guarantee for each in entries for _ in range(0 if each.reserve else each.times)]


def pays(entry: Entry, guarantee: Guarantee) -> bool:
    """Return whether an entry is a reserve for releases with this guarantee and spend."""
    return entry.state == "reserved" and entry.guarantee.to_dict() == guarantee.to_dict()


def remaining_of(entries: Sequence[Entry], reserve: Entry) -> int:
    """Return the number of releases that an entry still pays for, which is 0 if it is not a reserve."""
    if reserve.state != "reserved":
        return 0
    return reserve.times - sum(each.reserve == reserve.number for each in entries)


def labelled(entries: Sequence[Entry], label: str) -> Entry | None:
    """Return the entry with a label, or None if there is no such entry."""
    return next((each for each in entries if label and each.label == label), None)


def is_text(string: str) -> bool:
    """Return whether a string has no surrogates, so that it can be written as UTF-8."""
    return not any("\ud800" <= each <= "\udfff" for each in string)


def paying(entries: Sequence[Entry], guarantee: Guarantee, mechanism: str) -> Entry | None:
    """Return the reserve that pays for a release, or None if there is no such reserve."""
    for each in entries:
        if each.mechanism == mechanism and pays(each, guarantee) and remaining_of(entries, each):
            return each
    return None


def spelled_name(name: str) -> str:
    """Return the stored form of a name, in NFC, with white space removed at the ends and collapsed elsewhere."""
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"the name of a data set must be a nonempty string, got {name!r}.")
    spelled = " ".join(unicodedata.normalize("NFC", name).split())
    if not is_text(spelled):
        raise InputError("the name of a data set must be text. Remove surrogates, which are not characters.")
    return spelled


def same_names(names: "Mapping[str, Any] | Sequence[str]", name: str) -> list[str]:
    """Return the stored names that are equivalent to a name, so that one data set cannot have two budgets."""

    def key(each: str) -> str:
        return unicodedata.normalize("NFC", " ".join(unicodedata.normalize("NFC", each).split()).casefold())

    return [each for each in names if key(each) == key(name)]


def checked_label(label: str) -> str:
    """Return the stored form of the label of a run."""
    if not isinstance(label, str) or len(label) > LONGEST_LABEL or not (label.isprintable() or not label):
        raise InputError(f"the label of a run must be one line of at most {LONGEST_LABEL} characters.")
    return " ".join(label.split())


def check_charge(guarantee: Guarantee) -> None:
    """Raise an error if a guarantee cannot be charged to any ledger."""
    if not isinstance(guarantee, Guarantee):
        raise InputError(f"a charge must be a guarantee, such as `plan.guarantee`; got {type(guarantee).__name__}.")
    if not guarantee.private:
        raise InputError(
            "a release with a seed is not private, and no budget covers it. Make a release without a seed to charge "
            "the ledger."
        )
    if guarantee.neighbours != _NEIGHBOURS:
        raise InputError(f"guarantees in a ledger must be for {_NEIGHBOURS}; this one is for {guarantee.neighbours}.")
    Budget(guarantee.epsilon, guarantee.delta)
    # If the spend were below the stated pair, the ledger would admit further releases that the stated pair excludes.
    needed = guarantee.delta if guarantee.spend is None else composed_delta(guarantee.epsilon, [guarantee], plain=False)
    if needed < FIT * guarantee.delta:
        raise InputError(
            f"the spend of this guarantee does not fit ({guarantee.epsilon:g}, {guarantee.delta:g}), because it "
            f"accounts for a delta of only {needed:.2g}. Remove `spend`, or state the epsilon and delta that follow "
            "from it."
        )
