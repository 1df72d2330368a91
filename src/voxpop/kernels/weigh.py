"""Kernels that add bounded sets to an integer histogram, one user after another.

The bounded set of user j is `items[starts[j]:starts[j + 1]]`, which contains distinct ids. Weights are int64 multiples
of a public unit.
"""

import numpy as np

from voxpop.kernels._jit import jit
from voxpop.kernels.arrays import DROPPED, ONE_CAP, Bytes, Int32s, Int64s, Uint64s
from voxpop.kernels.proved import proved

# Contribution bounds select the distinct items first, and then at most `limit` of them.


@jit
@proved("set-union.md#the-mechanism")
def gather_distinct(
    tokens: Int32s, user_start: Int64s, users: Int64s, candidates: Bytes, seen: Int32s, stamp: int
) -> tuple[Int32s, Int64s]:
    """List the distinct candidate items of each user, in order of first appearance.

    Proof: "One user after another adds to a histogram, according to the weighting."

    Args:
        tokens: int32, one id per token; negative ids separate documents.
        user_start: int64 (n_users + 1), the first position of each user's tokens.
        users: int64, the users to read, in this order.
        candidates: uint8 (vocabulary), nonzero for items that may be chosen; empty means every item.
        seen: int32 (vocabulary), scratch space that contains no value in `stamp .. stamp + len(users)`; overwritten.
        stamp: The mark of the first of `users`.

    Returns:
        The items (int32) and starts (int64, len(users) + 1). User `users[j]` has `items[starts[j]:starts[j + 1]]`.
    """
    most = 0
    for j in range(users.size):
        # An upper bound on the number of pairs, which counts all tokens as distinct.
        most += user_start[users[j] + 1] - user_start[users[j]]
    items = np.empty(most, np.int32)
    starts = np.empty(users.size + 1, np.int64)
    filter_items = candidates.size > 0
    end = 0
    for j in range(users.size):
        starts[j] = end
        mark = stamp + j
        for position in range(user_start[users[j]], user_start[users[j] + 1]):
            item = tokens[position]
            # Each user has a distinct mark, so `seen` need not be cleared between users.
            if item < 0 or seen[item] == mark:
                continue
            seen[item] = mark
            if filter_items and candidates[item] == 0:
                continue
            items[end] = item
            end += 1
    starts[users.size] = end
    return items[:end], starts


@jit
def pairs_over_limit(items: Int32s, starts: Int64s, keys: Uint64s, limit: int) -> tuple[Uint64s, Uint64s]:
    """List the pair (user key, item) for every item of the users with more than `limit` items, in order."""
    total = 0
    for j in range(starts.size - 1):
        if starts[j + 1] - starts[j] > limit:
            total += starts[j + 1] - starts[j]
    first = np.empty(total, np.uint64)
    second = np.empty(total, np.uint64)
    end = 0
    for j in range(starts.size - 1):
        if starts[j + 1] - starts[j] <= limit:
            continue
        for position in range(starts[j], starts[j + 1]):
            # The pair (user key, item) identifies the draw, so the draw depends only on the user and the item
            # (docs/privacy/randomness.md).
            first[end] = keys[j]
            second[end] = np.uint64(items[position])
            end += 1
    return first, second


