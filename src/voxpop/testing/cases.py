"""One audit case for each mechanism, on the real release path.

Each case contains many copies of two tiny neighbouring collections. The users and items of a copy are its own, so each
copy is an independent trial of the event (`auditing.py`). The claim is epsilon 1 and delta 0.02, because an event of
probability 1e-7 cannot be observed in 1e5 trials; the code and the formulas are the same at any budget. The number of
users in a case is the one at which one more user changes the probability of the event most.
"""

from collections.abc import Callable, Iterable
from functools import partial
from math import exp
from typing import TYPE_CHECKING, Any

import numpy as np

from voxpop.kernels.arrays import Bools
from voxpop.privacy.budget import Budget
from voxpop.privacy.planned import sealed
from voxpop.testing.auditing import Case, Counts, epsilon_shown
from voxpop.testing.sensitivity import copied_documents, copied_items, numbered_words, released_numbers

if TYPE_CHECKING:
    from voxpop.engine.local.corpus import LocalCorpus

BUDGET = Budget(1.0, 0.02)
PURE = Budget(1.0)
LIMIT = 4
MOST_USERS = 60
TELLING = 10**6
"""Number of trials for which the most informative case is selected."""

Chances = tuple[float, float]
"""Probabilities of the event with the additional user and without."""


def most_telling(chances: Iterable[tuple[Chances, Any]], delta: float) -> tuple[Chances, Any]:
    """Return the entry that bounds epsilon best after many trials.

    Args:
        chances: probabilities of the event and their descriptions.
        delta: of the claim.
    """

    def shown(entry: tuple[Chances, Any]) -> float:
        joined, without = entry[0]
        return epsilon_shown(Counts(round(TELLING * joined), round(TELLING * without), TELLING), delta)

    return max(chances, key=shown)


def observed(
    plan: Any, corpus: "LocalCorpus", copies: int, happened: Callable[[Any], Bools | np.ndarray]
) -> tuple[int, bytes]:
    """Run one release and return the number of copies in which the event happened, and a digest of which.

    Args:
        plan: the plan to run.
        corpus: the copies.
        copies: their number.
        happened: from a release to the copies in which the event happened, as numbers.
    """
    found = np.zeros(copies, np.bool_)
    found[happened(plan.release(corpus))] = True
    return int(found.sum()), found.tobytes()


def items(budget: Budget = BUDGET) -> Case:
    """Return the case of the default set union: all users of a copy hold the same item."""
    from voxpop.mechanisms.rounds.users_needed import released
    from voxpop.mechanisms.set_union.mechanism import SetUnion

    plan: Any = SetUnion(limit=LIMIT).plan(budget)
    chance = [0.0, *(released(plan, users, 1) for users in range(1, MOST_USERS))]
    exact, others = most_telling((((chance[n + 1], chance[n]), n) for n in range(MOST_USERS - 1)), budget.delta)
    copies = max(1_000, 400_000 // max(8, others + 1))
    joined, without = (
        partial(
            observed, plan, copied_items([(0,)] * users, 1, copies), copies, lambda found: released_numbers(found)[:, 0]
        )
        for users in (others + 1, others)
    )
    return Case("set union", f"near: {others} others", budget, copies, joined, without, exact)


def hitters(budget: Budget = BUDGET) -> Case:
    """Return the case of heavy hitters: all users of a copy hold the same word of two symbols.

    Words of different copies have no symbol in common. The release takes three rounds, as long as one copy needs them.
    """
    from voxpop.mechanisms.heavy_hitters.mechanism import HeavyHitters
    from voxpop.privacy.trie.ballot import discovery_rate

    plan = HeavyHitters(max_length=3, alphabet="tokens").plan(budget)
    chance = [discovery_rate(users, plan.rules.ballot, plan.rounds) for users in range(MOST_USERS + 1)]
    exact, others = most_telling((((chance[n + 1], chance[n]), n) for n in range(MOST_USERS)), budget.delta)
    copies = max(1_000, 400_000 // (others + 1))
    symbols = np.arange(2 * copies).reshape(copies, 2)
    joined, without = (
        partial(
            observed,
            plan,
            copied_documents([(0, 1)] * users, symbols, symbols.size),
            copies,
            lambda found: released_numbers(found, 2)[:, 0] // 2,
        )
        for users in (others + 1, others)
    )
    return Case("heavy hitters", f"near: {others} others", budget, copies, joined, without, exact)


def sequences(budget: Budget = PURE) -> Case:
    """Return the case of sequences: the additional user repeats one symbol as often as a sequence may.

    Only the counts behind the empty context are released. The noise of each symbol is a separate draw, so each symbol
    is a copy; the count of ends, which all copies share, is in no event.
    """
    from voxpop.mechanisms.sequences.mechanism import Sequences

    length, symbols, others = 3, 1_000, 8
    words = numbered_words(symbols).to_pylist()
    plan = Sequences(length, 1, alphabet=words).plan(budget)

    def high(model: Any) -> np.ndarray:
        return np.flatnonzero(model.tree.counts[0, :symbols] >= others + length)

    users = [(0,)] * others
    joined, without = (
        partial(observed, plan, copied_documents(held, np.arange(symbols)[:, None], symbols, "sequence"), symbols, high)
        for held in ([*users, (0,) * length], users)
    )
    scale = length / budget.epsilon
    exact = laplace_tail(0, scale), laplace_tail(length, scale)
    return Case("sequences", "every symbol the same", budget, symbols, joined, without, exact)


def laplace_tail(least: int, scale: float) -> float:
    """Return P(X >= least) for integer Laplace noise X of this scale.

    Example:
        >>> round(laplace_tail(0, 1.0) + laplace_tail(1, 1.0), 12)
        1.0
    """
    tail = exp(-max(least, 1 - least) / scale) / (1 + exp(-1 / scale))
    return tail if least > 0 else 1 - tail


def top(budget: Budget = BUDGET) -> Case:
    """Return the case of rankings: only the additional user holds an item of a short public list.

    The event is that this item is ranked first in its list. All lists are ranked in one release with the noise that the
    ranking of one list needs. The order within a list depends only on that list.
    """
    from dataclasses import replace

    from voxpop.mechanisms.counts.mechanism import Top
    from voxpop.privacy.guarantee import Guarantee
    from voxpop.release.release import Release
    from voxpop.release.result import StoredPlan

    def public_list(count: int) -> Release:
        return Release.from_items(
            numbered_words(count), StoredPlan({"mechanism": "a public list"}), Guarantee(0.0, 0.0)
        )

    def with_width(width: int) -> tuple[Chances, int]:
        weight = exp(Top(1).plan(budget, public_list(width)).rate)
        return (weight / (weight + width - 1), 1 / width), width

    exact, width = most_telling(map(with_width, (2, 3, 4, 6, 9, 13, 18, 24, 32)), budget.delta)
    copies = 100_000 // width
    plan = Top(1).plan(budget, public_list(width))
    every = sealed(replace(plan, grams=public_list(copies * width), picks=copies * width), plan.delta)

    def first(ranking: Any) -> np.ndarray:
        place = np.empty(copies * width, np.int64)
        place[ranking.places] = np.arange(copies * width)
        return np.flatnonzero(np.argmin(place.reshape(-1, width), axis=1) == 0)

    joined, without = (
        partial(observed, every, copied_items(users, width, copies), copies, first) for users in ([(0,)], [])
    )
    return Case("ranking", f"near: 1 of {width} held", budget, copies, joined, without, exact)
