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
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, betaincc, gammaln

from voxpop.errors import BudgetError, InternalError
from voxpop.kernels.arrays import Bools, Floats, Int64s
from voxpop.privacy.numerics import least_whole
from voxpop.privacy.trie.ballot import Ballot, survival

# F on a grid of c: decreasing convex functions, stored and read so that every error is upwards.

# The grid spans c from e^-left to e^right. Further left F is as good as straight, further right it is small.
_LEFT, _RIGHT = 2.0, 1.5  # times epsilon
_STEPS = 4.0  # and this multiple of the largest shift of c to the right in one round
_FURTHEST = 16.0
_SAFETY = 1e-12  # shifts are rounded to the left, where F is larger, by much more than the error of a logarithm


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Nodes in c, evenly spaced in ln c, with one at c = 1, where F starts with a bend.

    Args:
        points: c at every node, rising.
        spacing: between logarithms.
    """

    points: Floats
    spacing: float

    @staticmethod
    def around(epsilon: float, rate: float, nodes: int) -> "Grid":
        """Return a grid of about `nodes` nodes.

        Args:
            epsilon: More than 0.
            rate: The probability that a user is sampled.
            nodes: The number of nodes.

        Returns:
            The grid.
        """
        more = -_STEPS * np.log1p(-rate)
        wide, high = min(_LEFT * epsilon + more, _FURTHEST), _RIGHT * epsilon + more
        spacing = (wide + high) / nodes
        if epsilon > 2 * spacing:
            spacing = epsilon / round(epsilon / spacing)  # puts a node at e^epsilon
        left, right = int(wide / spacing), int(high / spacing) + 1
        return Grid(np.exp(spacing * np.arange(-left, right + 1)), spacing)


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """F at every node.

    Args:
        values: Falling and convex in c.
    """

    values: Floats

    @staticmethod
    def start(grid: Grid) -> "Table":
        """F after the last round: max(0, 1 - c).

        Args:
            grid: The nodes.

        Returns:
            The table.
        """
        return Table(np.maximum(0.0, 1 - grid.points))

    def raised(self, candidates: Floats) -> "Table":
        """F one round earlier: the largest candidate.

        Args:
            candidates: One row per node, one column per corner.

        Returns:
            The table, nowhere lower than this one.
        """
        return Table(np.maximum(self.values, candidates.max(axis=1)))

    def value_at(self, factor: float, grid: Grid) -> float:
        """F between nodes, from above.

        Args:
            factor: c, on the grid.
            grid: The nodes.

        Returns:
            The value.
        """
        # F is convex in c, so a straight line between nodes lies above it.
        return float(np.interp(factor, grid.points, self.values))


@dataclass(frozen=True, slots=True, eq=False)
class Shift:
    """Where c goes from every node (a row) at every corner (a column): c times the ratio of two chances.

    Args:
        places: The node to the left.
        weight: Of the next node, linear in c; 0 beyond the last node, where F is read off at the last.
        outside: Where c falls left of the first node: there F lies below the straight line to F(0) = 1.
        share: The position of c along that line, at `outside`.
    """

    places: Int64s
    weight: Floats
    outside: Bools
    share: Floats

    @staticmethod
    def of(first: Floats, other: Floats, grid: Grid) -> "Shift":
        """The shift from c to c times other / first.

        Args:
            first: A chance under the law that is held against the other, by corner; where it is 0 any shift will do.
            other: The chance under the other law.
            grid: The nodes.

        Returns:
            The shift.
        """
        possible = first > 0
        ratio = np.where(possible, other, 1.0) / np.where(possible, first, 1.0) * (1 - _SAFETY)
        with np.errstate(divide="ignore"):
            # The shift of c in nodes, which are even in ln c. Between two of them the weight is linear in c itself.
            exact = np.clip(np.log(ratio) / grid.spacing, -(2.0**40), 2.0**40)
        whole = np.floor(exact)
        fraction = np.expm1((exact - whole) * grid.spacing) / np.expm1(grid.spacing)
        last = len(grid.points) - 1
        rows = np.arange(last + 1)[:, None] + whole.astype(np.int64)
        outside = rows < 0
        weight = np.where((rows >= last) | outside, 0.0, fraction)
        # c r / c_0: left of the first node F lies below the line from F(0) = 1 to F(c_0).
        share = (grid.points[:, None] / grid.points[0] * ratio)[outside]
        return Shift(np.clip(rows, 0, last), weight, outside, share)

    def read(self, table: Table) -> Floats:
        """F where every node goes at every corner, from above.

        Args:
            table: F by node.

        Returns:
            One row per node, one column per corner.
        """
        rises = np.append(np.diff(table.values), 0.0)
        result: Floats = table.values[self.places] + self.weight * rises[self.places]
        result[self.outside] = 1 - self.share * (1 - table.values[0])
        return result


NEGLIGIBLE = 1e-16  # numbers of holders are left out where q or 1 - p is below; `accountant.py` pays for it
SPACING = 0.02  # a triangle spans about this share of k
_ALL = 128  # up to this many points none is left out
_OUTWARDS = 1 + 1e-9
_MOST = 1 << 62  # more users than any collection has
_MOST_POINTS = 4_000_000  # numbers of holders at which the extra user can matter: a few hundred MB, a few seconds


@dataclass(frozen=True, slots=True, eq=False)
class Chances:
    """Corners of a polygon around all points (p(k), q(k)).

    Args:
        without: p, the probability that the prefix survives without the extra user.
        lost_without: 1 - p, with its own relative accuracy.
        joined: q, the probability that it survives with the extra user.
        lost_joined: 1 - q.
    """

    without: Floats
    lost_without: Floats
    joined: Floats
    lost_joined: Floats


def chances(ballot: Ballot, *, negligible: float = NEGLIGIBLE, spacing: float = SPACING) -> Chances:
    """Corners around every point at which the extra user can make a difference.

    Args:
        ballot: How users vote, and the threshold.
        negligible: Numbers of holders are left out where q or 1 - p is below.
        spacing: The largest distance of points, as a share of k; where users cast several votes, all points are kept.

    Returns:
        The corners.

    Raises:
        BudgetError: The rate is so small that there are too many points to look at.

    Example:
        >>> corners = chances(Ballot(0.5, 2))
        >>> corners.without[:3].tolist(), corners.joined[:3].tolist()
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
        return Chances(survives[:-1], lost[:-1], survives[1:], lost[1:])
    return _thinned(rate, theta, spacing, holders, survives, lost)


