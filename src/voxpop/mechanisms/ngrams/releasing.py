"""The passes of n-grams over the users, and the loop.

`State` and `Pass` are public. A `Pass` contains everything that is fixed before users weigh: candidates, charge, noise
and cutpoints. The `Runner` hands it to the gate, which compares it with the certificate and returns a function of the
noisy weights, the `Outcome`. The plan's `schedule` returns the next pass from the state, and the pass's `after` returns
the next state from the outcome. Both are pure functions that receive no private number:

    while (step := plan.schedule(state)) is not None:
        state = step.after(runner.execute(step))
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from voxpop.engine.contract import Engine, check_engine, check_ordered
from voxpop.engine.data import Corpus, Subset
from voxpop.errors import InternalError
from voxpop.files.progress import track
from voxpop.kernels.arrays import Int32s, Int64s
from voxpop.mechanisms.ngrams.candidates import Candidates, Deferred, Grams, Joined
from voxpop.mechanisms.ngrams.charges import Charges, LengthRun, SecondChanceRun
from voxpop.mechanisms.ngrams.forecast import Estimates, Forecast, cell_below
from voxpop.mechanisms.ngrams.votes import ThresholdVote
from voxpop.mechanisms.rounds.adaptive import AdaptiveRounds
from voxpop.mechanisms.rounds.menu import Menu, deciding, released_in_rounds
from voxpop.mechanisms.rounds.plan import RoundPlan
from voxpop.privacy.gate.rounds import ThresholdGate
from voxpop.privacy.individual import Charge
from voxpop.privacy.planned import with_record
from voxpop.privacy.weightings.rule import CalibratedRule
from voxpop.release.release import Release
from voxpop.release.table import table_of_tokens

if TYPE_CHECKING:
    from voxpop.mechanisms.ngrams.plan import NGramsPlan
    from voxpop.privacy.gate.rounds import AdaptiveGate
    from voxpop.privacy.gate.walks import LaterPasses

PassKind = Literal["words", "measurement", "screening", "vote", "second chance"]
LABELS = {"words": "length", "measurement": "measurement", "screening": "prevote", "vote": "length"}
"""The words by which draws are named; part of every seeded release."""


class Keep(NamedTuple):
    """The grams that remain after a vote: users drop all others.

    Attributes:
        names: int64, rising, names of the released grams, including grams without users.
        deferred: int64, rising, names of the candidates that the second-chance pass weighs; None for no such pass.
    """

    names: Int64s
    deferred: Int64s | None


@dataclass(frozen=True, slots=True)
class NextVote:
    """The vote on the next length, fixed before it and before its screening vote.

    Attributes:
        forecast: of the candidates that the pruning rule allows.
        likely: those worth a vote, by forecast.
        measurement_sigma: noise scale behind the forecast.
        round: grid, noise and usual threshold.
        charge: the charge of each user.
        screening: mu^2 of the screening vote before it; None without a vote.
    """

    forecast: Forecast
    likely: Candidates
    measurement_sigma: float
    round: RoundPlan
    charge: Charge
    screening: float | None


@dataclass(frozen=True, slots=True)
class State:
    """Everything public about an extraction so far.

    Attributes:
        plan: the plan that runs.
        words: the released words, in order of bytes.
        rounds: the adaptive rounds in which they came; None without.
        grams: the released grams of each length.
        ran: the numbers with which each length ran.
        keep: which grams of the last vote users keep.
        levels: int64, cutpoints that each gram released last reached, by rank.
        estimates: of the released grams of each measured length.
        charges: the charges of the passes that follow length 1.
        ballot: the next vote; None until its measurement.
        joined: the candidates of the next vote with those that passed its screening vote; None without one.
        deferred: candidates for the second-chance pass, by length.
        least: forecast, in sigma, below which the last vote released too little.
        spurious: expected spurious grams so far, at most.
        second_chance: the numbers of the second-chance pass; None before it.
    """

    plan: "NGramsPlan"
    words: pa.LargeStringArray = field(default_factory=lambda: pa.nulls(0, pa.large_string()))
    rounds: AdaptiveRounds | None = None
    grams: tuple[Grams, ...] = ()
    ran: tuple[LengthRun, ...] = ()
    keep: Keep | None = None
    levels: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    estimates: tuple[Estimates, ...] = ()
    charges: Charges = field(default_factory=lambda: Charges(0.0, ()))
    ballot: NextVote | None = None
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
        """Return the valid candidates of the next length; None without any, and after the last length."""
        if self.length > self.plan.mechanism.max_length:
            return None
        found = Candidates.all_valid(self.grams[-1], len(self.words), single=single)
        return found if found.count else None

    def with_words(self, outcome: "Outcome") -> "State":
        """Return the state after length 1."""
        if outcome.words is None:
            raise InternalError("length 1 released no list of words")
        plan, first = self.plan, outcome.rounds or deciding(self.plan.first)
        ran = LengthRun(1, first.scale, None, None, first.threshold)
        charges = Charges(plan.later, plan.worths).after_words(len(outcome.words))
        grams = Grams.of_tokens(len(outcome.words))
        after = replace(self, words=outcome.words, rounds=outcome.rounds, levels=outcome.levels)
        return replace(after, grams=(grams,), ran=(ran,), charges=charges)


class Outcome(NamedTuple):
    """The outcome of a pass for the schedule: a function of noisy weights.

    Attributes:
        names: int64, rising, the candidates that reach the lowest cutpoint; of words their ranks.
        levels: int64, number of cutpoints that each of them reaches; in a measurement the noisy weights by rank, in
            cells.
        words: at length 1 the released words, in order of bytes.
        rounds: the adaptive rounds that released them; None without.
    """

    names: Int64s
    levels: Int64s
    words: pa.LargeStringArray | None = None
    rounds: AdaptiveRounds | None = None


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over the users; all of it is public.

    Attributes:
        kind: the purpose of the pass.
        length: tokens in the grams that are weighed; for the second-chance pass the longest.
        shares: the weighting, on the grid that was charged for; None for words in adaptive rounds.
        sigma: noise scale.
        after: returns the state after this pass from its outcome.
        charge: the charge of each user; None at length 1, and if all users are charged for every pass.
        vote: the candidates and cutpoints of a vote; None in a measurement and for words in adaptive rounds.
        size: in a measurement, the number of measured grams.
        rounds: the adaptive rounds of length 1, or the menu of them; None in all other passes.
        keep: which grams users keep before the pass; None if the pass before was no vote.
        extend: the candidates by which users go on to this length before the pass; None if they are there already.
        among: which candidates take part; None for all.
    """

    kind: PassKind
    length: int
    shares: CalibratedRule | None
    sigma: float
    after: Callable[[Outcome], State]
    charge: Charge | None = None
    vote: ThresholdVote | None = None
    size: int = 0
    rounds: AdaptiveRounds | Menu | None = None
    keep: Keep | None = None
    extend: Candidates | None = None
    among: Subset | None = None

    @property
    def name(self) -> str:
        """The name of the pass in draws."""
        return "sweep" if self.kind == "second chance" else f"{LABELS[self.kind]} {self.length}"

    @property
    def cell(self) -> int:
        """Units of the grid in a cell, to which noisy weights of a measurement are rounded."""
        unit = 1 if self.shares is None else self.shares.setting.unit
        return max(1, round(cell_below(self.sigma) * unit))


