"""Order-dependent weightings in groups of users: how much is lost, without Spark: the same sums of the same kernels.

python -m benchmarks.spark.groups
"""

from dataclasses import replace
from typing import Any

import numpy as np

import voxpop as vp
from benchmarks.spark.descent import users_of
from benchmarks.support.common import BUDGET, chat, posts, table
from voxpop.corpus.histogram import Histogram
from voxpop.privacy.secret import Secret

GROUPS = (1, 2, 4, 8, 64)
LOST = (2, 4, 64)
MOST = 2**61
PHRASES = vp.Budget(4, 1e-7)


class InGroups:
    """A corpus whose users weigh in groups, each of which sees itself alone."""

    def __init__(self, corpus: vp.Corpus, count: int) -> None:
        self._corpus = corpus
        places = Secret.from_seed(0).draws("places", corpus.user_key, 0)[:, 0] % np.uint64(count)
        self._groups = [users_of(corpus, np.flatnonzero(places == number)) for number in range(count)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._corpus, name)

    def length_walk(self) -> "WalkInGroups":
        """Return the walk of all groups, side by side."""
        return WalkInGroups([group.length_walk() for group in self._groups], self._corpus.vocabulary)


class WalkInGroups:
    """What a `LengthWalk` answers: the sums of several."""

    def __init__(self, walks: list[Any], vocabulary: Any) -> None:
        self._walks, self._vocabulary = walks, vocabulary

    @property
    def length(self) -> int:
        """Length of the grams that are weighed now."""
        return int(self._walks[0].length)

    def weigh(self, *arguments: Any) -> Histogram:
        """Add up the weights of all groups, cut off as on Spark."""
        found = [walk.weigh(*arguments) for walk in self._walks]
        ids, places = np.unique(np.concatenate([each.ids for each in found]), return_inverse=True)
        exact = np.zeros(ids.size)
        np.add.at(exact, places, np.concatenate([each.weights for each in found]).astype(np.float64))
        whole = np.zeros(ids.size, np.int64)
        np.add.at(whole, places, np.concatenate([each.weights for each in found]))
        words = None if found[0].words is None else self._vocabulary.take(ids.tolist())
        return Histogram(ids, np.where(exact >= MOST, MOST, whole), words)

    def __getattr__(self, name: str) -> Any:
        def each(*arguments: Any) -> None:
            for walk in self._walks:
                getattr(walk, name)(*arguments)

        return each


def main() -> None:
    """Measure, print, write."""
    words = vp.SetUnion(limit=100, weighting="l2-descent")
    jobs = [
        ("reddit_posts, words, l2-descent", posts(), words, BUDGET),
        ("reddit_posts, phrases to length 9", posts(), vp.NGrams(max_length=9, limit=100, spending="shared"), PHRASES),
        ("ubuntu_irc, phrases to length 9", chat(), vp.NGrams(max_length=9, limit=100, spending="shared"), PHRASES),
    ]
    told = [*(f"{count} groups" for count in GROUPS), *(f"lost in {count}" for count in LOST)]
    rows: list[list[object]] = [["job", *told]]
    for name, corpus, mechanism, budget in jobs:
        found = [released(corpus, mechanism, budget, count) for count in GROUPS]
        lost = [f"{100 * (1 - found[GROUPS.index(count)] / found[0]):.1f} %" for count in LOST]
        rows.append([name, *(f"{count:,}" for count in found), *lost])
    note = "One secret. Users are dealt out by a hash of their keys; sums are those of Spark."
    table("Order-dependent weightings in groups of users", rows, "spark_groups", note)


def released(corpus: vp.Corpus, mechanism: Any, budget: vp.Budget, count: int) -> int:
    """Return how much is released in so many groups."""
    if isinstance(mechanism, vp.SetUnion):
        from benchmarks.spark.descent import released as words

        return words(mechanism.plan(budget).rounds[0], replace(corpus), count, Secret.from_seed(1))
    return len(mechanism.release(InGroups(corpus, count), budget, seed=1))


if __name__ == "__main__":
    main()
