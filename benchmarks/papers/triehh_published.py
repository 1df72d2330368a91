"""Theorems and claims of the TrieHH paper (Zhu, Kairouz, Sun, McMahan and Li, AISTATS 2020), for comparison only.

Theorem 1, for batches of m of n users, threshold theta and L rounds: epsilon = L ln(1 + 1/(sqrt(n)/(gamma theta) - 1))
with gamma = m / sqrt(n), and delta = 1/(0.279 theta!). With the sampling rate s = m / n, this epsilon is -L ln(1 - s
theta) for every n. The constant must be 0.278 (the paper rounds 0.2785 up). The proof covers only one direction, which
compares the release with the user to the release without. For batches of fixed size the other direction can be
arbitrarily bad (docs/privacy/heavy-hitters.md).

Corollary 2 solves Theorem 1 for s. It obtains s = (1 - e^(-epsilon/L)) / 10 by replacing theta with 10 on the wrong
side of an inequality. Theorem 1 implies s = (1 - e^(-epsilon/L)) / theta.
"""

import math

import numpy as np
from scipy.special import gammaln

from voxpop.errors import BudgetError
from voxpop.privacy.budget import Budget
from voxpop.privacy.trie.accountant import Words, trie_delta
from voxpop.privacy.trie.ballot import Ballot

LEAST_USERS = 10_000


def theorem_epsilon(rate: float, theta: int, rounds: int) -> float:
    """Return epsilon by Theorem 1.

    Args:
        rate: The batch size divided by the number of users.
        theta: The number of votes that a prefix needs.
        rounds: The number of rounds L.

    Returns:
        Epsilon, which is infinite if the theorem does not apply.

    Example:
        >>> round(theorem_epsilon(6269 / 658_769, 12, 10), 3)  # the paper's Corollary 2 claims 1
        1.213
    """
    # -L ln(1 - s theta).
    return -rounds * math.log1p(-rate * theta) if rate * theta < 1 else math.inf


def printed_rate(epsilon: float, rounds: int) -> float:
    """Return the sampling rate of Corollary 2 as printed, which does not follow from Theorem 1.

    Args:
        epsilon: The epsilon that the paper claims.
        rounds: The number of rounds L.

    Returns:
        The batch size divided by the number of users.

    Example:
        >>> round(printed_rate(1, 10) * 658_769)
        6269
    """
    # s = (1 - e^(-epsilon / L)) / 10, as printed.
    return -math.expm1(-epsilon / rounds) / 10


def table_theta(users: int) -> int:
    """Return the threshold of the paper's Table 1.

    Args:
        users: The number of users.

    Returns:
        The whole number at or above log10(users) + 6.

    Example:
        >>> [table_theta(10**power) for power in (4, 6, 8, 10)]
        [10, 12, 14, 16]
    """
    return math.ceil(math.log10(users) + 6 - 1e-12)


def least_users(rate: float) -> int:
    """Return the number of users that Theorem 1 requires at a sampling rate.

    Args:
        rate: The batch size divided by the number of users.

    Returns:
        The smallest number that satisfies n >= 10^4, gamma >= 1 and gamma + 1/gamma <= 0.874 sqrt(n).

    Raises:
        BudgetError: If no number satisfies the conditions.

    Example:
        >>> least_users(0.008)
        15625
    """
    if not 0 < rate < 0.874:
        raise BudgetError(f"Theorem 1 of TrieHH needs a sampling rate between 0 and 0.874, got {rate:g}.")
    # gamma = s sqrt(n) >= 1, and s sqrt(n) + 1 / (s sqrt(n)) <= 0.874 sqrt(n), each solved for n.
    return max(LEAST_USERS, math.ceil(1 / rate**2 - 1e-6), math.ceil(1 / (rate * (0.874 - rate)) - 1e-6))


