"""The private data that users of voxpop hold.

`Candidates` states which candidates of a length may be voted for. It is public.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np

from voxpop.errors import InputError
from voxpop.kernels.arrays import Bools, Int64s
from voxpop.kernels.pairs import belongs, table_of

if TYPE_CHECKING:
    from voxpop.engine.contract import Engine


@final
class Corpus:
    """Private data, as `voxpop.read` and `voxpop.load_corpus` return it, for `release` of any mechanism.

    It shows nothing of the data: neither tokens nor users, nor their number.
    """

    __slots__ = ("_engine",)

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine

    @property
    def kind(self) -> str:
        """The kind of data: "text", "tokens", "items" or "sequence"."""
        return self._engine.kind

    def save(self, folder: str | Path) -> None:
        """Save to a folder, so that texts are tokenized once; `voxpop.load_corpus` maps the folder into memory.

        Args:
            folder: made or replaced. Only its owner may read it, because it contains private data.

        Raises:
            SourceError: if the folder cannot be written, or contains something else.
            InputError: if the data is on a Spark cluster.
        """
        save: Any = getattr(self._engine, "save", None)
        if save is None:
            raise InputError("data on a Spark cluster is not saved: write the table there, and read it again.")
        save(folder)

    def __repr__(self) -> str:
        return f"Corpus(kind={self.kind!r}, private)"

    def _repr_html_(self) -> str:
        """Return a card for notebooks, which shows nothing of the data."""
        from voxpop.privacy.budget import card

        line = "The data is private: a corpus shows nothing of it, neither users nor their number."
        return card(f"Corpus of {self.kind}", [line, "Pass it to a mechanism: vp.SetUnion().release(corpus, budget)."])


class Candidates(Protocol):
    """Which pairs of kept grams may be voted for: public."""

    @property
    def need(self) -> Int64s:
        """By left gram, the least estimate of a partner; a pair is a candidate exactly where it is reached."""

    @property
    def estimates(self) -> Int64s:
        """By partner: a kept gram of the same length, or where `single` a kept token."""

    @property
    def single(self) -> bool:
        """Whether the partner is the token that follows, rather than the gram that starts one token later."""


@dataclass(frozen=True, slots=True, eq=False)
class Subset:
    """The pairs that a rule allows and some further ones, or all that it does not allow.

    Attributes:
        rule: which pairs of kept grams it allows.
        further: int64, rising, names of pairs that belong to it as well; None for those that the rule does not allow.
    """

    rule: Candidates
    further: Int64s | None

    def holds(self, names: Int64s) -> Bools:
        """Return which candidates belong to it, by their names."""
        table = table_of(np.empty(0, np.int64) if self.further is None else self.further)
        mine = belongs(names, self.rule.need, self.rule.estimates, table).view(np.bool_)
        # Without further names the rule does not allow them.
        return ~mine if self.further is None else mine
