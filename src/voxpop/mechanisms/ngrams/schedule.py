"""The order of passes, as pure functions of the public state.

`schedule` returns the next pass. The first pass releases words. The passes of each further length are a measurement of
the grams that were released last, a screening vote on unlikely candidates (lengths 2 to 5), and the vote itself. The
last pass is a second-chance pass over the deferred candidates of all lengths. Below, each function that returns a pass
is followed by the function that returns the state after this pass. No function here receives a corpus, so candidates,
charges, noise and thresholds depend only on released grams and noisy weights.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from voxpop.engine.data import Subset
from voxpop.errors import InternalError
from voxpop.mechanisms.ngrams import constants as tuned
from voxpop.mechanisms.ngrams.candidates import Bands, Candidates, Deferred, DeferredList, Joined, NumberedCandidates
from voxpop.mechanisms.ngrams.charges import (
    ALL_SO_FAR,
    NORM,
    LengthRun,
    SecondChanceRun,
    allowance,
    growth,
    threshold_for,
)
from voxpop.mechanisms.ngrams.forecast import (
    Estimates,
    Forecast,
    bands_of,
    breadth_after,
    calibrated_cells,
    cell_below,
    pruned,
    worthless,
)
from voxpop.mechanisms.ngrams.releasing import Keep, NextVote, Outcome, Pass, State
from voxpop.mechanisms.ngrams.votes import ThresholdVote, cutpoints_above, cutpoints_below, deferred_by
from voxpop.mechanisms.rounds.plan import RoundPlan, check_charged
from voxpop.privacy.weightings.builtin import Weighted
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting


def schedule(state: State) -> Pass | None:
    """Return the next pass, or None after the last pass."""
    if not state.grams:
        return _words_pass(state)
    if state.ballot is not None:
        screening = None if state.joined is not None else state.ballot.screening
        return _vote(state, state.ballot) if screening is None else _screening(state, state.ballot, screening)
    if state.second_chance is not None:
        return None
    if state.valid() is not None:
        return _measurement(state)
    return _second_chance(state) if any(each.names.size for each in state.deferred) else None


def _words_pass(state: State) -> Pass:
    first = state.plan.first
    if isinstance(first, RoundPlan):
        raise InternalError("words need adaptive rounds, but the plan has none")
    return Pass("words", 1, None, 0.0, state.with_words, rounds=first)


def _measurement(state: State) -> Pass:
    """Measure the grams that were released last. Noise is added to each gram, including grams without users."""
    charge, charges = state.charges.measurement(state.length)
    shares = CalibratedRule(Weighted(), RuleSetting(state.plan.mechanism.voting(1).limit, NORM))
    # `check_charged` checks these shares in exact fractions.
    check_charged(shares, charge.sigma, charge.square)
    after = partial(_after_measurement, replace(state, charges=charges, keep=None), charge.sigma)
    return Pass(
        "measurement", state.length - 1, shares, charge.sigma, after, charge, size=state.before, keep=state.keep
    )


def _after_measurement(state: State, sigma: float, outcome: Outcome) -> State:
    """Forecast the next length, and determine the noise, threshold, candidates and charge of its vote."""
    cell = cell_below(sigma)
    estimates = *state.estimates, Estimates(calibrated_cells(outcome.levels, state.levels, sigma / cell), cell)
    state = replace(state, estimates=estimates)
    valid, mechanism = state.valid(), state.plan.mechanism
    if valid is None:
        raise InternalError("grams were measured that cannot be extended")
    forecast, before, length = _forecast(valid, state), state.before, state.length
    # Compute the expected number of released candidates, with sigma = 1 / mu for a sensitivity of approximately 1.
    most = min(valid.count, breadth_after(length - 1) * before)
    threshold = threshold_for(mechanism.max_spurious_share, state.charges.usual(length) ** -0.5, before, most)
    expected = forecast.candidates(forecast.level_of(threshold)).count
    square, rates, charges = state.charges.vote(length, growth(before, valid.count, expected))
    voting = mechanism.voting(length)
    setting, charge = voting.grid_and_charge(charges, square, rates, before, valid.count)

    def threshold_of(count: int) -> float:
        return voting.threshold(charge.sigma, before, max(count, 1))

    # `least` is in units of sigma, but the forecast is in units of weight.
    likely = pruned(forecast, before, length - 1, state.least * charge.sigma, threshold_of)
    vote = voting.charged(setting, charge.sigma, threshold_of(likely.count), charge.square)
    screening = charges.screening(length) if valid.count > likely.count else None
    return replace(state, charges=charges, ballot=NextVote(forecast, likely, sigma, vote, charge, screening))


def _forecast(valid: Candidates, state: State) -> Forecast:
    grams, estimates = state.grams[-1], state.estimates[-1]
    if grams.length == 1:
        # The forecast of length 2 is est(a) est(b) / est(empty gram). The estimate of the empty gram is the sum of
        # noisy estimates, which are already public.
        return Forecast.of(valid, estimates, np.full(len(grams), estimates.total), estimates.cell)
    # The forecast is est(a) est(b) / est(overlap). The overlap was measured at the preceding length.
    overlaps = state.estimates[-2]
    return Forecast.of(valid, estimates, overlaps.capped[grams.suffix], overlaps.cell)


def _screening(state: State, ballot: NextVote, square: float) -> Pass:
    """Run a screening vote, at a small charge, on valid candidates that were pruned. Those that pass join the vote."""
    length, valid, likely = state.length, ballot.forecast.valid, ballot.likely
    voting = state.plan.mechanism.voting(length)
    # `hits` is the expected number of pruned candidates without users that pass, per gram released at the preceding
    # length.
    hits = tuned.FIRST_STANDING_OUT if length == 2 else tuned.STANDING_OUT
    chance = min(0.5, hits * state.before / (valid.count - likely.count))
    setting, charge = voting.grid_and_charge(state.charges, square, None, state.before, valid.count)
    vote = voting.charged(setting, charge.sigma, threshold_for(chance, charge.sigma, 1, 1), charge.square)
    cutpoints = vote.threshold / charge.sigma + np.array(tuned.SCREENING_STEPS)
    among = Subset(likely, None)
    after = partial(_after_screening, state, likely, among, charge.sigma)
    levels = ThresholdVote.of(valid, vote.rule(state.plan.budget), cutpoints)
    return Pass("screening", length, vote.shares, charge.sigma, after, charge, levels, extend=valid, among=among)


def _after_screening(state: State, likely: Candidates, among: Subset, sigma: float, outcome: Outcome) -> State:
    # Likely candidates can also reach cutpoints because of noise, but they already take part in the vote.
    further = among.holds(outcome.names)
    return replace(state, joined=Joined(likely, outcome.names[further], outcome.levels[further] - 1, sigma))


def _vote(state: State, ballot: NextVote) -> Pass:
    """Vote on the likely candidates and on the candidates that passed the screening vote."""
    vote, joined, likely = ballot.round, state.joined, ballot.likely
    candidates: NumberedCandidates = likely if joined is None else joined
    bands = bands_of(likely, ballot.forecast, tuned.FIRST_EDGE * vote.scale, joined)
    usual = vote.threshold / vote.scale
    cutpoints = np.append(
        cutpoints_below(usual, state.before, candidates.count), cutpoints_above(usual, usual + tuned.VOTE_ALPHA)
    )
    levels = ThresholdVote.of(candidates, vote.rule(state.plan.budget), cutpoints)
    after = partial(_after_vote, state, ballot, levels, bands)
    step = Pass("vote", state.length, vote.shares, vote.scale, after, ballot.charge, levels)
    # If there was a screening vote, it has already extended the users' grams to this length.
    return replace(step, extend=likely) if joined is None else replace(step, among=joined.subset)


def _after_vote(state: State, ballot: NextVote, vote: ThresholdVote, bands: Bands, outcome: Outcome) -> State:
    """Choose the cutpoint of each band, and release the candidates that reach it."""
    names, levels = outcome.names, outcome.levels
    held = bands.of_names(names)
    sizes = [len(grams) for grams in state.grams]
    result = vote.select(bands, held, levels, *allowed(state.plan.mechanism.max_spurious_share, sizes, state.spurious))
    main = len(bands.sets)
    poor = worthless(bands.sizes[:main], result.released[:main]) if main > 1 else 0
    places, piece = deferred_by(held, levels, vote.votes(bands, held, levels), result)
    tokens = state.grams[-1].longer(names[places], single=False).tokens
    ran = LengthRun(
        state.length,
        ballot.round.scale,
        ballot.measurement_sigma,
        int(bands.sizes.sum()),
        result.threshold(ballot.round.threshold),
        result.spurious,
        result.bands,
        None if state.joined is None else state.joined.sigma,
    )
    return replace(
        state,
        grams=(*state.grams, state.grams[-1].longer(names[result.selected], single=False)),
        ran=(*state.ran, ran),
        # The names of spurious grams are also kept, although these grams have no users.
        keep=Keep(names[result.selected], names[places]),
        levels=levels[result.selected],
        ballot=None,
        joined=None,
        deferred=(*state.deferred, Deferred(names[places], piece, tokens)),
        # Band b begins at FIRST_EDGE 2^(b-1) sigma. Candidates with forecasts below the first good band take no part in
        # the next vote.
        least=tuned.FIRST_EDGE * 2.0 ** (poor - 1) if poor else 0.0,
        spurious=state.spurious + result.spurious,
    )


def allowed(eta: float, sizes: list[int], spent: float) -> tuple[float, float]:
    """Return the number of spurious grams allowed per gram of the next length, and the number allowed in addition.

    Args:
        eta: The maximum expected share of spurious grams.
        sizes: The number of grams that were released at each preceding length.
        spent: The number of spurious grams that these lengths were charged for.
    """
    rule, before = allowance(eta, len(sizes) + 1), sum(sizes)
    if rule.of == ALL_SO_FAR:
        return rule.share, max(0.0, rule.share * before - spent)
    # The published algorithm allows eta times the number of grams that are one token shorter. Here, the number is also
    # at most eta times the number of all grams released before, minus `spent`.
    return 0.0, max(0.0, min(rule.share * sizes[-1], eta * before - spent))


def _second_chance(state: State) -> Pass:
    """Vote once more on the deferred candidates of all lengths, with the remaining budget of each user."""
    listed, released = DeferredList(state.deferred), sum(map(len, state.grams))
    voting = state.plan.mechanism.voting(2).second_chance
    square, rates = state.charges.second_chance()
    setting, charge = voting.grid_and_charge(state.charges, square, rates, released, listed.count)
    vote = voting.charged(setting, charge.sigma, voting.threshold(charge.sigma, released, listed.count), charge.square)
    usual = vote.threshold / charge.sigma
    below = np.linspace(min(tuned.LOWEST_SECOND, usual), usual, tuned.SECOND_CUTPOINTS, endpoint=False)
    cutpoints = np.append(below, cutpoints_above(usual, usual + tuned.SECOND_ALPHA))
    levels = ThresholdVote.of(listed, vote.rule(state.plan.budget), cutpoints)
    after = partial(_after_second_chance, state, listed, levels, charge.sigma)
    return Pass("second chance", state.length, vote.shares, charge.sigma, after, charge, levels, keep=state.keep)


def _after_second_chance(
    state: State, listed: DeferredList, vote: ThresholdVote, sigma: float, outcome: Outcome
) -> State:
    eta = state.plan.mechanism.max_spurious_share
    spare = eta * sum(map(len, state.grams)) - state.spurious
    result = vote.select(listed, listed.of_names(outcome.names), outcome.levels, eta, spare)
    grams, added = listed.joined(state.grams, outcome.names[result.selected])
    lowest = min((used for _, used, _ in result.bands if used is not None), default=None)
    run = SecondChanceRun(sigma, listed.count, added, listed.lengths_of(result.spurious_by_band), lowest)
    return replace(state, grams=grams, spurious=state.spurious + result.spurious, second_chance=run)
