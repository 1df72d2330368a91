"""Cases for every pass of default n-grams, with adaptive rounds, individual budgets, and votes of all kinds.

The results of a release depend on thresholds that all candidates share. Therefore these cases read the noisy weight of
a pair in each pass, which the proof treats as public. The weights are graded with the same draws, but with cutpoints
that are much closer together than the cutpoints of the release. Each pair of words is a copy. The event is that a sum
over the passes is high. Each term of the sum is the noisy weight of the pair minus the weight from its other users,
divided by the noise scale and multiplied by the mu that is charged to the canary.

Copies are independent trials with known probabilities (docs/privacy/individual.md, "All passes"). In each pass, given
the results of earlier passes, the noise of pairs is independent, and the weight of a pair depends only on the users of
that pair, who have no other text. The results of earlier passes determine which passes include a pair. The mu^2 of
these passes adds up to at most a constant m on every path, and a last Gaussian release with the missing part of m makes
the total exactly m. Therefore the sum is normal with variance m. For all thresholds, its mean is m if the canary is
present, and 0 otherwise. Grading changes these probabilities by less than 1e-4.

- *second chance*: the case reads likely pairs in the vote, and in the second-chance pass if they were deferred. The
  constant m is the whole budget of a user after length 1.
- *screening*: the case reads pairs that the forecast prunes, in the screening vote, and in the vote if they passed
  screening. The constant m is the charge of both votes. If the sum also contained the rest of the budget, too little
  noise in these passes would be hard to detect.

If a word, the screening vote or the second-chance pass is missing, the release counts as a miss. The probability that a
word is missing is below 1e-6 per release.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from typing import Any

import numpy as np

from audits.engines import EngineOf, in_memory
from searches.walk_search import Pass, Watched
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.errors import InternalError
from voxpop.kernels.arrays import Bools, Floats, Int64s
from voxpop.mechanisms.ngrams.charges import Charges
from voxpop.mechanisms.ngrams.mechanism import NGrams
from voxpop.mechanisms.ngrams.plan import NGramsPlan
from voxpop.privacy.budget import Budget
from voxpop.privacy.decisions import NoisyLevels
from voxpop.privacy.individual import WHOLE
from voxpop.privacy.secret import Secret
from voxpop.testing.auditing import Case, TrialCounts, epsilon_shown
from voxpop.testing.collections import corpus_of_tokens

BUDGET = Budget(1.0, 0.02)
LENGTHS = 3
UNSURE = 1e-8
"""The probability that a word is missing after the adaptive rounds."""
OFTEN, SELDOM, FURTHER = 48, 16, 40
"""The numbers of words in likely pairs, in pruned pairs, and in no pair. Their sum exceeds the maximum number of tokens
that counts as few.
"""
OFTEN_FOR_SURE = 20
"""The number of users of a word in likely pairs for each user of any other word. At this ratio, the forecast prunes
other pairs."""
LIKELY_OTHERS, PRUNED_OTHERS = 3, 20
"""The numbers of users of a likely pair and of a pruned pair, without the canary.

