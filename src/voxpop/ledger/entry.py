"""One release that was charged to a data set."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, final

from voxpop.privacy.guarantee import Guarantee


@final
@dataclass(frozen=True, slots=True)
class Entry:
    """A charge.

    Attributes:
        number: from 1 on, in the order of charging.
        label: what was released, in a few words.
        guarantee: what it may have cost every user.
        charged: when, in UTC.
        finished: whether the release came back. One that did not counts all the same: it may have been seen.
    """

    number: int
    label: str
    guarantee: Guarantee
    charged: str
    finished: bool

    def finish(self) -> "Entry":
        """Return the entry of a release that came back."""
        return replace(self, finished=True)

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
