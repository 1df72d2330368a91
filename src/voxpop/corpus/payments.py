"""What every user has left of its own budget, and what it pays: private, and asked by nobody.

A user pays for a pass where it holds a candidate there, before anybody looks at weights. So what it pays is a function
of its own items, its own past and public results, which is what the proof of the individual filter starts from
(docs/privacy/individual.md). Nothing here is ever part of a result.
"""

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from voxpop.arrays import Bytes, Int64s
from voxpop.corpus.limited.pages import forget_pages
from voxpop.errors import InternalError
from voxpop.kernels.runs import candidate_runs
from voxpop.threads import in_order

if TYPE_CHECKING:
    from voxpop.corpus.engine import Price
    from voxpop.corpus.holdings import Holdings

POSITIONS_AT_ONCE = 1 << 21


class UserBudgets:
    """What is left to each user, in the order in which users lie."""

    def __init__(self, left: Int64s | None = None) -> None:
        """Begin with what users have left; None where nobody has paid yet."""
        self._left = left

    def left(self, users: int) -> Int64s | None:
        """Return what each of so many users has left, None where nobody has paid yet."""
        if self._left is not None and self._left.size != users:
            raise InternalError("users came or went after some had paid; please report the call.")
        return self._left

    def pay(self, price: "Price", holdings: "Holdings", wanted: Bytes | None) -> Int64s:
        """Let every user pay for a pass; return how far each may move the weights.

        Args:
            price: of the pass.
            holdings: what users hold, in the order in which they weigh.
            wanted: uint8 by id, nonzero for candidates; None for all ids.
        """
        if holdings.order is not None:
            raise InternalError("users were to pay before they were put in order; please report the call.")
        users = holdings.user_key.size
        left = self.left(users)
        left = np.full(users, price.whole, np.int64) if left is None else left
        runs = runs_of(holdings, wanted, whole=price.by_runs)
        # (users,), before any weight is looked at: what others did has no part in it (docs/privacy/individual.md).
        costs = price.costs(left, runs > 0, runs)
        # Private for good: no price, noise or threshold is ever computed from it.
        self._left = left - costs
        return price.reaches(costs)

    def __repr__(self) -> str:
        return "UserBudgets(private)"


def runs_of(holdings: "Holdings", wanted: Bytes | None, *, whole: bool) -> Int64s:
    """Return by user the most positions in a row that hold a candidate; where not `whole`, 1 for any."""
    starts = holdings.user_start
    # uint8 (ids); empty stands for all.
    mask = np.empty(0, np.uint8) if wanted is None else wanted
    # Cut at users, so that no run is counted in two parts.
    cuts = np.searchsorted(starts, np.arange(0, int(starts[-1]), POSITIONS_AT_ONCE))
    edges = np.unique([0, *cuts.tolist(), starts.size - 1]).tolist()

    def count(span: tuple[int, int]) -> Int64s:
        found = candidate_runs(holdings.ids, starts[span[0] : span[1] + 1], mask, whole)
        if holdings.limit is not None:
            forget_pages(holdings.ids, int(starts[span[0]]), int(starts[span[1]]))
        return found

    return np.concatenate([np.empty(0, np.int64), *in_order(count, pairwise(edges))])
