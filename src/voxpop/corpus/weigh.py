"""Weigh a corpus: every user picks at most `limit` distinct candidates and shares its weight over them."""

import numpy as np

from voxpop.arrays import Bytes, Int64s
from voxpop.arrow import int64_array
from voxpop.corpus.bound import bounded_sets
from voxpop.corpus.draws import Draws
from voxpop.corpus.engine import Shares
from voxpop.corpus.histogram import Histogram
from voxpop.corpus.holdings import Holdings
from voxpop.errors import InternalError

NAMES_AT_ONCE = 1 << 20
BYTES_OF_ID = 48
"""Bytes that a distinct item takes at the peak: weight, last user who held it, result, and pages of its name."""


def weigh(
    holdings: Holdings,
    shares: Shares,
    limit: int,
    candidates: Bytes | None,
    secret: Draws,
    pass_name: str,
    reaches: Int64s | None = None,
) -> Histogram:
    """Return the histogram of the bounded sets: one pass over the positions.

    Args:
        holdings: the private side: what every user holds.
        shares: how a user's weight is shared, with its grid and cutoff filled in.
        limit: most items of one user.
        candidates: uint8 (ids), nonzero where an item may be chosen, a function of public outputs only; None
            means every item.
        secret: source of the sample and of the order of users.
        pass_name: which pass of the release this is, such as "round 0/length 1"; every pass draws afresh.
        reaches: int64 by user, in the order in which they lie: how far each may move the weights, as it was paid for;
            None where everybody may by 1.

    Returns:
        Weights of exactly those items that lie in some bounded set.
    """
    if holdings.limit is not None:
        holdings.limit.require(BYTES_OF_ID * holdings.size, "the weights of all distinct tokens or pairs")
    # int64 (ids), units of the weighting's grid: sums are exact, so their order matters to sequential weightings alone.
    histogram, weighed = np.zeros(holdings.size, np.int64), 0
    for items, starts in bounded_sets(holdings, limit, candidates, secret, pass_name, shuffle=shares.sequential):
        if reaches is None:
            shares.add(histogram, items, starts)
        else:
            shares.add(histogram, items, starts, reaches[weighed : weighed + starts.size - 1])
        weighed += starts.size - 1
    # Reaches are by the places of users; in any other order somebody would move by what another paid.
    if reaches is not None and (holdings.order is not None or weighed != reaches.size):
        raise InternalError("users weighed with the reach of others; please report the call.")
    # The support of the bounded sets, and nothing else, may ever be asked about.
    if holdings.names is not None:
        return Histogram(*_supported(holdings.names, histogram))
    ids, words = np.flatnonzero(histogram), holdings.words
    if words is not None and ids.size < len(words):
        words = words.take(int64_array(ids))
    return Histogram(ids, histogram[ids], words)


def _supported(names: Int64s, weights: Int64s) -> tuple[Int64s, Int64s]:
    """Return the names and the weights of those above 0; the weights that are given are used up."""
    found, end = np.empty(np.count_nonzero(weights), np.int64), 0
    for begin in range(0, names.size, NAMES_AT_ONCE):
        mine = weights[begin : begin + NAMES_AT_ONCE]
        held = np.flatnonzero(mine)
        found[end : end + held.size] = names[begin : begin + NAMES_AT_ONCE][held]
        # In place, from the front: hundreds of millions of pairs are not copied once more.
        weights[end : end + held.size] = mine[held]
        end += held.size
    return found, weights[:end] if 2 * end > names.size else weights[:end].copy()
