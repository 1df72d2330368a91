"""A search for two neighbouring collections with histograms that are too far apart, on the compiled kernels.

It also builds collections that contain many copies of a tiny one, each with separate items and users.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.engine.local.corpus import LocalCorpus
from voxpop.kernels.arrays import Int32s, Int64s
from voxpop.privacy.weightings.builtin import WEIGHTINGS
from voxpop.privacy.weightings.rule import CustomRule, RuleSetting, Weighting, WeightingRule
from voxpop.release.release import Release

_Users = list[Int32s]


@dataclass(frozen=True, slots=True)
class Violation:
    """The worst pair of neighbours that a search found.

    Attributes:
        distance: The distance between their histograms, in the norm of the weighting; at most 1 for a sound weighting.
        users: The items of every user of the larger collection, in order.
        extra: The index of the user who is missing from the smaller collection.
        cutoff: The weight above which items receive no more weight.
    """

    distance: float
    users: tuple[tuple[int, ...], ...]
    extra: int
    cutoff: float


def search_sensitivity(
    weighting: str | Weighting | WeightingRule,
    *,
    norm: int | None = None,
    pairs: int = 20_000,
    limit: int = 6,
    seed: int = 0,
) -> Violation:
    """Search random neighbouring collections for the largest distance between their histograms.

    The search runs the real kernel on both collections. A distance above 1 (and a little rounding) refutes a weighting,
    but a search without such a distance proves nothing. Half of the pairs are small and arbitrary. The other half are
    built like the known counterexample to DPSU's Algorithm 8, with items just below the cutoff, one user who has all of
    them, then users with new items.

    Args:
        weighting: A name, an object of your own, or a rule of `voxpop.mechanisms.set_union`.
        norm: The norm, 1 or 2; by default the weighting's own norm.
        pairs: The number of pairs to try.
        limit: The maximum number of items per user.
        seed: The seed, which determines the search.

    Returns:
        The worst pair found.

    Raises:
        InputError: If a weighting of your own violates its own promises during the search.

    Example:
        >>> worst = search_sensitivity("policy-gaussian", pairs=200)
        >>> worst.distance <= 1 + 1e-9
        True
    """
    weighting_rule = rule_of(weighting)
    norm = norm or weighting_rule.norm
    rng = np.random.default_rng(seed)
    worst = Violation(0.0, (), 0, 0.0)
    for number in range(pairs):
        cutoff = float(rng.uniform(1.0, 4.0))
        users, extra = _wild(rng, limit) if number % 2 else _crowded(rng, limit, cutoff)
        distance = neighbour_distance(weighting_rule, users, extra, cutoff, norm, limit)
        if distance > worst.distance:
            worst = Violation(distance, tuple(tuple(map(int, user)) for user in users), extra, cutoff)
    return worst


def neighbour_distance(
    weighting_rule: WeightingRule,
    users: "Sequence[Int32s]",
    extra: int,
    cutoff: float,
    norm: int,
    limit: int,
) -> float:
    """Return the distance between the histograms with and without user `extra`, in the given norm."""
    setting = RuleSetting(limit, norm, weighting_rule.bits(cutoff))
    setting = replace(setting, cutoff=round(cutoff * setting.unit))
    size = 1 + max((int(user.max()) for user in users if user.size), default=0)
    larger = _histogram(weighting_rule, users, setting, size)
    smaller = _histogram(weighting_rule, [user for i, user in enumerate(users) if i != extra], setting, size)
    return float(np.linalg.norm((larger - smaller) / setting.unit, norm))


def _histogram(weighting_rule: WeightingRule, users: "Sequence[Int32s]", setting: RuleSetting, size: int) -> Int64s:
    histogram = np.zeros(size, np.int64)
    items = np.concatenate([np.empty(0, np.int32), *users])
    starts = np.cumsum([0, *(user.size for user in users)])
    weighting_rule.add(histogram, items, starts, setting)
    return histogram


def _wild(rng: np.random.Generator, limit: int) -> tuple[_Users, int]:
    """Return a few users with a few arbitrary items each, and the index of an arbitrary extra user."""
    universe = int(rng.integers(1, limit + 3))
    users = [_some_items(rng, universe, limit) for _ in range(int(rng.integers(1, 10)))]
    return users, int(rng.integers(len(users)))


def _some_items(rng: np.random.Generator, universe: int, limit: int) -> Int32s:
    size = int(rng.integers(1, min(universe, limit) + 1))
    return rng.choice(universe, size, replace=False).astype(np.int32)


def _crowded(rng: np.random.Generator, limit: int, cutoff: float) -> tuple[_Users, int]:
    """Return users of items near the cutoff, a user with all of these, then users with one of them and new items."""
    near = int(rng.integers(1, limit + 1))
    users = [np.array([item], np.int32) for item in range(near - 1) for _ in range(int(cutoff))]
    fresh = count(near)
    users += [_with_fresh(rng, item, fresh, limit) for item in range(near - 1)]
    extra = len(users)
    users.append(np.arange(near, dtype=np.int32))
    for _ in range(int(rng.integers(0, 6))):
        users.append(_with_fresh(rng, int(rng.integers(near)), fresh, limit))
    return users, extra


def _with_fresh(rng: np.random.Generator, item: int, fresh: Iterator[int], limit: int) -> Int32s:
    size = int(rng.integers(1, limit + 1))
    return np.array([item, *(next(fresh) for _ in range(size - 1))], np.int32)


def rule_of(weighting: str | Weighting | WeightingRule) -> WeightingRule:
    """Return the rule for a name or for an object of one's own."""
    if isinstance(weighting, Weighting):
        return CustomRule(weighting)
    return WEIGHTINGS[weighting] if isinstance(weighting, str) else weighting


