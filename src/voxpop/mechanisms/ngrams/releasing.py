"""The passes of n-grams over the users, and the runner that sends them to the gate.

`State` and `Pass` are public. A `Pass` contains everything that is fixed before users weigh grams: candidates, charge,
noise and cutpoints. The `Runner` sends it to the gate, which compares it with the certificate and returns the
`Outcome`, a function of the noisy weights. The plan's `schedule` computes the next pass from the state, and the pass's
`after` computes the next state from the outcome. Both functions are pure and receive no private numbers. The function
`run_passes` contains the loop.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from voxpop.engine.contract import Engine, check_engine, check_ordered
from voxpop.engine.data import Corpus, Subset
from voxpop.errors import InternalError
from voxpop.kernels.arrays import Int32s, Int64s
from voxpop.mechanisms.ngrams.candidates import Candidates, Deferred, Grams, Joined
from voxpop.mechanisms.ngrams.charges import Charges, LengthRun, SecondChanceRun
from voxpop.mechanisms.ngrams.forecast import Estimates, Forecast, cell_below
from voxpop.mechanisms.ngrams.votes import ThresholdVote
from voxpop.mechanisms.rounds.adaptive import AdaptiveRounds
from voxpop.mechanisms.rounds.menu import Menu, deciding, released_in_rounds
from voxpop.mechanisms.rounds.plan import RoundPlan
from voxpop.privacy.gate.rounds import PublicParts, ThresholdGate
from voxpop.privacy.individual import Charge
from voxpop.privacy.planned import GateCall, run_passes, with_record
from voxpop.privacy.weightings.rule import CalibratedRule
from voxpop.reading.arrow import text_buffers
from voxpop.release.release import Release
from voxpop.release.table import table_of_tokens

if TYPE_CHECKING:
    from voxpop.mechanisms.ngrams.plan import NGramsPlan
    from voxpop.privacy.gate.rounds import AdaptiveGate
    from voxpop.privacy.gate.walks import LaterPasses

PassKind = Literal["words", "measurement", "screening", "vote", "second chance"]
LABELS = {"words": "length", "measurement": "measurement", "screening": "prevote", "vote": "length"}
"""The labels that distinguish draws. Changing a label changes every seeded release."""


class Keep(NamedTuple):
    """The grams that each user keeps after a vote. All other grams are dropped from the data.

    Attributes:
        names: int64, the names of the released grams, including grams without users, in increasing order.
        deferred: int64, the names of the candidates for the second-chance pass, in increasing order, or None if there
            will be no such pass.
    """

    names: Int64s
    deferred: Int64s | None


@dataclass(frozen=True, slots=True)
class NextVote:
    """The numbers of the vote on the next length, which are fixed before this vote and its screening vote.

    Attributes:
        forecast: The forecast of the candidates that the pruning rule allows.
        likely: The candidates that are worth a vote according to their forecasts.
        measurement_sigma: The noise scale of the measurement that the forecast uses.
        round: The grid, the noise and the usual threshold of the vote.
        charge: The charge of each user.
        screening: The mu^2 of the screening vote before this vote, or None if there is no screening vote.
    """

    forecast: Forecast
    likely: Candidates
    measurement_sigma: float
    round: RoundPlan
    charge: Charge
    screening: float | None


@dataclass(frozen=True, slots=True)
class State:
    """The public state of a release of n-grams.

    Attributes:
        plan: The plan of the release.
        words: The released words, in the order of their bytes.
        rounds: The adaptive rounds that released the words, if there are any.
        grams: The released grams of each length.
        ran: The numbers that each length used.
        keep: The grams that users keep after the last vote.
        levels: int64 by rank, the number of cutpoints that each gram of the last released length reached.
        estimates: The estimates of the released grams of each measured length.
        charges: The charges of the passes after length 1.
        ballot: The next vote (None until its measurement has run).
        joined: The candidates of the next vote, including those that passed its screening vote, or None without a
            screening vote.
        deferred: The candidates for the second-chance pass, by length.
        least: The forecast, in sigma, below which the last vote released too few candidates.
        spurious: The maximum expected number of spurious grams so far, including words of a public list.
        second_chance: The numbers of the second-chance pass (None before this pass).
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
        """The length of the grams in the next passes."""
        return len(self.grams) + 1

    @property
    def before(self) -> int:
        """The number of released grams of the preceding length."""
        return len(self.grams[-1])

    def valid(self, *, single: bool = False) -> Candidates | None:
        """Return the valid candidates of the next length, or None if there is no candidate or no further length."""
        if self.length > self.plan.mechanism.max_length:
            return None
        found = Candidates.all_valid(self.grams[-1], len(self.words), single=single)
        return found if found.count else None

    def with_words(self, outcome: "Outcome") -> "State":
        """Return the state after length 1."""
        if outcome.words is None:
            raise InternalError("length 1 released no list of words")
        plan, first = self.plan, outcome.rounds or deciding(self.plan.first)
        listed = None if plan.known_items is None else outcome.spurious
        ran = LengthRun(1, first.scale, None, None, first.threshold, listed)
        charges = Charges(plan.later_after(outcome.rounds), plan.worths).after_words(len(outcome.words))
        grams = Grams.of_tokens(len(outcome.words))
        after = replace(self, words=outcome.words, rounds=outcome.rounds, levels=outcome.levels)
        return replace(after, grams=(grams,), ran=(ran,), charges=charges, spurious=outcome.spurious)


