"""Which chances of a second vote and of further ones need the fewest holders, at which threshold.

For a threshold and two chances, the largest rate that keeps to the budget is solved for on a coarse certified grid; the
chances follow by the simplex of Nelder and Mead, at a few thresholds and then near the best of them. Nothing here has
to be right for the guarantee: what it finds is an estimate, and `calibrate.settle` certifies what runs.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize

from voxpop.errors import BudgetError
from voxpop.privacy.budget import Budget
from voxpop.privacy.trie.accountant import ROUNDING, Words, direction_delta
from voxpop.privacy.trie.ballot import Ballot, survival
from voxpop.privacy.trie.curve import Chances, chances
from voxpop.privacy.trie.discovery import holders_needed

TARGET = 0.9
_COARSE_NODES = 100
_SOME = 45  # numbers of holders looked at
_CLOSE = 0.1  # of the logarithm of delta; the rest is put right along the last slope
_MOST_HOLDERS = 1500  # beyond, a plan would take too long, and each user casts one vote
_THETAS, _FIRST, _NEXT = 5, 14, 22  # thresholds, ballots tried at each, and at the best of them and beside it
_STEP = 1.1
_NEVER = 1e6


def several_votes(coin: Ballot, budget: Budget, rounds: int, words: Words) -> Iterator[Ballot]:
    """Yield estimates of the best ballots, none where a plain coin needs too many holders.

    Args:
        coin: The best ballot with one vote each.
        budget: What may be spent.
        rounds: How many rounds there are.
        words: `one` or `many`.
    """
    if holders_needed(TARGET, coin, rounds) > _MOST_HOLDERS:
        return
    search = _Search(budget, rounds, words)
    low = min(0.7 * coin.theta, -math.log(budget.delta) / budget.epsilon + 1.5)
    thetas = {max(3, round(each)) for each in np.geomspace(low, 1.7 * coin.theta, _THETAS)}
    found = [search.at(theta, (0.04, _slope(budget, theta)), _FIRST) for theta in sorted(thetas)]
    best = min(found, key=lambda each: each.holders)
    for factor in (1.0, _STEP, 1 / _STEP):
        theta = max(3, round(best.theta * factor))
        again, further = best.chances
        near = search.at(theta, (again, further ** (best.theta / theta)), _NEXT)
        best = min(best, near, key=lambda each: each.holders)
    if best.holders < _NEVER:
        yield best.ballot


def _slope(budget: Budget, theta: int) -> float:
    """The chance of further votes at which theta of them have about the probability delta."""
    # further^theta = delta.
    return min(0.9, float(budget.delta ** (1 / theta)))


class _Found:
    """A ballot and how many holders it needs, not rounded to whole users."""

    def __init__(self, ballot: Ballot, holders: float):
        self.ballot, self.holders = ballot, holders

    @property
    def theta(self) -> int:
        return self.ballot.theta

    @property
    def chances(self) -> tuple[float, float]:
        return self.ballot.again, self.ballot.further


class _Search:
    """Looks for the best chances at one threshold after the other, from where it was."""

    def __init__(self, budget: Budget, rounds: int, words: Words):
        self.budget, self.rounds, self.words = budget, rounds, words
        self.rate, self.slope = 0.4, 8.0

    def at(self, theta: int, start: tuple[float, float], tries: int) -> _Found:
        """Return the best that so many tries find at a threshold."""
        # Where every chance is rounded to 0, as at low thresholds where delta is low, further votes find nothing.
        found = [_Found(Ballot(self.rate, theta, *start), _NEVER)]

        def holders(point: np.ndarray) -> float:
            again, further = (round(_chance(each), 3) for each in point)
            if not (0 < again < 1 and 0 < further < 1):
                return _NEVER
            found.append(self.largest(Ballot(self.rate, theta, again, further)))
            return found[-1].holders

        # Chances lie in (0, 1), so the simplex moves in their log-odds.
        first = [_odds(each) for each in start]
        simplex = np.array([first, [first[0] + 0.6, first[1]], [first[0], first[1] + 0.3]])
        options = {"maxfev": tries, "xatol": 0.02, "fatol": 0.02, "initial_simplex": simplex}
        minimize(holders, first, method="Nelder-Mead", options=options)
        return min(found, key=lambda each: each.holders)

    def largest(self, near: Ballot) -> _Found:
        """Return a ballot with about the largest rate that keeps to the budget, by secants from a rate near it."""
        # The logarithm of delta rises about evenly with the log-odds of the rate, by `slope` each.
        before, excess = _odds(near.rate), self.excess(near)
        for _ in range(8):
            after = before - min(max(excess / self.slope, -1.0), 1.0)
            near = replace(near, rate=_chance(min(after, 6.0)))
            if abs(excess) < _CLOSE:
                self.rate = min(max(near.rate, 0.02), 0.95)
                return _Found(near, _smooth_holders(near, self.rounds))
            now = self.excess(near)
            secant = (now - excess) / (after - before)
            self.slope = min(max(secant, 2.0), 40.0)
            before, excess = after, now
        return _Found(near, _NEVER)

    def excess(self, ballot: Ballot) -> float:
        """Return about the logarithm of delta over the budget's delta."""
        try:
            corners = _some(chances(ballot, negligible=1e-3 * self.budget.delta / self.rounds))
        except BudgetError:
            return 10.0
        worst = 0.0
        for added in (True, False) if self.words == "many" or ballot.rate > 0.5 else (True,):
            delta = direction_delta(
                self.budget.epsilon, corners, ballot.rate, self.rounds, self.words, added, _COARSE_NODES
            )
            worst = max(worst, delta)
        return math.log(max(worst, 1e-300) * ROUNDING / self.budget.delta)


def _some(corners: Chances) -> Chances:
    """Some of the points, evenly spread in the logarithm of the holders: enough for an estimate."""
    count = len(corners.joined)
    places = np.unique(np.geomspace(1, count, _SOME).round().astype(np.int64)) - 1
    return Chances(
        corners.without[places],
        corners.lost_without[places],
        corners.joined[places],
        corners.lost_joined[places],
    )


def _smooth_holders(ballot: Ballot, rounds: int) -> float:
    """Holders for a discovery with probability 0.9, interpolated between whole users."""
    # Each of L rounds must be survived: p^(1 / L) in one.
    wanted = TARGET ** (1 / rounds)
    reach = 64
    while survival(ballot, np.array([reach]))[0][0] < wanted:
        reach *= 2
    survives, _ = survival(ballot, np.arange(reach + 1))
    above = int(np.argmax(survives >= wanted))
    low, high = survives[above - 1], survives[above]
    return above - 1 + float((wanted - low) / (high - low))


def _odds(chance: float) -> float:
    return math.log(chance / (1 - chance))


def _chance(odds: float) -> float:
    return 1 / (1 + math.exp(-odds))
