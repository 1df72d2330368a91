"""How likely a word is found, and how many holders it needs (TrieHH, Proposition 1).

The worst case: a word that shares no prefix with any other and takes every round. It is found if it gets theta votes
in each round: P(X_1 + ... + X_W >= theta)^L; `published.py` has the paper's hypergeometric tail for
batches of fixed size. Words that share prefixes are found more often.
"""

import math

import numpy as np

from voxpop.errors import InputError
from voxpop.privacy.search import least_whole
from voxpop.privacy.trie.ballot import Ballot, survival

_MOST_HOLDERS = 10**15


def discovery_rate(holders: int, ballot: Ballot, rounds: int) -> float:
    """The worst-case probability that a word is found.

    Args:
        holders: How many users vote for the word whenever they are asked.
        ballot: How users vote in every round, and the threshold.
        rounds: How many rounds the word takes.

    Returns:
        The probability.

    Example:
        >>> round(discovery_rate(128, Ballot(0.2, 16), 10), 3)
        0.908
    """
    survives, lost = survival(ballot, np.array([holders]))
    # ln P(a round is survived), from whichever of both probabilities is exact.
    each = math.log1p(-float(lost[0])) if lost[0] < 0.5 else math.log(float(survives[0]) or 5e-324)
    # Draws of rounds are independent: a power.
    return math.exp(rounds * each) if survives[0] > 0 else 0.0


def holders_needed(probability: float, ballot: Ballot, rounds: int) -> int:
    """How many holders make the worst-case discovery at least this likely.

    Args:
        probability: Of discovery, strictly between 0 and 1.
        ballot: How users vote in every round, and the threshold.
        rounds: How many rounds the word takes.

    Returns:
        The least such number.

    Raises:
        InputError: The probability is out of range, or the number exceeds 10^15.

    Example:
        >>> holders_needed(0.9, Ballot(0.2, 16), 10)
        128
    """
    if not 0.0 < probability < 1.0:
        raise InputError(f"`probability` must lie strictly between 0 and 1, got {probability!r}.")

    def found(holders: int) -> bool:
        return discovery_rate(holders, ballot, rounds) >= probability

    needed = least_whole(found, 0, 2 * ballot.theta, _MOST_HOLDERS)
    if needed is None:
        raise InputError(f"no number of holders up to 10^15 is found with probability {probability:g}.")
    return needed
