"""The calibration of the sampling rate, the threshold and further votes, so that a word needs as few users as possible.

**One vote each.** For each threshold, the largest sampling rate within the budget is the best rate, because it gives
more votes and changes nothing else. Therefore the number of users depends only on the threshold. This number has a
single minimum, which the plan uses. If users may vote several times, `several_votes` continues from this minimum.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import betainc, expit, logit

from voxpop.errors import BudgetError
from voxpop.privacy.budget import Budget
from voxpop.privacy.numerics import crossing
from voxpop.privacy.trie.accountant import PER_ROUND, TRIE_ROUNDING, Words, chances, direction_delta, trie_delta
from voxpop.privacy.trie.ballot import Ballot, survival, voters_needed

VotesPerUser = Literal["one", "several"]

TARGET = 0.9
_COARSE_NODES = 240
_COARSE_SPACING = 0.05
_CANDIDATES = 2  # the number of thresholds with the fewest estimated users that are computed in full
_MOST_ROUNDS = 10_000


class Sampling(NamedTuple):
    """The sampling of users and votes in every round.

    Attributes:
        ballot: The distribution of a user's votes, and the threshold.
        delta: The certified delta at the epsilon of the budget.
    """

    ballot: Ballot
    delta: float


@lru_cache(maxsize=64)
def best_sampling(budget: Budget, rounds: int, words: Words = "one", votes: VotesPerUser = "several") -> Sampling:
    """Return the ballot that needs the fewest users to discover a word with probability 0.9.

    Args:
        budget: The privacy budget, with delta above 0.
        rounds: The number of rounds.
        words: `one` if a user votes for the same word in every round, `many` if a user may vote for any of their words.
        votes: `one` if a sampled user votes once, `several` if a sampled user may vote several times.

    Returns:
        A ballot whose numbers have three significant digits, and its delta.

    Raises:
        BudgetError: The budget is too small to be certified.

    Example:
        >>> found = best_sampling(Budget(1, 1 / 65_876_900), rounds=3)
        >>> voters_needed(0.9, found.ballot, 3) <= 55
        True
    """
    if not 1 <= rounds <= _MOST_ROUNDS:
        raise BudgetError(f"`rounds` must be a whole number from 1 to {_MOST_ROUNDS:,}, got {rounds}.")
    if budget.delta < 100 * PER_ROUND * rounds:
        raise BudgetError(
            f"`delta` must be at least {100 * PER_ROUND * rounds:.2g} for {rounds} rounds, got {budget.delta:g}. "
            "Sampling without noise needs a delta above 0, and doubles cannot certify a smaller one. Raise `delta`."
        )
    estimates = _estimates(budget, rounds, words)
    close = sorted(estimates, key=lambda theta: estimates[theta][1])[:_CANDIDATES]
    settled = [settle(budget, rounds, words, Ballot(estimates[theta][0], theta)) for theta in close]
    if votes == "several":
        settled += [
            settle(budget, rounds, words, each) for each in several_votes(settled[0].ballot, budget, rounds, words)
        ]
    return min(settled, key=lambda each: (voters_needed(TARGET, each.ballot, rounds), each.ballot.rate))


def _estimates(budget: Budget, rounds: int, words: Words) -> dict[int, tuple[float, float]]:
    """Return the rate and the number of users by threshold, from a golden-section search over integer thresholds."""
    found: dict[int, tuple[float, float]] = {}

    def holders(theta: int) -> float:
        if theta not in found:
            nearest = min(found, key=lambda known: abs(known - theta), default=None)
            near = found[nearest][0] if nearest else 0.5 * budget.delta ** (1 / theta)
            rate = _largest_rate(budget, rounds, words, theta, near)
            found[theta] = (rate, _smooth_holders(rate, theta, rounds))
        return found[theta][1]

    low, high = 2, 16 + 3 * math.ceil(-math.log(budget.delta))
    while high - low > 2:
        inner = high - round(0.618 * (high - low))
        outer = max(inner + 1, low + round(0.618 * (high - low)))
        low, high = (low, outer) if holders(inner) <= holders(outer) else (inner, high)
    for theta in range(low, high + 1):
        holders(theta)
    return found


def _largest_rate(budget: Budget, rounds: int, words: Words, theta: int, near: float) -> float:
    """Return approximately the largest rate within the budget at a threshold. The search starts from a nearby rate."""

    def excess(log_odds: float) -> float:
        rate = float(expit(log_odds))
        corners = chances(Ballot(rate, theta), negligible=1e-3 * budget.delta / rounds, spacing=_COARSE_SPACING)
        delta = direction_delta(budget.epsilon, corners, rate, rounds, words, True, _COARSE_NODES)
        return _log_excess(delta, budget)

    log_odds, _, _ = _crossing(excess, logit(near), float(theta), 2.0 * theta, 20)
    return float(expit(log_odds))


def _log_excess(delta: float, budget: Budget) -> float:
    """Return approximately the logarithm of the ratio of delta to the budget's delta."""
    return math.log(max(delta, 1e-300) * TRIE_ROUNDING / budget.delta)


