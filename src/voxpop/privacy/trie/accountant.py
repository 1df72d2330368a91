"""The exact accountant of a trie grown by Bernoulli sampling and a threshold.

One user is added. Reveal every other user's choice of word: given these choices, votes for different prefixes come
from different users and are independent, so in each round the two data sets differ in the survival of a single
prefix, the one the extra user votes for: probability q(k) with the user, p(k) without (`curve.py`). What k is may
depend on all that came before; so take the worst at every round. With c = e^epsilon, F(c) = max(0, 1 - c) after the
last round, and before it

    one word      F(c) <- max over k of  max(0, (1 - q) - c (1 - p)) + q F(c p / q)
    many words    F(c) <- max over k of  (1 - q) F(c (1 - p) / (1 - q)) + q F(c p / q)

One word: once its prefix is lost the user is silent for good. Many words: another word may live on. The other
direction, the user removed, exchanges p and q. A silent user, or a prefix that nobody doubts, leaves F as it is.

**Certified from above.** F falls, is convex in c, and F(0) = 1. So linear interpolation in c between nodes lies above
it, also between 0 and the first node, and beyond the last node its value does. Nodes are evenly spaced in ln c, which
makes c p / q one and the same shift for all of them. Numbers of holders with q or 1 - p below 1e-16 are left out: the
expression there exceeds F(c) by at most 2e-16. That, and the rounding of sums next to 1, is paid for with 1e-15 a
round; rounding of everything else with a factor.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from voxpop.errors import BudgetError
from voxpop.privacy.trie.curve import Chances, chances

Floats = NDArray[np.float64]
Words = Literal["one", "many"]

NODES = 1200
ROUNDING = 1 + 1e-7
PER_ROUND = 1e-15
_LONGEST_SHIFT = 8.0  # of ln c; what goes further left is read off at c = 0, further right as if it were here


def trie_delta(
    epsilon: float, rate: float, theta: int, rounds: int, words: Words = "one", *, nodes: int = NODES
) -> float:
    """A certified upper bound of delta, for one user added or removed.

    Args:
        epsilon: The epsilon of the guarantee, more than 0.
        rate: The probability that a user is sampled in a round.
        theta: Votes that a prefix needs to survive.
        rounds: How many rounds there are.
        words: `one` if a user votes for the same word in every round, `many` if for any.
        nodes: How fine to compute; more is tighter, none is wrong.

    Returns:
        Delta, at most 1.

    Raises:
        BudgetError: A value is out of range.

    Example:
        >>> trie_delta(0.978, 0.2, 16, 10) < 1 / 65_876_900
        True
    """
    _check(epsilon, rate, theta, rounds, words)
    corners = chances(rate, theta)
    worst = direction_delta(epsilon, corners, rate, rounds, words, True, nodes)
    reverse = direction_delta(epsilon, corners, rate, rounds, words, False, nodes // 4)
    if reverse > worst:  # it nearly always is far smaller, and a coarse bound of it is enough
        worst = max(worst, direction_delta(epsilon, corners, rate, rounds, words, False, nodes))
    return min(1.0, worst * ROUNDING + PER_ROUND * rounds)


def trie_epsilon(delta: float, rate: float, theta: int, rounds: int, words: Words = "one") -> float:
    """The least epsilon that goes with a delta, from above and within 1e-4 of itself.

    Args:
        delta: The delta of the guarantee.
        rate: The probability that a user is sampled in a round.
        theta: Votes that a prefix needs to survive.
        rounds: How many rounds there are.
        words: `one` or `many`.

    Returns:
        Epsilon; infinite where no epsilon is enough.

    Raises:
        BudgetError: A value is out of range.

    Example:
        >>> round(trie_epsilon(1 / 65_876_900, 0.2, 16, 10), 2)
        0.98
    """
    low, high = 1e-6, 64.0
    if trie_delta(high, rate, theta, rounds, words) > delta:
        return float("inf")
    while high / low > 1 + 1e-4:
        middle = (low * high) ** 0.5
        enough = trie_delta(middle, rate, theta, rounds, words, nodes=800) <= delta
        low, high = (low, middle) if enough else (middle, high)
    return high


def direction_delta(
    epsilon: float, corners: Chances, rate: float, rounds: int, words: Words, added: bool, nodes: int
) -> float:
    """Delta in one direction, before rounding is paid for.

    Args:
        epsilon: The epsilon of the guarantee.
        corners: The worst cases of a round.
        rate: The probability that a user is sampled in a round.
        rounds: How many rounds there are.
        words: `one` or `many`.
        added: Whether the law with the user is held against the one without, or the other way round.
        nodes: How many nodes.

    Returns:
        An upper bound, up to rounding.
    """
    if words == "one" and not added and epsilon > -np.log1p(-rate) * (1 + 1e-12):
        return 0.0  # 1 - q >= (1 - s)(1 - p): without the user no outcome is e^epsilon times as likely
    grid = _grid(epsilon, nodes)
    moves = _moves(corners, grid, added)
    values = np.maximum(0.0, 1 - grid.points)
    for _ in range(rounds):
        values = _earlier(values, grid, moves, words)
    return float(values[grid.wanted])


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """Nodes in c, evenly spaced in ln c, with one at c = 1 and one at e^epsilon."""

    points: Floats
    spacing: float
    wanted: int


@dataclass(frozen=True, slots=True, eq=False)
class _Shift:
    """Where c goes from every node (a row) at every corner (a column).

    Attributes:
        places: the node to the left, counted from `before` nodes left of the first.
        weight: of the node after it, by corner.
        vanishes: corners at which c goes to 0.
        before: nodes to add on the left.
        after: nodes to add on the right.
    """

    places: NDArray[np.int64]
    weight: Floats
    vanishes: NDArray[np.int64]
    before: int
    after: int


@dataclass(frozen=True, slots=True, eq=False)
class _Moves:
    """For every corner the first law's chances, the other's chance to lose, and both shifts."""

    survives: Floats
    lost: Floats
    lost_other: Floats
    surviving: _Shift
    losing: _Shift


def _grid(epsilon: float, nodes: int) -> _Grid:
    """Nodes from e^-2epsilon to e^1.5epsilon: beyond these F is as good as straight, or small."""
    inner = max(8, nodes * 2 // 7)
    spacing = epsilon / inner
    left, right = min(2 * inner, int(16 / spacing)), inner + inner // 2
    return _Grid(np.exp(spacing * np.arange(-left, right + 1)), spacing, left + inner)


def _moves(corners: Chances, grid: _Grid, added: bool) -> _Moves:
    joined, without = (corners.joined, corners.lost_joined), (corners.without, corners.lost_without)
    first, other = (joined, without) if added else (without, joined)
    surviving, losing = _shift(first[0], other[0], grid), _shift(first[1], other[1], grid)
    return _Moves(first[0], first[1], other[1], surviving, losing)


def _shift(first: Floats, other: Floats, grid: _Grid) -> _Shift:
    """How far ln(other / first) is in nodes: rounded down, and the weight of the next node, linear in c."""
    possible = (first > 0) & (other > 0)
    ratio = np.log(np.where(possible, other, 1.0) / np.where(possible, first, 1.0))
    vanishes = (other <= 0) | (ratio < -_LONGEST_SHIFT)
    # Rounded towards the left, where F is larger, by far more than the error of the logarithm.
    places = np.clip(ratio - 1e-12, -_LONGEST_SHIFT, _LONGEST_SHIFT) / grid.spacing
    whole = np.floor(places).astype(np.int64)
    weight = np.expm1((places - whole) * grid.spacing) / np.expm1(grid.spacing)
    before, after = max(0, -int(whole.min())), max(0, int(whole.max()) + 1)
    table = np.arange(before, before + len(grid.points))[:, None] + whole
    return _Shift(table, weight, np.flatnonzero(vanishes), before, after)


def _earlier(values: Floats, grid: _Grid, moves: _Moves, words: Words) -> Floats:
    """F one round earlier."""
    going_on = moves.survives * _read(values, grid, moves.surviving)
    if words == "one":
        ending = np.maximum(0.0, moves.lost - grid.points[:, None] * moves.lost_other)
    else:
        ending = moves.lost * _read(values, grid, moves.losing)
    worst: Floats = np.maximum(values, (going_on + ending).max(axis=1))
    return worst


def _read(values: Floats, grid: _Grid, shift: _Shift) -> Floats:
    """F at every node shifted by every corner."""
    # Left of the first node, the straight line to F(0) = 1; right of the last, its value.
    left = 1 - np.exp(-grid.spacing * np.arange(shift.before, 0, -1)) * (1 - values[0])
    longer = np.concatenate([left, values, np.full(shift.after, values[-1])])
    steps = np.append(np.diff(longer), 0.0)
    result: Floats = longer[shift.places] + shift.weight * steps[shift.places]
    result[:, shift.vanishes] = 1.0
    return result


def _check(epsilon: float, rate: float, theta: int, rounds: int, words: str) -> None:
    if not 0 < epsilon < 700:
        raise BudgetError(f"`epsilon` must be more than 0 and less than 700, got {epsilon}.")
    if not 0 < rate < 1:
        raise BudgetError(f"`rate` must lie strictly between 0 and 1, got {rate}. It is the share of users sampled.")
    if theta < 2 or rounds < 1:
        raise BudgetError(f"`theta` must be at least 2 and `rounds` at least 1, got {theta} and {rounds}.")
    if words not in get_args(Words):
        raise BudgetError(f"`words` must be 'one' or 'many', got {words!r}.")
