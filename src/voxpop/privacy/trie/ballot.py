"""The number of votes per user and round, and the probability that a prefix survives a round.

A user is sampled with probability `rate`. A sampled user votes once. A second vote follows with probability `again`.
After the second vote, each further vote follows with probability `further`, up to theta votes. All votes of a user in a
round are for the same prefix. Therefore the tail probabilities of the number X of votes are

    P(X >= 1) = rate,    P(X >= x) = rate * again * further^(x - 2)   for x from 2 to theta.

If `again` is 0, X is a biased coin, as in the protocol of TrieHH. With further votes, the survival probability
increases more smoothly with the number of users, because the probability of many votes decreases geometrically, like
the noise of an optimal selection. However, only users of the prefix add votes to it, so a prefix without users never
grows.
"""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import numpy as np
from scipy.special import betainc, betaincc

from voxpop.errors import BudgetError, InputError
from voxpop.kernels.arrays import Floats, Int64s
from voxpop.kernels.proved import proved
from voxpop.privacy.budget import check_probability
from voxpop.privacy.numerics import least_whole

_Prefix = TypeVar("_Prefix", bound=Hashable)

_MOST_STEPS = 60_000  # the maximum number of users
_BLOCK = 64  # the number of user counts that are computed together, a power of two
_SURE = 1e-20  # the probability of loss below which further users make no relevant difference


@dataclass(frozen=True, slots=True)
class Ballot:
    """The public distribution of the number of votes per user and round, and the threshold.

    Args:
        rate: The probability that a user is sampled.
        theta: The number of votes that a prefix needs to survive, which is also the maximum number of votes per user.
        again: The probability of a second vote after the first.
        further: The probability of one more vote after the second vote and after each later vote.

    Raises:
        BudgetError: A value is out of range.

    Example:
        >>> Ballot(0.5, 3, again=0.25, further=0.5).tails
        (0.5, 0.125, 0.0625)
    """

    rate: float
    theta: int
    again: float = 0.0
    further: float = 0.0

    def __post_init__(self) -> None:
        """Check every value."""
        if not 0 < self.rate < 1:
            raise BudgetError(
                f"`rate` must lie strictly between 0 and 1, got {self.rate}. It is the share of users sampled."
            )
        if self.theta < 2:
            raise BudgetError(f"`theta` must be at least 2, got {self.theta}.")
        if not (0 <= self.again < 1 and 0 <= self.further < 1):
            raise BudgetError(
                f"`again` and `further` must be at least 0 and below 1, got {self.again}, {self.further}."
            )

    @property
    @proved("heavy-hitters.md#what-integers-and-doubles-change")
    def tails(self) -> tuple[float, ...]:
        """The probability of at least 1, 2, ... votes, as positive doubles rounded down to the 128 bits of a draw.

        Proof: "each tail has exactly the probability of the accounting"
        """
        tails = [self.rate]
        after = self.rate * self.again
        while _as_drawn(after) > 0.0 and len(tails) < self.theta:
            tails.append(_as_drawn(after))
            after *= self.further
        return tuple(tails)

    @proved("heavy-hitters.md#the-mechanism")
    def survivors(self, votes: Mapping[_Prefix, int]) -> frozenset[_Prefix]:
        """Return the prefixes with at least theta votes. This is the only comparison of numbers of votes.

        Proof: "Prefixes with at least theta votes grow."

        Args:
            votes: The votes of all users in one round, by prefix.

        Example:
            >>> Ballot(0.5, 3).survivors({"su": 3, "mo": 2})
            frozenset({'su'})
        """
        # No noise is needed, because words without users get no votes, and each user's number of votes is secret.
        return frozenset(prefix for prefix, count in votes.items() if count >= self.theta)


@proved("heavy-hitters.md#what-integers-and-doubles-change")
def _as_drawn(tail: float) -> float:
    """Return the largest multiple of 2^-128 that is at most `tail`.

    Proof: "Every double from 2^-75 on is such a multiple, and smaller tails are rounded down before the accounting."

    If `tail` is at least 2^-75, this is the double itself.
    """
    return math.ldexp(float(math.floor(math.ldexp(tail, 128))), -128)


