"""How users share over public grams: their counts, and the classes of users by the number of grams that they hold."""

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from voxpop.errors import InternalError
from voxpop.kernels.arrays import Bools, Int32s, Int64s
from voxpop.kernels.proved import proved

BITS: Final = 24
"""Counts are whole multiples of 2^-24 before noise; 2^33 users stay below 2^57."""
UNIT: Final = 1 << BITS
"""One user, in these multiples."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class HolderShares:
    """One for each gram up to the limit, and evenly less beyond, so that the squares add up to at most the limit.

    Attributes:
        limit: most grams for which a user counts in full.
        counted: bool by id, which grams count; None where all do. Others neither get a share nor use any up.
    """

    limit: int
    counted: Bools | None = None
    sequential = False

    @proved("counts.md#proof")
    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, bounds: Int64s | None = None) -> None:
        """Add the shares of bounded sets in place.

        Proof: "over all lengths to at most l_1 + l_2 + ..., which is the square of the sensitivity"
        """
        from voxpop.kernels.weigh import add_even

        if bounds is not None:
            raise InternalError("counts have no proof for users with unequal bounds")
        if self.counted is not None:
            chosen = self.counted[items]
            # Parts of longer grams that are not on the list neither count nor use up anything.
            before = np.concatenate([[0], np.cumsum(chosen)])
            items, starts = items[chosen], before[starts].astype(np.int64)
        most = int(np.diff(starts).max(initial=0))
        add_even(histogram, items, starts, share_table(self.limit, most))


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClassShares:
    """One for the class of a user by its number of grams, and nothing for grams: the histogram has classes, not ids.

    The class of a user is the number of edges that are at most its number of grams, so it is below that number and is
    always a place of the histogram.

    Attributes:
        edges: rising; the first above 1, each at least twice the one before.
        counted: bool by id, which grams count; None where all do.
    """

    edges: tuple[int, ...]
    counted: Bools | None = None
    sequential = False

    @proved("counts.md#the-choice-of-the-limit")
    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, bounds: Int64s | None = None) -> None:
        """Add the users of bounded sets in place.

        Proof: "The class is a function of the user's own data and of S, so one user moves the counts by one unit
        vector."
        """
        if bounds is not None:
            raise InternalError("users are counted once, and have no bounds")
        counts = np.ones(items.size, np.bool_) if self.counted is None else self.counted[items]
        held = np.diff(np.concatenate([[0], np.cumsum(counts)])[starts])
        classes = np.searchsorted(self.edges, held[held > 0], side="right")
        if classes.size:
            np.add.at(histogram, classes, 1)


@proved("counts.md#what-integers-and-doubles-change")
def share_table(limit: int, most: int) -> Int64s:
    """Return the share, in units, by the number of grams held, from 0 to `most`.

    Proof: "n share^2 <= limit holds in whole numbers"

    Args:
        limit: most grams for which a user counts in full.
        most: the last number wanted.

    Returns:
        int64: n times the square of entry n is at most limit times `UNIT` squared, in whole numbers.

    Example:
        >>> [round(share / UNIT, 3) for share in share_table(2, 4).tolist()]
        [1.0, 1.0, 1.0, 0.816, 0.707]
    """
    # (most + 1,), units by number of grams held: 1 up to the limit, sqrt(limit / n) beyond.
    shares = np.full(most + 1, UNIT, np.int64)
    beyond = np.arange(limit + 1, most + 1)
    # A double is right to less than a unit, so one less is never too much.
    shares[limit + 1 :] = np.floor(UNIT * np.sqrt(limit / beyond)).astype(np.int64) - 1
    return shares
