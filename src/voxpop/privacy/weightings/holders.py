"""The shares of users in counts of public grams, and the classes of users by their number of grams."""

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from voxpop.errors import InternalError
from voxpop.kernels.arrays import Bools, Int32s, Int64s
from voxpop.kernels.proved import proved

BITS: Final = 24
"""Counts before noise are multiples of 2^-24, so the count of 2^33 users is at most 2^57 of these multiples."""
UNIT: Final = 1 << BITS
"""The number of multiples of 2^-24 for one user."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class HolderShares:
    """The shares of users in counts.

    A user with at most `limit` grams has share 1 in the count of each gram. A user with more grams has a smaller share,
    equal for all grams, so that the squares add up to at most the limit.

    Attributes:
        limit: The maximum number of grams of a user who counts in full.
        counted: Whether each gram is counted, as bool by id, or None if all grams are counted. Other grams do not
            affect shares.
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
            # Parts of longer grams that are not on the list are not counted and do not affect shares.
            before = np.concatenate([[0], np.cumsum(chosen)])
            items, starts = items[chosen], before[starts].astype(np.int64)
        most = int(np.diff(starts).max(initial=0))
        add_even(histogram, items, starts, share_table(self.limit, most))


@final
@dataclass(frozen=True, slots=True, eq=False)
class WholeShares:
    """Whole numbers that users add to each of their items. They depend only on the user's number of items.

    Attributes:
        shares: The number to add, by the user's number of items, from 0. The last entry also applies to users with more
            items.
    """

    shares: tuple[int, ...]
    sequential = False

    @proved("keys.md#users-in-parts")
    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, bounds: Int64s | None = None) -> None:
        """Add the numbers of bounded sets in place.

        Proof: "a function of the user's own keys"
        """
        from voxpop.kernels.weigh import add_even

        if bounds is not None:
            raise InternalError("users are counted once, and have no bounds")
        most = max(len(self.shares) - 1, int(np.diff(starts).max(initial=0)))
        # Shape (most + 1,). The last share is repeated for larger numbers of items.
        add_even(histogram, items, starts, np.pad(self.shares, (0, most + 1 - len(self.shares)), "edge"))


@final
@dataclass(frozen=True, slots=True, eq=False)
class ClassShares:
    """Counts of users by class.

    The class of a user depends on their number of grams. The histogram contains classes instead of ids.

    The class of a user is the number of edges that are at most the user's number of grams. Therefore the class is below
    the number of items and is always a valid position in the histogram.

    Attributes:
        edges: The edges, in increasing order. The first edge is above 1.
        counted: Whether each gram is counted, as bool by id, or None if all grams are counted.
    """

    edges: tuple[int, ...]
    counted: Bools | None = None
    sequential = False

    @proved("counts.md#the-choice-of-the-limit")
    def add(self, histogram: Int64s, items: Int32s, starts: Int64s, bounds: Int64s | None = None) -> None:
        """Add 1 to the class of each user who has a counted gram, in place.

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
    """Return the share, in units, by the user's number of grams, from 0 to `most`.

    Proof: "n share^2 <= limit holds in whole numbers"

    Args:
        limit: The maximum number of grams of a user who counts in full.
        most: The largest number of grams in the table.

    Returns:
        int64, the shares. For every n, n times the square of entry n is exactly at most limit times `UNIT` squared.

    Example:
        >>> [round(share / UNIT, 3) for share in share_table(2, 4).tolist()]
        [1.0, 1.0, 1.0, 0.816, 0.707]
    """
    # Shape (most + 1,), in units. The share is 1 up to the limit, and sqrt(limit / n) for larger n.
    shares = np.full(most + 1, UNIT, np.int64)
    beyond = np.arange(limit + 1, most + 1)
    # The error of a double is below one unit, so the share is never too large after one unit is subtracted.
    shares[limit + 1 :] = np.floor(UNIT * np.sqrt(limit / beyond)).astype(np.int64) - 1
    return shares