With these numbers, some likely pairs are close to the threshold, and most pruned pairs pass the screening vote.
"""
SCREENING_SHARE = 0.2
"""The share of the trials to run, because a release has few pairs."""
EDGES = np.arange(-5.0, 5.0, 0.08)
"""The cutpoints around the weight of a pair, in sigma."""
TELLING = 10**6


@dataclass(frozen=True, slots=True)
class Pairs:
    """The copies, which are all pairs of words in one range of word numbers.

    Attributes:
        first: The number of the first of these words.
        words: The number of words.
        others: The number of users per pair, without the canary.
        looked_at: The passes that the case reads.
    """

    first: int
    words: int
    others: int
    looked_at: tuple[str, ...]

    @property
    def documents(self) -> Int64s:
        """The pairs, one row each."""
        return self.first + np.stack(np.divmod(np.arange(self.words**2), self.words), axis=1)

    def copies(self, names: Int64s) -> tuple[Int64s, Bools]:
        """Return the copy number of each pair, and whether the pair is a copy. The rank of a word is its number."""
        left, right = (names >> 32) - self.first, (names & (2**32 - 1)) - self.first
        inside = (left >= 0) & (left < self.words) & (right >= 0) & (right < self.words)
        return left * self.words + right, inside


LIKELY = Pairs(0, OFTEN, LIKELY_OTHERS, ("length 2", "sweep"))
PRUNED = Pairs(OFTEN, SELDOM, PRUNED_OTHERS, ("prevote 2", "length 2"))


def walk_cases(budget: Budget = BUDGET, engine: EngineOf = in_memory) -> Iterator[Case]:
    """Yield both cases.

    Args:
        budget: The claimed guarantee.
        engine: The engine that reads and weighs collections.
    """
    plan = NGrams(LENGTHS).plan(budget)
    for name, pairs in (("second chance", LIKELY), ("screening", PRUNED)):
        square = square_of(plan, pairs)
        least = event_of(square, budget.delta)
        joined, without = (
            partial(_run, plan, engine(collection(plan, pairs, canary)), pairs, canary, least) for canary in (1, 0)
        )
        exact = chance(square, least, canary=True), chance(square, least, canary=False)
        label = f"{name}: {pairs.others} others"
        share = SCREENING_SHARE if pairs is PRUNED else 1.0
        yield Case("n-grams, default, every pass", label, budget, pairs.words**2, joined, without, exact, share)


def square_of(plan: NGramsPlan, pairs: Pairs) -> float:
    """Return the largest mu^2 that the canary pays for the passes that the case reads.

    For likely pairs, the result is the whole budget after length 1, because a second-chance pass spends all that
    remains. For pruned pairs, the result is the sum of the fixed charges of the screening vote and the vote on length
    2.
    """
    if pairs is LIKELY:
        return plan.later
    charges = Charges(plan.later, plan.worths)
    prices = (charges.charge(square, 1.0, None) for square in (charges.screening(2), charges.vote(2)[0]))
    return sum(charge.cost for charge in prices) / WHOLE * plan.later


def chance(square: float, least: float, *, canary: bool) -> float:
    """Return the probability that the sum over the passes is at least `least`."""
    from scipy.special import ndtr

    return float(ndtr((square * canary - least) / sqrt(square)))


def event_of(square: float, delta: float) -> float:
    """Return the smallest sum for which the event shows the largest epsilon."""
    shown = []
    for least in np.linspace(0.0, 4.0, 41) * square:
        one, other = (round(TELLING * chance(square, least, canary=canary)) for canary in (True, False))
        shown.append((epsilon_shown(TrialCounts(one, other, TELLING), delta), float(least)))
    return max(shown)[1]


def collection(plan: NGramsPlan, pairs: Pairs, canary: int) -> LocalCorpus:
    """Return a corpus with the pairs of both kinds, the canaries of one kind, and users of single words.

    Args:
        plan: The plan to run.
        pairs: The pairs with canaries.
        canary: The number of canaries per pair.
    """
    sure = plan.users_needed(1 - UNSURE, per_user=1)
    if sure is None:
        raise InternalError("no number of users makes the release of a word certain")
    words = OFTEN + SELDOM + FURTHER
    holders = np.where(np.arange(words) < OFTEN, OFTEN_FOR_SURE * sure, sure)
    documents = [np.repeat(np.arange(words), holders)[:, None]]
    for each in (LIKELY, PRUNED):
        documents += [each.documents] * (each.others + (canary if each is pairs else 0))
    # This is a phrase of three words. Its users have no other text, so there is a vote on the last length.
    documents += [np.arange(words - 3, words)[None, :]] * sure * OFTEN_FOR_SURE
    ended = [np.pad(each, ((0, 0), (0, 1)), constant_values=-1) for each in documents]
    sizes = np.concatenate([np.full(len(each), each.shape[1]) for each in ended])
    return corpus_of_tokens(np.concatenate([each.ravel() for each in ended]).astype(np.int32), sizes, words, "tokens")


@dataclass(slots=True)
class Shown:
    """The results collected for each copy.

    Attributes:
        left: int64 (copies), the remaining budget of the canary and of each other user, in units of 2^-40 of the
            cap.
        total: float64 (copies), the sum over passes.
        seen: float64 (copies), mu^2 of the passes in the sum.
    """

    left: Int64s
    total: Floats
    seen: Floats

    def paid(self, one: Pass, copies: Int64s) -> Int64s:
        """Charge the users of some copies for a pass, and return the charges."""
        ones = np.ones(copies.size, np.int64)
        costs: Int64s = one.charge.costs(self.left[copies], ones > 0, ones)
        self.left[copies] -= costs
        return costs

    def add(self, one: Pass, copies: Int64s, inside: Bools, others: int, later: float) -> None:
        """Add a pass to the sums of the pairs that are copies. `one` contains the weights and draws of the pass."""
        mine = copies[inside]
        # For a charge c of the canary, mu^2 is (c / 2^40) M, and the distance that the canary moves the pair depends on
        # this charge.
        square = self.paid(one, mine) / WHOLE * later
        moved = np.sqrt(square) * one.charge.sigma
        weights, ids = one.weights._weights[inside], one.weights._ids[inside]
        for each in np.unique(moved):
            alike = np.flatnonzero(moved == each)
            noisy = graded(one, weights[alike], ids[alike], others * each)
            self.total[mine[alike]] += np.sqrt(square[alike]) * (noisy - others * each) / one.charge.sigma
        self.seen[mine] += square


def graded(one: Pass, weights: Int64s, ids: Int64s, around: float) -> Floats:
    """Return noisy weights, each rounded to the midpoint of two neighbouring cutpoints."""
    cutpoints = around + EDGES * one.charge.sigma
    rule = one.levels.rules[0]
    rules = tuple(replace(rule, threshold_units=round(each * one.unit)) for each in cutpoints)
    levels = NoisyLevels(rules, one.levels.secret, one.levels.purpose)(weights, ids)
    step = (EDGES[1] - EDGES[0]) * one.charge.sigma
    middles: Floats = np.append(cutpoints, cutpoints[-1] + step) - step / 2
    return middles[levels]


def shown_by(plan: NGramsPlan, corpus: Any, pairs: Pairs) -> Shown | None:
    """Return the results of the passes of one release for each copy, or None if a word or a pass is missing."""
    watched = Watched(corpus)
    ran = plan.release(watched).plan
    if not isinstance(ran, NGramsPlan):
        raise InternalError("n-grams were released by the plan of another mechanism")
    copies, shown = pairs.words**2, {each.name: each for each in watched.passes}
    if ran.second_chance is None or "prevote 2" not in shown or len(ran.ran) < LENGTHS or len(watched.deferred) < 1:
        return None
    if shown["measurement 1"].weights._ids.size < OFTEN + SELDOM + FURTHER:
        return None
    found = Shown(np.full(copies, WHOLE), np.zeros(copies), np.zeros(copies))
    # All users have words, so all users pay for this pass. The case does not read it, because copies share the noise of
    # words.
    found.paid(shown["measurement 1"], np.arange(copies))
    # The list of the second-chance pass begins with the deferred pairs of length 2, in order of names. The number -1
    # stands for a longer gram.
    listed = np.append(watched.deferred[0], np.full(sum(each.size for each in watched.deferred[1:]), -1))
    for name in pairs.looked_at:
        ids = shown[name].weights._ids
        found.add(shown[name], *pairs.copies(listed[ids] if name == "sweep" else ids), pairs.others, plan.later)
    return found


def _run(plan: NGramsPlan, corpus: Any, pairs: Pairs, canary: int, least: float) -> tuple[int, Any]:
    """Run one release, and return the number of copies with the event and a digest of these copies."""
    found, happened = shown_by(plan, corpus, pairs), np.zeros(pairs.words**2, np.bool_)
    if found is not None:
        missing = np.maximum(square_of(plan, pairs) - found.seen, 0.0)
        # The last Gaussian release of the proof, with the budget that the passes of the case do not spend.
        seed = Secret.fresh().draws("last release", np.zeros(1, np.uint64), 0)
        last = np.random.default_rng(seed.ravel()).normal(canary * missing, np.sqrt(missing))
        happened = found.total + last >= least
    return int(happened.sum()), happened.tobytes()
