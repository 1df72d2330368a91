"""What may leave the building: a set of grams, the plan that ran, and what it guarantees."""

from collections.abc import Iterator
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

    def __post_init__(self) -> None:
        """Refuse a table in any form but the canonical one."""
        check_canonical(self.grams)

    @staticmethod
    def from_items(items: Any, plan: Plan, guarantee: Guarantee) -> "Release":
        """Make the release of single items.

        Args:
            items: pyarrow array of strings, distinct and sorted by their UTF-8 bytes.
            plan: the plan that ran.
            guarantee: what it guarantees.

        Returns:
            The release.

        Raises:
            InternalError: if the items are not distinct and sorted.
        """
        return Release(table_of_items(items), plan, guarantee)

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

    def save(self, folder: str | PathLike[str]) -> None:
        """Save to a folder, whole or not at all; an earlier release there is replaced in one step.

        The folder gets `release.parquet` (the grams) and `release.json` (plan and guarantee). Their bytes depend on the
        release alone. `voxpop.load` reads them back.

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
        same_words = self.guarantee == other.guarantee and self.plan.to_dict() == other.plan.to_dict()
        return same_words and bool(self.grams.equals(other.grams))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Release({len(self):,} gram{'' if len(self) == 1 else 's'}, {self.guarantee})"

    @cached_property
    def _members(self) -> frozenset[tuple[str, ...]]:
        return frozenset(self)
