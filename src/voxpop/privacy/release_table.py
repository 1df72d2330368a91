"""The largest probabilities of release that keep every user's step within its share of a Renyi divergence.

A user of n items gives each a fixed weight x(n). An item of weight w is released with probability pi(w), independently
of the others, and nothing else is said. Each of the n items may cost a part 1/n of the user's allowance:

    an item that others hold:      D_order(Ber(pi(w + x(n))), Ber(pi(w))) <= tau / n, and the same exchanged;
    an item that nobody else has:  -ln(1 - pi(x(n))) <= rate / n.

`solve` fills the table from below by interpolation and proves nothing; `certified` checks every pair of weights of the
finished table from the doubles that decide, rounding against itself. docs/privacy/set-only.md holds the proof.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from voxpop.arrays import Bools, Floats, Int64s
from voxpop.errors import BudgetError, InternalError

TOP: Final = 34.0
"""Log-odds at which probabilities stop rising: a miss of 1.7e-15. With a miss of 0 the divergence would be infinite."""
MOST_WEIGHTS: Final = 1 << 18
"""Longest table; beyond it the budget is too small for the grid."""
ELEMENTARY: Final = 2.0**-46
"""Relative error allowed to a logarithm or exponential and the few operations around it, 128 units in the last place:
numpy's are within four. A test compares with eighty digits."""
_SHRINK: Final = (2.0**-18, 2.0**-14, 2.0**-10)
_BISECTIONS: Final = 48
_APART: Final = 4.0
"""The direction that does not bind may grow without limit; it is cut off this far above the other."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The weights that users give, each with the largest number of items at which it is given.

    Attributes:
        units: int64, distinct weights in units of the grid, rising.
        held: int64, for each of them the most items of a user who gives it: the narrowest allowance.
    """

    units: Int64s
    held: Int64s

    @classmethod
    def of(cls, shares: Int64s) -> "Steps":
        """Collect the steps of a weighting.

        Args:
            shares: units that each item gets, by the number of items held; not rising, at least 1, and `shares[0]`
                is left out.

        Returns:
            Each distinct weight once.

        Example:
            >>> Steps.of(np.array([0, 8, 8, 5])).held.tolist()
            [3, 2]
        """
        units, first = np.unique(shares[:0:-1], return_index=True)
        return cls(units.astype(np.int64), (len(shares) - 1 - first).astype(np.int64))

    @property
    def least(self) -> int:
        """The least weight that any held item has."""
        return int(self.units[0])


@dataclass(frozen=True, slots=True, eq=False)
class ReleaseTable:
    """Probabilities by weight, as the doubles that decide.

    Attributes:
        least: units of the first weight; no item that anybody holds weighs less.
        tails: float64, for each weight from `least` on the smaller of its probability and its complement; the last
            holds for all weights beyond.
        turn: how many of them are probabilities; the others are complements.
    """

    least: int
    tails: Floats
    turn: int

    def at(self, weights: Int64s) -> tuple[Floats, Bools]:
        """Return the stored tail of each weight, and whether it is the complement.

        Raises:
            InternalError: if a weight lies between 0 and the least; a weight of 0 has probability 0.
        """
        if ((weights > 0) & (weights < self.least)).any():
            raise InternalError("a weight lies below the least that a user gives; nothing was released. Please report.")
        places = np.clip(weights - self.least, 0, len(self.tails) - 1)
        return np.where(weights > 0, self.tails[places], 0.0), (weights > 0) & (places >= self.turn)

    @property
    def half(self) -> int:
        """The least weight, in units, that is released with probability above one half."""
        return self.least + self.turn


