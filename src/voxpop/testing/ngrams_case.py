"""The worst case of n-grams: pairs of words, released by default from users who each hold one of them.

All words are released in adaptive rounds. They are few, so nearly all of the budget goes to pairs and there is no
screening vote. Words are measured, and pairs of rare words are pruned.

The cutpoint of a band follows from the votes of all its candidates, so all copies share it, and the event requires one
value. A large `eta` makes this value certain: if half of the released pairs may be spurious and most candidates are
held, every band takes the lowest cutpoint. That fails only if no candidate lies between the two lowest cutpoints, with
a probability below 1e-5 a release for thousands of copies; a release that differs counts as no hit. Given that
cutpoint, a pair is released if its own noisy weight reaches it, and these events are independent.
"""

from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from voxpop.engine.data import Corpus
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.errors import InternalError
from voxpop.kernels.arrays import Bools, Int64s
from voxpop.mechanisms.ngrams.charges import Charges, LengthRun
from voxpop.mechanisms.ngrams.mechanism import NGrams
from voxpop.mechanisms.ngrams.plan import NGramsPlan
from voxpop.privacy.budget import Budget
from voxpop.privacy.individual import BOUND_STEPS, WHOLE
from voxpop.testing.auditing import Case, Counts, epsilon_shown
from voxpop.testing.sensitivity import Engine, corpus_of, in_memory, released_numbers

BUDGET = Budget(1.0, 0.02)
UNSURE = 1e-6
"""Probability that a word is missing; a release without it counts as no hit."""
TELLING = 10**6
MOST_HOLDERS = 5
"""With more, few copies would lie between two cutpoints, and the lowest one would not be certain."""
COMMON, RARE, USERS_OF_WORDS = 70, 30, 300


@dataclass(frozen=True, slots=True)
class Phrases:
    """Words whose every pair is a copy.

    Attributes:
        rare_holders: users of each rare word, which is in no pair.
    """

    rare_holders: int

    @property
    def copies(self) -> int:
        """The number of pairs."""
        return COMMON**2

    def corpus(self, others: int) -> LocalCorpus:
        """Return the corpus in which `others` users hold each pair."""
        documents = [np.arange(COMMON, COMMON + RARE)[:, None]] * self.rare_holders
        documents += [np.arange(COMMON)[:, None]] * USERS_OF_WORDS
        documents += [np.array(list(product(range(COMMON), repeat=2)), np.int64)] * others
        ended = [np.pad(each, ((0, 0), (0, 1)), constant_values=-1) for each in documents]
        sizes = np.concatenate([np.full(len(each), each.shape[1]) for each in ended])
        tokens = np.concatenate([each.ravel() for each in ended]).astype(np.int32)
        return corpus_of(tokens, sizes, COMMON + RARE, "tokens")

    def found(self, pairs: Int64s) -> Bools:
        """Return which copies are among the released pairs."""
        found = np.zeros(self.copies, np.bool_)
        inside = pairs[(pairs < COMMON).all(axis=1)]
        found[inside @ np.array([COMMON, 1])] = True
        return found


def ngrams(budget: Budget = BUDGET, engine: Engine = in_memory) -> Case:
    """Return the case in which each pair has the number of other users at which one more user has the largest effect.

    Args:
        budget: the claim.
        engine: where the collection is read and weighed.
    """
    plan = NGrams(2, limit=4, eta=0.5).plan(budget)
    needed = plan.users_needed(1 - UNSURE, per_user=1)
    if needed is None:
        raise InternalError("no number of users makes a word sure")
    phrases, shown = Phrases(needed), []
    foreseen, bound = _last(plan.release(Corpus(phrases.corpus(MOST_HOLDERS - 1)), seed=0)), reach_of(plan)
    for others in range(1, MOST_HOLDERS):
        one, other = (chance(foreseen, held, bound) for held in (others + 1, others))
        counts = Counts(round(TELLING * one), round(TELLING * other), TELLING)
        shown.append((epsilon_shown(counts, plan.budget.delta), others))
    others = max(shown)[1]
    joined, without = (
        partial(_run, plan, phrases, engine(phrases.corpus(holders)), foreseen) for holders in (others + 1, others)
    )
    exact = chance(foreseen, others + 1, bound), chance(foreseen, others, bound)
    return Case("n-grams, default", f"near: {others} others", budget, phrases.copies, joined, without, exact)


def reach_of(plan: NGramsPlan) -> float:
    """Return the weight that a user who holds one pair adds to it in the vote, if words are few."""
    charges, left, holds = Charges(plan.later, (1.0, 1.0), dense=True), np.array([WHOLE]), np.ones(1, np.bool_)
    measured, charges = charges.measurement(2)
    square, rates, charges = charges.vote(2, None)
    voted = charges.charge(square, 1.0, rates)
    left = left - measured.costs(left, holds)
    return float(voted.bounds(voted.costs(left, holds, np.ones(1, np.int64)))[0] / BOUND_STEPS)


def chance(ran: LengthRun, holders: int, bound: float) -> float:
    """Return the release probability of a phrase whose users hold nothing else of its length."""
    from scipy.special import ndtr

    return float(ndtr((holders * bound - ran.threshold) / ran.sigma))


def _last(release: Any) -> LengthRun:
    """Return the record of the last length."""
    run: LengthRun = release.plan.ran[-1]
    return run


def _settled(ran: LengthRun) -> tuple[Any, ...]:
    """Return the parameters that are fixed before phrases are chosen."""
    return ran.length, ran.sigma, ran.measurement_sigma, ran.candidates, ran.threshold


def _run(plan: NGramsPlan, phrases: Phrases, corpus: Any, foreseen: LengthRun) -> tuple[int, Any]:
    """Run one release; return the number of released copies, and which copies they are."""
    release = plan.release(corpus)
    found = np.zeros(phrases.copies, np.bool_)
    if _settled(_last(release)) == _settled(foreseen):
        found = phrases.found(released_numbers(release, 2))
    return int(found.sum()), found.tobytes()