@jit
def _smallest(values: Uint64s, rank: int) -> np.uint64:
    """Return the value of the given rank (0 is the smallest) and reorder the values, by Hoare's selection algorithm."""
    low, high = 0, values.size - 1
    while low < high:
        pivot = values[(low + high) // 2]
        left, right = low, high
        while left <= right:
            while values[left] < pivot:
                left += 1
            while values[right] > pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if rank <= right:
            high = right
        elif rank >= left:
            low = left
        else:
            break
    chosen: np.uint64 = values[rank]
    return chosen


@jit
@proved("README.md#proofs")
def keep_smallest(items: Int32s, starts: Int64s, priorities: Uint64s, limit: int) -> int:
    """Keep the `limit` items of smallest priority for every user who has more items, in place and in order.

    Proof: "Draws that determine samples and orders are functions of independent randomness and of one user each, so
    an added user changes no draws of other users."

    Args:
        items: int32, as returned by `gather_distinct`; overwritten from the front.
        starts: int64, as returned by `gather_distinct`; overwritten with the new starts.
        priorities: uint64, one per pair that `pairs_over_limit` listed.
        limit: The maximum number of items per user.

    Returns:
        The number of items kept. `items[:kept]` and `starts` describe the bounded sets.
    """
    end = 0
    drawn = 0
    begin = starts[0]
    for j in range(starts.size - 1):
        stop = starts[j + 1]
        held = stop - begin
        starts[j] = end
        if held <= limit:
            for position in range(begin, stop):
                items[end] = items[position]
                end += 1
        else:
            mine = priorities[drawn : drawn + held]
            drawn += held
            # The `limit` smallest of independent uniform priorities are a uniform sample without replacement.
            last = _smallest(mine.copy(), limit - 1)
            kept = 0
            for offset in range(held):
                # If several items have the priority of the last kept item, only the first of these items are kept, so a
                # user never keeps more than `limit` items.
                if mine[offset] <= last and kept < limit:
                    items[end] = items[begin + offset]
                    end += 1
                    kept += 1
        begin = stop
    starts[starts.size - 1] = end
    return end


# A run is a number of consecutive positions that contain candidates of one user.


@jit
def candidate_runs(ids: Int32s, user_start: Int64s, wanted: Bytes, whole: bool) -> Int64s:
    """Return the largest number of consecutive positions with a candidate for each user.

    Args:
        ids: int32 by position, the id; negative for no id.
        user_start: int64 (users + 1), the first position of each user.
        wanted: uint8 by id, nonzero for candidates; empty means every id.
        whole: Whether to compute the exact number. If false, the result is 1 for every user with such a run.
    """
    found = np.zeros(user_start.size - 1, np.int64)
    for user in range(user_start.size - 1):
        run = 0
        for place in range(user_start[user], user_start[user + 1]):
            held = ids[place] >= 0 and (wanted.size == 0 or wanted[ids[place]] > 0)
            run = run + 1 if held else 0
            if run > found[user]:
                found[user] = run
                if not whole:
                    break
    return found


# A pool contains the undecided items of one user. Pools are concatenated.


@jit
@proved("adaptive.md#shared-items")
def keep_undecided(items: Int32s, starts: Int64s, keys: Uint64s, dropped: Int64s, states: Bytes) -> tuple[int, int]:
    """Remove decided items, and users without undecided items, in place and in order.

    Proof: "P and Q agree on the states and scores of all shared items, and therefore on cutoffs and on the items that
    get noise. They also agree on n, U, the caps and the drawn items of every other user"

    Args:
        items: int32, the items of all users, concatenated; overwritten from the front.
        starts: int64 (users + 1), the first 0; overwritten from the front.
        keys: uint64 (users), the key of each user; overwritten from the front.
        dropped: int64 (users), the number of the user's items that were dropped; overwritten from the front.
        states: uint8 (vocabulary), the state of each item; undecided items are kept.

    Returns:
        The numbers of remaining items and users.
    """
    end = users = 0
    begin = 0
    for j in range(keys.size):
        stop = starts[j + 1]
        first = end
        many = dropped[j]
        # `end` never exceeds `position`, so overwritten values have already been read.
        for position in range(begin, stop):
            item = items[position]
            if states[item] > DROPPED:
                items[end] = item
                end += 1
            elif states[item] == DROPPED:
                many += 1
        if end > first:
            keys[users] = keys[j]
            dropped[users] = many
            starts[users] = first
            users += 1
        begin = stop
    starts[users] = end
    return end, users


BOUND_BITS = 20
"""The unit of bounds. A multiple of 2^-20 is exact as an integer number of units and as a double."""
ONE_BOUND = 2**BOUND_BITS


@jit
@proved("set-union.md#proof")
def add_even(histogram: Int64s, items: Int32s, starts: Int64s, shares: Int64s) -> None:
    """Add `shares[n]` to every item of each user with n items.

    Proof: "The contribution of a user does not depend on other users."

    Args:
        histogram: int64 (vocabulary), the weights, changed in place.
        items: int32, the items of all users.
        starts: int64 (users + 1), the first position of each user's items.
        shares: int64 (limit + 1), the number of units for each item, by size of the set.
    """
    for j in range(starts.size - 1):
        # The share does not depend on the histogram. Therefore a user adds at most 1 in the l1 or l2 norm, regardless
        # of other users.
        share = shares[starts[j + 1] - starts[j]]
        for position in range(starts[j], starts[j + 1]):
            histogram[items[position]] += share


@jit
@proved("set-union.md#proof")
def l1_descent(histogram: Int64s, items: Int32s, starts: Int64s, cutoff: int, unit: int) -> None:
    """Raise every item of a user by the same level until `unit` is spent or all items reach `cutoff`.

    Proof: "Hence the l1 distance, a difference of sums, does not grow."

    The level is the largest whole number for which the total is at most `unit`. An item that reaches the cutoff adds
    only its gap to the total (DPSU, Algorithm 4, in integers). Therefore, if a histogram is nowhere lower than another
    histogram, this remains exactly true afterwards.
    """
    for j in range(starts.size - 1):
        begin = starts[j]
        size = starts[j + 1] - begin
        gaps = np.empty(size, np.int64)
        for offset in range(size):
            gaps[offset] = cutoff - histogram[items[begin + offset]]
        # This is water filling. The items with the smallest gaps are full first, and the other items share the rest
        # evenly.
        ordered = np.sort(gaps)
        left = unit
        level = 0
        for rank in range(size):
            # If `rank` items are full, each of the other items gets at most floor(left / (size - rank)).
            level = left // (size - rank)
            if ordered[rank] > level:
                break
            left -= ordered[rank]
            # After the last item, all items are full. No gap exceeds the cutoff, so this level fills every gap.
            level = cutoff
        for offset in range(size):
            # min(cutoff, H + level) preserves order, so the l1 distance of two histograms never grows
            # (docs/privacy/set-union.md, "policy-laplace").
            histogram[items[begin + offset]] += min(gaps[offset], level)


@jit
@proved("individual.md#proof")
def add_even_within(histogram: Int64s, items: Int32s, starts: Int64s, shares: Int64s, bounds: Int64s) -> None:
    """Add `shares[n]` times the user's own bound to every item of the user, rounded down.

    Proof: "the distance is therefore at most r_x + kappa_t <= S_t sqrt(c_x / p_t)"

    Args:
        histogram: int64 (vocabulary), the weights, changed in place.
        items: int32, the items of all users.
        starts: int64 (users + 1), the first position of each user's items.
        shares: int64 (limit + 1), the number of units for each item at bound 1, by size of the set, at most 2^40.
        bounds: int64 (users), the bound of each user in multiples of 2^-20, below 2^23.
    """
    for j in range(starts.size - 1):
        # The product is below 2^63, because the factors are at most 2^40 and below 2^23. The shift rounds down, so no
        # user exceeds their bound.
        share = (shares[starts[j + 1] - starts[j]] * bounds[j]) >> BOUND_BITS
        for position in range(starts[j], starts[j + 1]):
            histogram[items[position]] += share


@jit
@proved("set-union.md#proof")
def l2_descent(histogram: Int64s, items: Int32s, starts: Int64s, cutoff: int, unit: int, bounds: Int64s) -> None:
    """Move a user's items towards `cutoff` by the user's bound in the l2 norm (DPSU, Algorithm 7, for bound 1).

    Proof: "By Moreau's decomposition, this is the proximal map of the norm, and proximal maps are nonexpansive.
    Off W, it is the identity."

    Gaps are exact integers. The squares of the gaps are summed with compensation, and each step is rounded down.
    Therefore one user's step is within 8 * 2^-53 * bound + sqrt(size) / unit of the exact step in l2, in units of
    weight. A bound is exact in a double, so dividing by it adds at most the two roundings of one quotient, which
    docs/privacy/set-union.md counts. A bound of 0 changes nothing.

    Args:
        histogram: int64 (vocabulary), the weights, changed in place.
        items: int32, the items of all users.
        starts: int64 (users + 1), the first position of each user's items.
        cutoff: The cutoff, in units.
        unit: The number of units in a weight of 1.
        bounds: int64, the bounds in multiples of 2^-20, one for each user or a single bound for all users.
    """
    for j in range(starts.size - 1):
        steps = bounds[j] if bounds.size > 1 else bounds[0]
        if steps <= 0:
            continue
        begin = starts[j]
        size = starts[j + 1] - begin
        total = 0.0
        lost = 0.0
        for offset in range(size):
            # The squares of gaps are measured in units of weight. `lost` is the rounding error, which is added back
            # (Kahan, 1965).
            gap = (cutoff - histogram[items[begin + offset]]) / unit
            term = gap * gap - lost
            raised = total + term
            lost = (raised - total) - term
            total = raised
        # The l2 norm of the gaps, divided by the bound, for a projection onto the ball with the bound as its radius.
        length = np.sqrt(total) / (steps / ONE_BOUND)
        for offset in range(size):
            item = items[begin + offset]
            gap = cutoff - histogram[item]
            # The step along the gaps has length 1, or less if the cutoffs are nearer.
            if length > 1.0:
                # For the gaps z, z - P(z) is a proximal map (docs/privacy/set-union.md, "policy-gaussian"). The step is
                # rounded towards 0 and never exceeds the cutoff.
                histogram[item] += min(np.int64(gap / length), gap)
            else:
                histogram[item] = cutoff


@jit
@proved("known.md#the-mechanism")
def count_listed(items: Int32s, starts: Int64s, listed: Bytes) -> Int64s:
    """Return the number of listed items of each user.

    Proof: "Let n be the number of unknown items in the pool of a user that are not released"

    Args:
        items: int32, the items of all users.
        starts: int64 (users + 1), the first position of each user's items.
        listed: uint8 (vocabulary), nonzero for listed items.
    """
    counts = np.zeros(starts.size - 1, np.int64)
    for j in range(starts.size - 1):
        for position in range(starts[j], starts[j + 1]):
            counts[j] += listed[items[position]] != 0
    return counts


@jit
@proved("adaptive.md#shared-items")
def capped_descent(
    histogram: Int64s,
    items: Int32s,
    starts: Int64s,
    states: Bytes,
    cutoffs: Int64s,
    unit: int,
    caps: Int64s,
    listed: Bytes,
) -> None:
    """Move a user's items towards their cutoffs by the projection of the gaps onto the unit ball within a box.

    Proof: "So the map is the proximal map of the support function of K, and it never increases the distance between two
    points."

    The projection is min(f gap, cap), with f at most 1 so that the l2 norm is at most 1. f increases while items reach
    the cap. Items at the cap are counted in integers, so 1 - k cap^2 is exact. The squares of the other gaps are summed
    with compensation. One user's step is within 8 * 2^-53 * (1 + 4 / cap) + sqrt(size) / unit of the exact step in l2,
    if 1 / cap^2 is at least 1/4 above and 1/16 below a whole number (docs/privacy/adaptive.md).

    Args:
        histogram: int64 (vocabulary), the weights, changed in place.
        items: int32, the items of all users.
        starts: int64 (users + 1), the first position of each user's items.
        states: uint8 (vocabulary), the position of each item's cutoff.
        cutoffs: int64 (256), the cutoff of each state, in units, above 0.
        unit: The number of units in a weight of 1, a power of two.
        caps: int64 (users), the maximum weight that the user gives to one item, in multiples of 2^-30, at most 2^30; 0
            for a user who gives weight only to listed items.
        listed: uint8 (vocabulary), nonzero for items with a cap of 1; empty if there are no such items.
    """
    free = listed.size > 0
    most = 0
    for j in range(starts.size - 1):
        most = max(most, starts[j + 1] - starts[j])
    gaps = np.empty(most, np.float64)
    uncapped = np.zeros(most, np.bool_)
    for j in range(starts.size - 1):
        if caps[j] <= 0 and not free:
            continue
        begin = starts[j]
        size = starts[j + 1] - begin
        # The cap is exact as a weight.
        cap = caps[j] / ONE_CAP
        total = 0.0
        lost = 0.0
        for offset in range(size):
            item = items[begin + offset]
            gap = (cutoffs[states[item]] - histogram[item]) / unit
            gaps[offset] = gap
            uncapped[offset] = free and listed[item] != 0
            # Kahan's sum of squares, as in `l2_descent`.
            term = gap * gap - lost
            raised = total + term
            lost = (raised - total) - term
            total = raised
        factor = 1.0 if total <= 1.0 else 1.0 / np.sqrt(total)
        # A cap of 1 has no effect within the ball.
        left = ONE_CAP * ONE_CAP
        remaining = size if caps[j] < ONE_CAP else 0
        while remaining > 0:
            kept = 0
            total = 0.0
            lost = 0.0
            for offset in range(remaining):
                gap = gaps[offset]
                if gap * factor >= cap and not uncapped[offset]:
                    left -= caps[j] * caps[j]
                else:
                    gaps[kept] = gap
                    uncapped[kept] = uncapped[offset]
                    kept += 1
                    term = gap * gap - lost
                    raised = total + term
                    lost = (raised - total) - term
                    total = raised
            if kept == remaining:
                break
            remaining = kept
            # The other items share the rest. The maximum prevents rounding from decreasing their factor.
            if left >= total * (ONE_CAP * ONE_CAP):
                factor = 1.0
            elif left > 0:
                factor = max(factor, np.sqrt(left / (ONE_CAP * ONE_CAP) / total))
        # The cap in units is rounded down.
        highest = caps[j] * (unit // ONE_CAP) if unit >= ONE_CAP else caps[j] * unit // ONE_CAP
        for offset in range(size):
            item = items[begin + offset]
            gap = cutoffs[states[item]] - histogram[item]
            step = gap
            # The step is rounded towards 0 and never goes beyond the cutoff.
            if factor < 1.0:
                step = min(np.int64(gap * factor), gap)
            histogram[item] += step if free and listed[item] != 0 else min(step, highest)