def _crossing(
    excess: Callable[[float], float], start: float, slope: float, steepest: float, tries: int
) -> tuple[float, float, bool]:
    """Approximate the zero of an increasing excess by secants. Return the zero, the slope, and whether it converged.

    Rates are in (0, 1), so the argument is the log-odds of a rate. Delta grows approximately as s^theta, so the
    logarithm of delta is approximately linear.
    """
    place, value = start, excess(start)
    for _ in range(tries):
        after = place - min(max(value / slope, -1.0), 1.0)
        if abs(value) < _CLOSE:
            return after, slope, True
        reached = excess(after)
        slope = min(max((reached - value) / (after - place), 2.0), steepest)
        place, value = after, reached
    return place, slope, False


def _smooth_holders(rate: float, theta: int, rounds: int) -> float:
    """Return the number of users needed to discover a word with probability 0.9, not rounded to whole users."""
    # A word is found if it survives every round. The probability for each round is P(Bin(n, s) >= theta) = I_s(theta, n
    # - theta + 1). This regularised incomplete beta function is also defined if n is not an integer.
    wanted = TARGET ** (1 / rounds)
    return crossing(lambda n: wanted - float(betainc(theta, n - theta + 1, rate)), theta, theta / rate * 64, 1e-9)


def settle(budget: Budget, rounds: int, words: Words, near: Ballot) -> Sampling:
    """Return the ballot near an estimate with the largest three-digit rate that is certified within the budget.

    Args:
        budget: The privacy budget.
        rounds: The number of rounds.
        words: `one` or `many`.
        near: The ballot with an estimate of the rate.

    Returns:
        The ballot with that rate, and its delta.

    Raises:
        BudgetError: No rate is within the budget.
    """
    # Rates have three digits, so that the printed plan is the exact plan.
    digits = 2 - math.floor(math.log10(near.rate))
    units, low, high, spent = math.floor(near.rate * 10**digits), 0, 10**digits, 1.0
    while high - low > 1:
        units = min(max(units, low + 1), high - 1)
        delta = trie_delta(budget.epsilon, replace(near, rate=round(units / 10**digits, digits)), rounds, words)
        low, high, spent = (units, high, delta) if delta <= budget.delta else (low, units, spent)
        # Delta grows approximately as s^theta, so this rate should have the delta of the budget.
        units = math.floor(units * (budget.delta / delta) ** (1 / near.theta) + 0.5)
    if low == 0:
        raise BudgetError(
            f"no sampling rate is within epsilon {budget.epsilon:g} and delta {budget.delta:g} in {rounds} rounds. "
            "Raise one of them, or use fewer rounds."
        )
    return Sampling(replace(near, rate=round(low / 10**digits, digits)), spent)


# The code below optimises further votes. For a threshold and two probabilities of further votes, it computes the
# largest rate within the budget on a coarse certified grid. The simplex method of Nelder and Mead optimises the
# probabilities, at several thresholds and then near the best of these thresholds. The guarantee does not depend on this
# search, because `settle` certifies the plan that runs.

_SEARCH_NODES = 100
_SOME = 45  # the number of user counts that are computed
_CLOSE = 0.1  # the tolerance of the logarithm of delta; the rest is corrected along the last slope
_MOST_HOLDERS = 1500  # with more users, a plan would take too long, so each user casts one vote
_THETAS, _FIRST, _NEXT = (
    5,
    14,
    22,
)  # the number of thresholds, of ballots tried at each one, and of ballots tried at the best one and its neighbours
_STEP = 1.1
_NEVER = 1e6


