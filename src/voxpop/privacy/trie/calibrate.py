"""The sampling rate and the threshold at which a word needs the fewest holders, and how users vote several times.

**One vote each.** For each threshold the largest sampling rate that keeps to the budget is best: more votes, nothing
else changes. So there is one curve of holders by threshold, with one valley, and its bottom is the plan. Where users
may vote several times, `several.py` goes on from there.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from scipy.special import betainc

from voxpop.errors import BudgetError
from voxpop.privacy.budget import Budget
from voxpop.privacy.trie.accountant import PER_ROUND, ROUNDING, Words, direction_delta, trie_delta
from voxpop.privacy.trie.ballot import Ballot
from voxpop.privacy.trie.curve import chances
from voxpop.privacy.trie.discovery import holders_needed

Votes = Literal["one", "several"]

TARGET = 0.9
_COARSE_NODES = 240
_COARSE_SPACING = 0.05
_CANDIDATES = 2  # thresholds of the least estimated holders that are computed in full
_MOST_ROUNDS = 10_000


@dataclass(frozen=True, slots=True)
class Sampling:
    """What runs in every round.

    Args:
        ballot: How users vote, and the threshold.
        delta: What it costs at the budget's epsilon, certified.
    """

    ballot: Ballot
    delta: float


@lru_cache(maxsize=64)
def best_sampling(budget: Budget, rounds: int, words: Words = "one", votes: Votes = "several") -> Sampling:
    """The ballot that needs the fewest holders for a discovery with probability 0.9.

    Args:
        budget: What may be spent; delta more than 0.
        rounds: How many rounds there are.
        words: `one` if a user votes for the same word in every round, `many` if for any.
        votes: `one` if a user who is asked votes once, `several` if now and then more often.

    Returns:
        A ballot of three significant digits, and the delta it costs.

    Raises:
        BudgetError: The budget is too small to be met with certainty.

    Example:
        >>> found = best_sampling(Budget(1, 1 / 65_876_900), rounds=3)
        >>> holders_needed(0.9, found.ballot, 3) <= 55
        True
    """
    if not 1 <= rounds <= _MOST_ROUNDS:
        raise BudgetError(f"`rounds` must be a whole number from 1 to {_MOST_ROUNDS:,}, got {rounds}.")
    if budget.delta < 100 * PER_ROUND * rounds:
        raise BudgetError(
            f"`delta` must be at least {100 * PER_ROUND * rounds:.2g} for {rounds} rounds, got {budget.delta:g}: "
            "sampling without noise needs a delta above 0, and below this doubles cannot certify it. Raise `delta`."
        )
    estimates = _estimates(budget, rounds, words)
    close = sorted(estimates, key=lambda theta: estimates[theta][1])[:_CANDIDATES]
    settled = [settle(budget, rounds, words, Ballot(estimates[theta][0], theta)) for theta in close]
    if votes == "several":
        from voxpop.privacy.trie.several import several_votes

        settled += [
            settle(budget, rounds, words, each) for each in several_votes(settled[0].ballot, budget, rounds, words)
        ]
    return min(settled, key=lambda each: (holders_needed(TARGET, each.ballot, rounds), each.ballot.rate))


def _estimates(budget: Budget, rounds: int, words: Words) -> dict[int, tuple[float, float]]:
    """Rate and holders by threshold, down to the bottom of the valley by golden section on whole numbers."""
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
    """About the largest rate at which a threshold keeps to the budget, searched for from a rate near it."""

    def excess(log_odds: float) -> float:
        # Searched in log-odds: rates lie in (0, 1), and delta grows about as s^theta.
        rate = 1 / (1 + math.exp(-log_odds))
        corners = chances(Ballot(rate, theta), negligible=1e-3 * budget.delta / rounds, spacing=_COARSE_SPACING)
        delta = direction_delta(budget.epsilon, corners, rate, rounds, words, True, _COARSE_NODES)
        return math.log(max(delta, 1e-300) * ROUNDING / budget.delta)

    before = math.log(near / (1 - near))
    at_before = excess(before)
    slope = float(theta)  # delta grows about as s^theta
    for _ in range(20):
        after = before - min(max(at_before / slope, -2.0), 2.0)
        at_after = excess(after)
        if abs(at_after) < 0.02 or abs(after - before) < 1e-6:
            break
        secant = (at_after - at_before) / (after - before)
        slope = secant if secant > 1 else float(theta)
        before, at_before = after, at_after
    return 1 / (1 + math.exp(-after))


def _smooth_holders(rate: float, theta: int, rounds: int) -> float:
    """Holders for a discovery with probability 0.9, not rounded to whole users."""
    # A word is found if it passes in every round: P(Bin(n, s) >= theta) = I_s(theta, n - theta + 1), the regularised
    # incomplete beta function, which also makes sense of n that is not whole.
    wanted = TARGET ** (1 / rounds)
    low, high = float(theta), theta / rate * 64
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if betainc(theta, middle - theta + 1, rate) >= wanted else (middle, high)
    return high


def settle(budget: Budget, rounds: int, words: Words, near: Ballot) -> Sampling:
    """The largest rate of three digits near an estimate whose certified delta keeps to the budget.

    Args:
        budget: What may be spent.
        rounds: How many rounds there are.
        words: `one` or `many`.
        near: The estimate.

    Returns:
        The ballot with that rate, and its delta.

    Raises:
        BudgetError: No rate keeps to the budget.
    """
    # Rates of three digits, so that what a plan says is what runs.
    digits = 2 - math.floor(math.log10(near.rate))
    units, low, high, spent = math.floor(near.rate * 10**digits), 0, 10**digits, 1.0
    while high - low > 1:
        units = min(max(units, low + 1), high - 1)
        delta = trie_delta(budget.epsilon, replace(near, rate=round(units / 10**digits, digits)), rounds, words)
        low, high, spent = (units, high, delta) if delta <= budget.delta else (low, units, spent)
        # Delta grows about as s^theta, so this is where it should meet the budget.
        units = math.floor(units * (budget.delta / delta) ** (1 / near.theta) + 0.5)
    if low == 0:
        raise BudgetError(
            f"no sampling rate keeps to epsilon {budget.epsilon:g} and delta {budget.delta:g} in {rounds} rounds; "
            "raise either, or use fewer rounds."
        )
    return Sampling(replace(near, rate=round(low / 10**digits, digits)), spent)
