"""A search over neighbouring collections in whole releases of n-grams.

The first collection is released, and the weights of every pass are kept. Then its neighbour, without one user, follows
the same public path. The neighbour weighs its own data in every pass, but the release uses the weights of the first
collection. Two conditions must be satisfied (docs/privacy/individual.md):

- The squared distances between the weights of the two collections, relative to the squared noise scales that ran, add
  up over all passes after length 1 to at most the planned sum.
- Both collections give the same release, including the plan, because all public values are functions of noisy weights.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from searches.watched_rounds import Round, WatchedPools, hit, strayed
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.engine.local.pools import Pools
from voxpop.errors import InternalError
from voxpop.kernels.arrays import Int64s
from voxpop.mechanisms.ngrams.mechanism import NGrams
from voxpop.mechanisms.ngrams.plan import NGramsPlan
from voxpop.mechanisms.rounds.menu import Menu
from voxpop.privacy.budget import Budget
from voxpop.testing.collections import corpus_of_tokens

WALK = NGrams(max_length=4, max_phrases_per_user=12, max_spurious_share=0.1)
"""The default mechanism on a small scale."""
BUDGET = Budget(8.0, 1e-4)
"""A budget at which a thousand users are enough for every part of a walk."""
WORDS, USERS = 130, 700
"""The numbers of words and users. There are so many words that releases have screening votes."""
OWN = 90
"""The number of words that only the first user and at most one other user have. It exceeds the size of a pool."""
SENTENCES = (12, 60)
"""The smallest and the largest number of sentences, for many or few users of each.

