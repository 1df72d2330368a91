"""The worst cases of n-grams as they run by default: guided, with thresholds from votes, over several lengths.

The threshold of a band follows from the votes of all its candidates, so copies share it, and the event asks for one
value. It is made sure by a large `eta`: with half of what is released allowed to be spurious, and most candidates held,
every band takes the lowest cutpoint there is. That fails only where no candidate lies between the two lowest, which
for thousands of copies has a probability below 1e-5 a release; a release that differs counts as no hit at all.

Given that cutpoint, a pair or a triple comes out where its own noisy weight reaches it, and these are independent.

- *individual pairs*: two lengths as they run by default, where every user pays for itself. Words are few, so there is
  no wide vote, and nearly all is spent on pairs. All that reach the lowest cutpoint come out: nothing is left to sweep.
- *pairs*: two lengths, the budget divided by what was released, words measured and unlikely pairs pruned.
- *triples*: three lengths, words and pairs measured; all pairs are surely released. Each triple of words is a copy.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import ceil
from typing import Any

import numpy as np

from voxpop.arrays import Bools, Int64s
from voxpop.corpus.corpus import Corpus
from voxpop.errors import InternalError
from voxpop.ngrams.lengths import LengthRun
from voxpop.ngrams.ngrams import NGrams
from voxpop.ngrams.plan import NGramsPlan
from voxpop.ngrams.spending import spending_of
from voxpop.privacy.budget import Budget
from voxpop.privacy.individual import REACH_STEPS, WHOLE
from voxpop.rounds.adaptive.numbers import AdaptiveRounds
from voxpop.testing.audit.case import Case
from voxpop.testing.audit.copies import corpus_of, released_numbers
from voxpop.testing.audit.engines import Engine, in_memory
from voxpop.testing.audit.lower_bounds import Counts, epsilon_shown
from voxpop.testing.audit.ngrams_cases import ngrams_cases
from voxpop.testing.audit.walk_cases import walk_cases

BUDGET = Budget(1.0, 0.02)
SURE = 7.0
"""Sigmas by which a word or a shorter phrase is above its threshold."""
UNSURE = 1e-6
"""How likely a word that comes out in adaptive rounds may stay away; a release without it counts as no hit."""
TELLING = 10**6
MOST_HOLDERS = 5
"""With more, so few copies would lie between two cutpoints that the lowest one were not sure."""


@dataclass(frozen=True, slots=True)
class Phrases:
    """Words whose every combination of the last length is a copy.

    Attributes:
        length: of the last grams.
        common: words of which the copies are made.
        rare: further words, which are released and continued by nobody.
        rare_holders: users of each of these.
        holders: users of each of the other words, and of each combination that is shorter than the last length.
    """

    length: int
    common: int
    rare: int
    rare_holders: int
    holders: tuple[int, ...]

    @property
    def copies(self) -> int:
        """How many combinations."""
        return int(self.common**self.length)

    def corpus(self, others: int) -> Corpus:
        """Return the corpus in which so many users hold each combination of the last length."""
        documents = [np.arange(self.common, self.common + self.rare)[:, None]] * self.rare_holders
        for length, holders in enumerate([*self.holders, others], start=1):
            combined = np.array(list(product(range(self.common), repeat=length)), np.int64)
            documents += [combined] * holders
        ended = [np.pad(each, ((0, 0), (0, 1)), constant_values=-1) for each in documents]
        sizes = np.concatenate([np.full(len(each), each.shape[1]) for each in ended])
        tokens = np.concatenate([each.ravel() for each in ended]).astype(np.int32)
        return corpus_of(tokens, sizes, self.common + self.rare, "tokens")

    def found(self, grams: Int64s) -> Bools:
        """Return which copies are among released grams of the last length."""
        found = np.zeros(self.copies, np.bool_)
        inside = grams[(grams < self.common).all(axis=1)]
        found[inside @ self.common ** np.arange(self.length - 1, -1, -1)] = True
        return found


def votes_cases(budget: Budget = BUDGET, engine: Engine = in_memory) -> Iterator[Case]:
    """Yield the cases.

    Args:
        budget: the claim.
        engine: where collections are read and weighed.
    """
    yield _near(*individual_pairs(budget), "n-grams, default", engine)
    yield _near(*pairs(budget), "n-grams, shared spending", engine)
    yield _near(*triples(budget), "n-grams, shared spending, three lengths", engine)


def pairs(budget: Budget = BUDGET) -> tuple[NGramsPlan, Phrases]:
    """Return two lengths: with 300 holders of each word, forecasts lie ten deviations from either end of a band."""
    plan = _default(2, spending="shared").plan(budget)
    return plan, Phrases(2, 60, 80, _enough(plan, 0), (300,))


def triples(budget: Budget = BUDGET) -> tuple[NGramsPlan, Phrases]:
    """Return three lengths."""
    plan = _default(3, budgets=(0.04, 0.06, 0.9)).plan(budget)
    return plan, Phrases(3, 16, 0, 0, (1, 4 * _enough(plan, 1)))


def individual_pairs(budget: Budget = BUDGET) -> tuple[NGramsPlan, Phrases]:
    """Return two lengths where every user pays for itself: words are few, so that nearly all is spent on pairs."""
    plan = _default(2).plan(budget)
    return plan, Phrases(2, 70, 30, _enough(plan, 0), (300,))


def reach_of(plan: NGramsPlan) -> float:
    """Return how far a user who holds one phrase moves it in the vote on pairs, where words are few."""
    if plan.mechanism.spending == "shared":
        return 1.0
    spending = spending_of(plan.mechanism, plan.later)
    spending.dense = True
    left, holds = np.array([WHOLE]), np.ones(1, np.bool_)
    measured = spending.measurement(2, plan.mechanism.measurement).price
    voted = spending.pay(spending.vote(2, None), 1.0).price
    if measured is None or voted is None:
        raise InternalError("users who pay for themselves have no price; please report.")
    left = left - measured.costs(left, holds)
    return float(voted.reaches(voted.costs(left, holds, np.ones(1, np.int64)))[0] / REACH_STEPS)


def _default(lengths: int, **fields: Any) -> NGrams:
    """Return the defaults, but for what makes one value of public numbers sure."""
    return NGrams(lengths, limit=4, eta=0.5, alpha=3 * SURE, **fields)


def _enough(plan: NGramsPlan, number: int) -> int:
    """Return how many holders make the release of a word or a shorter phrase sure, whatever the cutpoint."""
    if number == 0 and isinstance(plan.first, AdaptiveRounds):
        needed = plan.holders(1, 1 - UNSURE, grams=1)
        if needed is None:
            raise InternalError("no number of users makes a word sure; please report.")
        return needed
    threshold = plan.first.threshold if number == 0 else plan.lengths[number].highest_threshold
    return ceil(threshold + SURE * plan.lengths[number].sigma)


def _near(plan: NGramsPlan, phrases: Phrases, mechanism: str, engine: Engine) -> Case:
    foreseen = _last(plan.release(phrases.corpus(MOST_HOLDERS - 1), seed=0))
    shown = []
    for others in range(1, MOST_HOLDERS):
        one, other = (chance(foreseen, held, reach_of(plan)) for held in (others + 1, others))
        counts = Counts(round(TELLING * one), round(TELLING * other), TELLING)
        shown.append((epsilon_shown(counts, plan.budget.delta), others))
    return held_by(plan, phrases, max(shown)[1], mechanism, engine)


def held_by(plan: NGramsPlan, phrases: Phrases, others: int, mechanism: str, engine: Engine = in_memory) -> Case:
    """Return the case in which so many others hold each phrase.

    Args:
        plan: what runs.
        phrases: the collection.
        others: from 1 to 4.
        mechanism: in words.
        engine: where the collection is read and weighed.
    """
    foreseen = _last(plan.release(phrases.corpus(MOST_HOLDERS - 1), seed=0))
    joined, without = (
        partial(_run, plan, phrases, engine(phrases.corpus(holders)), foreseen) for holders in (others + 1, others)
    )
    exact = chance(foreseen, others + 1, reach_of(plan)), chance(foreseen, others, reach_of(plan))
    return Case(mechanism, f"near: {others} others", plan.budget, phrases.copies, joined, without, exact)


def chance(ran: LengthRun, holders: int, reach: float = 1.0) -> float:
    """Return the probability that a phrase of so many holders, who hold nothing else of its length, is released."""
    from scipy.special import ndtr

    return float(ndtr((holders * reach - ran.threshold) / ran.sigma))


def _last(release: Any) -> LengthRun:
    """Return what the last length ran with."""
    run: LengthRun = release.plan.ran[-1]
    return run


def _settled(ran: LengthRun) -> tuple[Any, ...]:
    """Return what was settled before phrases were chosen."""
    return ran.length, ran.sigma, ran.measurement_sigma, ran.candidates, ran.threshold


def _run(plan: NGramsPlan, phrases: Phrases, corpus: Any, foreseen: LengthRun) -> tuple[int, Any]:
    """Run one release; return how many copies came out, and which."""
    release = plan.release(corpus)
    found = np.zeros(phrases.copies, np.bool_)
    if _settled(_last(release)) == _settled(foreseen):
        found = phrases.found(released_numbers(release, phrases.length))
    return int(found.sum()), found.tobytes()


def all_ngrams_cases() -> Iterator[Case]:
    """Yield the cases of n-grams: as published, and as they run by default, in the end with every pass there is."""
    yield from ngrams_cases()
    yield from votes_cases()
    yield from walk_cases()