def several_votes(coin: Ballot, budget: Budget, rounds: int, words: Words) -> Iterator[Ballot]:
    """Yield estimates of the best ballots. Yield nothing if one vote per user already needs too many users.

    Args:
        coin: The best ballot with one vote each.
        budget: The privacy budget.
        rounds: The number of rounds.
        words: `one` or `many`.
    """
    if voters_needed(TARGET, coin, rounds) > _MOST_HOLDERS:
        return
    search = _Search(budget, rounds, words)
    low = min(0.7 * coin.theta, -math.log(budget.delta) / budget.epsilon + 1.5)
    thetas = {max(3, round(each)) for each in np.geomspace(low, 1.7 * coin.theta, _THETAS)}
    # Start with a rate of further votes for which theta votes have a probability of about further^theta = delta.
    starts = {theta: (0.04, min(0.9, float(budget.delta ** (1 / theta)))) for theta in sorted(thetas)}
    found = [search.at(theta, start, _FIRST) for theta, start in starts.items()]
    best = min(found, key=lambda each: each.holders)
    for factor in (1.0, _STEP, 1 / _STEP):
        known = best.ballot
        theta = max(3, round(known.theta * factor))
        near = search.at(theta, (known.again, known.further ** (known.theta / theta)), _NEXT)
        best = min(best, near, key=lambda each: each.holders)
    if best.holders < _NEVER:
        yield best.ballot


class _Found(NamedTuple):
    """The number of users that a ballot needs, not rounded to whole users."""

    holders: float
    ballot: Ballot


class _Search:
    """Searches for the best probabilities at successive thresholds.

    Each search starts from the previous rate and slope.
    """

    def __init__(self, budget: Budget, rounds: int, words: Words):
        self.budget, self.rounds, self.words = budget, rounds, words
        self.rate, self.slope = 0.4, 8.0

    def at(self, theta: int, start: tuple[float, float], tries: int) -> _Found:
        """Return the best ballot at a threshold after `tries` tries."""
        # If every probability is rounded to 0, as happens for low thresholds and a low delta, this first entry is
        # returned.
        found = [_Found(_NEVER, Ballot(self.rate, theta, *start))]

        def holders(point: np.ndarray) -> float:
            again, further = (round(float(expit(each)), 3) for each in point)
            if not (0 < again < 1 and 0 < further < 1):
                return _NEVER
            found.append(self.largest(Ballot(self.rate, theta, again, further)))
            return found[-1].holders

        # Probabilities are in (0, 1), so the simplex method works on their log-odds.
        first = [logit(each) for each in start]
        simplex = np.array([first, [first[0] + 0.6, first[1]], [first[0], first[1] + 0.3]])
        options = {"maxfev": tries, "xatol": 0.02, "fatol": 0.02, "initial_simplex": simplex}
        minimize(holders, first, method="Nelder-Mead", options=options)
        return min(found, key=lambda each: each.holders)

    def largest(self, near: Ballot) -> _Found:
        """Return a ballot with approximately the largest rate within the budget, using secants from a nearby rate."""

        def with_rate(log_odds: float) -> Ballot:
            return replace(near, rate=float(expit(min(log_odds, 6.0))))

        excess, start = lambda log_odds: self.excess(with_rate(log_odds)), logit(near.rate)
        log_odds, self.slope, found = _crossing(excess, start, self.slope, 40.0, 8)
        ballot = with_rate(log_odds)
        if not found:
            return _Found(_NEVER, ballot)
        self.rate = min(max(ballot.rate, 0.02), 0.95)
        return _Found(_interpolated_holders(ballot, self.rounds), ballot)

    def excess(self, ballot: Ballot) -> float:
        """Return approximately the logarithm of the ratio of delta to the budget's delta."""
        try:
            corners = chances(ballot, negligible=1e-3 * self.budget.delta / self.rounds)
        except BudgetError:
            return 10.0
        # For an estimate, some of the points are enough. They are evenly spaced in the logarithm of the number of
        # users.
        corners = corners[:, np.unique(np.geomspace(1, corners.shape[1], _SOME).round().astype(np.int64)) - 1]
        worst = 0.0
        for added in (True, False) if self.words == "many" or ballot.rate > 0.5 else (True,):
            given = (self.budget.epsilon, corners, ballot.rate, self.rounds, self.words, added, _SEARCH_NODES)
            worst = max(worst, direction_delta(*given))
        return _log_excess(worst, self.budget)


def _interpolated_holders(ballot: Ballot, rounds: int) -> float:
    """Return the number of users needed to discover a word with probability 0.9, interpolated between whole users."""
    # The prefix must survive each of L rounds, so it must survive each round with probability p^(1 / L).
    wanted = TARGET ** (1 / rounds)
    reach = 64
    while survival(ballot, np.array([reach]))[0][0] < wanted:
        reach *= 2
    survives, _ = survival(ballot, np.arange(reach + 1))
    above = int(np.argmax(survives >= wanted))
    low, high = survives[above - 1], survives[above]
    return above - 1 + float((wanted - low) / (high - low))
