"""The losses of the default if users weigh in groups, computed without Spark by the same kernels and sums.

python -m benchmarks.spark.groups
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import voxpop as vp
from benchmarks.evaluation.weights import private_weights
from benchmarks.support.benchmark import NGRAMS, Benchmark
from benchmarks.support.common import BUDGET, chat, posts
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.engine.local.pools import Pools, PoolUsers
from voxpop.engine.local.weigh import Histogram
from voxpop.kernels.arrays import RELEASED, UNDECIDED, Int64s
from voxpop.privacy.secret import Secret

BENCHMARK = Benchmark(__file__, ("spark_groups_default",), NGRAMS, minutes=5, seeds="1")

GROUPS = (1, 2, 4, 8, 64)
LOST = (2, 4, 64)
MOST = 2**61
PHRASES = vp.Budget(4, 1e-7)


class InGroups:
    """A corpus of users who weigh in groups. Each group uses only its own weights."""

    def __init__(self, corpus: LocalCorpus, count: int) -> None:
        self._corpus = corpus
        places = Secret.from_seed(0).draws("places", corpus.user_key, 0)[:, 0] % np.uint64(count)
        self._groups = [users_of(corpus, np.flatnonzero(places == number)) for number in range(count)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._corpus, name)

    def length_walk(self) -> "WalkInGroups":
        """Return the walk that combines the walks of all groups."""
        return WalkInGroups([group.length_walk() for group in self._groups], self._corpus.vocabulary)

    def pools(self, secret: Secret) -> "PoolsInGroups":
        """Return the items of all users. Their weights in a round are the sums of all groups."""
        return PoolsInGroups(self._corpus, self._groups, secret)


class PoolsInGroups(Pools):
    """Adaptive rounds of users who use only the weights of their own group."""

    def __init__(self, corpus: LocalCorpus, groups: list[LocalCorpus], secret: Secret) -> None:
        super().__init__(
            replace(corpus, tokens=corpus.tokens[:0], user_start=corpus.user_start[:1], user_key=corpus.user_key[:0]),
            secret,
        )
        users = [PoolUsers.of(group, self._names[:, 0], secret) for group in groups]
        self._users = UsersInGroups(users, len(corpus.vocabulary))  # type: ignore[assignment]


class UsersInGroups:
    """The interface of `PoolUsers`, with sums over several groups."""

    def __init__(self, groups: list[PoolUsers], size: int) -> None:
        self.states = np.full(size, UNDECIDED, np.uint8)
        self._groups = groups

    def sizes(self, edges: Sequence[int]) -> Int64s:
        """Return the number of users by class of their number of items."""
        return np.sum([group.sizes(edges) for group in self._groups], axis=0)

    def draw(self, *arguments: Any) -> None:
        """Draw pools. An item that is in no pool is never weighed again."""
        pooled = np.full_like(self.states, RELEASED)
        for group in self._groups:
            group.states[:] = self.states
            group.draw(*arguments)
            pooled[group.states == UNDECIDED] = UNDECIDED
        self.states = pooled

    def weigh(self, *arguments: Any) -> Int64s:
        """Add up the weights of all groups in the first round."""
        return self._summed(PoolUsers.weigh, *arguments)

    def weigh_pools(self, *arguments: Any) -> Int64s:
        """Add up the weights of all groups in a later round."""
        return self._summed(PoolUsers.weigh_pools, *arguments)

    def _summed(self, weigh: Callable[..., Int64s], *arguments: Any) -> Int64s:
        whole = np.zeros(self.states.size, np.int64)
        for group in self._groups:
            group.states[:] = self.states
            whole = np.minimum(whole + weigh(group, *arguments), MOST)  # truncated as on Spark
        return whole


class WalkInGroups:
    """The interface of a `LengthWalk`, with sums over several groups."""

    def __init__(self, walks: list[Any], vocabulary: Any) -> None:
        self._walks, self._vocabulary = walks, vocabulary

    @property
    def length(self) -> int:
        """The length of the grams that are weighed now."""
        return int(self._walks[0].length)

    def weigh(self, *arguments: Any) -> Histogram:
        """Add up the weights of all groups, truncated as on Spark."""
        return self._summed([walk.weigh(*arguments) for walk in self._walks])

    def weigh_deferred(self, *arguments: Any) -> Histogram:
        """Add up the weights of deferred candidates."""
        return self._summed([walk.weigh_deferred(*arguments) for walk in self._walks])

    def _summed(self, found: list[Histogram]) -> Histogram:
        named, weighed = map(np.concatenate, zip(*map(private_weights, found), strict=True))
        ids, places = np.unique(named, return_inverse=True)
        exact = np.zeros(ids.size)
        np.add.at(exact, places, weighed.astype(np.float64))
        whole = np.zeros(ids.size, np.int64)
        np.add.at(whole, places, weighed)
        words = None if found[0]._words is None else self._vocabulary.take(ids.tolist())
        return Histogram(ids, np.where(exact >= MOST, MOST, whole), words)

    def __getattr__(self, name: str) -> Any:
        def each(*arguments: Any) -> None:
            for walk in self._walks:
                getattr(walk, name)(*arguments)

        return each


JOBS: list[tuple[str, Callable[[], LocalCorpus], Any, vp.Budget]] = [
    ("reddit_posts, words, adaptive rounds", posts, vp.Items(), BUDGET),
    ("ubuntu_irc, words, adaptive rounds", chat, vp.Items(), BUDGET),
    ("reddit_posts, phrases, individual spending", posts, vp.NGrams(), PHRASES),
    ("ubuntu_irc, phrases, individual spending", chat, vp.NGrams(), PHRASES),
]


def main() -> None:
    """Release with increasing numbers of groups, and write the losses."""
    told = [*(f"{count} groups" for count in GROUPS), *(f"lost in {count}" for count in LOST)]
    rows: list[list[object]] = [["job", *told]]
    for name, opened, mechanism, budget in JOBS:
        found = [len(mechanism.release(InGroups(opened(), count), budget, seed=1)) for count in GROUPS]
        lost = [f"{100 * (1 - found[GROUPS.index(count)] / found[0]):.1f} %" for count in LOST]
        rows.append([name, *(f"{count:,}" for count in found), *lost])
    note = "One secret. Users are dealt out by a hash of their keys; sums are those of Spark."
    BENCHMARK.table("The default in groups of users", rows, "spark_groups_default", note)


def users_of(corpus: LocalCorpus, users: np.ndarray) -> LocalCorpus:
    """Return a corpus of some of the users."""
    starts, sizes = corpus.user_start[users], np.diff(corpus.user_start)[users]
    ends = np.cumsum(sizes)
    places = np.arange(ends[-1]) + np.repeat(starts - (ends - sizes), sizes)
    user_start = np.concatenate([[0], ends]).astype(np.int64)
    return replace(corpus, tokens=corpus.tokens[places], user_start=user_start, user_key=corpus.user_key[users])


if __name__ == "__main__":
    main()