@proved("heavy-hitters.md#one-round")
def survival(ballot: Ballot, holders: Int64s) -> tuple[Floats, Floats]:
    """Return the probability that a prefix survives a round.

    Proof: "The votes of each user go to one prefix, and numbers of votes are independent, so the counts of different
    prefixes are independent"

    Args:
        ballot: The distribution of votes of the prefix's users.
        holders: The number of users who vote for the prefix.

    Returns:
        The probabilities and their complements, each with a relative error of at most 1e-10. A complement below 1e-20
        can exceed the true value by up to 1e-20.

    Example:
        >>> survival(Ballot(0.5, 2), np.array([1, 2, 3]))[0].tolist()
        [0.0, 0.25, 0.5]
    """
    if ballot.again > 0.0:
        survives, lost = _by_holders(ballot)
        place = np.minimum(holders, len(survives) - 1)
        return survives[place], lost[place]
    spare = np.maximum(holders - ballot.theta + 1, 1).astype(np.float64)
    enough = holders >= ballot.theta
    return (
        np.where(enough, betainc(ballot.theta, spare, ballot.rate), 0.0),
        np.where(enough, betaincc(ballot.theta, spare, ballot.rate), 1.0),
    )


@lru_cache(maxsize=64)
@proved("heavy-hitters.md#the-bound-is-certified")
def _by_holders(ballot: Ballot) -> tuple[Floats, Floats]:
    """Return the probabilities of survival and loss, by number of users from 0, until loss is negligible.

    Proof: "Distributions of several votes are convolved with positive terms only, for both pi and 1 - pi."

    All sums have positive terms.
    """
    theta = ballot.theta
    tails = np.zeros(theta + 1)
    tails[0] = 1.0
    tails[1 : len(ballot.tails) + 1] = ballot.tails
    chance = tails[:-1] - tails[1:]  # the probability of 0, 1, ..., theta - 1 votes
    step = np.zeros((theta, theta))
    for votes in range(theta):
        step[votes, votes:] = chance[: theta - votes]
    enough = tails[
        theta:0:-1
    ]  # the probability that one user casts at least the missing votes, by number of votes below theta
    below = np.eye(1, theta)  # one row per number of users, and one column per number of votes below theta
    while len(below) < _BLOCK:
        below, step = np.concatenate([below, below @ step]), step @ step
    gained: list[Floats] = []
    lost: list[Floats] = []
    while not lost or lost[-1][-1] > _SURE:
        if len(lost) * _BLOCK > _MOST_STEPS:
            raise BudgetError(
                f"a sampling rate of {ballot.rate:.3g} is too small for several votes per user. Let each user cast one."
            )
        gained.append(below @ enough)
        lost.append(below.sum(axis=1))
        below = below @ step
    remains = np.concatenate(lost)
    last = int(np.argmax(remains <= _SURE)) + 1
    survives = np.concatenate([[0.0], np.cumsum(np.concatenate(gained))[: last - 1]])
    return np.minimum(survives, 1.0), remains[:last]


# The functions below compute the probability that a word is discovered (TrieHH, Proposition 1). The worst case is a
# word that shares no prefix with another word and needs every round. The word is found if it gets theta votes in each
# round. The probability of this event is P(X_1 + ... + X_W >= theta)^L.

_MOST_HOLDERS = 10**15


def discovery_rate(holders: int, ballot: Ballot, rounds: int) -> float:
    """Return the worst-case probability that a word is found.

    Args:
        holders: The number of users who vote for the word whenever they are sampled.
        ballot: The distribution of a user's votes in every round, and the threshold.
        rounds: The number of rounds that the word needs.

    Returns:
        The probability.

    Example:
        >>> round(discovery_rate(128, Ballot(0.2, 16), 10), 3)
        0.908
    """
    survives, lost = survival(ballot, np.array([holders]))
    # Compute the logarithm of the probability that the word survives a round, from the more accurate of the two
    # probabilities.
    each = math.log1p(-float(lost[0])) if lost[0] < 0.5 else math.log(float(survives[0]) or 5e-324)
    # The draws of the rounds are independent, so the survival probabilities are multiplied.
    return math.exp(rounds * each) if survives[0] > 0 else 0.0


def voters_needed(probability: float, ballot: Ballot, rounds: int) -> int:
    """Return the number of users with which a word is found with at least this probability in the worst case.

    Args:
        probability: The probability of discovery, strictly between 0 and 1.
        ballot: The distribution of a user's votes in every round, and the threshold.
        rounds: The number of rounds that the word needs.

    Returns:
        The smallest such number.

    Raises:
        InputError: The probability is out of range, or the number exceeds 10^15.

    Example:
        >>> voters_needed(0.9, Ballot(0.2, 16), 10)
        128
    """
    check_probability(probability)

    def found(holders: int) -> bool:
        return discovery_rate(holders, ballot, rounds) >= probability

    needed = least_whole(found, 0, 2 * ballot.theta, _MOST_HOLDERS)
    if needed is None:
        raise InputError(
            f"even a word of 10^15 users is not found with probability {probability:g}. "
            "Choose a smaller `probability` or a larger budget."
        )
    return needed
