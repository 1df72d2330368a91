"""The exact accountant of a trie that grows by votes of sampled users and a threshold.

One user is added. Assume that every other user's choice of word is revealed. Given these choices, votes for different
prefixes come from different users, so they are independent. Therefore, in each round, the two data sets differ only in
the survival of the prefix for which the additional user votes. If the prefix has k other users, it survives with
probability q(k) with the user and p(k) without the user (`chances`). The number k can depend on all earlier results, so
the worst k is assumed in every round. With c = e^epsilon, F(c) is max(0, 1 - c) after the last round. Before the last
round, it is

    one word      F(c) <- max over k of  max(0, (1 - q) - c (1 - p)) + q F(c p / q)
    many words    F(c) <- max over k of  (1 - q) F(c (1 - p) / (1 - q)) + q F(c p / q)

With one word per user, a user permanently stops voting when the prefix is lost. With several words, another word can
survive. Any k can follow any other k, even with one word. Longer prefixes have fewer users, but some users whose node
was lost in one round can be sampled in the next round. If the user is removed instead of added, p and q are exchanged.
A user who does not vote, or a prefix that survives in any case, leaves F unchanged.

**Certified from above.** F is decreasing and convex in c, and F(0) = 1. Therefore linear interpolation in c between
nodes, starting at 0, is an upper bound on F, and the value at the last node is an upper bound beyond it. If q or 1 - p
is below 1e-16 for some number of users, this number is skipped, because the expression exceeds F(c) there by at most
2e-16. A term of 1e-15 per round covers this error and the rounding of sums near 1, and a factor covers all other
rounding.
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
@proved("heavy-hitters.md#the-bound-is-certified")
def trie_delta(epsilon: float, ballot: Ballot, rounds: int, words: Words = "one", *, nodes: int = NODES) -> float:
    """Return a certified upper bound on delta, for one user added or removed.

    Proof: "This error and rounding near 1 cost 1e-15 per round, which is charged."

    Args:
        epsilon: The epsilon of the guarantee, more than 0.
        ballot: The distribution of a user's votes in every round, and the threshold.
        rounds: The number of rounds.
        words: `one` if a user votes for the same word in every round, `many` if a user may vote for any of their words.
        nodes: The number of interpolation nodes. More nodes give a smaller bound, but the bound is correct for every
            number of nodes.

    Returns:
        The bound on delta, at most 1.

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
    if reverse > worst:  # this delta is nearly always far smaller, so a coarse bound is enough
        worst = max(worst, direction_delta(epsilon, corners, rate, rounds, words, False, nodes))
    return min(1.0, worst * TRIE_ROUNDING + PER_ROUND * rounds)


@proved("heavy-hitters.md#a-person-who-is-several-users")
def group_delta(epsilon: float, delta: float, users: int) -> float:
    """Return an upper bound on delta, at `users` times epsilon, for several users added or removed at once.

    Proof: "Neighbours differ in one user, so for every event and epsilon, P_j <= e^epsilon P_(j-1) + delta(epsilon)."

    Args:
        epsilon: The epsilon of the guarantee for one user.
        delta: The delta of the guarantee for one user.
        users: The number of users that represent one person, such as one user on each of several nodes.

    Returns:
        The bound on delta, at most 1.

    Raises:
        BudgetError: `users` is less than 1.

    Example:
        >>> alone = trie_delta(1, Ballot(0.2, 16), 10)
        >>> round(group_delta(1, alone, 2) / alone, 2)
        3.72
    """
    if users < 1:
        raise BudgetError(f"`users` must be at least 1, got {users}.")
    # This is a chain of neighbours. Each step has the epsilon e and the delta d of one user
    # (docs/privacy/heavy-hitters.md, "A person who is several users"): P_m <= e^e P_(m-1) + d <= ... <= e^(m e) P_0 + d
    # (1 + e^e + ... + e^((m-1) e)).
    steps = sum(math.exp(epsilon * step) for step in range(users))
    return min(1.0, delta * steps * TRIE_ROUNDING)


# The code below stores F, a decreasing convex function, on a grid of c, and reads it so that every error increases the
# bound.

