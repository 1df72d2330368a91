"""Kernels that add bounded sets to an integer histogram, one user after the other.

A bounded set is `items[starts[j]:starts[j + 1]]`: distinct ids of one user. Weights are int64 counts of a public unit.
"""

import numpy as np

from voxpop.arrays import Int32s, Int64s
from voxpop.kernels._jit import jit

REACH_BITS = 20
"""A reach is a whole number of 2^-20: exact in integers and in doubles."""
ONE_REACH = 2**REACH_BITS


@jit
def add_even(histogram: Int64s, items: Int32s, starts: Int64s, shares: Int64s) -> None:
    """Add `shares[n]` to every item of a user who holds n items.

    Args:
        histogram: int64 (vocabulary), changed in place.
        items: int32, the items of all users.
        starts: int64 (users + 1).
        shares: int64 (limit + 1), units that each item gets by the size of the set.
    """
    for j in range(starts.size - 1):
        # Independent of the histogram: the l1 or l2 norm of what a user adds is at most 1, whoever else is there.
        share = shares[starts[j + 1] - starts[j]]
        for position in range(starts[j], starts[j + 1]):
            histogram[items[position]] += share


@jit
def l1_descent(histogram: Int64s, items: Int32s, starts: Int64s, cutoff: int, unit: int) -> None:
    """Raise every item of a user by the same level until `unit` is poured or all stand at `cutoff`.

    The level is the largest whole number whose total, items at the cutoff counted by their gap, is at most `unit`
    (DPSU, Algorithm 4, in integers). So a histogram that is nowhere lower stays nowhere lower, exactly.
    """
    for j in range(starts.size - 1):
        begin = starts[j]
        size = starts[j + 1] - begin
        gaps = np.empty(size, np.int64)
        for offset in range(size):
            gaps[offset] = cutoff - histogram[items[begin + offset]]
        # Water filling. The items of the smallest gaps are full first; those still open share what is left evenly.
        ordered = np.sort(gaps)
        left = unit
        level = 0
        for rank in range(size):
            # With `rank` items full, the others may rise by floor(left / (size - rank)).
            level = left // (size - rank)
            if ordered[rank] > level:
                break
            left -= ordered[rank]
            # If this was the last one all are full: no gap is above the cutoff, so the minimum below closes it.
            level = cutoff
        for offset in range(size):
            # min(cutoff, H + level): preserves order, so the l1 distance of two histograms never grows
            # (docs/privacy/set-union.md, "l1-descent").
            histogram[items[begin + offset]] += min(gaps[offset], level)


@jit
def add_even_within(histogram: Int64s, items: Int32s, starts: Int64s, shares: Int64s, reaches: Int64s) -> None:
    """Add to every item of a user the part of `shares[n]` that the user's own reach is of 1, rounded down.

    Args:
        histogram: int64 (vocabulary), changed in place.
        items: int32, the items of all users.
        starts: int64 (users + 1).
        shares: int64 (limit + 1), units that each item gets by the size of the set at reach 1, at most 2^40.
        reaches: int64 (users), in 2^-20, below 2^23.
    """
    for j in range(starts.size - 1):
        # At most 2^40 times less than 2^23: below 2^63. The shift rounds down, so nobody gives more than its reach.
        share = (shares[starts[j + 1] - starts[j]] * reaches[j]) >> REACH_BITS
        for position in range(starts[j], starts[j + 1]):
            histogram[items[position]] += share


@jit
def l2_descent(histogram: Int64s, items: Int32s, starts: Int64s, cutoff: int, unit: int, reaches: Int64s) -> None:
    """Move a user's items towards `cutoff` by an l2 distance of the user's reach (DPSU, Algorithm 7, for reach 1).

    Gaps are exact integers; their squares are summed with compensation and each step is rounded down, so one user's
    step is within 8 * 2^-53 * reach + sqrt(size) / unit of the exact one in l2, in units of weight. A reach is exact in
    a double, so the two roundings that dividing by it may add are those of one quotient; docs/privacy/set-union.md
    counts them. A reach of 0 leaves everything as it is.

    Args:
        histogram: int64 (vocabulary), changed in place.
        items: int32, the items of all users.
        starts: int64 (users + 1).
        cutoff: in units.
        unit: units in a weight of 1.
        reaches: int64, in 2^-20: one for each user, or a single one for all.
    """
    for j in range(starts.size - 1):
        steps = reaches[j] if reaches.size > 1 else reaches[0]
        if steps <= 0:
            continue
        begin = starts[j]
        size = starts[j + 1] - begin
        total = 0.0
        lost = 0.0
        for offset in range(size):
            # Squares of gaps, in units of weight; `lost` is what rounding took, given back (Kahan, 1965).
            gap = (cutoff - histogram[items[begin + offset]]) / unit
            term = gap * gap - lost
            raised = total + term
            lost = (raised - total) - term
            total = raised
        # The l2 norm of the gaps in units of the reach: a projection onto the ball of that radius.
        length = np.sqrt(total) / (steps / ONE_REACH)
        for offset in range(size):
            item = items[begin + offset]
            gap = cutoff - histogram[item]
            # A step of length 1 along the gaps; who is nearer than that goes all the way.
            if length > 1.0:
                # z - P(z) with z the gaps: a proximal map (docs/privacy/set-union.md, "l2-descent"); rounded towards 0,
                # never beyond the cutoff.
                histogram[item] += min(np.int64(gap / length), gap)
            else:
                histogram[item] = cutoff
