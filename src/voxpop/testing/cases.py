"""One audit case for each mechanism, on the real release path.

Each case contains many copies of two tiny neighbouring collections. Copies share no users or items, so each copy is an
independent trial of the event (`auditing.py`). The claim is epsilon 1 and delta 0.02, because an event of probability
1e-7 cannot be observed in 1e5 trials. The code and the formulas are the same at any budget. Each case uses the number
of users for which one more user has the largest effect on the probability of the event.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from math import exp
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import ndtr

from voxpop.engine.data import Corpus
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.errors import InternalError
from voxpop.kernels.arrays import Bools
from voxpop.mechanisms.counts.mechanism import TopMechanism
from voxpop.mechanisms.heavy_hitters.mechanism import HeavyHitters
from voxpop.mechanisms.ngrams.charges import Charges, LengthRun
from voxpop.mechanisms.ngrams.mechanism import NGrams
from voxpop.mechanisms.ngrams.plan import NGramsPlan
from voxpop.mechanisms.profile.mechanism import KeyCounts, ProfileMechanism
from voxpop.mechanisms.rounds.menu import LIMITS
from voxpop.mechanisms.rounds.users_needed import item_probability
from voxpop.mechanisms.sequences.mechanism import Sequences
from voxpop.mechanisms.sequences.releasing import part_after_statistics
from voxpop.mechanisms.set_union.mechanism import Items
from voxpop.privacy.budget import Budget
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.individual import BOUND_STEPS, WHOLE
from voxpop.privacy.passes import Certificate
from voxpop.privacy.trie.ballot import discovery_rate
from voxpop.privacy.truncated import released_with
from voxpop.release.release import Release
from voxpop.release.result import StoredPlan
from voxpop.testing import collections
from voxpop.testing.auditing import Case, TrialCounts, epsilon_shown

with warnings.catch_warnings(action="ignore"):  # No data is released with this delta.
    BUDGET = Budget(1.0, 0.02)
PURE = Budget(1.0)
_LIMIT = 4
MOST_CASE_USERS = 60
TELLING = 10**6
"""The number of trials that the selection of the most informative case assumes."""


def unchecked(plan: Any) -> Any:
    """Return a plan with its certificate, without comparing the certificate with the budget.

    Audits run many copies of one mechanism at once, and tests run deliberately broken variants. Both uses spend more
    budget than a plan may spend.
    """
    object.__setattr__(plan, "_certificate", Certificate(plan._claim, plan._proof()).to_json())
    return plan


Chances = tuple[float, float]
"""The probabilities of the event with and without the additional user."""


def most_telling(chances: Iterable[tuple[Chances, Any]], delta: float) -> tuple[Chances, Any]:
    """Return the entry that gives the largest lower bound of epsilon after many trials.

    Args:
        chances: The probabilities of the event and their descriptions.
        delta: The delta of the claim.
    """

    def shown(entry: tuple[Chances, Any]) -> float:
        joined, without = entry[0]
        return epsilon_shown(TrialCounts(round(TELLING * joined), round(TELLING * without), TELLING), delta)

    return max(chances, key=shown)


def observed(plan: Any, corpus: Any, copies: int, happened: Callable[[Any], Bools | np.ndarray]) -> tuple[int, bytes]:
    """Run one release, and return the number of copies in which the event occurred and a digest of these copies.

    Args:
        plan: The plan to run.
        corpus: The copies.
        copies: The number of copies.
        happened: A function that returns the numbers of the copies in which the event occurred in a release.
    """
    found = np.zeros(copies, np.bool_)
    found[happened(plan.release(corpus))] = True
    return int(found.sum()), found.tobytes()


def case_of(
    names: tuple[str, str],
    plan: Any,
    corpora: Iterable[Any],
    copies: int,
    happened: Callable[[Any], Bools | np.ndarray],
    exact: Chances,
) -> Case:
    """Return a case that runs releases of a plan and observes the event.

    Args:
        names: The names of the mechanism and of the case.
        plan: The plan to run. The budget of the plan is the claim.
        corpora: The copies with the additional user, and the copies without this user.
        copies: The number of copies.
        happened: See `observed`.
        exact: The probabilities of the event according to the plan.
    """
    joined, without = (partial(observed, plan, corpus, copies, happened) for corpus in corpora)
    return Case(*names, plan.budget, copies, joined, without, exact)


def near(
    mechanism: str,
    plan: Any,
    chance: Sequence[float],
    copied: Callable[[int, int], Any],
    happened: Callable[[Any], Bools | np.ndarray],
) -> Case:
    """Return the case with the number of users for which one more user has the largest effect.

    Args:
        mechanism: The name of the mechanism in words.
        plan: The plan to run.
        chance: The probability of the event by the number of users of a copy.
        copied: A function that returns the collection for a number of users per copy and a number of copies.
        happened: See `observed`.
    """
    pairs = zip(chance[1:], chance, strict=False)
    exact, others = most_telling(((pair, number) for number, pair in enumerate(pairs)), plan.budget.delta)
    copies = max(1_000, 400_000 // max(8, others + 1))
    corpora = (copied(users, copies) for users in (others + 1, others))
    return case_of((mechanism, f"near: {others} others"), plan, corpora, copies, happened, exact)


def _chances(rounds: Any) -> list[float]:
    """Return the probability that adaptive rounds release an item, by its number of users.

    These users have no other item.
    """
    return [0.0, *(item_probability(rounds, users, 1) for users in range(1, MOST_CASE_USERS))]


def _one_item(users: int, copies: int) -> LocalCorpus:
    return collections.copied_items([(0,)] * users, 1, copies)


def items(budget: Budget = BUDGET) -> Case:
    """Return the case of the default set union. All users of a copy have the same item."""
    plan: Any = Items(max_items_per_user=_LIMIT).plan(budget)
    return near("items", plan, _chances(plan.last), _one_item, first_numbers)


def profile(budget: Budget = BUDGET) -> Case:
    """Return the case of a profile. All users of a copy have the same value of one column."""
    plan: Any = ProfileMechanism({"item": "int64"}, counts=False).plan(budget)
    # There are very many users with one value each, so the smallest limit is chosen.
    chance = _chances(plan.passes[0].entry(LIMITS[0]))
    return near("profile", plan, chance, _typed(plan), _values_of_items)


def keys(budget: Budget = BUDGET) -> Case:
    """Return the case of keys with counts. All users of a copy have the same key and no other key."""
    plan: Any = KeyCounts({"item": "int64"}, [("item",)], other_rows=False).plan(budget)
    # There are very many users with one key each, so the entry of one key is chosen.
    chance = [released_with(plan.menu[0], users) for users in range(MOST_CASE_USERS)]
    return near("keys with counts", plan, chance, _typed(plan), _values_of_items)


def _typed(plan: Any) -> Callable[[int, int], LocalCorpus]:
    """Return a function that makes copies in which each item is a value of the first column."""

    def typed(users: int, copies: int) -> LocalCorpus:
        corpus = _one_item(users, copies)
        spelled = pc.binary_join_element_wise("0", corpus.vocabulary.cast(pa.string()), "|").cast(pa.large_string())
        return replace(corpus, vocabulary=spelled, token_source=plan.mechanism.keys.token_source)

    return typed


def _values_of_items(found: Any) -> np.ndarray:
    return np.array(found.columns["item"].to_list(), np.int64)


def first_numbers(release: Release, length: int = 1) -> np.ndarray:
    """Return the number of the first token of each released gram of the given length."""
    return collections.released_numbers(release, length)[:, 0]


def heavy_hitters(budget: Budget = BUDGET) -> Case:
    """Return the case of heavy hitters.

    All users of a copy have the same word of two symbols, and words of different copies have no symbol in common. The
    release takes three rounds, as many as one copy needs.
    """
    plan = HeavyHitters(max_length=3, alphabet="tokens").plan(budget)
    chance = [discovery_rate(users, plan.rules.ballot, plan.rounds) for users in range(MOST_CASE_USERS + 1)]

    def copied(users: int, copies: int) -> LocalCorpus:
        symbols = np.arange(2 * copies).reshape(copies, 2)
        return collections.copied_documents([(0, 1)] * users, symbols, symbols.size)

    return near("heavy hitters", plan, chance, copied, lambda found: first_numbers(found, 2) // 2)


def sequences(budget: Budget = PURE) -> Case:
    """Return the case of sequences.

    The additional user repeats one symbol up to the maximum length. Only the counts after the empty context are
    released. The noise of each symbol is a separate draw, so each symbol is a copy. No event uses the count of ends,
    because all copies share it.
    """
    length, symbols, others = 3, 1_000, 8
    words = collections.numbered_words(symbols).to_pylist()
    plan = Sequences(length, 1, alphabet=words).plan(budget)

    def high(model: Any) -> np.ndarray:
        return np.flatnonzero(model.tree.counts[0, :symbols] >= (others + 1) * length)

    # All other sequences have the same length, so that the tree counts all steps.
    users = [(0,) * length] * others
    corpora = (
        collections.copied_documents(held, np.arange(symbols)[:, None], symbols, "sequence")
        for held in ([*users, (0,) * length], users)
    )
    # The noisy number of sequences is so large that the noise cannot change the part of epsilon that the tree gets.
    epsilon = float(part_after_statistics(Fraction(budget.epsilon), others * symbols)) * budget.epsilon
    exact = laplace_tail_of_case(0, length / epsilon), laplace_tail_of_case(length, length / epsilon)
    return case_of(("sequences", "every symbol the same"), plan, corpora, symbols, high, exact)


def laplace_tail_of_case(least: int, scale: float) -> float:
    """Return P(X >= least) for integer Laplace noise X of this scale.

    Example:
        >>> round(laplace_tail_of_case(0, 1.0) + laplace_tail_of_case(1, 1.0), 12)
        1.0
    """
    tail = exp(-max(least, 1 - least) / scale) / (1 + exp(-1 / scale))
    return tail if least > 0 else 1 - tail


def top(budget: Budget = BUDGET) -> Case:
    """Return the case of rankings.

    Only the additional user has an item of a short public list, and the event occurs if this item is ranked first in
    its list. All lists are ranked in one release, with the noise that the ranking of one list needs. The order within a
    list depends only on that list.
    """

    def public_list(count: int) -> Release:
        return Release.from_items(
            collections.numbered_words(count), StoredPlan({"mechanism": "a public list"}), Guarantee(0.0, 0.0)
        )

    def with_width(width: int) -> tuple[Chances, int]:
        weight = exp(TopMechanism(1).plan(budget, public_list(width)).proof.rate)
        return (weight / (weight + width - 1), 1 / width), width

    exact, width = most_telling(map(with_width, (2, 3, 4, 6, 9, 13, 18, 24, 32)), budget.delta)
    copies = 100_000 // width
    plan = TopMechanism(1).plan(budget, public_list(width))
    grams = copies * width
    every = unchecked(replace(plan, grams=public_list(grams), proof=replace(plan.proof, picks=grams, candidates=grams)))

    def first(ranking: Any) -> np.ndarray:
        place = np.empty(copies * width, np.int64)
        place[ranking.places] = np.arange(copies * width)
        return np.flatnonzero(np.argmin(place.reshape(-1, width), axis=1) == 0)

    corpora = (collections.copied_items(users, width, copies) for users in ([(0,)], []))
    return case_of(("ranking", f"near: 1 of {width} held"), every, corpora, copies, first, exact)


# The case of n-grams releases pairs of words with the defaults, from users with one pair each. All words are released
# in adaptive rounds. Because there are few words, pairs receive nearly all of the budget and there is no screening
# vote. The release measures words and prunes pairs of rare words.
#
# The cutpoint of a band follows from the votes of all its candidates. Therefore all copies share the cutpoint, and the
# event is defined for one value of the cutpoint. A large `eta` makes this value certain, because every band uses the
# lowest cutpoint if half of the released pairs may be spurious and most candidates have users. A band uses another
# cutpoint only if no candidate is between the two lowest ones. With thousands of copies, the probability of this is
# below 1e-5 per release. Such a release counts as no hit. Given the lowest cutpoint, a pair is released if its noisy
# weight reaches this cutpoint, and these events are independent.

UNSURE = 2e-7
"""The probability that a word is missing. A release without the word counts as no hit. A lower probability requires
more users of rare words. In this case, pairs of rare words become candidates in some releases (at 1e-9 in one of
twenty), and these releases also count as no hit."""
MOST_HOLDERS = 5
"""With a larger value, few copies would lie between two cutpoints, and the lowest cutpoint would not be certain."""
COMMON, RARE, USERS_OF_WORDS = 70, 30, 300


def ngrams(budget: Budget = BUDGET, engine: collections.EngineOf = collections.in_memory) -> Case:
    """Return the case of n-grams with the number of users that maximizes the effect of one more user of each pair.

    Args:
        budget: The claim.
        engine: The engine that reads and weighs the collection.
    """
    plan = NGrams(2, max_phrases_per_user=4, max_spurious_share=0.5).plan(budget)
    needed = plan.users_needed(1 - UNSURE, per_user=1)
    if needed is None:
        raise InternalError("no number of users makes the release of a word certain")
    ran = _last(plan.release(Corpus(pairs_of_words(needed, MOST_HOLDERS - 1)), seed=0))
    bound = bound_of_pair(plan)
    # The probability that a phrase is released if its users have no other phrase of its length.
    chance = [float(ndtr((users * bound - ran.threshold) / ran.sigma)) for users in range(MOST_HOLDERS + 1)]
    exact, others = most_telling((((chance[n + 1], chance[n]), n) for n in range(1, MOST_HOLDERS)), budget.delta)
    corpora = (engine(pairs_of_words(needed, users)) for users in (others + 1, others))
    names = "n-grams, default", f"near: {others} others"
    return case_of(names, plan, corpora, COMMON**2, partial(released_pairs, ran), exact)


def pairs_of_words(needed: int, others: int) -> LocalCorpus:
    """Return a corpus in which each pair of common words has `others` users.

    Args:
        needed: The number of users of each rare word. Rare words do not occur in pairs.
        others: The number of users of each pair.
    """
    documents = [np.arange(COMMON, COMMON + RARE)[:, None]] * needed
    documents += [np.arange(COMMON)[:, None]] * USERS_OF_WORDS
    documents += [np.array(list(product(range(COMMON), repeat=2)), np.int64)] * others
    ended = [np.pad(each, ((0, 0), (0, 1)), constant_values=-1) for each in documents]
    sizes = np.concatenate([np.full(len(each), each.shape[1]) for each in ended])
    tokens = np.concatenate([each.ravel() for each in ended]).astype(np.int32)
    return collections.corpus_of_tokens(tokens, sizes, COMMON + RARE, "tokens")


def bound_of_pair(plan: NGramsPlan) -> float:
    """Return the weight that a user with only one pair adds to this pair in the vote, if there are few words."""
    charges, left, holds = Charges(plan.later, plan.worths, dense=True), np.array([WHOLE]), np.ones(1, np.bool_)
    measured, charges = charges.measurement(2)
    square, rates, charges = charges.vote(2)
    voted = charges.charge(square, 1.0, rates)
    left = left - measured.costs(left, holds)
    return float(voted.bounds(voted.costs(left, holds, np.ones(1, np.int64)))[0] / BOUND_STEPS)


def _last(release: Any) -> LengthRun:
    """Return the record of the last length."""
    run: LengthRun = release.plan.ran[-1]
    return run


def released_pairs(foreseen: LengthRun, release: Release) -> np.ndarray:
    """Return the numbers of the released pairs of common words.

    The result is empty if the vote ran with other numbers than the plan predicts.
    """
    ran, pairs = _last(release), collections.released_numbers(release, 2)
    fixed = replace(foreseen, spurious=ran.spurious, bands=ran.bands)
    chosen = pairs[(pairs < COMMON).all(axis=1) & (fixed == ran)]
    return np.asarray(chosen @ np.array([COMMON, 1]))