def solve(order: float, tau: float, rate: float, steps: Steps, *, spacing: float = 0.05) -> ReleaseTable:
    """Fill the table for given allowances, and certify it.

    Args:
        order: order of the Renyi divergence, above 1.
        tau: allowance of one user for items that others hold.
        rate: allowance of one user for items that nobody else has: -ln(1 - delta of novelty).
        steps: what users give.
        spacing: of the log-odds at which steps are solved; those between are interpolated.

    Returns:
        A certified table.

    Raises:
        BudgetError: if the table would be too long.
        InternalError: if no table could be certified.
    """
    for shrink in _SHRINK:
        table = from_log_odds(log_odds(order, tau, rate, steps, spacing=spacing, shrink=shrink), steps.least)
        if certified(table, order, tau, rate, steps):
            return table
    raise InternalError("the table of probabilities could not be certified; please report the parameters of the call.")


def from_log_odds(odds: Floats, least: int) -> ReleaseTable:
    """Turn rising log-odds into the doubles that decide."""
    # Of log-odds z the smaller side is e^-|z| / (1 + e^-|z|).
    shrunk = np.exp(-np.abs(odds))
    return ReleaseTable(least, shrunk / (1.0 + shrunk), int(np.searchsorted(odds, 0.0, side="right")))


def log_odds(
    order: float,
    tau: float,
    rate: float,
    steps: Steps,
    *,
    spacing: float,
    shrink: float,
    until: float = TOP,
    most: int = MOST_WEIGHTS,
) -> Floats:
    """Return the log-odds of release by weight, from the least weight up to where they stop rising.

    pi(w) = min( novel(w), min over steps of F(pi(max(w - x, least))) ): F is the furthest that a step may lead, and
    novel(w) what the widest step below holds down. Each term rises with w, so pi does. The weights from w to
    w + least - 1 depend on smaller weights only, so they are found together.
    """
    least = steps.least
    novel = _novel_odds(rate, steps)
    start = float(novel[0])
    grid = np.arange(start - 2 * spacing, TOP + 3 * spacing, spacing)
    reach = (furthest(grid, order, tau, steps) - grid) * (1.0 - shrink)  # direction, step, log-odds
    odds, filled = np.empty(64 * least), 0
    while not filled or odds[filled - 1] < until:
        if filled >= most:
            raise BudgetError(
                "this epsilon and delta need weights beyond the longest table of set-only accounting; "
                'use accounting="joint" or a larger epsilon.'
            )
        weights = least + filled + np.arange(least)
        # Below the least weight nothing is held: steps from there may do as the least weight does.
        places = np.maximum(weights - steps.units[:, None] - least, 0)
        begin = odds[places] if filled else np.full(places.shape, start)
        bound = np.append(novel, TOP)[np.searchsorted(steps.units, weights)]
        if filled + least > len(odds):
            odds = np.append(odds, np.empty(len(odds)))
        odds[filled : filled + least] = np.minimum(np.minimum(bound, _stepped(begin, grid, reach)), TOP)
        filled += least
    return odds[: int(np.searchsorted(odds[:filled], until)) + 1]


def _novel_odds(rate: float, steps: Steps) -> Floats:
    """Return the log-odds that items nobody else has may reach, for each step."""
    # -ln(1 - pi) <= r, r = rate / n, where pi <= 1 - e^-r: odds pi / (1 - pi) of e^r - 1.
    misses = rate / steps.held * (1.0 - 2.0**-40)
    odds: Floats = np.minimum(np.log(np.expm1(misses)), TOP)
    return odds


def _stepped(odds: Floats, grid: Floats, reach: Floats) -> Floats:
    """Return the least of what the steps, a row each, lead to: cubic interpolation between solved log-odds.

    Each direction is smooth; the lesser of the two has a kink, which a cubic would overshoot.
    """
    exact = (odds - grid[0]) / (grid[1] - grid[0])
    places = np.clip(exact.astype(np.int64), 1, len(grid) - 3)
    t = exact - places
    rows = np.arange(reach.shape[1])[:, None]
    before, here, after, beyond = (reach[:, rows, places + offset] for offset in (-1, 0, 1, 2))
    # Lagrange through four points, t the place between the inner two.
    inner = here * (1 - t * t) * (2 - t) / 2 + after * t * (1 + t) * (2 - t) / 2
    outer = before * t * (t - 1) * (2 - t) / 6 + beyond * t * (t * t - 1) / 6
    least: Floats = np.asarray((odds + (inner + outer).min(axis=0)).min(axis=0))
    return least