def trade_off(cut: int, users: int, batch: int, theta: int) -> Budget:
    """Return epsilon and delta of a single round if `cut` separates small and popular prefixes (Appendix C.3).

    With up to `cut` other users of the prefix, delta is the probability that the prefix survives at all. With more
    users, the two probabilities have a ratio of at most 1 + theta / (cut - theta + 1) (Lemma 1).

    Args:
        cut: The number K, at least theta.
        users: The number of users.
        batch: The number of drawn users.
        theta: The number of votes that a prefix needs.

    Returns:
        The pair that the paper's two lemmas give.

    Raises:
        BudgetError: If the cut is below theta.

    Example:
        >>> pair = trade_off(99, 10**4, 100, 10)
        >>> round(pair.epsilon, 3), pair.delta < 1e-6
        (0.105, True)
    """
    if cut < theta:
        raise BudgetError(f"`cut` must be at least theta, {theta}, got {cut}.")
    # ln(1 + theta / (K - theta + 1)) of Lemma 1. The K + 1 users are K other users and the user.
    return Budget(math.log1p(theta / (cut - theta + 1)), min(fixed_survival(cut + 1, users, batch, theta), 1 - 1e-16))


def fixed_survival(holders: int, users: int, batch: int, theta: int) -> float:
    """Return the probability that a prefix survives one round with a batch of fixed size (Proposition 2).

    Args:
        holders: The number of users who vote for the prefix if they are drawn.
        users: The number of users.
        batch: The number of drawn users.
        theta: The number of votes that a prefix needs.

    Returns:
        The probability.

    Example:
        >>> round(fixed_survival(3, 5, 2, 2), 12)
        0.3
    """
    # Hypergeometric distribution of the number of the word's users among `batch` drawn users.
    votes = np.arange(max(theta, batch - (users - holders)), min(holders, batch) + 1, dtype=np.float64)
    if not len(votes):
        return 0.0
    logs = _log_choose(holders, votes) + _log_choose(users - holders, batch - votes) - _log_choose(users, batch)
    return float(min(1.0, np.exp(logs).sum()))


def fixed_discovery_rate(holders: int, users: int, batch: int, theta: int, rounds: int) -> float:
    """Return the worst-case probability that a word is found with batches of fixed size (Proposition 1).

    Args:
        holders: The number of users of the word.
        users: The number of users.
        batch: The number of users drawn in each round.
        theta: The number of votes that a prefix needs.
        rounds: The number of rounds that the word takes.

    Returns:
        The probability.

    Example:
        >>> round(fixed_discovery_rate(2705, 658_769, 5224, 12, 10), 2)
        0.91
    """
    return fixed_survival(holders, users, batch, theta) ** rounds


def _log_choose(whole: float, part: object) -> np.ndarray:
    # ln of n! / (k! (n - k)!), for all k at once.
    chosen = np.asarray(part, dtype=np.float64)
    logs: np.ndarray = gammaln(whole + 1.0) - gammaln(chosen + 1.0) - gammaln(whole - chosen + 1.0)
    return logs


def trie_epsilon(delta: float, ballot: Ballot, rounds: int, words: Words = "one") -> float:
    """Return the smallest epsilon for a delta, as an upper bound with a relative error of at most 1e-4.

    Args:
        delta: The delta of the guarantee.
        ballot: The votes of users in every round, and the threshold.
        rounds: The number of rounds.
        words: The number of words per user, `one` or `many`.

    Returns:
        Epsilon, which is infinite if no epsilon suffices.

    Raises:
        BudgetError: If a value is out of range.

    Example:
        >>> round(trie_epsilon(1 / 65_876_900, Ballot(0.2, 16), 10), 2)
        0.98
    """
    low, high = 1e-6, 64.0
    if trie_delta(high, ballot, rounds, words) > delta:
        return float("inf")
    for nodes, width in ((150, 1.03), (800, 1 + 1e-4)):  # coarse values are upper bounds, so they only lower `high`
        while high / low > width:
            middle = (low * high) ** 0.5
            enough = trie_delta(middle, ballot, rounds, words, nodes=nodes) <= delta
            low, high = (low, middle) if enough else (middle, high)
        low /= 1.1
    return high