def _every(ballot: Ballot, negligible: float) -> Chances:
    """Every point whose q and 1 - p are not negligible."""
    reach = 64
    while survival(ballot, np.array([reach]))[1][0] > negligible:
        reach *= 2
    survives, lost = survival(ballot, np.arange(reach + 2))
    kept = (survives[1:] >= negligible) & (lost[:-1] >= negligible)
    kept[np.argmax(survives[1:] >= negligible)] = True
    places = np.flatnonzero(kept)
    return Chances(
        survives[:-1][places],
        lost[:-1][places],
        survives[1:][places],
        lost[1:][places],
    )


def _boundary(before: Callable[[int], bool], theta: int) -> int:
    """The least number of holders, at least theta, for which `before` no longer holds."""
    if not before(theta):
        return theta
    first = least_whole(lambda holders: not before(holders), theta, 2 * theta, _MOST)
    if first is None:
        raise InternalError("no number of holders is enough for any chance")
    return first


def _thinned(rate: float, theta: int, spacing: float, holders: Int64s, survives: Floats, lost: Floats) -> Chances:
    """Some of the points, and the crossings between them."""
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
    return Chances(
        np.concatenate([survives[chosen], survives[start] + right]),
        np.concatenate([lost[chosen], np.maximum(lost[start] - right, 0.0)]),
        np.concatenate([survives[chosen + 1], np.minimum(survives[start + 1] + up, 1.0)]),
        np.concatenate([lost[chosen + 1], np.maximum(lost[start + 1] - up, 0.0)]),
    )


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
