"""What the operator says of a release: title, data set, purpose, who and when. Public by their word, never computed."""

import datetime
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, final

from voxpop.errors import InputError

LONGEST = 500


@final
@dataclass(frozen=True, slots=True)
class About:
    """What a report says above the numbers, so that somebody can sign it.

    Attributes:
        title: of the report.
        dataset: which data it was made from.
        purpose: what it is for.
        operator: who made it.
        date: when, as 2026-11-22.
        ledger: the entry of the ledger that was charged; filled in by the ledger.

    Raises:
        InputError: for what is no line of text of up to 500 characters.

    Example:
        >>> About(title="Words of our forum").stated({"operator": "ann", "purpose": None}, today="2026-11-22")
        About(title='Words of our forum', dataset='', purpose='', operator='ann', date='2026-11-22', ledger='')
    """

    title: str = ""
    dataset: str = ""
    purpose: str = ""
    operator: str = ""
    date: str = ""
    ledger: str = ""

    def __post_init__(self) -> None:
        """Refuse what cannot stand in a report."""
        for each in fields(self):
            _check_line(each.name, getattr(self, each.name))
        if self.date:
            _check_date(self.date)

    def stated(self, given: Mapping[str, str | None], today: str | None = None) -> "About":
        """Return this with what is given in place of what stood there; None leaves a field as it was.

        Args:
            given: fields and what they become.
            today: the date where something is stated and no date is known; by default that of this machine.
        """
        said = {name: value for name, value in given.items() if value is not None}
        about = replace(self, **said)
        if said and not about.date:
            return replace(about, date=today or datetime.date.today().isoformat())
        return about

    def to_dict(self) -> dict[str, str]:
        """Return what is stated, ready for JSON."""
        return {name: value for name, value in asdict(self).items() if value}

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "About":
        """Return what `to_dict` described."""
        return About(**{each.name: values.get(each.name, "") for each in fields(About)})


def _check_line(name: str, value: object) -> None:
    if not isinstance(value, str) or len(value) > LONGEST or not (value.isprintable() or not value):
        raise InputError(f"`{name}` must be one line of text of up to {LONGEST} characters, for the report.")


def _check_date(value: str) -> None:
    try:
        datetime.date.fromisoformat(value)
    except ValueError:
        raise InputError(f"`date` must be a day such as 2026-11-22, got {value!r}.") from None


NOTHING_SAID = About()