class Outcome(NamedTuple):
    """The outcome of a pass for the schedule. The outcome is a function of noisy weights.

    Attributes:
        names: int64, the candidates that reach the lowest cutpoint, in increasing order. For words, these are ranks.
        levels: int64, the number of cutpoints that each candidate reaches. After a measurement, the array contains the
            noisy weights by rank, in cells.
        words: At length 1, the released words, in the order of their bytes.
        rounds: The adaptive rounds that released the words, if there are any.
        spurious: The maximum expected number of released words without users. Only words from a public list can be
            released without users.
    """

    names: Int64s
    levels: Int64s
    words: pa.LargeStringArray | None = None
    rounds: AdaptiveRounds | None = None
    spurious: float = 0.0


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over the users. All fields are public.

    Attributes:
        kind: The type of the pass.
        length: The number of tokens in the weighed grams, or the largest such number for the second-chance pass.
        shares: The weighting, on the grid that was charged for (None for words in adaptive rounds).
        sigma: The noise scale.
        after: The function that computes the state after this pass from its outcome.
        charge: The charge of each user (None at length 1 and if all users are charged for every pass).
        vote: The candidates and cutpoints of a vote (None for a measurement and for words in adaptive rounds).
        size: The number of measured grams, or 0 if the pass is not a measurement.
        rounds: The adaptive rounds of length 1 or their menu (None for all other passes).
        keep: The grams that users keep before the pass, or None if the preceding pass was not a vote.
        extend: The candidates that extend the grams of users to this length before the pass, or None if their grams
            already have this length.
        among: The candidates that take part, or None if all candidates take part.
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
        """The name of the pass, which determines its draws."""
        return "sweep" if self.kind == "second chance" else f"{LABELS[self.kind]} {self.length}"

    @property
    def cell(self) -> int:
        """The number of grid units per cell. The noisy weights of a measurement are rounded to cells."""
        unit = 1 if self.shares is None else self.shares.setting.unit
        return max(1, round(cell_below(self.sigma) * unit))


class Runner:
    """The object that runs passes through the gate of a release. The gate returns no private data."""

    def __init__(self, engine: Engine, gate: "AdaptiveGate | ThresholdGate", listed: PublicParts | None = None) -> None:
        """Store the private data, their gate, and the public list of words, if there is one."""
        self._engine, self._gate, self._listed = engine, gate, listed
        self._later: LaterPasses | None = None

    def execute(self, step: Pass) -> Outcome:
        """Run a pass and return its outcome."""
        if step.kind != "words":
            if self._later is None:
                raise InternalError("grams would be weighed before words")
            return Outcome(*self._later.run(step))
        gate, ran, spurious = self._gate, None, 0.0
        if isinstance(gate, ThresholdGate):
            if step.shares is None:
                raise InternalError("a pass has neither a weighting nor rounds")
            levels, words, self._later = gate.words(self._engine, step.shares)
        else:
            if step.rounds is None:
                raise InternalError("words need adaptive rounds, but the pass has none")
            words, ran = released_in_rounds(step.rounds, gate, self._engine, self._listed)
            spurious = gate.spurious
            levels, self._later = np.zeros(len(words), np.int64), gate.later(self._engine, words)
        return Outcome(np.arange(len(words)), levels, words, ran, spurious)


def next_pass(state: State) -> GateCall[Runner, State] | None:
    """Return the next pass of the plan's schedule as a call to the runner, or None after the last pass."""
    if (step := state.plan.schedule(state)) is None:
        return None
    return GateCall(lambda runner: runner.execute(step), step.after, counted=step.kind in ("words", "vote"))


def release_ngrams(plan: "NGramsPlan", data: Corpus, seed: int | None) -> Release:
    """Run all passes and return the table of the released grams."""
    corpus = check_engine(data)
    check_ordered(corpus)
    known, listed = plan.known_items, None
    if known is not None:
        listed = PublicParts(known.parts(corpus.kind, corpus.token_source, corpus.keys), text_buffers)
    gate, guarantee = plan.begin(seed)
    state = run_passes(State(plan), next_pass, Runner(corpus, gate, listed), "lengths")
    done = with_record(plan, gate, words=state.rounds, ran=state.ran, second_chance=state.second_chance)
    tokens = downward_closed([grams.tokens for grams in state.grams])
    return Release(table_of_tokens(state.words, tokens), done, guarantee, corpus.token_source)


def downward_closed(lengths: Sequence[Int32s]) -> list[Int32s]:
    """Add the missing parts of grams, such as suffixes with single-side pruning. The added parts reveal nothing new.

    Args:
        lengths: int32 (grams, length) for each length from 1 on. All prefixes are present.

    Returns:
        The same arrays with all missing parts added, in the order of their tokens.
    """
    closed = list(lengths)
    for index in range(len(closed) - 1, 0, -1):
        longer, shorter = closed[index], closed[index - 1]
        if len(longer) and longer.shape[1] > 1:
            # The loop runs from the longest to the shortest grams, so the parts of an added part are added in the next
            # step.
            every = np.unique(np.concatenate([shorter, longer[:, 1:], longer[:, :-1]]), axis=0)
            closed[index - 1] = shorter if len(every) == len(shorter) else every.astype(np.int32)
    return closed
