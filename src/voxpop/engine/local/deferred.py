"""The deferred candidates of all lengths, which one later pass weighs again.

The users who have a candidate are private.
"""

from itertools import pairwise

import numpy as np

from voxpop.engine.local.weigh import Holdings, distinct_sets
from voxpop.errors import InternalError
from voxpop.kernels.arrays import Bytes, Int32s, Int64s, Uint64s
from voxpop.kernels.threads import in_order
from voxpop.kernels.weigh import candidate_runs
from voxpop.privacy.individual import Charge
from voxpop.reading.limited.memory import MemoryLimit, forget_pages, stored

USERS_AT_ONCE = 1 << 18


class DeferredCandidates:
    """The distinct deferred candidates of each user, numbered over all lengths in order of arrival."""

    def __init__(self, limit: MemoryLimit | None) -> None:
        """Create an empty collection.

        Args:
            limit: The memory limit; None for unlimited memory.
        """
        self._limit = limit
        self._items: list[Int32s] = []
        self._starts: list[Int64s] = []
        self.size = 0

    def add(self, holdings: Holdings, ranks: Int32s, size: int) -> None:
        """Store the deferred candidates of one length.

        Args:
            holdings: The users' grams of this length.
            ranks: int32, the rank of each id among these candidates, or -1.
            size: The number of these candidates, including candidates without users.
        """
        items, counts = [], []
        wanted = (ranks >= 0).view(np.uint8)
        for mine, starts in distinct_sets(holdings, wanted, lambda items, starts, _: (items, starts)):
            # Keep the order of first occurrence in the user's documents, which does not depend on the engine. Ranks are
            # shifted, because candidates are numbered over all lengths.
            items.append(ranks[mine] + np.int32(self.size))
            counts.append(np.diff(starts))
        self._items.append(stored(items, self._limit))
        # Shape (users + 1,), the first position of each user's candidates of this length.
        self._starts.append(np.concatenate([[0], np.cumsum(np.concatenate([np.empty(0, np.int64), *counts]))]))
        self.size += size

    @classmethod
    def of(cls, items: Int32s, starts: Int64s, size: int) -> "DeferredCandidates":
        """Return the collection with the arrays that `joined` returned.

        Args:
            items: int32, the candidates of all users, concatenated.
            starts: int64 (users + 1), the first position of each user's candidates.
            size: The number of candidates.
        """
        found = cls(None)
        found._items, found._starts, found.size = [items], [starts], size
        return found

    def joined(self, users: int) -> tuple[Int32s, Int64s]:
        """Return every user's candidates of all lengths, shortest first, and the first position of each user."""
        holdings = self.holdings(np.empty(users, np.uint64))
        return holdings.ids, holdings.user_start

    def holdings(self, user_key: Uint64s) -> Holdings:
        """Return every user's candidates of all lengths, shortest first."""
        sizes = sum((np.diff(starts) for starts in self._starts), np.zeros(user_key.size, np.int64))
        user_start = np.concatenate([[0], np.cumsum(sizes)])
        spans = range(0, user_key.size, USERS_AT_ONCE)
        ids = stored((self._joined(first, first + USERS_AT_ONCE, user_start) for first in spans), self._limit)
        return Holdings(ids, user_start, user_key, self.size, limit=self._limit)

    def _joined(self, first: int, stop: int, user_start: Int64s) -> Int32s:
        """Return the concatenated candidates of some users."""
        begin = user_start[first:stop]
        ids = np.empty(int(user_start[min(stop, user_start.size - 1)] - begin[0]), np.int32)
        place = begin - begin[0]
        for items, starts in zip(self._items, self._starts, strict=True):
            own = starts[first : stop + 1]
            counts = np.diff(own)
            shift = np.repeat(place[: counts.size] - (own[:-1] - own[0]), counts)
            ids[shift + np.arange(shift.size)] = items[own[0] : own[-1]]
            place = place[: counts.size] + counts
        return ids


# The remaining budgets and the payments of users are private and never part of a result.
#
# Users pay for each pass that contains one of their candidates, before weights are computed. The payment is a function
# of the user's own items, the user's own past, and public results. The proof of the individual filter relies on this
# (docs/privacy/individual.md).

_DEFERRED_AT_ONCE = 1 << 21


class UserBudgets:
    """The remaining budget of each user, in stored order."""

    def __init__(self, left: Int64s | None = None) -> None:
        """Store the remaining budgets of all users; None before the first charge."""
        self._left = left

    def left(self, users: int) -> Int64s | None:
        """Return the remaining budget of each user; None before the first charge."""
        if self._left is not None and self._left.size != users:
            raise InternalError("the users changed after some of them had paid")
        return self._left

    def pay(self, charge: Charge, holdings: Holdings, wanted: Bytes | None) -> Int64s:
        """Charge every user for a pass, and return the contribution bound of each user.

        Args:
            charge: The charge for the pass.
            holdings: The users' grams, in the order of weighing.
            wanted: uint8 (ids), nonzero for candidates; None for all ids.
        """
        users = holdings.user_key.size
        left = self.left(users)
        left = np.full(users, charge.whole, np.int64) if left is None else left
        runs = runs_of_holdings(holdings, wanted, whole=charge.by_runs)
        # Shape (users,), computed before any weight is read, so other users have no influence
        # (docs/privacy/individual.md).
        costs = charge.costs(left, runs > 0, runs)
        # Remaining budgets are always private, so no charge, noise or threshold is computed from them.
        self._left = left - costs
        return charge.bounds(costs)


def runs_of_holdings(holdings: Holdings, wanted: Bytes | None, *, whole: bool) -> Int64s:
    """Return the length of each user's longest run of candidate positions; 1 for any run if `whole` is false."""
    starts = holdings.user_start
    # uint8 (ids). An empty array selects all ids.
    mask = np.empty(0, np.uint8) if wanted is None else wanted
    # The positions are cut only between users, so no run is counted in two parts.
    cuts = np.searchsorted(starts, np.arange(0, int(starts[-1]), _DEFERRED_AT_ONCE))
    edges = np.unique([0, *cuts.tolist(), starts.size - 1]).tolist()

    def count(span: tuple[int, int]) -> Int64s:
        found = candidate_runs(holdings.ids, starts[span[0] : span[1] + 1], mask, whole)
        if holdings.limit is not None:
            forget_pages(holdings.ids, int(starts[span[0]]), int(starts[span[1]]))
        return found

    return np.concatenate([np.empty(0, np.int64), *in_order(count, pairwise(edges))])
