"""The gates of unknown items, for adaptive rounds with a private choice and for the classic pass with one threshold."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.kernels.arrays import DROPPED, RELEASED, Bools, Bytes, Floats, Int64s, Texts
from voxpop.kernels.proved import proved
from voxpop.kernels.threads import in_order
from voxpop.privacy import precise
from voxpop.privacy.certificate import (
    admits,
    bounding_of,
    calibrated_rule,
    capped,
    counts_square,
    covers_rounds,
    score_of,
    square_of,
)
from voxpop.privacy.cumulative import KnownStep, ScoreStep
from voxpop.privacy.decisions import CellNoise, NoisyLevels, ReleaseDecisions, Rule, SelectionRule, ThresholdRule
from voxpop.privacy.gate.gate import Gate, admitted_level, empty_by_level, refused
from voxpop.privacy.gate.walks import LaterPasses, later_after
from voxpop.privacy.parameters import KnownLevels
from voxpop.privacy.passes import (
    AdaptiveProof,
    Certificate,
    CountsProof,
    Rounds,
    SelectionProof,
    Threshold,
    ThresholdProof,
)
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.builtin import Count
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting

FIRST_ROUND, POOL = "round 0/length 1", "pool/length 1"
CANDIDATES, ROUND = "round {}/candidates", "round {}/length 1"
LISTED_AT_ONCE = 1 << 15
"""The number of listed items in one draw of noise."""


@proved("set-union.md#the-mechanism")
def threshold_rule(first: Threshold) -> ThresholdRule:
    """Return the rule that releases an item if its noisy weight reaches the threshold.

    Proof: "Items with a noisy weight at or above the threshold are released, without their weights, in the order of
    their bytes."
    """
    return ThresholdRule(first.noise, first.scale, first.threshold, 1.0 / (1 << first.bounding.bits))


@proved("adaptive.md#the-mechanism")
def score_step(rounds: Rounds, number: int, secret: Any, pass_name: str) -> ScoreStep:
    """Return the step that computes the outcome of a later round from weights.

    Proof: "An item is released if Z_r reaches a threshold, and dropped permanently if Z_r is below a drop threshold,
    both in standard deviations of the noise in Z_r."

    The thresholds of the certificate are in standard deviations of the noise of the cumulative score. They are
    multiplied by this standard deviation, because the step compares sums.
    """
    each, spread = rounds.later[number], float(score_of(rounds).spreads[number])
    step = ScoreStep(
        sigma=each.sigma,
        unit=1 << each.bounding.bits,
        cell=each.cell,
        part=each.part,
        threshold=each.threshold * spread,
        # The last round has no drop threshold, because no round follows.
        floor=-np.inf if each.drop is None else each.drop * spread,
        enough=each.enough,
        steps=each.steps,
        secret=secret,
        purpose=f"noise/{pass_name}",
    )
    return step if rounds.known is None else replace(step, known=_known_step(step, rounds.known, number, spread))


@proved("known.md#the-mechanism")
def _known_step(step: ScoreStep, known: KnownLevels, number: int, spread: float) -> KnownStep:
    """Return the step of the same round for items of a public list.

    Proof: "An item that reaches the highest level is frozen"
    """
    levels: Floats = (known.lowest[number] + known.step * np.arange(len(known.tails), dtype=np.float64)) * spread
    floor = -np.inf if number == len(known.drops) else known.drops[number] * spread
    frozen = replace(step, threshold=float(levels[-1]), floor=floor, enough=known.enough[number])
    return KnownStep(frozen, levels)


@final
@dataclass(frozen=True, slots=True, eq=False)
class PublicParts:
    """The items of a public list.

    Attributes:
        parts: The items as large_string. No item occurs more than once in all parts together.
        letters: A function that returns the bytes of a part, and the start of each text.
    """

    parts: Sequence[Any]
    letters: Callable[[Any], Texts]

    @property
    def size(self) -> int:
        """The number of items."""
        return sum(map(len, self.parts))


@final
class AdaptiveGate(Gate[AdaptiveProof]):
    """The gate of the adaptive rounds of one data set and of later releases (docs/privacy/adaptive.md)."""

    _proves = AdaptiveProof

    def __init__(self, text: str, secret: Secret) -> None:
        super().__init__(text, secret)
        if self.proof.choice is not None:
            # These rounds belong to an earlier release of the same plan. This release makes a new choice.
            self.proof = replace(self.proof, rounds=None)
        self._text = text
        self._single = not self.proof.data_sets
        # The noise of two data sets must be independent, because their mu^2 are added.
        self._taken: list[Secret] = []
        self._pools: Any = None
        self._listed: PublicParts | None = None
        self.spurious = 0.0
        """An upper bound on the expected number of released listed items without users, which `released` sets."""

    @proved("adaptive.md#several-data-sets")
    def of(self, data_set: str, secret: Secret) -> "AdaptiveGate":
        """Return the gate of one of the data sets. Each data set is opened once and has its own draws.

        Proof: "the noisy weights of the shared items of all data sets together are a Gaussian mechanism with mu^2 =
        mu_1^2 + ... + mu_n^2"
        """
        if data_set not in self.proof.data_sets or secret is self._secret or any(map(secret.equals, self._taken)):
            raise refused("a data set is not in the certificate, or would use the draws of another one")
        self._begin(data_set)
        self._taken.append(secret)
        gate = AdaptiveGate(self._text, secret)
        gate._single = True
        return gate

    @proved("adaptive.md#several-data-sets")
    def open(self, engine: Any) -> None:
        """Start the release with the private data of the data set.

        Proof: "Each data set has separate rounds, draws, noise, pools and scores."
        """
        if not self._single:
            raise refused("several data sets would be released as if they were one")
        self._begin("open")
        self._pools = engine.pools(self._secret)

    @proved("limit.md#proof")
    def classes(self) -> Int64s:
        """Return the noisy number of users in each class, by their number of distinct items, in whole users.

        Proof: "A user is in at most one class, which is a function of the user's own items."
        """
        choice = self.proof.choice
        if choice is None:
            raise refused("the certificate contains no choice")
        self._begin("classes", "open")
        self._note("classes")
        # Add noise to every class, with or without users.
        noise = CellNoise(choice.sigma, 1, 1, self._secret, "noise/limit")
        counts: Int64s = self._pools.sizes(choice.edges).measured(noise, len(choice.edges) + 1)
        return counts

    @proved("limit.md#proof")
    def choose(self, rounds: Rounds) -> None:
        """Choose the rounds that follow from the noisy counts, if they are within the caps.

        Proof: "Given h, the limit k is the same in P and in Q."

        Raises:
            InternalError: If the rounds exceed the caps.
        """
        self._begin("choose", "classes")
        if self.proof.choice is None or not admits(self.proof.choice, self.proof.slack, rounds):
            raise refused("the chosen rounds would exceed their caps")
        if rounds.listed != self.proof.known:
            raise refused("the chosen rounds would have a different list")
        self.proof = replace(self.proof, rounds=rounds)

    @proved("adaptive.md#the-mechanism")
    def round(self, number: int, listed: PublicParts | None = None) -> None:
        """Run the next round.

        Proof: "Then each user's pool of at most W of the remaining items is drawn once."

        Args:
            number: The number of rounds that have run, which is 0 for the first round.
            listed: The items of the public list of the certificate, if there is one.
        """
        rounds = self.proof.rounds
        if rounds is None or rounds.first is None or number > len(rounds.later):
            raise refused("no rounds were chosen, or all of them have run")
        if number:
            self._begin(f"round {number}", f"round {number - 1}")
            self._advance(self._pools, rounds, number, ROUND)
            return
        if (listed is None) is not (rounds.known is None):
            raise refused("the list of the certificate is missing, or there is none")
        if listed is not None and rounds.known is not None and listed.size > rounds.known.listed.size:
            raise refused("the list has more items than the list of the certificate")
        self._listed = listed
        self._begin("round 0", "open", *(["choose"] if self.proof.choice else []))
        shares, limit = calibrated_rule(rounds.first.bounding), rounds.first.bounding.limit
        decisions = ReleaseDecisions(threshold_rule(rounds.first), self._secret, f"noise/{FIRST_ROUND}")
        self._pools.first_round(shares, limit, decisions, FIRST_ROUND)
        self._note("first round")
        if listed is not None:
            # The list is used only from here on, because it does not change the first round (docs/privacy/known.md,
            # "The first round").
            self._pools.recognise(listed.parts)
        # Draw pools once, before all later rounds, so that a user gives weight to at most `pool` items over all rounds.
        self._pools.draw(rounds.pool, POOL)

    @proved("adaptive.md#the-mechanism")
    def _advance(self, pools: Any, rounds: Rounds, number: int, named: str) -> None:
        """Run a later round with the weighting and the noise of the certificate.

        Proof: "Noise of standard deviation sigma_r is added to the weight of every undecided item that is in the pool
        of at least one user, drawn in this round or not."
        """
        name = named.format(number)
        pools.advance(capped(rounds, number - 1), score_step(rounds, number - 1, self._secret, name), name)
        self._note("round")

    @proved("known.md#the-mechanism")
    def released(self) -> Any:
        """Return the released items, in the order of their bytes.

        Proof: "The decision about listed items is made once, after the last round."
        """
        rounds = self.proof.rounds
        if rounds is None:
            raise refused("no rounds were chosen")
        self._begin("released", f"round {len(rounds.later)}")
        found = self._pools.released()
        if rounds.known is None or self._listed is None:
            return found
        return self._with_listed(rounds, rounds.known, self._listed, found)

    @proved("known.md#the-decision")
    def _with_listed(self, rounds: Rounds, known: KnownLevels, listed: PublicParts, found: Any) -> Any:
        """Return the released items, including listed items from the lowest level that the rule of the list admits.

        Proof: "the lowest level l with N p_l <= eta R_l"

        Every listed item gets noise in every round, whether it is in a pool or not. If an item is in no pool, the noise
        of its name determines its level. An item in a pool has at least the level of its noise.
        """
        names, reached = self._pools.levels()
        every = pa.chunked_array(listed.parts, pa.large_string())
        # Use one call for all parts, because each call processes `names` again.
        places = pc.index_in(every, value_set=names).fill_null(pa.scalar(-1, pa.int32())).to_numpy()
        wanted = ~pc.is_in(every, value_set=found).to_numpy()
        starts = np.cumsum([0, *map(len, listed.parts)])

        def level(number: int) -> tuple[Any, Bytes]:
            mine = slice(starts[number], starts[number + 1])
            part, place = listed.parts[number].filter(pa.array(wanted[mine])), places[mine][wanted[mine]]
            levels = self._reached_by_noise(rounds, *listed.letters(part))
            levels[place >= 0] = reached[place[place >= 0]]
            return part.filter(pa.array(levels > 0)), levels[levels > 0]

        parts = list(in_order(level, range(len(listed.parts))))
        levels = np.concatenate([each for _, each in parts])
        counts = np.bincount(levels, minlength=len(known.tails) + 1)
        # Compute the lowest admitted level, and the lowest level that would be admitted if one more item were released.
        lowest, other = (admitted_level(known, len(found) + more, counts) for more in (0, 1))
        self.spurious = float(np.append(empty_by_level(known), 0.0)[other - 1])
        self._note("list", {"level": lowest, "spurious": self.spurious})
        some = [part.filter(pa.array(each >= lowest)) for part, each in parts]
        words = pa.concat_arrays([found, *some])
        return words.take(pc.array_sort_indices(words.cast(pa.large_binary())))

    @proved("known.md#the-mechanism")
    def _reached_by_noise(self, rounds: Rounds, letters: Bytes, starts: Int64s) -> Bytes:
        """Return the levels that noise without weight reaches. This is the same noise that the engine adds.

        Proof: "The noise is a function of the item's bytes, so the engine adds it to items in pools, and the gate draws
        it for all of K with weight 0."
        """
        names = self._secret.text_draws("words", letters, starts)
        score, levels, left = np.zeros(len(names)), np.zeros(len(names), np.uint8), np.arange(len(names))
        for number in range(len(rounds.later)):
            step: Any = score_step(rounds, number, self._secret, ROUND.format(number + 1)).known
            parts, left = (
                [left[first : first + LISTED_AT_ONCE] for first in range(0, left.size, LISTED_AT_ONCE)],
                left[:0],
            )
            for part in parts:
                score[part], states, reached = step(np.zeros(part.size, np.int64), names[part], score[part])
                levels[part] = np.maximum(levels[part], reached)
                left = np.concatenate([left, part[states > DROPPED]])
        return levels

    @proved("adaptive.md#what-follows")
    def later(self, engine: Any, words: Any) -> LaterPasses:
        """Return the later passes, which are about grams of the released words.

        Proof: "The domain of the later releases must be a function of W(tau) only."
        """
        self._begin("later", "released")
        later = later_after(self.proof)
        walk = engine.length_walk()
        walk.keep_words(words, self._secret)
        return LaterPasses(later, self._secret, walk, len(words), self._note)

    # The following releases of profiles are about released values. Each has a part of the cap.

    @proved("profile.md#proof")
    def known(self, engine: Any, rounds: Rounds, candidates: Iterable[Any], letters: Callable[[Any], Texts]) -> Any:
        """Return the released candidates of a public set, without repetitions, in any order (docs/privacy/profile.md).

        Proof: "each is shared in the sense of [adaptive rounds](adaptive.md#proof), including one that only the
        additional user has"

        Every candidate gets noise in every round until it is released or dropped permanently, whether it is in a pool
        or not. A candidate in a pool has at least the score of its noise. Therefore the released candidates are the
        candidates that the engine releases and those that noise without weight releases.

        Args:
            engine: The private data, which contain only candidates.
            rounds: The rounds, without a first round. Their mu^2 must be within the part of the cap for such rounds.
            candidates: All candidates, in parts.
            letters: A function that returns the bytes of a part, and the start of each text.
        """
        self._begin("known", "released")
        later, slack = self.proof.later, self.proof.slack
        if later is None or rounds.first is not None or square_of(rounds) > Fraction(later.joining):
            raise refused("rounds over candidates would run with less noise than was charged for")
        if not covers_rounds(slack, rounds, chosen=True):
            raise refused("rounds over candidates would draw from more items than the slack covers")
        score_of(rounds)
        pools = engine.pools(self._secret)
        pools.draw(rounds.pool, "pool/candidates")
        for number in range(1, len(rounds.later) + 1):
            self._advance(pools, rounds, number, CANDIDATES)

        def by_noise(part: Any) -> Any:
            return part.filter(pa.array(self._released_by_noise(rounds, *letters(part))))

        return pc.unique(pa.concat_arrays([pools.released(), *in_order(by_noise, candidates)]))

    @proved("profile.md#proof")
    def _released_by_noise(self, rounds: Rounds, letters: Bytes, starts: Int64s) -> Bools:
        """Return the candidates that noise without weight releases. This is the same noise that the engine adds.

        Proof: "The engine adds noise only to candidates in pools, and the driver computes all other candidates from the
        same draws with weight 0."
        """
        names = self._secret.text_draws("words", letters, starts)
        score, left = np.zeros(len(names)), np.arange(len(names))
        found = np.zeros(len(names), np.bool_)
        for number in range(len(rounds.later)):
            step = score_step(rounds, number, self._secret, CANDIDATES.format(number + 1))
            score[left], states = step(np.zeros(left.size, np.int64), names[left], score[left])
            found[left[states == RELEASED]] = True
            left = left[states > DROPPED]
        return found

    @proved("profile.md#counts")
    def counts(self, certificate: Certificate) -> None:
        """Check that the mu^2 of counts fits into its part of the cap. The counts run under a separate gate.

        Proof: "of K, with the choice of their limit, spend at most M_c of mu^2."
        """
        self._begin("counts", "released")
        later, proof = self.proof.later, certificate.proof
        if later is None or not isinstance(proof, CountsProof) or counts_square(proof) > precise.number(later.counting):
            raise refused("counts would run with less noise than was charged for")
        self._note("counts", {"certificate": certificate.to_dict()})

    @proved("profile.md#proof")
    def cover(self, engine: Any, listed: Any, columns: int, unit: int, cell: int) -> Int64s:
        """Return noisy sums of users' shares of listed rows and of other rows, two sums per column, in cells.

        Proof: "the squares add up to at most 1 in each column, and to at most m over all"

        Args:
            engine: The private data.
            listed: The released values.
            columns: The number of columns.
            unit: The number of units in a share of 1.
            cell: The number of units per cell.
        """
        self._begin("cover", "released")
        cover = None if self.proof.later is None else self.proof.later.cover
        if cover is None or columns > cover.columns or cell < 1:
            raise refused("cover would run with less noise than was charged for")
        self._note("cover")
        noise = CellNoise(cover.sigma, unit, cell, self._secret, "noise/cover")
        sums: Int64s = engine.row_shares(listed, columns, unit).measured(noise, 2 * columns)
        return sums


@final
class ThresholdGate(Gate[ThresholdProof]):
    """The gate of one pass over unknown items and of later releases (docs/privacy/set-union.md)."""

    _proves = ThresholdProof

    @proved("set-union.md#the-mechanism")
    def released(self, engine: Any, shares: CalibratedRule) -> Any:
        """Return the items that reach the threshold, in the order of their bytes.

        Proof: "Only items in the support of the histogram get noise."

        Only items of bounded sets are candidates.

        Args:
            engine: The private data.
            shares: The weighting. Its numbers must equal the numbers of the certificate.
        """
        self._begin("released")
        weights = engine.weigh(self._checked(shares), shares.setting.limit, self._secret, FIRST_ROUND)
        return _chosen(weights, threshold_rule(self.proof.first), self._secret, FIRST_ROUND)

    @proved("ngrams.md#proof")
    def words(self, engine: Any, shares: CalibratedRule) -> tuple[Int64s, Any, LaterPasses]:
        """Return the levels of the words that reach the threshold, these words, and the later passes.

        Proof: "At length 1, words get levels only above the threshold."
        """
        self._begin("released")
        if self.proof.later is None or self.proof.later.charged != "everybody":
            raise refused("the certificate contains no later passes")
        walk = engine.length_walk()
        weights = walk.weigh(self._checked(shares), shares.setting.limit, self._secret, "length 1", None, None)
        levels = NoisyLevels((threshold_rule(self.proof.first),), self._secret, "noise/length 1")
        none = np.empty(0, np.int64)
        names, reached = weights.noisy_levels(levels, none, none)
        # Only words with users can be released, and all words that reach the threshold are released.
        walk.keep(names)
        later = LaterPasses(self.proof.later, self._secret, walk, names.size, self._note)
        return reached, weights.texts(names), later

    @proved("ngrams.md#with-length-1")
    def _checked(self, shares: CalibratedRule) -> CalibratedRule:
        """Return the weighting if its numbers are those of the certificate.

        Proof: "In DPNE, the sigma, threshold and limit of length 1 are fixed before any data are read, and so is the
        cap M for the rest."
        """
        if type(shares) is not CalibratedRule or bounding_of(shares) != self.proof.first.bounding:
            raise refused("a weighting would run that the certificate does not contain")
        self._note("threshold")
        return shares


@final
class SelectionGate(Gate[SelectionProof]):
    """The gate of optimal selection for one item per user (docs/privacy/optimal-selection.md)."""

    _proves = SelectionProof

    @proved("optimal-selection.md#the-mechanism")
    def released(self, engine: Any) -> Any:
        """Return the selected items, in the order of their bytes.

        Proof: "Each user keeps one item, drawn uniformly from the user's distinct items by a keyed hash of (user key,
        item)."
        """
        self._begin("released")
        self._note("selection")
        shares = CalibratedRule(Count(), RuleSetting(limit=1, norm=1, bits=0))
        rule = SelectionRule(self._claim.epsilon, self.proof.delta, unit_weight=1, few=self.proof.few)
        return _chosen(engine.weigh(shares, 1, self._secret, FIRST_ROUND), rule, self._secret, FIRST_ROUND)


@proved("randomness.md#exact-decisions")
def _chosen(weights: Any, rule: Rule, secret: Secret, pass_name: str) -> Any:
    """Return the items that a rule releases, with one draw for each item of a bounded set.

    Proof: "The item is released if a uniform 128-bit number U is below p 2^128."
    """
    return weights.texts(weights.chosen(ReleaseDecisions(rule, secret, f"noise/{pass_name}")))
