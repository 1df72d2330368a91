"""The exact accountant of a trie grown by votes of sampled users and a threshold.

One user is added. Reveal every other user's choice of word: given these choices, votes for different prefixes come
from different users and are independent, so in each round the two data sets differ in the survival of a single
prefix, the one the extra user votes for: probability q(k) with the user, p(k) without (`chances`). The number k may
depend on all earlier results; so take the worst at every round. With c = e^epsilon, F(c) = max(0, 1 - c) after the
last round, and before it

    one word      F(c) <- max over k of  max(0, (1 - q) - c (1 - p)) + q F(c p / q)
    many words    F(c) <- max over k of  (1 - q) F(c (1 - p) / (1 - q)) + q F(c p / q)

One word: once its prefix is lost the user is silent for good. Many words: another word may live on. Any k may follow
any, also for one word: longer prefixes have fewer holders, but some who were lost with their node in one round may be
sampled in the next. The other direction, the user removed, exchanges p and q. A silent user, or a prefix that survives
in any case, leaves F unchanged.

**Certified from above.** F falls, is convex in c, and F(0) = 1. So linear interpolation in c between nodes, of which 0
is the first, lies above it, and beyond the last node its value does. Numbers of holders with q or 1 - p below 1e-16 are
left out: the expression there exceeds F(c) by at most 2e-16. That, and the rounding of sums next to 1, is paid for with
1e-15 a round; rounding of everything else with a factor.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from scipy.special import betainc, betaincc, gammaln

from voxpop.errors import BudgetError, InternalError
from voxpop.kernels.arrays import Floats, Int64s
from voxpop.kernels.proved import proved
from voxpop.privacy.numerics import least_whole
from voxpop.privacy.trie.ballot import Ballot, survival

Words = Literal["one", "many"]

NODES = 1200
TRIE_ROUNDING = 1 + 1e-7
PER_ROUND = 1e-15


@lru_cache(maxsize=64)
def trie_delta(epsilon: float, ballot: Ballot, rounds: int, words: Words = "one", *, nodes: int = NODES) -> float:
    """A certified upper bound of delta, for one user added or removed.

    Args:
        epsilon: The epsilon of the guarantee, more than 0.
        ballot: How users vote in every round, and the threshold.
        rounds: The number of rounds.
        words: `one` if a user votes for the same word in every round, `many` if for any.
        nodes: How fine to compute; more is tighter, none is wrong.

    Returns:
        Delta, at most 1.

    Raises:
        BudgetError: A value is out of range.

    Example:
        >>> trie_delta(0.978, Ballot(0.2, 16), 10) < 1 / 65_876_900
        True
    """
    _check_rounds(epsilon, rounds, words)
    corners, rate = chances(ballot), ballot.rate
    worst = direction_delta(epsilon, corners, rate, rounds, words, True, nodes)
    reverse = direction_delta(epsilon, corners, rate, rounds, words, False, nodes // 4)
    if reverse > worst:  # it nearly always is far smaller, and a coarse bound of it is enough
        worst = max(worst, direction_delta(epsilon, corners, rate, rounds, words, False, nodes))
    return min(1.0, worst * TRIE_ROUNDING + PER_ROUND * rounds)


def group_delta(epsilon: float, delta: float, users: int) -> float:
    """Return an upper bound of delta, at `users` times epsilon, for several users added or removed at once.

    Args:
        epsilon: The epsilon of the guarantee for one user.
        delta: The delta of the guarantee for one user.
        users: The number of users that one person counts as, such as one user on each of several nodes.

    Returns:
        Delta, at most 1.

    Raises:
        BudgetError: `users` is less than 1.

    Example:
        >>> alone = trie_delta(1, Ballot(0.2, 16), 10)
        >>> round(group_delta(1, alone, 2) / alone, 2)
        3.72
    """
    if users < 1:
        raise BudgetError(f"`users` must be at least 1, got {users}.")
    # A chain of neighbours, each step with the epsilon e and delta d of one user (docs/privacy/heavy-hitters.md,
    # "A person who is several users"): P_m <= e^e P_(m-1) + d <= ... <= e^(m e) P_0 + d (1 + e^e + ... + e^((m-1) e)).
    steps = sum(math.exp(epsilon * step) for step in range(users))
    return min(1.0, delta * steps * TRIE_ROUNDING)


# F on a grid of c: decreasing convex functions, stored and read so that every error is upwards.

# The grid spans c from e^-left to e^right. Further left F is as good as straight, further right it is small.
_LEFT, _RIGHT = 2.0, 1.5  # times epsilon
_STEPS = 4.0  # and this multiple of the largest shift of c to the right in one round
_FURTHEST = 16.0
_SAFETY = 1e-12  # shifts are rounded to the left, where F is larger, by much more than the error of a logarithm


def _grid(epsilon: float, rate: float, nodes: int) -> Floats:
    """Return 0 and about so many values of c, evenly spaced in ln c, one of them 1, where F starts with a bend.

    Args:
        epsilon: More than 0.
        rate: The probability that a user is sampled.
        nodes: The number of nodes.
    """
    more = -_STEPS * np.log1p(-rate)
    wide, high = min(_LEFT * epsilon + more, _FURTHEST), _RIGHT * epsilon + more
    spacing = (wide + high) / nodes
    if epsilon > 2 * spacing:
        spacing = epsilon / round(epsilon / spacing)  # puts a node at e^epsilon
    return np.append(0.0, np.exp(spacing * np.arange(-int(wide / spacing), int(high / spacing) + 2)))


class _Shift:
    """Where c goes from every node (a row) at every corner (a column): c times the ratio of two chances."""

    def __init__(self, points: Floats, first: Floats, other: Floats) -> None:
        """Place c times other / first between nodes.

        Args:
            points: The nodes.
            first: A chance under the law that is held against the other, by corner; where it is 0 any shift will do.
            other: The chance under the other law.
        """
        possible = first > 0
        ratio = np.where(possible, other, 1.0) / np.where(possible, first, 1.0) * (1 - _SAFETY)
        reached = np.outer(points, ratio)
        # The node to the left, and the weight of the next one, linear in c; 1 beyond the last node.
        self.places = np.minimum(np.searchsorted(points, reached, side="right"), len(points) - 1) - 1
        below, above = points[self.places], points[self.places + 1]
        self.weight = np.minimum((reached - below) / (above - below), 1.0)

    def read(self, values: Floats) -> Floats:
        """Return F where every node goes at every corner, from above: (nodes, corners), from F by node."""
        return np.asarray(values[self.places] + self.weight * np.diff(values)[self.places])


@proved("heavy-hitters.md#all-rounds")
def direction_delta(
    epsilon: float, corners: Floats, rate: float, rounds: int, words: Words, added: bool, nodes: int
) -> float:
    """Return delta in one direction, an upper bound up to rounding.

    Proof: "Then delta(epsilon) = F_1(e^epsilon)."

    Args:
        epsilon: The epsilon of the guarantee.
        corners: The worst cases of a round, from `chances`.
        rate: The probability that a user is sampled in a round.
        rounds: The number of rounds.
        words: `one` or `many`.
        added: Whether the law with the user is held against the one without, or the other way round.
        nodes: The number of nodes.
    """
    if words == "one" and not added and epsilon > -np.log1p(-rate) * (1 + 1e-12):
        return 0.0  # 1 - q >= (1 - s)(1 - p): without the user no outcome is e^epsilon times as likely
    points = _grid(epsilon, rate, nodes)
    # q against p where the user was added, p against q where it was removed; (corners,) each.
    other, lost_other, first, lost = corners if added else corners[[2, 3, 0, 1]]
    surviving = _Shift(points, first, other)
    losing = _Shift(points, lost, lost_other) if words == "many" else surviving
    # F at every node after the last round: max(0, 1 - c).
    values = np.maximum(0.0, 1 - points)
    for _ in range(rounds):
        # q F(c p / q): float64 (nodes, corners).
        going_on = first * surviving.read(values)
        # One word: nothing more is heard of it once it is lost. Many words: another one may live on.
        ending = np.maximum(0.0, lost - points[:, None] * lost_other) if words == "one" else lost * losing.read(values)
        # One round earlier: the largest value of all corners, and nowhere lower than before.
        values = np.maximum(values, (going_on + ending).max(axis=1))
    # F is convex in c, so a straight line between nodes lies above it.
    return float(np.interp(np.exp(epsilon), points, values))


def _check_rounds(epsilon: float, rounds: int, words: str) -> None:
    if not 0 < epsilon < 700:
        raise BudgetError(f"`epsilon` must be more than 0 and less than 700, got {epsilon}.")
    if rounds < 1:
        raise BudgetError(f"`rounds` must be at least 1, got {rounds}.")
    if words not in get_args(Words):
        raise BudgetError(f"`words` must be 'one' or 'many', got {words!r}.")


# The probability that a prefix survives one round, with the extra user's vote and without.
#
# Let k other users vote for a prefix if sampled. Their numbers of votes are independent, and the prefix survives
# with theta votes: p(k) = P(X_1 + ... + X_k >= theta) without the extra user, q(k) = p(k + 1) with it (`ballot.py`).
# All the accounting needs about a round is the set of points (p(k), q(k)).
#
# **Fewer points**, for users of one vote at most. The maximised function is jointly convex in p and q, so its
# supremum over a set is the one over the corners of any polygon around it. The steps
# p(k + 1) - p(k) = s P(Bin(k, s) = theta - 1) have the ratio
#
#     (q(k + 1) - q(k)) / (p(k + 1) - p(k)) = (1 - s) (k + 1) / (k + 2 - theta),
#
# which falls as k grows: the points lie on a concave line. So the points from a to b lie in the triangle of point a,
# point b and the crossing of the first step, prolonged, with the last one, prolonged backwards. With steps f(k) the
# crossing is
#
#     sum over k from a to b - 1 of f(k) (b - 1 - k) / (k + 2 - theta), divided by (b - 1 - a) / (a + 2 - theta),
#
# to the right of point a: a sum without cancellation. A crossing pushed further out along the first step keeps the
# triangle around the points, which absorbs the rounding. This makes the cost independent of how small s is, and loses
# nothing that shows: triangles are flat.

_NEGLIGIBLE = 1e-16  # numbers of holders are left out where q or 1 - p is below; PER_ROUND pays for it
SPACING = 0.02  # a triangle spans about this share of k
_ALL = 128  # up to this many points none is left out
_OUTWARDS = 1 + 1e-9
_MOST = 1 << 62  # more users than any collection has
_MOST_POINTS = 4_000_000  # numbers of holders at which the extra user can matter: a few hundred MB, a few seconds


def chances(ballot: Ballot, *, negligible: float = _NEGLIGIBLE, spacing: float = SPACING) -> Floats:
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
