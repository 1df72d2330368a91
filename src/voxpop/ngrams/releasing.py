"""The double line: the only place where n-gram extraction turns private weights into public sets.

`_Walk` holds the private levels on one side and what was released on the other. Whatever it computes between two
releases (candidates, thresholds, noise) is a function of released grams and noisy estimates alone.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from voxpop.arrays import Int64s
from voxpop.corpus.engine import Engine, check_engine, check_ordered
from voxpop.corpus.subset import Subset
from voxpop.errors import InternalError
from voxpop.ngrams.bands import Bands
from voxpop.ngrams.budgets import Outlook
from voxpop.ngrams.calibration import calibrated
from voxpop.ngrams.candidates import Candidates
from voxpop.ngrams.forecast import Estimates, Forecast, cell_below
from voxpop.ngrams.grams import Grams
from voxpop.ngrams.guide import Guide, breadth_after, worth_measuring, worthless
from voxpop.ngrams.later import NORM, later_round, later_setting, threshold_for
from voxpop.ngrams.lengths import LengthRun, SweepRun
from voxpop.ngrams.prevote import Joined, JoinedBands, hits_for
from voxpop.ngrams.schedule import (
    FEW_TOKENS,
    FIRST_EDGE,
    HITS,
    PREVOTE_STEPS,
    SWEEP_ALPHA,
    SWEPT_HITS,
)
from voxpop.ngrams.spending import Charge, IndividualSpending, spending_of
from voxpop.ngrams.spurious import allowed
from voxpop.ngrams.sweep import Listed, Missed, near_misses, sweep_cutpoints, sweeping
from voxpop.ngrams.table import table_of_grams
from voxpop.ngrams.threshold_vote import Selection, ThresholdVote
from voxpop.ngrams.thresholds import cutpoints_above, cutpoints_below
from voxpop.privacy.decide import ThresholdRule
from voxpop.privacy.decisions import CellNoise
from voxpop.privacy.secret import Secret
from voxpop.progress import track
from voxpop.release import Release
from voxpop.rounds.adaptive.numbers import AdaptiveRounds
from voxpop.rounds.adaptive.running import released_in_rounds
from voxpop.rounds.charge import check_charged
from voxpop.rounds.plan import RoundPlan
from voxpop.weighting.additive import Weighted
from voxpop.weighting.rule import CalibratedRule, RuleSetting
from voxpop.weighting.soundness import WEIGHTING_RULES

if TYPE_CHECKING:
    from voxpop.ngrams.candidates import Numbered
    from voxpop.ngrams.ngrams import NGrams
    from voxpop.ngrams.plan import NGramsPlan
    from voxpop.privacy.individual import Price


class Prospect(NamedTuple):
    """What is publicly known of the next length before its vote."""

    valid: Candidates
    forecast: Forecast | None
    measurement_sigma: float | None


def release_ngrams(plan: "NGramsPlan", corpus: Engine, seed: int | None) -> Release:
    """Walk through the lengths and name what was released; see `NGrams.release`."""
    check_engine(corpus)
    check_ordered(corpus)
    secret = Secret.of(seed)
    guarantee = plan.guaranteed(private=secret.private)
    walk = _Walk(plan, corpus, secret)
    walk.run()
    table = table_of_grams(walk.vocabulary, walk.released, single=plan.mechanism.pruning == "single")
    return Release(table, plan.after(tuple(walk.ran), walk.swept), guarantee, corpus.reading)


class _Walk:
    """From length to length."""

    def __init__(self, plan: "NGramsPlan", corpus: Engine, secret: Secret) -> None:
        self._plan = plan
        self._ngrams = plan.mechanism
        self._corpus = corpus
        self._walk = corpus.length_walk()
        self._secret = secret
        self._spending = spending_of(self._ngrams, plan.later)
        self._guided = self._ngrams.guide
        self._single = self._ngrams.pruning == "single"
        self._estimates: list[Estimates] = []
        self._density = 0.0
        self._levels = np.empty(0, np.int64)
        self._least = 0.0
        self._spurious = 0.0
        self._missed: list[Missed] = []
        self.vocabulary: pa.LargeStringArray = pa.nulls(0, pa.large_string())
        self.released: list[Grams] = []
        self.ran: list[LengthRun] = []
        self.swept: SweepRun | None = None

    @property
    def _individual(self) -> bool:
        return isinstance(self._spending, IndividualSpending)

    def run(self) -> None:
        """Release every length, until nothing is left to extend."""
        for _ in track(self._lengths(), "releasing", lambda _: 1, None, "lengths"):
            pass

    def _lengths(self) -> Iterator[int]:
        self._release_words()
        yield 1
        for length in range(2, self._ngrams.max_length + 1):
            valid = Candidates.all_valid(self.released[-1], len(self.vocabulary), single=self._single)
            if valid.count == 0:
                break
            self._release_longer(self._prospect(valid))
            yield length
        if isinstance(self._spending, IndividualSpending) and any(each.names.size for each in self._missed):
            self._sweep(self._spending)

    def _release_words(self) -> None:
        first = self._plan.first
        # (words,): from here on a word is its rank among these, in order of bytes.
        if isinstance(first, AdaptiveRounds):
            self.vocabulary = released_in_rounds(first, self._plan.budget, self._corpus, self._secret)
            # Nothing is told apart but by the measurement.
            self._levels = np.zeros(len(self.vocabulary), np.int64)
            self._walk.keep_words(self.vocabulary, self._secret)
        else:
            self.vocabulary = self._voted_words(first)
        words = len(self.vocabulary)
        self.released.append(Grams.of_tokens(words))
        self.ran.append(LengthRun(1, first.scale, None, None, first.threshold))
        # Released over valid candidates, at the length before; nothing is known of pairs yet.
        self._density = 1.0 if words <= FEW_TOKENS else 0.0
        self._spending.dense = words <= FEW_TOKENS

    def _voted_words(self, first: RoundPlan) -> pa.LargeStringArray:
        """Release words by one vote, and keep them."""
        pass_name = "length 1"
        # Private from here: it answers only through noise.
        histogram = self._walk.weigh(first.shares, first.shares.setting.limit, self._secret, pass_name)
        words, self._levels = self._vote(first, None).levels(histogram, self._secret, pass_name)
        self._walk.keep(words)
        return histogram.texts(words)

    def _prospect(self, valid: Candidates) -> Prospect:
        """Measure the grams just released, unless there is nothing to prune."""
        grams = self.released[-1]
        if not self._individual:
            self._guided = self._guided and worth_measuring(valid.count, grams.length, len(grams))
        if not self._guided:
            return Prospect(valid, None, None)
        charge = self._spending.measurement(grams.length + 1, self._ngrams.measurement)
        estimates = self._measure(grams, charge)
        self._estimates.append(estimates)
        return Prospect(valid, self._forecast(valid, grams, estimates), charge.sigma)

    def _measure(self, grams: Grams, charge: Charge) -> Estimates:
        """Weigh all released grams again, with noise on every one, also on those that nobody holds."""
        pass_name = f"measurement {grams.length}"
        limit = self._ngrams.limits[grams.length - 1]
        shares = CalibratedRule(Weighted(), RuleSetting(limit, NORM))
        sigma = charge.sigma
        # By exact fractions, from the very shares that run.
        check_charged(shares, sigma, charge.square)
        histogram = self._walk.weigh(shares, limit, self._secret, pass_name, charge.price)
        unit, cell = shares.setting.unit, cell_below(sigma)
        noise = CellNoise(sigma, unit, max(1, round(cell * unit)), self._secret, f"noise/{pass_name}")
        # (grams,), in cells: noise on every released gram, held or not, or its absence would show
        # (docs/privacy/ngrams.md, "Domain").
        measured = histogram.measured(noise, len(grams))
        return Estimates(calibrated(measured, self._levels, sigma / cell), cell)

    def _forecast(self, valid: Candidates, grams: Grams, estimates: Estimates) -> Forecast:
        first = self._estimates[0]
        if grams.length == 1 or self._single:
            # Length 2: est(a) est(b) / est(everything); the empty overlap is the sum of noisy estimates, already
            # public.
            return Forecast.of(valid, estimates, first, np.full(len(grams), first.total), first.cell)
        before = self._estimates[-2]
        # est(a) est(b) / est(overlap): the overlap was measured at the length before.
        return Forecast.of(valid, estimates, estimates, before.capped[grams.suffix], before.cell)

    def _release_longer(self, prospect: Prospect) -> None:
        """Vote for the candidates of the next length, and release what reaches the threshold of its band."""
        length = len(self.released) + 1
        pass_name = f"length {length}"
        round_plan, likely, price = self._settle(prospect, length, len(self.released[-1]))
        sigma, limit = round_plan.scale, round_plan.shares.setting.limit
        # All of it public, and fixed before this vote is weighed.
        candidates, bands, among = self._candidates(prospect, likely, sigma)
        histogram = self._walk.weigh(round_plan.shares, limit, self._secret, pass_name, price, among)
        vote = self._vote(round_plan, candidates)
        # The double line: what comes after it is a function of noisy weights.
        names, levels = vote.levels(histogram, self._secret, pass_name)
        result = self._select(vote, bands, names, levels)
        aside = self._set_aside(vote, bands, names, levels, result) if self._individual else None
        # Users forget every other gram; spurious ones are kept too, held by nobody.
        self._walk.keep(names[result.selected], aside)
        self._levels = levels[result.selected]
        self.released.append(self.released[-1].longer(names[result.selected], single=self._single))
        mean, measured = result.threshold(round_plan.threshold), prospect.measurement_sigma
        before = candidates.sigma if isinstance(candidates, Joined) else None
        numbers = sigma, measured, candidates.count, mean, result.spurious, result.bands, before
        self.ran.append(LengthRun(length, *numbers))
        self._density = self._levels.size / prospect.valid.count

    def _candidates(
        self, prospect: Prospect, likely: Candidates, sigma: float
    ) -> "tuple[Candidates | Joined, Bands | JoinedBands, Subset | None]":
        """Settle who is voted on: the likely candidates, and some that stand out in a vote before."""
        bands = Bands.of(likely, prospect.forecast, FIRST_EDGE * sigma)
        asked = self._spending.prevote(len(self.released) + 1)
        if asked is None or prospect.valid.count == likely.count:
            self._walk.extend(likely)
            return likely, bands, None
        joined = self._prevote(prospect.valid, likely, asked)
        return joined, JoinedBands(bands, joined), joined.subset

    def _vote(self, round_plan: RoundPlan, candidates: "Numbered | None") -> ThresholdVote:
        """Put up the cutpoints of a length: those that may decide, and some that tell how much a gram weighs."""
        usual = round_plan.threshold / round_plan.scale
        cutpoints = cutpoints_above(usual, usual + self._ngrams.alpha)
        if candidates is not None and self._ngrams.thresholds == "votes":
            hits = SWEPT_HITS if self._individual else HITS
            cutpoints = np.append(cutpoints_below(usual, len(self.released[-1]), candidates.count, hits), cutpoints)
        return ThresholdVote.of(candidates, self._rule(round_plan), cutpoints)

    def _rule(self, round_plan: RoundPlan) -> ThresholdRule:
        rule = round_plan.rule(self._plan.budget)
        if not isinstance(rule, ThresholdRule):
            raise InternalError("votes are decided by thresholds, and a plan of n-grams has another rule.")
        return rule

    def _select(self, vote: ThresholdVote, bands: "Bands | JoinedBands", names: Int64s, levels: Int64s) -> Selection:
        """Settle the cutpoint of each band, and remember what the result says of the next length."""
        held = bands.of_names(names)
        eta, spare = allowed(self._ngrams, [len(each) for each in self.released], self._spurious)
        result = vote.select(bands, held, levels, eta, spare)
        self._spurious += result.spurious
        main = len(bands.sets)
        poor = worthless(bands.sizes[:main], result.released[:main]) if main > 1 else 0
        # Band b begins at FIRST_EDGE 2^(b-1) sigma: below the first good one nothing is voted for next time.
        self._least = FIRST_EDGE * 2.0 ** (poor - 1) if poor else 0.0
        return result

    def _prevote(self, valid: Candidates, likely: Candidates, square: float) -> Joined:
        """Ask, with little, about all valid candidates that were pruned; those that stand out join the vote."""
        length, before = len(self.released) + 1, len(self.released[-1])
        others, among = valid.count - likely.count, Subset(likely, None)
        # Of each pruned candidate that nobody holds, so hits_for(length) * before are expected to stand out.
        chance = min(0.5, hits_for(length) * before / others)
        setting = later_setting(self._ngrams, length, square, before, valid.count, self._spending.reach)
        charge, round_plan = self._charged(
            self._ngrams, setting, square, lambda sigma: threshold_for(chance, sigma, 1, 1)
        )
        self._walk.extend(valid)
        limit, pass_name = setting.limit, f"prevote {length}"
        histogram = self._walk.weigh(round_plan.shares, limit, self._secret, pass_name, charge.price, among)
        cutpoints = round_plan.threshold / charge.sigma + np.array(PREVOTE_STEPS)
        names, levels = ThresholdVote.of(valid, self._rule(round_plan), cutpoints).levels(
            histogram, self._secret, pass_name
        )
        # Noise alone lifts likely candidates too; these are in the vote already.
        pruned = among.holds(names)
        return Joined(likely, names[pruned], levels[pruned] - 1, charge.sigma)

    def _charged(
        self, ngrams: "NGrams", setting: RuleSetting, square: float, threshold_of: Callable[[float], float]
    ) -> tuple[Charge, RoundPlan]:
        """Pay for a vote on its grid, and fill in its threshold by its noise."""
        charge = self._spending.pay(square, WEIGHTING_RULES[ngrams.weighting].sensitivity(setting))
        round_plan = later_round(ngrams, setting, charge.sigma, threshold_of(charge.sigma))
        check_charged(round_plan.shares, charge.sigma, charge.square)
        return charge, round_plan

    def _set_aside(
        self, vote: ThresholdVote, bands: "Bands | JoinedBands", names: Int64s, levels: Int64s, result: Selection
    ) -> Int64s:
        """Remember what came close, for the sweep."""
        held = bands.of_names(names)
        places, piece = near_misses(vote, held, levels, vote.votes(bands, held, levels), result)
        grams = self.released[-1].longer(names[places], single=False)
        self._missed.append(Missed(names[places], piece, grams.tokens))
        return names[places]

    def _sweep(self, spending: IndividualSpending) -> None:
        """Vote once more, with what every user has left, on what came close at any length."""
        listed, released, square = Listed(tuple(self._missed)), sum(map(len, self.released)), spending.sweep()
        ngrams, eta = sweeping(self._ngrams), self._ngrams.eta
        setting = later_setting(ngrams, 2, square, released, listed.count, spending.reach)
        charge, round_plan = self._charged(
            ngrams, setting, square, lambda sigma: threshold_for(eta, sigma, released, listed.count)
        )
        if charge.price is None:
            raise InternalError("a sweep has no price; please report the call.")
        histogram = self._walk.weigh_aside(round_plan.shares, setting.limit, self._secret, "sweep", charge.price)
        usual = round_plan.threshold / charge.sigma
        cutpoints = np.append(sweep_cutpoints(usual), cutpoints_above(usual, usual + SWEEP_ALPHA))
        vote = ThresholdVote.of(listed, self._rule(round_plan), cutpoints)
        names, levels = vote.levels(histogram, self._secret, "sweep")
        result = vote.select(listed, listed.of_names(names), levels, eta, eta * released - self._spurious)
        self._spurious += result.spurious
        added = listed.joined(self.released, names[result.selected])
        self.swept = SweepRun(charge.sigma, listed.count, tuple(added), listed.lengths_of(result.spurious_by_band))

    def _settle(self, prospect: Prospect, length: int, before: int) -> tuple[RoundPlan, Candidates, "Price | None"]:
        """Return noise, threshold, candidates and price of a length, on the grid that its noise pays for."""
        # Made before the vote from public numbers: what the filter may follow.
        outlook = Outlook(before, prospect.valid.count, self._expected(prospect, before, self._spending.rough(length)))
        square = self._spending.vote(length, outlook)
        valid, reach = prospect.valid.count, self._spending.reach
        setting = later_setting(self._ngrams, length, square, before, valid, reach)
        charge = self._spending.pay(square, WEIGHTING_RULES[self._ngrams.weighting].sensitivity(setting))
        sigma = charge.sigma

        def threshold_of(count: int) -> float:
            return threshold_for(self._ngrams.eta, sigma, before, max(count, 1))

        candidates = prospect.valid
        if prospect.forecast is not None:
            # In weight; `_least` is in sigma.
            guide = Guide(breadth_after(length - 1), before, self._least * sigma)
            candidates = guide.prune(prospect.forecast, threshold_of)
        round_plan = later_round(self._ngrams, setting, sigma, threshold_of(candidates.count))
        check_charged(round_plan.shares, sigma, charge.square)
        return round_plan, candidates, charge.price

    def _expected(self, prospect: Prospect, before: int, square: float) -> float:
        """Return how many candidates are likely to be released, from the forecast or from the last length's density."""
        valid = prospect.valid.count
        if prospect.forecast is None:
            return self._density * valid
        likely = min(valid, breadth_after(len(self.released)) * before)
        # sigma = 1 / mu for a sensitivity of about 1.
        threshold = threshold_for(self._ngrams.eta, square**-0.5, before, likely)
        return prospect.forecast.candidates(prospect.forecast.level_of(threshold)).count
