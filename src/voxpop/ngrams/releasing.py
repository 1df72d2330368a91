"""The double line: the only place where n-gram extraction turns private weights into public sets.

`_Walk` holds the private levels on one side and what was released on the other. Whatever it computes between two
releases (candidates, thresholds, noise) is a function of released grams and noisy estimates alone.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from voxpop.corpus.engine import Engine, check_engine, check_ordered
from voxpop.errors import InternalError
from voxpop.ngrams.bands import Bands
from voxpop.ngrams.budgets import FEW_TOKENS, Outlook
from voxpop.ngrams.calibration import calibrated
from voxpop.ngrams.candidates import Candidates
from voxpop.ngrams.forecast import Estimates, Forecast, cell_below
from voxpop.ngrams.grams import Grams
from voxpop.ngrams.guide import FIRST_EDGE, Guide, breadth_after, worth_measuring, worthless
from voxpop.ngrams.later import NORM, later_round, later_setting, threshold_for
from voxpop.ngrams.lengths import LengthRun
from voxpop.ngrams.table import table_of_grams
from voxpop.ngrams.threshold_vote import Result, ThresholdVote
from voxpop.ngrams.thresholds import cutpoints_above, cutpoints_below
from voxpop.privacy.decide import ThresholdRule
from voxpop.privacy.decisions import CellNoise
from voxpop.privacy.filter import GaussianFilter
from voxpop.privacy.secret import Secret
from voxpop.progress import track
from voxpop.release import Release
from voxpop.rounds.charge import check_charged
from voxpop.rounds.plan import RoundPlan
from voxpop.weighting.additive import Weighted
from voxpop.weighting.rule import CalibratedRule, RuleSetting
from voxpop.weighting.soundness import WEIGHTING_RULES

if TYPE_CHECKING:
    from voxpop.ngrams.plan import NGramsPlan

Int64s = NDArray[np.int64]


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
    walk = _Walk(plan, corpus, secret)
    walk.run()
    guarantee = replace(plan.guarantee, private=secret.private)
    table = table_of_grams(walk.vocabulary, walk.released, single=plan.mechanism.pruning == "single")
    return Release(table, plan.after(tuple(walk.ran)), guarantee, corpus.reading)


class _Walk:
    """From length to length."""

    def __init__(self, plan: "NGramsPlan", corpus: Engine, secret: Secret) -> None:
        self._plan = plan
        self._ngrams = plan.mechanism
        self._walk = corpus.length_walk()
        self._secret = secret
        self._filter = GaussianFilter(plan.later)
        self._budgets = self._ngrams.shares
        self._guided = self._ngrams.guide
        self._single = self._ngrams.pruning == "single"
        self._estimates: list[Estimates] = []
        self._density = 0.0
        self._levels = np.empty(0, np.int64)
        self._least = 0.0
        self._spurious = 0.0
        self.vocabulary: pa.LargeStringArray = pa.nulls(0, pa.large_string())
        self.released: list[Grams] = []
        self.ran: list[LengthRun] = []

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
                return
            self._release_longer(self._prospect(valid))
            yield length

    def _release_words(self) -> None:
        first, pass_name = self._plan.first, "length 1"
        histogram = self._walk.weigh(first.shares, first.shares.setting.limit, self._secret, pass_name)
        words, self._levels = self._vote(first, None).levels(histogram, self._secret, pass_name)
        self.vocabulary = histogram.texts(words)
        self._walk.keep(words)
        self.released.append(Grams.of_tokens(words.size))
        self.ran.append(LengthRun(1, first.scale, None, None, first.threshold))
        self._density = 1.0 if words.size <= FEW_TOKENS else 0.0

    def _prospect(self, valid: Candidates) -> Prospect:
        """Measure the grams just released, unless there is nothing to prune."""
        grams = self.released[-1]
        self._guided = self._guided and worth_measuring(valid.count, grams.length, len(grams))
        if not self._guided:
            return Prospect(valid, None, None)
        share = self._budgets.share(grams.length + 1, None)
        square = self._filter.left * share * self._ngrams.measurement
        sigma = self._filter.spend(square)
        estimates = self._measure(grams, sigma, square)
        self._estimates.append(estimates)
        return Prospect(valid, self._forecast(valid, grams, estimates), sigma)

    def _measure(self, grams: Grams, sigma: float, square: float) -> Estimates:
        """Weigh all released grams again, with noise on every one, also on those that nobody holds."""
        pass_name = f"measurement {grams.length}"
        limit = self._ngrams.limits[grams.length - 1]
        shares = CalibratedRule(Weighted(), RuleSetting(limit, NORM))
        check_charged(shares, sigma, square)
        histogram = self._walk.weigh(shares, limit, self._secret, pass_name)
        unit, cell = shares.setting.unit, cell_below(sigma)
        noise = CellNoise(sigma, unit, max(1, round(cell * unit)), self._secret, f"noise/{pass_name}")
        measured = histogram.measured(noise, len(grams))
        return Estimates(calibrated(measured, self._levels, sigma / cell), cell)

    def _forecast(self, valid: Candidates, grams: Grams, estimates: Estimates) -> Forecast:
        first = self._estimates[0]
        if grams.length == 1 or self._single:
            return Forecast.of(valid, estimates, first, np.full(len(grams), first.total), first.cell)
        before = self._estimates[-2]
        return Forecast.of(valid, estimates, estimates, before.capped[grams.suffix], before.cell)

    def _release_longer(self, prospect: Prospect) -> None:
        """Vote for the candidates of the next length, and release what reaches the threshold of its band."""
        length = len(self.released) + 1
        pass_name = f"length {length}"
        round_plan, candidates = self._settle(prospect, length, len(self.released[-1]))
        sigma = round_plan.scale
        self._walk.extend(candidates)
        histogram = self._walk.weigh(round_plan.shares, round_plan.shares.setting.limit, self._secret, pass_name)
        vote = self._vote(round_plan, candidates)
        names, levels = vote.levels(histogram, self._secret, pass_name)
        result = self._select(vote, Bands.of(candidates, prospect.forecast, FIRST_EDGE * sigma), names, levels)
        self._walk.keep(names[result.selected])
        self._levels = levels[result.selected]
        self.released.append(self.released[-1].longer(names[result.selected], single=self._single))
        mean, measured = result.threshold(round_plan.threshold), prospect.measurement_sigma
        self.ran.append(LengthRun(length, sigma, measured, candidates.count, mean, result.spurious, result.bands))
        self._density = self._levels.size / prospect.valid.count

    def _vote(self, round_plan: RoundPlan, candidates: Candidates | None) -> ThresholdVote:
        """Put up the cutpoints of a length: those that may decide, and some that tell how much a gram weighs."""
        usual = round_plan.threshold / round_plan.scale
        cutpoints = cutpoints_above(usual, usual + self._ngrams.alpha)
        if candidates is not None and self._ngrams.thresholds == "votes":
            cutpoints = np.append(cutpoints_below(usual, len(self.released[-1]), candidates.count), cutpoints)
        rule = round_plan.rule(self._plan.budget)
        if not isinstance(rule, ThresholdRule):
            raise InternalError("votes are decided by thresholds, and a plan of n-grams has another rule.")
        return ThresholdVote.of(candidates, rule, cutpoints)

    def _select(self, vote: ThresholdVote, bands: Bands, names: Int64s, levels: Int64s) -> Result:
        """Settle the cutpoint of each band, and remember what the result says of the next length."""
        held, spare = bands.of_names(names), None
        if self._ngrams.thresholds == "votes":
            spare = self._ngrams.eta * sum(map(len, self.released)) - self._spurious
        result = vote.select(bands, held, levels, self._ngrams.eta, spare)
        self._spurious += result.spurious
        poor = worthless(bands.sizes, result.released) if len(bands.sets) > 1 else 0
        self._least = FIRST_EDGE * 2.0 ** (poor - 1) if poor else 0.0
        return result

    def _settle(self, prospect: Prospect, length: int, before: int) -> tuple[RoundPlan, Candidates]:
        """Return noise, threshold and candidates of a length, on the grid that its noise pays for."""
        last = length == self._ngrams.max_length
        usual = self._budgets.share(length, None)
        outlook = Outlook(before, prospect.valid.count, self._expected(prospect, before, self._filter.left * usual))
        square = self._filter.left if last else self._filter.left * self._budgets.share(length, outlook)
        setting = later_setting(self._ngrams, length, square, before, prospect.valid.count)
        sigma = self._filter.spend(square, WEIGHTING_RULES[self._ngrams.weighting].sensitivity(setting))

        def threshold_of(count: int) -> float:
            return threshold_for(self._ngrams.eta, sigma, before, max(count, 1))

        candidates = prospect.valid
        if prospect.forecast is not None:
            guide = Guide(breadth_after(length - 1), before, self._least * sigma)
            candidates = guide.prune(prospect.forecast, threshold_of)
        round_plan = later_round(self._ngrams, setting, sigma, threshold_of(candidates.count))
        check_charged(round_plan.shares, sigma, square)
        return round_plan, candidates

    def _expected(self, prospect: Prospect, before: int, square: float) -> float:
        """Return how many candidates are likely to be released, from the forecast or from the last length's density."""
        valid = prospect.valid.count
        if prospect.forecast is None:
            return self._density * valid
        likely = min(valid, breadth_after(len(self.released)) * before)
        threshold = threshold_for(self._ngrams.eta, square**-0.5, before, likely)
        return prospect.forecast.candidates(prospect.forecast.level_of(threshold)).count