# The grid spans c from e^-left to e^right. To the left of the grid, F is almost a straight line, and to the right it is
# small.
_LEFT, _RIGHT = 2.0, 1.5  # times epsilon
_STEPS = 4.0  # plus this multiple of the largest shift of c to the right in one round
_FURTHEST = 16.0
_SAFETY = 1e-12  # shifts are rounded to the left, where F is larger, by much more than the error of a logarithm


def _grid(epsilon: float, rate: float, nodes: int) -> Floats:
    """Return 0 and about `nodes` values of c, evenly spaced in ln c.

    The values include 1, at which F has a bend after the last round.

    Args:
        epsilon: The epsilon of the guarantee, more than 0.
        rate: The probability that a user is sampled.
        nodes: The number of nodes.
    """
    more = -_STEPS * np.log1p(-rate)
    wide, high = min(_LEFT * epsilon + more, _FURTHEST), _RIGHT * epsilon + more
    spacing = (wide + high) / nodes
    if epsilon > 2 * spacing:
        spacing = epsilon / round(epsilon / spacing)  # places a node at e^epsilon
    return np.append(0.0, np.exp(spacing * np.arange(-int(wide / spacing), int(high / spacing) + 2)))


class _Shift:
    """The shift of c for every node (row) and every corner (column).

    The new c is c times the ratio of two probabilities.
    """

    @proved("heavy-hitters.md#the-bound-is-certified")
    def __init__(self, points: Floats, first: Floats, other: Floats) -> None:
        """Locate c times other / first between nodes.

        Proof: "Shifts in ln c are rounded towards larger F by 1e-12."

        Args:
            points: The nodes.
            first: For each corner, the probability under the first distribution. If it is 0, any shift is correct.
            other: For each corner, the probability under the other distribution.
        """
        possible = first > 0
        ratio = np.where(possible, other, 1.0) / np.where(possible, first, 1.0) * (1 - _SAFETY)
        reached = np.outer(points, ratio)
        # Compute the node to the left, and the weight of the next node. The weight is linear in c, and is 1 beyond the
        # last node.
        self.places = np.minimum(np.searchsorted(points, reached, side="right"), len(points) - 1) - 1
        below, above = points[self.places], points[self.places + 1]
        self.weight = np.minimum((reached - below) / (above - below), 1.0)

    @proved("heavy-hitters.md#the-bound-is-certified")
    def read(self, values: Floats) -> Floats:
        """Return upper bounds on F after the shift of each node at each corner, as (nodes, corners), given F by node.

        Proof: "Therefore linear interpolation in c is above F, even to the left of the first node."
        """
        return np.asarray(values[self.places] + self.weight * np.diff(values)[self.places])


@proved("heavy-hitters.md#all-rounds")
def direction_delta(
    epsilon: float, corners: Floats, rate: float, rounds: int, words: Words, added: bool, nodes: int
) -> float:
    """Return an upper bound on the delta in one direction, up to rounding.

    Proof: "Let F_i(c) be the largest value of (mass with the user) - c (mass without), over events of rounds i to L."

    Args:
        epsilon: The epsilon of the guarantee.
        corners: The worst cases, from `chances`.
        rate: The probability that a user is sampled, per round.
        rounds: The number of rounds.
        words: `one` or `many`.
        added: Whether the distribution with the user is compared with the distribution without the user. If false, the
            roles are exchanged.
        nodes: The number of nodes.
    """
    if words == "one" and not added and epsilon > -np.log1p(-rate) * (1 + 1e-12):
        return 0.0  # because 1 - q >= (1 - s)(1 - p), no outcome is e^epsilon times as likely without the user
    points = _grid(epsilon, rate, nodes)
    # Shape (corners,) each. Compare q with p if the user was added, and p with q if the user was removed.
    other, lost_other, first, lost = corners if added else corners[[2, 3, 0, 1]]
    surviving = _Shift(points, first, other)
    losing = _Shift(points, lost, lost_other) if words == "many" else surviving
    # After the last round, F is max(0, 1 - c) at every node.
    values = np.maximum(0.0, 1 - points)
    for _ in range(rounds):
        # float64 (nodes, corners), q F(c p / q).
        going_on = first * surviving.read(values)
        # With one word per user, a user stops voting when the word is lost. With several words, another word can
        # survive.
        ending = np.maximum(0.0, lost - points[:, None] * lost_other) if words == "one" else lost * losing.read(values)
        # One round earlier, F is the largest value over all corners, and it is never lower than before.
        values = np.maximum(values, (going_on + ending).max(axis=1))
    # F is convex in c, so a straight line between nodes is an upper bound.
    return float(np.interp(np.exp(epsilon), points, values))


