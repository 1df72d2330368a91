"""The number of released grams by length, for several releases. The function reads only released results."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from voxpop.release.release import Release


def released_by_length(releases: Mapping[str, "Release"]) -> pl.DataFrame:
    """Count the grams of releases by length.

    Args:
        releases: The releases by name.

    Returns:
        One row for each release, with the columns name, one for each length from 1 on, and total. The table is public.

    Example:
        >>> import pyarrow as pa
        >>> import voxpop as vp
        >>> from voxpop.release.result import StoredPlan
        >>> words = vp.Release.from_items(pa.array(["milk", "tea"]), StoredPlan({}), vp.Guarantee(4, 1e-7))
        >>> released_by_length({"words": words}).rows()
        [('words', 2, 2)]
    """
    counts = {name: np.bincount(release.grams["length"].to_numpy()) for name, release in releases.items()}
    longest = max((count.size - 1 for count in counts.values()), default=1)
    rows = []
    for name, count in counts.items():
        padded = np.pad(count, (0, max(0, longest + 1 - count.size)))[1:].tolist()
        rows.append((name, *padded, sum(padded)))
    return pl.DataFrame(rows, schema=["name", *map(str, range(1, longest + 1)), "total"], orient="row")
