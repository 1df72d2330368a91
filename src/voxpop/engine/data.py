"""The private data that callers pass to mechanisms.

`CandidateArrays` describes which candidates of a length may receive votes. It is public.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np

from voxpop.engine.local.exact import summary_of
from voxpop.errors import InputError
from voxpop.kernels.arrays import Bools, Int64s
from voxpop.kernels.pairs import belongs, table_of
from voxpop.privacy.budget import card, check_whole

if TYPE_CHECKING:
    from voxpop.engine.contract import Engine
    from voxpop.engine.local.exact import Summary

LARGEST_LIST = 10_000
"""The maximum number of tokens that a summary lists."""


@final
class Corpus:
    """The private data that `voxpop.read` and `voxpop.load_corpus` return, for the `release` method of any mechanism.

    A corpus does not show any of the data, neither tokens nor users nor the number of users. Only `summary` shows
    figures, for the owner of the data.
    """

    __slots__ = ("_engine",)

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine

    @property
    def kind(self) -> str:
        """The kind of data: "text", "tokens", "items" or "sequence"."""
        return self._engine.kind

    def save(self, folder: str | Path) -> None:
        """Save the data to a folder, so that texts are tokenized only once.

        `voxpop.load_corpus` maps the folder into memory.

        Args:
            folder: The folder, which is created or replaced. Only its owner may read it, because it contains private
                data.

        Raises:
            SourceError: If the folder cannot be written, or contains other files.
            InputError: If the data is on a Spark cluster.
        """
        save: Any = getattr(self._engine, "save", None)
        if save is None:
            raise InputError("data on a Spark cluster is not saved. Write the table there, and read it again.")
        save(folder)

    def summary(self, *, exact: bool = False, frequent: int = 0) -> "Summary":
        """Return PRIVATE figures without noise, which show whether the data was read as intended.

        Do not publish the figures, and do not use them to choose a budget or the settings of a mechanism.

        Args:
            exact: Whether numbers are exact. By default, they are rounded to two digits, and small numbers are not
                shown.
            frequent: The number of tokens to list, in order of decreasing number of users. By default, no token is
                shown.

        Returns:
            The kind of data, the tokenizer, and the numbers of users, texts, tokens and tokens per user.

        Raises:
            InputError: If the data is on a Spark cluster, or `frequent` is out of range.

        Example:
            >>> import polars as pl
            >>> import voxpop as vp
            >>> table = pl.DataFrame({"who": range(2000), "what": ["Tea, please", "milk"] * 1000})
            >>> print(vp.read(table, user="who", text="what").summary())
            PRIVATE: computed from the data without noise. Do not publish it.
              kind                                    text
              tokens made by                          words
              users                                   about 2,000
              texts or sequences                      about 2,000
              tokens                                  about 3,000
              different ones                          fewer than 100
              users without any                       fewer than 100
              median per user                         fewer than 100
              95 % of users have at most              fewer than 100
              maximum per user                        fewer than 100
              ids of users                            whole numbers
              ids that differ in case or spaces only  fewer than 100
        """
        check_whole("frequent", frequent, LARGEST_LIST, "the number of tokens to list", least=0)
        return summary_of(self._engine.gathered(), exact=exact, frequent=frequent)

    def __repr__(self) -> str:
        return f"Corpus(kind={self.kind!r}, private)"

    def _repr_html_(self) -> str:
        """Return an HTML box for notebooks, which does not show any of the data."""
        line = "The data is private. A corpus shows none of it, not even the number of users."
        return card(f"Corpus of {self.kind}", [line, "Pass it to a mechanism: vp.Items().release(corpus, budget)."])


class CandidateArrays(Protocol):
    """The public rule that decides which pairs of kept grams may receive votes."""

    @property
    def need(self) -> Int64s:
        """The smallest estimate that makes a partner a candidate, for each left gram."""

    @property
    def estimates(self) -> Int64s:
        """The estimate of each partner. A partner is a kept gram of the same length or (if `single`) a kept token."""

    @property
    def single(self) -> bool:
        """Whether the partner is the next token, rather than the gram that starts one token later."""


@dataclass(frozen=True, slots=True, eq=False)
class Subset:
    """The pairs that a rule allows together with some further pairs, or all pairs that the rule does not allow.

    Attributes:
        rule: The rule that allows pairs of kept grams.
        further: int64, the names of additional pairs in increasing order; None for the pairs that the rule does not
            allow.
    """

    rule: CandidateArrays
    further: Int64s | None

    def holds(self, names: Int64s) -> Bools:
        """Return which of these candidates belong to the subset."""
        table = table_of(np.empty(0, np.int64) if self.further is None else self.further)
        mine = belongs(names, self.rule.need, self.rule.estimates, table).view(np.bool_)
        # If there are no further names, the subset consists of the pairs that the rule rejects.
        return ~mine if self.further is None else mine
