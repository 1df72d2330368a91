"""Reference implementation of user counts, based on sets."""

from collections.abc import Sequence
from math import sqrt

from naive.ngrams import Documents

Gram = tuple[str, ...]


def held_by(user: Documents, length: int) -> set[Gram]:
    """Return the distinct grams of one length in the documents of a user."""
    return {tuple(doc[i : i + length]) for doc in user for i in range(len(doc) - length + 1)}


def holders(users: Sequence[Documents], grams: Sequence[Gram], limits: Sequence[int]) -> dict[Gram, float]:
    """Return the weight of each gram. Each user adds one, or less if the user has more grams than the limit."""
    weights = dict.fromkeys(grams, 0.0)
    for user in users:
        for length, limit in enumerate(limits, start=1):
            mine = held_by(user, length) & set(grams)
            for gram in mine:
                weights[gram] += min(1.0, sqrt(limit / len(mine)))
    return weights