More users have parts of sentences than whole sentences.
"""


@dataclass(slots=True)
class Pass:
    """The weights of one collection in one pass.

    Attributes:
        name: The name of the pass, as in the purposes of draws.
        unit: The number of grid units in a weight of 1.
        weights: The private weights.
        charge: The charge of the pass, or None at length 1.
        sigma: The standard deviation of the requested noise, as a weight, or 0 before the request.
        levels: The requested levels of votes.
    """

    name: str
    unit: int
    weights: Any
    charge: Any = None
    sigma: float = 0.0
    levels: Any = None

    def apart(self, other: "Pass") -> float:
        """Return the Euclidean distance from the weights of a neighbour."""
        ids = np.union1d(self.weights._ids, other.weights._ids)
        return float(np.linalg.norm((self._of(ids) - other._of(ids)) / self.unit))

    def _of(self, ids: Int64s) -> Int64s:
        found = np.zeros(ids.size, np.int64)
        found[ids.searchsorted(self.weights._ids)] = self.weights._weights
        return found

    def texts(self, ids: Int64s) -> Any:
        """Return the words of the weights."""
        return self.weights.texts(ids)

    def noisy_levels(self, levels: Any, *spurious: Int64s) -> Any:
        """Return the noisy levels of the weights, and record the noise."""
        self.sigma, self.levels = levels.rules[0].scale, levels
        return self.weights.noisy_levels(levels, *spurious)

    def measured(self, noise: Any, size: int) -> Any:
        """Return the noisy weights, and record the noise."""
        self.sigma = noise.sigma
        return self.weights.measured(noise, size)


class Watched:
    """An engine for one release of n-grams that records the weights of every pass.

    Args:
        engine: The engine that weighs.
        path: The passes of another release, which provide the weights of this release. If the path is empty, the
            engine's own weights are used.
    """

    def __init__(self, engine: Any, path: "tuple[Any, ...]" = ()) -> None:
        self._engine, self._path = engine, path
        self.passes: list[Any] = []
        self.deferred: list[Int64s] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def pools(self, secret: Any) -> WatchedPools:
        """Begin adaptive rounds. Rounds on Spark are not recorded, because executors make the decisions."""
        pools = self._engine.pools(secret)
        return WatchedPools(pools, self.passes, self._path) if isinstance(pools, Pools) else pools

    def length_walk(self) -> Any:
        """Begin a walk over lengths, which is also recorded."""
        return Watched.__new__(Watched)._begin(self)

    def _begin(self, engine: "Watched") -> "Watched":
        self._engine, self._path = engine._engine.length_walk(), engine._path
        self.passes, self.deferred = engine.passes, engine.deferred
        return self

    def keep(self, names: Int64s, deferred: Int64s | None = None) -> None:
        """Keep grams in the walk, and record the deferred grams."""
        self.deferred.extend([] if deferred is None else [deferred])
        self._engine.keep(names, deferred)

    def weigh(self, shares: Any, limit: int, secret: Any, pass_name: str, *priced: Any) -> Pass:
        """Weigh a pass, record the weights, and return the pass that the release uses."""
        return self._kept(self._engine.weigh(shares, limit, secret, pass_name, *priced), shares, pass_name, *priced[:1])

    def weigh_deferred(self, shares: Any, limit: int, secret: Any, pass_name: str, charge: Any) -> Pass:
        """Weigh deferred candidates, record the weights, and return the pass that the release uses."""
        return self._kept(
            self._engine.weigh_deferred(shares, limit, secret, pass_name, charge), shares, pass_name, charge
        )

    def _kept(self, weights: Any, shares: Any, pass_name: str, charge: Any = None) -> Pass:
        own = Pass(pass_name, shares.setting.unit, weights, charge)
        self.passes.append(own)
        if not self._path:
            return own
        if len(self.passes) > len(self._path) or self._path[len(self.passes) - 1].name != pass_name:
            raise StrayedError
        answer: Pass = self._path[len(self.passes) - 1]
        return answer


class StrayedError(Exception):
    """Raised if neighbours with the same noisy weights run different passes, so a private value became public."""


@dataclass(frozen=True, slots=True)
class Walked:
    """The results of one pair of neighbours.

    Attributes:
        spent: The mu^2 of each pass after length 1, relative to the mu^2 that all these passes may spend.
        words: The mu^2 of length 1, relative to the mu^2 of the rounds that ran.
        strayed: Whether the same noisy weights led to another release, or to decisions about other items.
        hit: Whether a word of only the extra user was released. This event is charged to delta, and all other results
            are then meaningless.
        deferred: The number of candidates of the second-chance pass.
        screened: Whether there was a screening vote.
    """

    spent: dict[str, float]
    words: float
    strayed: bool
    hit: bool
    deferred: int
    screened: bool

    @property
    def total(self) -> float:
        """The total mu^2 of all passes after length 1, relative to the allowed mu^2. It must be at most 1."""
        return sum(self.spent.values())


def walked(plan: NGramsPlan, corpus: LocalCorpus, user: int, seed: int, *, joined: bool = True) -> Walked:
    """Run one release for two neighbours.

    Args:
        plan: The plan of n-grams with individual budgets.
        corpus: The larger collection, in memory.
        user: The index of the user who is missing from the smaller collection.
        seed: The seed of all draws.
        joined: Whether the release uses the weights of the larger collection instead of the smaller one.
    """
    pair = (corpus, without(corpus, user)) if joined else (without(corpus, user), corpus)
    first = Watched(pair[0])
    released = plan.release(first, seed=seed)
    ran = released.plan
    if not isinstance(ran, NGramsPlan):
        raise InternalError("n-grams were released by the plan of another mechanism")
    second = Watched(pair[1], tuple(first.passes))
    try:
        again = plan.release(second, seed=seed)
        differs = again.plan.to_dict() != ran.to_dict() or not again.grams.equals(released.grams)
        # The certificate, including its choices, and the transcript must also depend only on noisy weights.
        differs |= (again.plan.certificate, again.plan.transcript) != (ran.certificate, ran.transcript)
    except StrayedError:
        differs = True
    squares = {
        one.name: (one.apart(other) / one.sigma) ** 2 for one, other in zip(first.passes, second.passes, strict=False)
    }
    spent = {name: square / ran.later for name, square in squares.items() if not name.endswith("length 1")}
    words = sum(square for name, square in squares.items() if name.endswith("length 1")) / square_of_words(ran)
    rounds = [
        [each for each in watched.passes if isinstance(each, Round) and not each.answer] for watched in (first, second)
    ]
    larger, smaller = rounds if joined else rounds[::-1]
    other = bool(larger) and strayed(larger, smaller)
    screened = any(run.screening_sigma is not None for run in ran.ran)
    came_out = hit(larger, smaller)
    return Walked(
        spent, words, differs or other, came_out, ran.second_chance.candidates if ran.second_chance else 0, screened
    )


def square_of_words(plan: NGramsPlan) -> float:
    """Return the mu^2 of length 1 in the plan of a release. The rest of the cap is for later lengths."""
    if plan.words is None:
        raise InternalError("words need adaptive rounds, but none ran")
    return plan.words.square + (plan.first.sigma**-2 if isinstance(plan.first, Menu) else 0.0)


def search_walks(pairs: int, seed: int = 0, ngrams: NGrams = WALK, budget: Budget = BUDGET) -> Iterator[Walked]:
    """Run whole releases for neighbours, with adaptive rounds, votes and the second-chance pass.

    Args:
        pairs: The number of pairs.
        seed: The seed of the search.
        ngrams: The mechanism.
        budget: The budget of the release.

    Yields:
        The results of each pair.

    Example:
        >>> all(each.total < 1 + 1e-9 and not each.strayed for each in search_walks(2))
        True
    """
    rng, plan = np.random.default_rng(seed), ngrams.plan(budget)
    for number in range(pairs):
        corpus = said(rng)
        # The first user has whole sentences.
        user = 0 if rng.random() < 0.5 else int(rng.integers(corpus.user_key.size))
        yield walked(plan, corpus, user, seed + number, joined=bool(rng.random() < 0.5))


def said(rng: np.random.Generator) -> LocalCorpus:
    """Return users with common sentences or parts of them, and words in any order. One user also has unique words."""
    sentences = rng.integers(0, WORDS, (rng.integers(*SENTENCES, endpoint=True), WALK.max_length + 1))
    whole = np.pad(sentences[: rng.integers(1, 4)], ((0, 0), (0, 1)), constant_values=-1).ravel()
    own = np.append(WORDS + np.arange(rng.integers(OWN, endpoint=True)), -1)
    # The second user also has half of the unique words of the first, because each user draws only a few words per
    # round.
    users = [np.concatenate([whole, own]), own[own.size // 2 :]]
    for _ in range(USERS):
        part = sentences[rng.integers(len(sentences))][rng.integers(2) : rng.integers(2, WALK.max_length + 2)]
        users.append(np.concatenate([part, [-1], rng.integers(0, WORDS, 12), [-1]]))
    sizes = np.array([each.size for each in users], np.int64)
    return corpus_of_tokens(np.concatenate(users).astype(np.int32), sizes, WORDS + OWN, "tokens")


def without(corpus: LocalCorpus, user: int) -> LocalCorpus:
    """Return the collection without a user, with the same keys and vocabulary."""
    begin, end = corpus.user_start[user : user + 2].tolist()
    starts = np.concatenate([corpus.user_start[: user + 1], corpus.user_start[user + 2 :] - (end - begin)])
    tokens, keys = np.delete(corpus.tokens, slice(begin, end)), np.delete(corpus.user_key, user)
    return replace(corpus, tokens=tokens, user_start=starts, user_key=keys)