def _check_rounds(epsilon: float, rounds: int, words: str) -> None:
    if not 0 < epsilon < 700:
        raise BudgetError(f"`epsilon` must be more than 0 and less than 700, got {epsilon}.")
    if rounds < 1:
        raise BudgetError(f"`rounds` must be at least 1, got {rounds}.")
    if words not in get_args(Words):
        raise BudgetError(f"`words` must be 'one' or 'many', got {words!r}.")


# The functions below compute the probability that a prefix survives one round, with and without the additional user's
# vote.
#
# Assume that k other users vote for a prefix if they are sampled. Their numbers of votes are independent, and the
# prefix survives with theta votes. Therefore p(k) = P(X_1 + ... + X_k >= theta) without the additional user, and q(k) =
# p(k + 1) with the additional user (`ballot.py`). The accounting needs only the set of points (p(k), q(k)).
#
# **Fewer points**, if each user has at most one vote. The maximised function is jointly convex in p and q, so its
# supremum over a set is at most its maximum over the corners of any polygon that contains the set. The steps p(k + 1) -
# p(k) = s P(Bin(k, s) = theta - 1) have the ratio
#
#     (q(k + 1) - q(k)) / (p(k + 1) - p(k)) = (1 - s) (k + 1) / (k + 2 - theta),
#
# which decreases as k increases, so the points are on a concave curve. Therefore the points from a to b are in a
# triangle. Its corners are point a, point b, and the crossing of the first step, extended forwards, with the last step,
# extended backwards. With steps f(k), the crossing is to the right of point a by
#
#     the sum over k from a to b - 1 of f(k) (b - 1 - k) / (k + 2 - theta), divided by (b - 1 - a) / (a + 2 - theta).
#
# This sum has no cancellation. If the crossing is moved further out along the first step, the triangle still contains
# the points. This change absorbs the rounding errors. With triangles, the cost does not depend on s, and the loss is
# negligible, because the triangles are flat.

_NEGLIGIBLE = 1e-16  # numbers of users are skipped if q or 1 - p is smaller; PER_ROUND covers the error
SPACING = 0.02  # a triangle spans about this share of k
_ALL = 128  # up to this number, all points are kept
_OUTWARDS = 1 + 1e-9
_MOST = 1 << 62  # more users than in any collection
_MOST_POINTS = 4_000_000  # the maximum number of points, which take a few hundred MB and a few seconds


@proved("heavy-hitters.md#the-bound-is-certified")
def chances(ballot: Ballot, *, negligible: float = _NEGLIGIBLE, spacing: float = SPACING) -> Floats:
    """Return the corners of a polygon that contains all points (p, q) at which the additional user can matter.

    Proof: "If q or 1-p is below 1e-16, k is skipped, because then the expression exceeds F(c) by at most 2e-16"

    Args:
        ballot: The distribution of a user's votes, and the threshold.
        negligible: The lower limit of q and of 1 - p. Numbers of users with smaller values are skipped.
        spacing: The largest distance between points, as a share of k. If users cast several votes, all points are kept.

    Returns:
        float64 (4, corners): p, the probability that the prefix survives without the additional user; 1 - p; q, the
        probability that it survives with the additional user; and 1 - q. Each number has full relative accuracy.

    Raises:
        BudgetError: The rate is so small that there are too many points to compute.

    Example:
        >>> p, _, q, _ = chances(Ballot(0.5, 2))
        >>> p[:3].tolist(), q[:3].tolist()
        ([0.0, 0.25, 0.5], [0.25, 0.5, 0.6875])
    """
    if ballot.again > 0.0:
        return _every(ballot, negligible)
    rate, theta = ballot.rate, ballot.theta
    # P(Bin(k, s) >= theta) = I_s(theta, k - theta + 1), which is the regularised incomplete beta function.
    first = max(theta - 1, _boundary(lambda k: betainc(theta, k - theta + 1, rate) < negligible, theta) - 1)
    last = _boundary(lambda k: betaincc(theta, k - theta + 1, rate) > negligible, theta)
    if last - first > _MOST_POINTS:
        raise BudgetError(
            f"a sampling rate of {rate:.3g} is too small to be accounted for, because a prefix could be in doubt "
            f"with up to {last:,} users. Raise `epsilon`, or use fewer rounds."
        )
    holders = np.arange(first, max(last, first + 1) + 1)
    survives, lost = survival(ballot, holders)
    if len(holders) <= _ALL:
        return _points(survives, lost)
    return _thinned(rate, theta, spacing, holders, survives, lost)


