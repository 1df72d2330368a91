"""What may leave the building: a set of grams, the plan that ran, and what it guarantees."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol, final

import pyarrow as pa

from voxpop.privacy.guarantee import Guarantee
from voxpop.release.grams import check_canonical, table_of_items

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from voxpop.release.completing import Completer, Completion

ROWS_AT_ONCE = 65_536


class Plan(Protocol):
    """What a release asks of the plan that made it: its public numbers, and its text."""

    def to_dict(self) -> dict[str, Any]:
        """Return the public numbers, ready for JSON."""
        ...


@final
@dataclass(frozen=True, repr=False, eq=False)
class Release:
    """A released set of grams: it says which, and neither how many users held them nor in what order they came.

    Everything here is public: the set, the plan and the guarantee. A gram is a tuple of tokens; an item is a gram of
    length 1. Rows come in canonical order, by length and then by bytes, so they depend on the set alone.

    Attributes:
        grams: pyarrow table with the columns `gram` (list of string) and `length` (int32).
        plan: the numbers that ran; `plan.to_dict()` and `str(plan)` show them.
        guarantee: what the release guarantees, or that it is not private.
        reading: how tokens were made: the tokeniser of texts, or "items", "tokens", "sequence"; "" if not known.

    Example:
        >>> import pyarrow as pa
        >>> import voxpop as vp
        >>> from voxpop.release.stored_plan import StoredPlan
        >>> plan = StoredPlan({"mechanism": "set union", "sigma": 1.2})
        >>> words = vp.Release.from_items(pa.array(["milk", "tea"]), plan, vp.Guarantee(4, 1e-7))
        >>> words
        Release(2 grams, (4, 1e-07)-DP, one user added or removed)
        >>> "tea" in words, ("oat", "milk") in words
        (True, False)
        >>> list(words)
        [('milk',), ('tea',)]
    """

    grams: pa.Table
    plan: Plan
    guarantee: Guarantee
    reading: str = ""

    def __post_init__(self) -> None:
        """Refuse a table in any form but the canonical one."""
        check_canonical(self.grams)

    @staticmethod
    def from_items(items: Any, plan: Plan, guarantee: Guarantee, reading: str = "") -> "Release":
        """Make the release of single items.

        Args:
            items: pyarrow array of strings, distinct and sorted by their UTF-8 bytes.
            plan: the plan that ran.
            guarantee: what it guarantees.
            reading: how tokens were made, where that is known.

        Returns:
            The release.

        Raises:
            InternalError: if the items are not distinct and sorted.
        """
        return Release(table_of_items(items), plan, guarantee, reading)

    def to_arrow(self) -> pa.Table:
        """Return the grams as a pyarrow table with the columns `gram` and `length`."""
        return self.grams

    def to_polars(self) -> "pl.DataFrame":
        """Return the grams as a polars table with the columns `gram` (list of str) and `length` (i32)."""
        import polars as pl

        frame = pl.from_arrow(self.grams)
        assert isinstance(frame, pl.DataFrame)
        return frame

    def to_pandas(self) -> "pd.DataFrame":
        """Return the grams as a pandas table with the columns `gram` (list of str) and `length`; needs pandas."""
        import pandas as pd

        return pd.DataFrame({"gram": self.grams["gram"].to_pylist(), "length": self.grams["length"].to_numpy()})

    def complete(self, prompt: str | Sequence[str], limit: int = 10) -> list["Completion"]:
        """Return how released grams go on from here: what comes next, by the longest context, with back-off.

        The longest end of the prompt that a released gram extends is looked up first, then shorter ones, down to the
        last token. Within one context the tokens that most released grams go on with come first; ties go to
        what the shorter context prefers, then to the order of bytes. Nothing of it depends on how many users held what.

        Args:
            prompt: a text, cut as the texts of the release were (where that is known), or a list of tokens. The last
                word of a text may be a beginning: it is completed where it was not released, where no released gram
                has it behind the word before it, or where nothing follows. An empty prompt asks how grams begin.
            limit: most continuations.

        Returns:
            At most `limit` continuations of different tokens, best first; none where nothing fits.

        Raises:
            InputError: for a prompt that is neither a text nor a list of strings, or a limit below 1.

        Example:
            >>> import polars as pl
            >>> import voxpop as vp
            >>> table = pl.DataFrame({"who": range(3000), "what": ["Thank you very much", "thank you for it"] * 1500})
            >>> corpus = vp.read(table, user="who", text="what")
            >>> phrases = vp.NGrams(max_length=3, limit=10).release(corpus, vp.Budget(epsilon=4, delta=1e-8))
            >>> [(each.token, each.context) for each in phrases.complete("I thank you")]
            [('for', ('thank', 'you')), ('very', ('thank', 'you'))]
            >>> [each.token for each in phrases.complete("Thank you v")]
            ['very']
        """
        return self._completer.complete(prompt, limit)

    def save(self, folder: str | PathLike[str]) -> None:
        """Save to a folder, whole or not at all; an earlier release there is replaced in one step.

        The folder gets `release.parquet` (the grams), `release.json` (plan and guarantee) and `report.html`, a page for
        whoever signs the release off. Their bytes depend on the release alone. `voxpop.load` reads them back.

        Args:
            folder: where to; it may be new, empty, or hold a release.

        Raises:
            ReleaseError: if the folder holds anything else, or cannot be written.
        """
        from voxpop.release.saving import save_release

        save_release(self, folder)

    def __len__(self) -> int:
        return int(self.grams.num_rows)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        for batch in self.grams.to_batches(max_chunksize=ROWS_AT_ONCE):
            yield from map(tuple, batch.column("gram").to_pylist())

    def __contains__(self, gram: object) -> bool:
        """Say whether a gram was released: a tuple or list of tokens, or one token as a string."""
        wanted = (gram,) if isinstance(gram, str) else tuple(gram) if isinstance(gram, list) else gram
        return wanted in self._members

    def __eq__(self, other: object) -> bool:
        """Compare the set, the numbers that ran, and the guarantee."""
        if not isinstance(other, Release):
            return NotImplemented
        mine, theirs = (self.guarantee, self.reading), (other.guarantee, other.reading)
        return mine == theirs and self.plan.to_dict() == other.plan.to_dict() and bool(self.grams.equals(other.grams))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Release({len(self):,} gram{'' if len(self) == 1 else 's'}, {self.guarantee})"

    @cached_property
    def _members(self) -> frozenset[tuple[str, ...]]:
        return frozenset(self)

    @cached_property
    def _completer(self) -> "Completer":
        from voxpop.release.completing import Completer

        return Completer(self.grams, self.reading)
