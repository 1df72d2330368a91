"""Which pass comes next: pure functions of the public state.

`schedule` returns the next pass, `after` the state that follows from its outcome. The order of passes: words; then for
each length a measurement of the grams released last, a screening vote about unlikely candidates (lengths 2 to 5), and
the vote; at the end a second-chance pass about the deferred candidates of all lengths. No function here receives a
corpus, so candidates, charges, noise and thresholds depend only on released grams and noisy weights.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import pyarrow as pa

from voxpop.engine.data import Subset
from voxpop.errors import InternalError
from voxpop.kernels.arrays import Int64s
from voxpop.mechanisms.ngrams.candidates import Candidates, Deferred, DeferredList, Grams, Joined, Numbered
from voxpop.mechanisms.ngrams.charges import (
    ALL_SO_FAR,
    NORM,
    Charges,
    Extraction,
    LengthRun,
    Outlook,
    SecondChanceRun,
    Settings,
    allowance,
    second_chance_voting,
    threshold_for,
)
from voxpop.mechanisms.ngrams.constants import (
    ALPHA,
    FIRST_EDGE,
    FIRST_STANDING_OUT,
    LOWEST_SECOND,
    SCREENING_STEPS,
    SECOND_ALPHA,
    SECOND_CUTPOINTS,
    STANDING_OUT,
)
from voxpop.mechanisms.ngrams.forecast import (
    Estimates,
    Forecast,
    bands_of,
    breadth_after,
    calibrated,
    cell_below,
    pruned,
    worthless,
)
from voxpop.mechanisms.ngrams.passes import Keep, Outcome, Pass, Steps
from voxpop.mechanisms.ngrams.votes import ThresholdVote, cutpoints_above, cutpoints_below, deferred_by
from voxpop.mechanisms.rounds.adaptive import AdaptiveRounds
from voxpop.mechanisms.rounds.plan import RoundPlan, check_charged
from voxpop.mechanisms.weightings.builtin import Weighted
from voxpop.mechanisms.weightings.rule import CalibratedRule, RuleSetting
from voxpop.privacy.decisions import ThresholdRule

if TYPE_CHECKING:
    from voxpop.kernels.arrays import Floats
    from voxpop.privacy.budget import Budget
    from voxpop.privacy.individual import Charge


class Running(Protocol):
    """The numbers of the plan that runs."""

    @property
    def budget(self) -> "Budget":
        """The budget of the plan."""

    @property
    def mechanism(self) -> Extraction:
        """The configuration."""

    @property
    def first(self) -> RoundPlan | AdaptiveRounds:
        """Noise and threshold of length 1, or its adaptive rounds."""

    @property
    def later(self) -> float:
        """Total mu^2 of everything after length 1."""

    @property
    def steps(self) -> Steps:
        """The pure functions that choose the passes."""


@dataclass(frozen=True, slots=True)
class Ballot:
    """The vote on the next length, settled before it and before its screening vote.

    Attributes:
        valid: the candidates that the pruning rule allows.
        likely: those worth a vote, by forecast.
        forecast: of the valid candidates.
        measurement_sigma: noise scale behind the forecast.
        round: grid, noise and usual threshold.
        charge: the charge of each user.
        screened: whether a screening vote comes before it.
    """

    valid: Candidates
    likely: Candidates
    forecast: Forecast
    measurement_sigma: float
    round: RoundPlan
    charge: "Charge"
    screened: bool


@dataclass(frozen=True, slots=True)
class State:
    """Everything public about an extraction so far.

    Attributes:
        plan: the plan that runs.
        words: the released words, in order of bytes.
        grams: the released grams of each length.
        ran: the numbers with which each length ran.
        keep: which grams of the last vote users keep.
        levels: int64, cutpoints that each gram released last reached, by rank.
        estimates: of the released grams of each measured length.
        charges: the charges of the passes that follow.
        ballot: the next vote; None until its measurement.
        joined: the candidates of the next vote with those that passed its screening vote; None without one.
        deferred: candidates for the second-chance pass, by length.
        least: forecast, in sigma, below which the last vote released too little.
        spurious: expected spurious grams so far, at most.
        second_chance: the numbers of the second-chance pass; None before it.
    """

    plan: Running
    words: pa.LargeStringArray = field(default_factory=lambda: pa.nulls(0, pa.large_string()))
    grams: tuple[Grams, ...] = ()
    ran: tuple[LengthRun, ...] = ()
    keep: Keep | None = None
    levels: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    estimates: tuple[Estimates, ...] = ()
    charges: Charges | None = None
    ballot: Ballot | None = None
    joined: Joined | None = None
    deferred: tuple[Deferred, ...] = ()
    least: float = 0.0
    spurious: float = 0.0
    second_chance: SecondChanceRun | None = None

    @property
    def length(self) -> int:
        """The next length."""
        return len(self.grams) + 1

    @property
    def before(self) -> int:
        """The number of released grams of the length before."""
        return len(self.grams[-1])

    def valid(self, *, single: bool = False) -> Candidates | None:
        """Return the valid candidates of the next length; None if there are none or the last length is reached."""
        if self.length > self.plan.mechanism.max_length:
            return None
        found = Candidates.all_valid(self.grams[-1], len(self.words), single=single)
        return found if found.count else None

    def rule(self, vote: RoundPlan) -> ThresholdRule:
        """Return the rule by which a noisy weight reaches the usual threshold."""
        found = vote.rule(self.plan.budget)
        if not isinstance(found, ThresholdRule):
            raise InternalError("votes are decided by thresholds, and a plan of n-grams has another rule")
        return found

    def with_words(self, outcome: Outcome) -> "State":
        """Return the state after length 1."""
        if outcome.words is None:
            raise InternalError("length 1 released no list of words")
        first = self.plan.first
        ran = LengthRun(1, first.scale, None, None, first.threshold)
        grams = Grams.of_tokens(len(outcome.words))
        return replace(self, words=outcome.words, grams=(grams,), ran=(ran,), levels=outcome.levels)


def schedule(state: State) -> Pass | None:
    """Return the next pass; None at the end."""
    plan = state.plan
    if not state.grams:
        if not isinstance(plan.first, AdaptiveRounds):
            raise InternalError("words come in adaptive rounds, and the plan has none")
        return Pass("words", 1, None, plan.first.scale, rounds=plan.first)
    if state.ballot is not None:
        screened = state.ballot.screened and state.joined is None
        return _screening(state, state.ballot) if screened else _vote(state, state.ballot)
    if state.second_chance is not None:
        return None
    if state.valid() is not None:
        return _measurement(state)
    return _second_chance(state) if any(each.names.size for each in state.deferred) else None


def after(state: State, step: Pass, outcome: Outcome) -> State:
    """Return the state after a pass."""
    if step.kind == "words":
        found = state.with_words(outcome)
        charges = Charges(state.plan.later, _ngrams(state).worths).after_words(len(found.words))
        return replace(found, charges=charges)
    if step.kind == "measurement":
        return _with_ballot(state, step, outcome)
    if step.kind == "screening":
        return _with_joined(state, step, outcome)
    return _with_grams(state, step, outcome) if step.kind == "vote" else _with_second_chance(state, step, outcome)


STEPS = Steps(schedule, after)


def _ngrams(state: State) -> Settings:
    return state.plan.mechanism  # type: ignore[return-value]


def _charges(state: State) -> Charges:
    if state.charges is None:
        raise InternalError("a pass was charged before length 1")
    return state.charges


def _measurement(state: State) -> Pass:
    """Weigh the grams released last again, with noise on each of them, including grams without users."""
    charge, _ = _charges(state).measurement(state.length)
    shares = CalibratedRule(Weighted(), RuleSetting(_ngrams(state).bound, NORM))
    # By exact fractions, from the shares that run.
    check_charged(shares, charge.sigma, charge.square)
    length = state.length - 1
    return Pass("measurement", length, shares, charge.sigma, charge, size=state.before, keep=state.keep)


def _with_ballot(state: State, step: Pass, outcome: Outcome) -> State:
    """Forecast the next length, and settle noise, threshold, candidates and charge of its vote."""
    cell = cell_below(step.sigma)
    estimates = *state.estimates, Estimates(calibrated(outcome.levels, state.levels, step.sigma / cell), cell)
    _, charges = _charges(state).measurement(state.length)
    state = replace(state, estimates=estimates, keep=None)
    valid = state.valid()
    if valid is None:
        raise InternalError("grams were measured that cannot be extended")
    forecast, before, length = _forecast(valid, state), state.before, state.length
    expected = _expected(state, forecast, charges.usual(length))
    square, rates, charges = charges.vote(length, Outlook(before, valid.count, expected))
    voting = state.plan.mechanism.voting(length)
    setting = voting.setting(square, before, valid.count)
    charge = charges.charge(square, voting.rule.sensitivity(setting), rates)

    def threshold_of(count: int) -> float:
        return voting.threshold(charge.sigma, before, max(count, 1))

    # `least` is in sigma, the forecast in weight.
    likely = pruned(forecast, before, length - 1, state.least * charge.sigma, threshold_of)
    vote = voting.charged(setting, charge.sigma, threshold_of(likely.count), charge.square)
    screened = charges.screening(length) is not None and valid.count > likely.count
    ballot = Ballot(valid, likely, forecast, step.sigma, vote, charge, screened)
    return replace(state, charges=charges, ballot=ballot)


def _forecast(valid: Candidates, state: State) -> Forecast:
    grams, estimates = state.grams[-1], state.estimates[-1]
    if grams.length == 1:
        # Length 2: est(a) est(b) / est(everything); the empty overlap is the sum of noisy estimates, already public.
        return Forecast.of(valid, estimates, estimates, np.full(len(grams), estimates.total), estimates.cell)
    # est(a) est(b) / est(overlap): the overlap was measured at the length before.
    overlaps = state.estimates[-2]
    return Forecast.of(valid, estimates, estimates, overlaps.capped[grams.suffix], overlaps.cell)


def _expected(state: State, forecast: Forecast, square: float) -> float:
    """Return the forecast number of candidates that will be released."""
    likely = min(forecast.valid.count, breadth_after(len(state.grams)) * state.before)
    # sigma = 1 / mu for a sensitivity of about 1.
    threshold = threshold_for(_ngrams(state).eta, square**-0.5, state.before, likely)
    return forecast.candidates(forecast.level_of(threshold)).count


def _screening(state: State, ballot: Ballot) -> Pass:
    """Screen the pruned valid candidates at a small charge; candidates that pass join the vote."""
    charges, length = _charges(state), state.length
    square, voting = charges.screening(length), state.plan.mechanism.voting(length)
    if square is None:
        raise InternalError("a screening vote has no charge")
    # The expected number of pruned candidates without users that pass, for each gram released before.
    hits = FIRST_STANDING_OUT if length == 2 else STANDING_OUT
    chance = min(0.5, hits * state.before / (ballot.valid.count - ballot.likely.count))
    setting = voting.setting(square, state.before, ballot.valid.count)
    charge = charges.charge(square, voting.rule.sensitivity(setting), None)
    vote = voting.charged(setting, charge.sigma, threshold_for(chance, charge.sigma, 1, 1), charge.square)
    cutpoints = vote.threshold / charge.sigma + np.array(SCREENING_STEPS)
    return _asked(
        state,
        "screening",
        vote,
        charge,
        ballot.valid,
        cutpoints,
        extend=ballot.valid,
        among=Subset(ballot.likely, None),
    )


def _asked(
    state: State,
    kind: Literal["screening", "vote", "second chance"],
    vote: RoundPlan,
    charge: "Charge",
    candidates: Numbered,
    cutpoints: "Floats",
    **fields: Any,
) -> Pass:
    among = ThresholdVote.of(candidates, state.rule(vote), cutpoints)
    return Pass(kind, state.length, vote.shares, vote.scale, charge, candidates, among, **fields)


def _with_joined(state: State, step: Pass, outcome: Outcome) -> State:
    if state.ballot is None or step.among is None:
        raise InternalError("a screening vote ran without a ballot")
    # Noise lifts likely candidates too; these are in the vote already.
    further = step.among.holds(outcome.names)
    joined = Joined(state.ballot.likely, outcome.names[further], outcome.levels[further] - 1, step.sigma)
    return replace(state, joined=joined)


def _vote(state: State, ballot: Ballot) -> Pass:
    """Vote on the likely candidates, and on those that passed the screening vote."""
    vote, joined = ballot.round, state.joined
    candidates: Numbered = ballot.likely if joined is None else joined
    bands = bands_of(ballot.likely, ballot.forecast, FIRST_EDGE * vote.scale, joined)
    usual = vote.threshold / vote.scale
    above = cutpoints_above(usual, usual + ALPHA)
    cutpoints = np.append(cutpoints_below(usual, state.before, candidates.count), above)
    place: dict[str, Any] = {"extend": ballot.likely} if joined is None else {"among": joined.subset}
    return _asked(state, "vote", vote, ballot.charge, candidates, cutpoints, bands=bands, **place)


def allowed(eta: float, sizes: list[int], spent: float) -> tuple[float, float]:
    """Return the spurious grams allowed for each gram that the next length releases, and beyond.

    Args:
        eta: expected share of spurious grams, at most.
        sizes: number of grams that each length before released.
        spent: charge for spurious grams among them.
    """
    rule, before = allowance(eta, len(sizes) + 1), sum(sizes)
    if rule.of == ALL_SO_FAR:
        return rule.share, max(0.0, rule.share * before - spent)
    # As many as published for this length, within eta of the grams released before it.
    return 0.0, max(0.0, min(rule.share * sizes[-1], eta * before - spent))


def _with_grams(state: State, step: Pass, outcome: Outcome) -> State:
    """Choose the cutpoint of each band, and release the candidates that reach it."""
    vote, bands, ballot, (names, levels, _) = step.vote, step.bands, state.ballot, outcome
    if vote is None or bands is None or ballot is None or step.candidates is None:
        raise InternalError("a vote ran without bands or cutpoints")
    held = bands.of_names(names)
    result = vote.select(bands, held, levels, *allowed(_ngrams(state).eta, list(map(len, state.grams)), state.spurious))
    main = len(bands.sets)
    poor = worthless(bands.sizes[:main], result.released[:main]) if main > 1 else 0
    places, piece = deferred_by(vote, held, levels, vote.votes(bands, held, levels), result)
    tokens = state.grams[-1].longer(names[places], single=False).tokens
    ran = LengthRun(
        state.length,
        step.sigma,
        ballot.measurement_sigma,
        step.candidates.count,
        result.threshold(ballot.round.threshold),
        result.spurious,
        result.bands,
        None if bands.joined is None else bands.joined.sigma,
    )
    return replace(
        state,
        grams=(*state.grams, state.grams[-1].longer(names[result.selected], single=False)),
        ran=(*state.ran, ran),
        # Spurious grams are kept too, without users.
        keep=Keep(names[result.selected], names[places]),
        levels=levels[result.selected],
        ballot=None,
        joined=None,
        deferred=(*state.deferred, Deferred(names[places], piece, tokens)),
        # Band b begins at FIRST_EDGE 2^(b-1) sigma: below the first good one nothing is voted for next time.
        least=FIRST_EDGE * 2.0 ** (poor - 1) if poor else 0.0,
        spurious=state.spurious + result.spurious,
    )


def _second_chance(state: State) -> Pass:
    """Vote once more, with the remaining budget of each user, on the deferred candidates of all lengths."""
    listed, released = DeferredList(state.deferred), sum(map(len, state.grams))
    charges, voting = _charges(state), second_chance_voting(_ngrams(state))
    square, rates = charges.second_chance()
    setting = voting.setting(square, released, listed.count)
    charge = charges.charge(square, voting.rule.sensitivity(setting), rates)
    vote = voting.charged(setting, charge.sigma, voting.threshold(charge.sigma, released, listed.count), charge.square)
    usual = vote.threshold / charge.sigma
    below = np.linspace(min(LOWEST_SECOND, usual), usual, SECOND_CUTPOINTS, endpoint=False)
    cutpoints = np.append(below, cutpoints_above(usual, usual + SECOND_ALPHA))
    return _asked(state, "second chance", vote, charge, listed, cutpoints, keep=state.keep)


def _with_second_chance(state: State, step: Pass, outcome: Outcome) -> State:
    listed, vote, eta = step.candidates, step.vote, _ngrams(state).eta
    if not isinstance(listed, DeferredList) or vote is None:
        raise InternalError("a second-chance pass ran without deferred candidates")
    pieces = listed.of_names(outcome.names)
    spare = eta * sum(map(len, state.grams)) - state.spurious
    result = vote.select(listed, pieces, outcome.levels, eta, spare)
    grams, added = listed.joined(state.grams, outcome.names[result.selected])
    run = SecondChanceRun(step.sigma, listed.count, added, listed.lengths_of(result.spurious_by_band))
    return replace(state, grams=grams, spurious=state.spurious + result.spurious, second_chance=run)