def _points(survives: Floats, lost: Floats) -> Floats:
    """Return p, 1 - p, q and 1 - q for consecutive numbers of users."""
    return np.stack([survives[:-1], lost[:-1], survives[1:], lost[1:]])


@proved("heavy-hitters.md#the-bound-is-certified")
def _every(ballot: Ballot, negligible: float) -> Floats:
    """Return every point for which neither q nor 1 - p is negligible.

    Proof: "With several votes, only the points named above are skipped."
    """
    reach = 64
    while survival(ballot, np.array([reach]))[1][0] > negligible:
        reach *= 2
    points = _points(*survival(ballot, np.arange(reach + 2)))
    likely = points[2] >= negligible
    kept = likely & (points[1] >= negligible)
    kept[np.argmax(likely)] = True
    return points[:, kept]


def _boundary(before: Callable[[int], bool], theta: int) -> int:
    """Return the smallest number of users, at least theta, for which `before` is false."""
    if not before(theta):
        return theta
    first = least_whole(lambda holders: not before(holders), theta, 2 * theta, _MOST)
    if first is None:
        raise InternalError("no number of users gives a probability above 0")
    return first


@proved("heavy-hitters.md#the-bound-is-certified")
def _thinned(rate: float, theta: int, spacing: float, holders: Int64s, survives: Floats, lost: Floats) -> Floats:
    """Return some of the points, and the crossings between them.

    Proof: "So ranges of k are covered by triangles, and the corners of the triangles are enough."
    """
    last = len(holders) - 2  # the q of the last point needs one more user
    chosen = _spread(holders[: last + 1], spacing)
    step = _steps(rate, theta, holders)
    start, stop = chosen[:-1], chosen[1:]
    wide = stop - start > 1
    start, stop = start[wide], stop[wide]
    weighted = _moment(step, holders, theta, start, stop)
    k = holders[start].astype(np.float64)
    # The crossing of each triangle is to the right of point a, along the first step, by the quotient in the comment
    # above.
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
    """Return positions of numbers of users that are about `spacing` apart, including the first and the last."""
    count = int(np.log(holders[-1] / holders[0]) / spacing) + 2
    wanted = np.geomspace(holders[0], holders[-1], count)
    places: Int64s = np.unique((wanted - holders[0]).round().astype(np.int64).clip(0, len(holders) - 1))
    return places


def _steps(rate: float, theta: int, holders: Int64s) -> Floats:
    """Return s P(Bin(k, s) = theta - 1), the gain in survival probability per further user, for all k but the last."""
    k = holders[:-1].astype(np.float64)
    # Compute the logarithm of s P(Bin(k, s) = theta - 1) at the first k. Further values follow from the ratio of
    # consecutive values, (1 - s)(k + 1) / (k + 2 - theta).
    first = theta * np.log(rate) + gammaln(k[0] + 1) - gammaln(theta) - gammaln(k[0] - theta + 2)
    growth = np.log1p((theta - 1) / (k[:-1] + 2 - theta)) + np.log1p(-rate)
    logs = first + (k[0] + 1 - theta) * np.log1p(-rate) + np.concatenate([[0.0], np.cumsum(growth)])
    steps: Floats = np.exp(logs)
    return steps


def _moment(step: Floats, holders: Int64s, theta: int, start: Int64s, stop: Int64s) -> Floats:
    """Return the sums of f(k) (b - 1 - k) / (k + 2 - theta), from each start to its stop (exclusive)."""
    sums = np.empty(len(start))
    for place, (a, b) in enumerate(zip(start, stop, strict=True)):
        k = holders[a:b].astype(np.float64)
        sums[place] = np.sum(step[a:b] * (holders[b] - 1 - k) / (k + 2 - theta))
    return sums
