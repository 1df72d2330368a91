"""The worst cases of sequence models that count symbols after contexts.

All counted symbols of the canary are the same symbol, and no end mark is counted.

*One level*: only symbols after the empty context are counted. The noise of each symbol is a separate draw, so each
symbol is a copy. All copies share the end mark, the lengths and the numbers of distinct and repeated symbols, so the
event uses none of these. All other users have one symbol, so two steps are counted, and the canary has one more symbol.

*Decided length*: the same case, but released lengths also determine the length of sequences.

*Two levels*: each symbol is again a copy. The root spends a twentieth of the epsilon that remains after both user
statistics. The counts of symbols after a symbol and of symbols at the beginning spend the rest. The canary moves one
count in each of these three contexts, and the event requires all three counts to be high. Every context is counted
separately unless the noise at the root reaches 20 times its scale. The probability that this happens in any trial is
below 1e-4.

*No end*: one symbol of each sequence is counted, so the whole sequence has one step. The event also requires a high
count of end marks. The canary does not move this count, but it would have twice the effect on a release that also
counted the end mark. One release is one trial.

*Profile*: the sequence of the canary repeats the only symbol as many times as symbols are counted. All other users do
the same, so that all steps are counted. The event requires high noisy numbers of sequences, of distinct symbols, of
repeated symbols and of the symbol. This event shows the whole epsilon. One release is one trial.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from math import prod
from typing import Any

import numpy as np

from audits.tails import users_bound
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.mechanisms.sequences.constants import FIRST_SYMBOLS
from voxpop.mechanisms.sequences.mechanism import Sequences
from voxpop.mechanisms.sequences.plan import SequencePlan
from voxpop.mechanisms.sequences.releasing import part_of_lengths, part_of_variety
from voxpop.privacy.budget import Budget
from voxpop.testing.auditing import Case
from voxpop.testing.collections import copied_documents, numbered_words

NAME = "every symbol the same"
SYMBOLS = 1_000
LENGTH = 3
COUNTED = 2
"""The number of steps of each sequence that are counted if nearly all sequences have one symbol and an end."""
OTHERS = 8
LIKE_THE_CANARY = 2_000
FEW_SYMBOLS = 20
BACKGROUND = 800
TWO_LEVEL_SHARE, NO_END_SHARE = 0.4, 0.06
"""The shares of the trials to run. They are below 1, because these cases are slower."""


def contexts_cases(budget: Budget) -> Iterator[Case]:
    """Yield the cases.

    Args:
        budget: The claimed guarantee.
    """
    yield one_level_of_contexts(budget)
    yield one_level_of_contexts(budget, None)
    yield two_levels_of_contexts(budget)
    yield no_end(budget)
    yield profile(budget)


def one_level_of_contexts(budget: Budget, max_length: int | None = LENGTH) -> Case:
    """Return the case with only the empty context, which spends the whole epsilon."""
    plan = _plan(budget, numbered_words(SYMBOLS).to_pylist(), max_length, 1)
    scale = COUNTED / rates(budget, OTHERS * SYMBOLS)[2]
    users = [[0]] * OTHERS
    joined, without = (partial(_high_symbols, plan, _crowd(held, SYMBOLS)) for held in ([*users, [0] * LENGTH], users))
    exact = users_bound(0, scale), users_bound(COUNTED, scale)
    name = "sequences, contexts, one level" if max_length else "sequences, decided length"
    return Case(name, NAME, budget, SYMBOLS, joined, without, exact)


def two_levels_of_contexts(budget: Budget) -> Case:
    """Return the case of a symbol that is counted in the empty context, after itself and at the beginning."""
    plan = _plan(budget, numbered_words(FEW_SYMBOLS).to_pylist(), LENGTH, 2)
    scales = LENGTH / rates(budget, BACKGROUND * FEW_SYMBOLS)[2] / np.array([0.05, 0.95, 0.95])
    mean = np.array([2 * BACKGROUND, BACKGROUND, BACKGROUND])
    moved = np.array([LENGTH, LENGTH - 1, 1])
    users = [[0, 0]] * BACKGROUND
    joined, without = (
        partial(_high_everywhere, plan, _crowd(held, FEW_SYMBOLS), mean + moved)
        for held in ([*users, [0] * LENGTH], users)
    )
    exact = tuple(prod(map(users_bound, shift.tolist(), scales.tolist())) for shift in (0 * moved, moved))
    name = "sequences, contexts, two levels"
    return Case(name, NAME, budget, FEW_SYMBOLS, joined, without, (exact[0], exact[1]), TWO_LEVEL_SHARE)


def no_end(budget: Budget) -> Case:
    """Return the case of a canary with a whole sequence of one symbol, without other users."""
    exact = smallest_chance(budget, (2, 2), (0, 1)), smallest_chance(budget, (2, 2), (1, 1))
    return _smallest(budget, "sequences, contexts, no end", _tree_high, exact, [])


def profile(budget: Budget, users: int = LIKE_THE_CANARY) -> Case:
    """Return the case of a canary who moves all released counts, as all other users do."""
    least = 1, 1, FIRST_SYMBOLS - 1, FIRST_SYMBOLS
    exact = [profile_chance(budget, each, FIRST_SYMBOLS, users) for each in ((0, 0, 0, 0), least)]
    others = [[0] * FIRST_SYMBOLS] * users
    return _smallest(
        budget, "sequences, profile", partial(_profile_high, users), (exact[0], exact[1]), others, FIRST_SYMBOLS
    )


def _smallest(
    budget: Budget, name: str, high: Any, exact: tuple[float, float], others: list[list[int]], length: int = 1
) -> Case:
    plan = _plan(budget, ["000000000"], length, 1)
    joined, without = (partial(high, plan, _crowd(held, 1)) for held in ([*others, [0] * length], others))
    return Case(name, "one symbol, all that counts", budget, 1, joined, without, exact, NO_END_SHARE)


def rates(budget: Budget, users: int) -> list[float]:
    """Return the epsilons spent on lengths, on the numbers of distinct and repeated symbols, and on contexts."""
    epsilon = Fraction(budget.epsilon)
    lengths, variety = part_of_lengths(epsilon), part_of_variety(epsilon, users)
    rest = 1 - lengths
    return [float(epsilon * each) for each in (lengths, rest * variety, rest * (1 - variety))]


def smallest_chance(budget: Budget, places: tuple[int, ...], least: tuple[int, ...]) -> float:
    """Return the probability that, without other users, the noise at each of these places is at least `least`."""
    found = rates(budget, 0)
    return prod(users_bound(most, 1 / found[place]) for place, most in zip(places, least, strict=True))


def profile_chance(budget: Budget, least: tuple[int, ...], sensitivity: int, users: int = LIKE_THE_CANARY) -> float:
    """Return the probability that the noise on each of the four numbers of `profile` is at least `least`.

    Args:
        budget: The claimed guarantee.
        least: The minimum noise on the numbers of sequences, of distinct symbols, of repeated symbols, and of the
            symbol.
        sensitivity: The sensitivity that determines the noise on the numbers of distinct and repeated symbols.
        users: The number of other users, which determines the share of epsilon for distinct and repeated symbols.
    """
    lengths, variety, root = rates(budget, users)
    scales = 1 / lengths, sensitivity / variety, sensitivity / variety, FIRST_SYMBOLS / root
    return prod(map(users_bound, least, scales))


def _plan(budget: Budget, alphabet: list[str], max_length: int | None, max_gram: int) -> SequencePlan:
    return Sequences(max_length, max_gram, alphabet=alphabet).plan(budget)


def _counts(plan: SequencePlan, corpus: LocalCorpus) -> Any:
    return plan.release(corpus).tree.counts


def _high_symbols(plan: SequencePlan, corpus: LocalCorpus) -> tuple[int, Any]:
    """Return the number of symbols with noisy counts of at least the true count with the canary, and their digest."""
    high = _counts(plan, corpus)[0, :SYMBOLS] >= OTHERS + COUNTED
    return int(high.sum()), high.tobytes()


def _high_everywhere(plan: SequencePlan, corpus: LocalCorpus, least: Any) -> tuple[int, Any]:
    """Return the number of symbols with counts of at least `least` in all three contexts, and their digest."""
    counts = _counts(plan, corpus)
    high = np.zeros(FEW_SYMBOLS, np.bool_)
    if counts.shape[0] == FEW_SYMBOLS + 2:
        own = counts[0, :-1], np.diagonal(counts[1:-1]), counts[-1, :-1]
        high = np.all([each >= most for each, most in zip(own, least, strict=True)], axis=0)
    return int(high.sum()), high.tobytes()


def _tree_high(plan: SequencePlan, corpus: LocalCorpus) -> tuple[int, Any]:
    """Return whether the counts of the symbol and of end marks are at least 1, and a digest of this event."""
    high = bool((_counts(plan, corpus)[0] >= 1).all())
    return int(high), high


def _profile_high(users: int, plan: SequencePlan, corpus: LocalCorpus) -> tuple[int, Any]:
    """Return whether the four numbers of `profile` are all high, and a digest of this event."""
    model = plan.release(corpus)
    found = np.array([model.profile.lengths[-1], *model.profile.variety, model.tree.counts[0, 0]])
    each = np.array([1, 1, FIRST_SYMBOLS - 1, FIRST_SYMBOLS])
    high = bool((found >= (users + 1) * each).all())
    return int(high), high


def _crowd(users: list[list[int]], symbols: int) -> LocalCorpus:
    """Return the corpus of one copy of these users for each symbol."""
    return copied_documents(users, np.arange(symbols)[:, None], symbols, "sequence")
