"""The grams of a release that most users hold, in order: noisy, so public."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from os import PathLike
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np
import pyarrow as pa

from voxpop.arrays import Int64s
from voxpop.arrow import int64_array
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.in_words import cautions
from voxpop.release.release import Release
from voxpop.release.released import Plan
from voxpop.showing import SHOWN, card, printable

if TYPE_CHECKING:
    import polars as pl


@final
@dataclass(frozen=True, repr=False, eq=False)
class Ranking:
    """The first grams of a release by about how many users hold them: which, in which order, and no counts.

    Attributes:
        grams: the release that was ranked.
        places: int64, rows of the release, the gram of most users first.
        plan: the numbers that ran.
        guarantee: what the ranking guarantees by itself.
    """

    grams: Release
    places: Int64s
    plan: Plan
    guarantee: Guarantee

    @property
    def with_release(self) -> Guarantee:
        """What the release and its ranking guarantee together: both say something about the same users."""
        from voxpop.privacy.composition import compose

        return compose([self.grams.guarantee, self.guarantee])

    def to_list(self) -> list[Any]:
        """Return what iteration over the release yields, most users first."""
        return list(self)

    def to_arrow(self) -> pa.Table:
        """Return the rows of the release in their order, and a column place (int64) from 1 on.

        A key of the release that is called place itself stands in `gram` alone.
        """
        table = self.grams.to_arrow().take(int64_array(self.places))
        names = [name for name in table.column_names if name != "place"]
        return table.select(names).append_column("place", int64_array(np.arange(1, self.places.size + 1)))

    def to_polars(self) -> "pl.DataFrame":
        """Return a polars table of the columns of `to_arrow`."""
        import polars as pl

        return cast(pl.DataFrame, pl.from_arrow(self.to_arrow()))

    def save(self, folder: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Save beside the release, into the folder where that was saved.

        The folder gets `top.parquet`, which has the row of the release at each place, and `top.json`.

        Args:
            folder: where the release was saved.
            overwrite: whether to replace a ranking that is there already.

        Raises:
            ReleaseError: if the folder holds another release or a ranking, or cannot be written.
        """
        from voxpop.release.additions import RANKINGS

        RANKINGS.save(self, self.places, folder, overwrite=overwrite)

    @staticmethod
    def load(folder: str | PathLike[str]) -> "Ranking":
        """Load the ranking that `save` saved, and its release, from the folder that holds both.

        Raises:
            ReleaseError: if there is no ranking, or a file is damaged.
        """
        from voxpop.release.additions import RANKINGS

        release, places, plan, guarantee = RANKINGS.load(folder)
        rows = np.unique(places)
        if rows.size < places.size or (rows.size and (rows[0] < 0 or rows[-1] >= len(release))):
            raise RANKINGS.damaged(folder)
        return Ranking(release, places, plan, guarantee)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the table of `to_arrow` to whatever speaks Arrow."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def each_gram(self) -> Iterator[tuple[str, ...]]:
        """Yield every gram as a tuple of tokens, items as tuples of one, in order."""
        grams = self.grams.grams["gram"].take(int64_array(self.places)).to_pylist()
        return map(tuple, grams)

    def __len__(self) -> int:
        return int(self.places.size)

    def __iter__(self) -> Iterator[Any]:
        """Yield what the release yields, most users first."""
        grams = self.grams.to_list()
        return (grams[place] for place in self.places)

    def __repr__(self) -> str:
        return f"Ranking({len(self):,} of {len(self.grams):,} grams, {self.guarantee})"

    def _repr_html_(self) -> str:
        """Return guarantee and the first grams, for a notebook."""
        first = enumerate(islice(self.each_gram(), SHOWN), start=1)
        rows = [(f"{place:,}", printable(gram)) for place, gram in first]
        title = f"The {len(self):,} of {len(self.grams):,} that most users hold"
        lines = [f"{self.guarantee}; with the release: {self.with_release}", "In order, about; no counts."]
        return card(title, lines, ("place", "gram"), rows, cautions(self.with_release))