def furthest(odds: Floats, order: float, tau: float, steps: Steps) -> Floats:
    """Return how far each step may lead from some log-odds, for the two directions of the divergence apart."""
    # D_a <= tau / n where the moment below is at most exp((a - 1) tau / n) - 1; float64 (steps, 1).
    cost = np.expm1((order - 1.0) * tau / steps.held)[:, None]
    # ln of the probability and of its complement, from log-odds: -ln(1 + e^-z) and -ln(1 + e^z).
    start = (-np.logaddexp(0.0, -odds), -np.logaddexp(0.0, odds))
    reached = np.empty((2, len(steps.held), len(odds)))
    for direction in (0, 1):
        low = np.broadcast_to(odds, reached.shape[1:]).copy()
        high = low + 90.0
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            end = (-np.logaddexp(0.0, -middle), -np.logaddexp(0.0, middle))
            pair = (end, start) if direction == 0 else (start, end)
            with np.errstate(over="ignore"):
                inside = _moment(order, *pair) <= cost
            low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        reached[direction] = low
    apart: Floats = np.minimum(reached, reached.min(axis=0) + _APART)
    return apart


def _moment(order: float, first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> Floats:
    """Return exp((order - 1) D_order(first, second)) - 1 of two coins, given the logarithms of both sides."""
    # sum over both sides of p^a q^(1 - a), in logarithms.
    moment: Floats = sum(  # type: ignore[assignment]
        np.exp(order * one - (order - 1.0) * other) for one, other in zip(first, second, strict=True)
    )
    return moment - 1.0


def certified(table: ReleaseTable, order: float, tau: float, rate: float, steps: Steps) -> bool:
    """Say whether every step from every weight keeps its allowance, rounding included.

    Args:
        table: the doubles that decide.
        order: as for `solve`.
        tau: as for `solve`.
        rate: as for `solve`.
        steps: what users give.

    Returns:
        True only if each inequality holds for the exact values of the doubles, in both directions.
    """
    if table.least != steps.least or not ((table.tails > 0) & (table.tails <= 0.5)).all():
        return False
    likely = np.arange(len(table.tails)) >= table.turn
    tail, rest = np.log(table.tails), np.log1p(-table.tails)
    # (weights,): ln pi and ln(1 - pi), whichever of both is stored.
    released, missed = np.where(likely, rest, tail), np.where(likely, tail, rest)
    last = len(table.tails) - 1
    for units, held in zip(steps.units.tolist(), steps.held.tolist(), strict=True):
        # n times -ln(1 - pi(x(n))): the second inequality of the top. Then the first, both ways, from every weight.
        novel = -missed[min(units - table.least, last)] * held
        if not novel * (1.0 + ELEMENTARY) <= rate:
            return False
        to = np.minimum(np.arange(len(table.tails)) + units, last)
        pair = ((released[to], missed[to]), (released, missed))
        if not (_keeps(order, tau / held, *pair) and _keeps(order, tau / held, *pair[::-1])):
            return False
    return True


def _keeps(order: float, allowed: float, first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> bool:
    """Say whether D_order(first, second) <= allowed everywhere, every rounding taken against it."""
    total = np.zeros(len(first[0]))
    with np.errstate(over="ignore"):
        for one, other in zip(first, second, strict=True):
            # An exponent off by e multiplies its term by exp(e): the bound on e comes first, then that of the sum.
            error = ELEMENTARY * (order * np.abs(one) + (order - 1.0) * np.abs(other))
            total += np.exp(order * one - (order - 1.0) * other + error)
        cost = (order - 1.0) * allowed * (1.0 - ELEMENTARY)
        most = np.exp(cost) * (1.0 - ELEMENTARY)
    return bool((total * (1.0 + ELEMENTARY) <= most).all())
