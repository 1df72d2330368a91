"""The probability that a prefix survives one round, with the extra user's vote and without.

Let k other users vote for a prefix if sampled. Their numbers of votes are independent, and the prefix survives
with theta votes: p(k) = P(X_1 + ... + X_k >= theta) without the extra user, q(k) = p(k + 1) with it (`ballot.py`). All
the accounting needs about a round is the set of points (p(k), q(k)).

**Fewer points**, for users of one vote at most. The maximised function is jointly convex in p and q, so its
supremum over a set is the one over the corners of any polygon around it. The steps
p(k + 1) - p(k) = s P(Bin(k, s) = theta - 1) have the ratio

    (q(k + 1) - q(k)) / (p(k + 1) - p(k)) = (1 - s) (k + 1) / (k + 2 - theta),

which falls as k grows: the points lie on a concave line. So the points from a to b lie in the triangle of point a,
point b and the crossing of the first step, prolonged, with the last one, prolonged backwards. With steps f(k) the
crossing is

    sum over k from a to b - 1 of f(k) (b - 1 - k) / (k + 2 - theta), divided by (b - 1 - a) / (a + 2 - theta),

to the right of point a: a sum without cancellation. A crossing pushed further out along the first step keeps the
triangle around the points, which absorbs the rounding. This makes the cost independent of how small s is, and loses
nothing that shows: triangles are flat.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import betainc, betaincc, gammaln

from voxpop.errors import BudgetError, InternalError
from voxpop.kernels.arrays import Floats, Int64s
from voxpop.privacy.numerics import least_whole
from voxpop.privacy.trie.ballot import Ballot, survival

NEGLIGIBLE = 1e-16  # numbers of holders are left out where q or 1 - p is below; `accountant.py` pays for it
SPACING = 0.02  # a triangle spans about this share of k
_ALL = 128  # up to this many points none is left out
_OUTWARDS = 1 + 1e-9
_MOST = 1 << 62  # more users than any collection has
_MOST_POINTS = 4_000_000  # numbers of holders at which the extra user can matter: a few hundred MB, a few seconds


def chances(ballot: Ballot, *, negligible: float = NEGLIGIBLE, spacing: float = SPACING) -> Floats:
    """Return corners of a polygon around all points (p, q) at which the extra user can make a difference.

    Args:
        ballot: How users vote, and the threshold.
        negligible: Numbers of holders are left out where q or 1 - p is below.
        spacing: The largest distance of points, as a share of k; where users cast several votes, all points are kept.

    Returns:
        float64 (4, corners): p, the probability that the prefix survives without the extra user; 1 - p; q, the
        probability that it survives with the extra user; and 1 - q. Each has its own relative accuracy.

    Raises:
        BudgetError: The rate is so small that there are too many points to look at.

    Example:
        >>> p, _, q, _ = chances(Ballot(0.5, 2))
        >>> p[:3].tolist(), q[:3].tolist()
        ([0.0, 0.25, 0.5], [0.25, 0.5, 0.6875])
    """
    if ballot.again > 0.0:
        return _every(ballot, negligible)
    rate, theta = ballot.rate, ballot.theta
    # P(Bin(k, s) >= theta) = I_s(theta, k - theta + 1), the regularised incomplete beta function.
    first = max(theta - 1, _boundary(lambda k: betainc(theta, k - theta + 1, rate) < negligible, theta) - 1)
    last = _boundary(lambda k: betaincc(theta, k - theta + 1, rate) > negligible, theta)
    if last - first > _MOST_POINTS:
        raise BudgetError(
            f"a sampling rate of {rate:.3g} is too small to be accounted for: a prefix could be in doubt with up to "
            f"{last:,} holders. Raise `epsilon`, or use fewer rounds."
        )
    holders = np.arange(first, max(last, first + 1) + 1)
    survives, lost = survival(ballot, holders)
    if len(holders) <= _ALL:
        return _points(survives, lost)
    return _thinned(rate, theta, spacing, holders, survives, lost)


def _points(survives: Floats, lost: Floats) -> Floats:
    """Return p, 1 - p, q and 1 - q of adjacent numbers of holders."""
    return np.stack([survives[:-1], lost[:-1], survives[1:], lost[1:]])


def _every(ballot: Ballot, negligible: float) -> Floats:
    """Return every point whose q and 1 - p are not negligible."""
    reach = 64
    while survival(ballot, np.array([reach]))[1][0] > negligible:
        reach *= 2
    points = _points(*survival(ballot, np.arange(reach + 2)))
    likely = points[2] >= negligible
    kept = likely & (points[1] >= negligible)
    kept[np.argmax(likely)] = True
    return points[:, kept]


def _boundary(before: Callable[[int], bool], theta: int) -> int:
    """The least number of holders, at least theta, for which `before` no longer holds."""
    if not before(theta):
        return theta
    first = least_whole(lambda holders: not before(holders), theta, 2 * theta, _MOST)
    if first is None:
        raise InternalError("no number of holders is enough for any chance")
    return first


def _thinned(rate: float, theta: int, spacing: float, holders: Int64s, survives: Floats, lost: Floats) -> Floats:
    """Return some of the points, and the crossings between them."""
    last = len(holders) - 2  # the last point (p, q) needs one holder more
    chosen = _spread(holders[: last + 1], spacing)
    step = _steps(rate, theta, holders)
    start, stop = chosen[:-1], chosen[1:]
    wide = stop - start > 1
    start, stop = start[wide], stop[wide]
    weighted = _moment(step, holders, theta, start, stop)
    k = holders[start].astype(np.float64)
    # The crossing of each triangle, right of point a by the quotient at the top and up along the first step.
    right = weighted / ((stop - start - 1) / (k + 2 - theta)) * _OUTWARDS
    slope = (1 - rate) * (k + 1) / (k + 2 - theta)
    up = slope * right
    p, lost_p, q, lost_q = points = _points(survives, lost)
    crossings = [
        p[start] + right,
        np.maximum(lost_p[start] - right, 0.0),
        np.minimum(q[start] + up, 1.0),
        np.maximum(lost_q[start] - up, 0.0),
    ]
    return np.concatenate([points[:, chosen], crossings], axis=1)


def _spread(holders: Int64s, spacing: float) -> Int64s:
    """Places of holders, each about `spacing` above the one before, with the first and the last."""
    count = int(np.log(holders[-1] / holders[0]) / spacing) + 2
    wanted = np.geomspace(holders[0], holders[-1], count)
    places: Int64s = np.unique((wanted - holders[0]).round().astype(np.int64).clip(0, len(holders) - 1))
    return places


def _steps(rate: float, theta: int, holders: Int64s) -> Floats:
    """Return the gain in the chance of survival by one more user, s P(Bin(k, s) = theta - 1), for all but the last."""
    k = holders[:-1].astype(np.float64)
    # ln of s P(Bin(k, s) = theta - 1) at the first k, then by the ratio of neighbours (1 - s)(k + 1) / (k + 2 - theta).
    first = theta * np.log(rate) + gammaln(k[0] + 1) - gammaln(theta) - gammaln(k[0] - theta + 2)
    growth = np.log1p((theta - 1) / (k[:-1] + 2 - theta)) + np.log1p(-rate)
    logs = first + (k[0] + 1 - theta) * np.log1p(-rate) + np.concatenate([[0.0], np.cumsum(growth)])
    steps: Floats = np.exp(logs)
    return steps


def _moment(step: Floats, holders: Int64s, theta: int, start: Int64s, stop: Int64s) -> Floats:
    """The sums of f(k) (b - 1 - k) / (k + 2 - theta) from each start to before its stop."""
    sums = np.empty(len(start))
    for place, (a, b) in enumerate(zip(start, stop, strict=True)):
        k = holders[a:b].astype(np.float64)
        sums[place] = np.sum(step[a:b] * (holders[b] - 1 - k) / (k + 2 - theta))
    return sums