class Runner:
    """Runs passes through the gate of a release; the private side stays there."""

    def __init__(self, engine: Engine, gate: "AdaptiveGate | ThresholdGate") -> None:
        self._engine, self._gate = engine, gate
        self._later: LaterPasses | None = None

    def execute(self, step: Pass) -> Outcome:
        """Run a pass, and return its outcome."""
        if step.kind != "words":
            if self._later is None:
                raise InternalError("grams were to be weighed before words")
            return Outcome(*self._later.run(step))
        gate, ran = self._gate, None
        if isinstance(gate, ThresholdGate):
            if step.shares is None:
                raise InternalError("a pass has neither a weighting nor rounds")
            levels, words, self._later = gate.words(self._engine, step.shares)
        else:
            if step.rounds is None:
                raise InternalError("words come in adaptive rounds, and the pass has none")
            words, ran = released_in_rounds(step.rounds, gate, self._engine)
            levels, self._later = np.zeros(len(words), np.int64), gate.later(self._engine, words)
        return Outcome(np.arange(len(words)), levels, words, ran)


def release_ngrams(plan: "NGramsPlan", data: Corpus, seed: int | None) -> Release:
    """Run all passes and return the table of the released grams."""
    corpus = check_engine(data)
    check_ordered(corpus)
    gate, guarantee = plan.begin(seed)
    state = run_passes(State(plan), Runner(corpus, gate))
    done = with_record(plan, gate, words=state.rounds, ran=state.ran, second_chance=state.second_chance)
    tokens = downward_closed([grams.tokens for grams in state.grams])
    return Release(table_of_tokens(state.words, tokens), done, guarantee, corpus.token_source)


def run_passes(state: State, runner: Runner) -> State:
    """Run passes until the schedule ends, and return the last state."""

    def lengths() -> Iterator[int]:
        nonlocal state
        while (step := state.plan.schedule(state)) is not None:
            state = step.after(runner.execute(step))
            if step.kind in ("words", "vote"):
                yield step.length

    for _ in track(lengths(), "releasing", lambda _: 1, None, "lengths", exact=True):
        pass
    return state


def downward_closed(lengths: Sequence[Int32s]) -> list[Int32s]:
    """Add the parts of grams that are missing, as suffixes may be under single-side pruning: a part is no new fact.

    Args:
        lengths: int32 (grams, length) for each length from 1 on; all prefixes are there.

    Returns:
        The same with all parts, in order of their tokens.
    """
    closed = list(lengths)
    for index in range(len(closed) - 1, 0, -1):
        longer, shorter = closed[index], closed[index - 1]
        if len(longer) and longer.shape[1] > 1:
            # From long to short: the parts of grams added at one length are added at the next.
            every = np.unique(np.concatenate([shorter, longer[:, 1:], longer[:, :-1]]), axis=0)
            closed[index - 1] = shorter if len(every) == len(shorter) else every.astype(np.int32)
    return closed