_ROUNDED_DIGITS = 9
Holds = Sequence[int]
EngineOf = Callable[[LocalCorpus], Any]
"""A function that returns an engine for a collection, which reads and weighs it (`voxpop.engine.contract.Engine`)."""


def in_memory(corpus: LocalCorpus) -> LocalCorpus:
    """Return the collection unchanged."""
    return corpus


def copied_items(users: Sequence[Holds], width: int, copies: int) -> LocalCorpus:
    """Return copies of users with items.

    Args:
        users: The items of each user of one copy, from 0 to width - 1.
        width: The number of items of a copy.
        copies: The number of copies.
    """
    return copied_documents(users, np.arange(copies * width).reshape(copies, width), copies * width, "items")


def copied_documents(documents: Sequence[Holds], rows: Int64s, words: int, kind: str = "tokens") -> LocalCorpus:
    """Return copies of users with one document each.

    Args:
        documents: The places in a row for each document. Each user has one document.
        rows: int64 (copies, places), the word at each place of each copy.
        words: The size of the vocabulary.
        kind: The kind of the corpus. Items have no end mark.
    """
    end = [] if kind == "items" else [-1]
    pattern = np.array([place for document in documents for place in [*document, *end]], np.int64)
    tokens = np.where(pattern < 0, -1, rows[:, np.maximum(pattern, 0)]).ravel().astype(np.int32)
    sizes = np.array([len(document) + len(end) for document in documents] * len(rows), np.int64)
    return corpus_of_tokens(tokens, sizes, words, kind)


def corpus_of_tokens(tokens: Int32s, sizes: Int64s, words: int, kind: str) -> LocalCorpus:
    """Return a corpus with numbers of equal width as words, so that ids are the numbers themselves.

    Args:
        tokens: int32, the tokens of all users, concatenated.
        sizes: The number of positions of each user.
        words: The size of the vocabulary.
        kind: The kind of the corpus.
    """
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return LocalCorpus(tokens, starts, np.arange(starts.size - 1, dtype=np.uint64), numbered_words(words), kind)


def numbered_words(count: int) -> pa.LargeStringArray:
    """Return the numbers from 0 on as words of equal width, so that the order of bytes is the numeric order."""
    return pc.utf8_lpad(pa.array(np.arange(count)).cast(pa.large_string()), width=_ROUNDED_DIGITS, padding="0")


def released_numbers(release: Release, length: int = 1) -> Int64s:
    """Return the released grams of one length as numbers, one row per gram."""
    chosen = release.grams.filter(pc.equal(release.grams["length"], length))
    flat = pc.list_flatten(chosen["gram"]).cast(pa.int64())
    return np.asarray(flat.to_numpy(), np.int64).reshape(-1, length)
