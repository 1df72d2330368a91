"""What may be asked of something released: its grams and what is stated of them, none of the verbs of `Release`.

Exports, reports, counts and what is saved ask for no more, so they stand below `release.py`, which calls them.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa

from voxpop.keys import Keys
from voxpop.privacy.guarantee import Guarantee
from voxpop.release.about import About


class Plan(Protocol):
    """What a release asks of the plan that made it: its public numbers, and its text."""

    def to_dict(self) -> dict[str, Any]:
        """Return the public numbers, ready for JSON."""
        ...


class Released(Protocol):
    """A released set of grams; `Release` says what each part means."""

    @property
    def grams(self) -> pa.Table:
        """Table with the columns `gram` (list of string) and `length` (int32), in canonical order."""

    @property
    def plan(self) -> Plan:
        """The numbers that ran."""

    @property
    def guarantee(self) -> Guarantee:
        """What the release guarantees."""

    @property
    def reading(self) -> str:
        """How tokens were made; "" if not known."""

    @property
    def keys(self) -> Keys | None:
        """The columns that items came from, none for words; None for a release of grams."""

    @property
    def about(self) -> About:
        """What the operator says of it."""

    def each_gram(self) -> Iterator[tuple[str, ...]]:
        """Yield every gram as a tuple of tokens, in canonical order."""

    def to_arrow(self) -> pa.Table:
        """Return the table of grams, and of keys where there are some."""

    def __len__(self) -> int:
        """Return how many grams there are."""

    def __contains__(self, gram: object) -> bool:
        """Say whether an item or a gram was released."""
