"""A pass over the users, and the runner that executes passes on an engine.

A `Pass` contains everything that is public about a pass, fixed before it is weighed: candidates, charge, noise and
cutpoints. The runner adds nothing but private weights and noise, and returns a function of the noisy weights only.
Which pass comes next is decided by pure functions of earlier outcomes (`Steps`), so no private number can enter there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from voxpop.errors import InternalError
from voxpop.kernels.arrays import Int64s
from voxpop.mechanisms.ngrams.candidates import Bands, Candidates, Numbered
from voxpop.mechanisms.ngrams.forecast import cell_below
from voxpop.mechanisms.ngrams.votes import ThresholdVote
from voxpop.mechanisms.rounds.adaptive import AdaptiveRounds, released_in_rounds
from voxpop.mechanisms.weightings.rule import CalibratedRule
from voxpop.privacy.decisions import CellNoise

if TYPE_CHECKING:
    from voxpop.engine.contract import Engine
    from voxpop.engine.data import Subset
    from voxpop.mechanisms.ngrams.schedule import State
    from voxpop.privacy.budget import Budget
    from voxpop.privacy.individual import Charge
    from voxpop.privacy.secret import Secret

Kind = Literal["words", "measurement", "screening", "vote", "second chance"]
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
class Pass:
    """One pass over the users; all of it is public.

    Attributes:
        kind: the purpose of the pass.
        length: tokens in the grams that are weighed; for the second-chance pass the longest.
        shares: the weighting, on the grid that was charged for; None for words in adaptive rounds.
        sigma: noise scale.
        charge: the charge of each user; None at length 1, and if all users are charged for every pass.
        candidates: the domain of a vote; None at length 1 and in a measurement.
        vote: the cutpoints of a vote; None in a measurement and for words in adaptive rounds.
        bands: the partition of the candidates that take part in the decision; None if all have one threshold.
        size: in a measurement, the number of measured grams.
        rounds: the adaptive rounds of length 1; None in all other passes.
        keep: which grams users keep before the pass; None if the pass before was no vote.
        extend: the candidates by which users go on to this length before the pass; None if they are there already.
        among: which candidates take part; None for all.
    """

    kind: Kind
    length: int
    shares: CalibratedRule | None
    sigma: float
    charge: "Charge | None" = None
    candidates: Numbered | None = None
    vote: ThresholdVote | None = None
    bands: Bands | None = None
    size: int = 0
    rounds: AdaptiveRounds | None = None
    keep: Keep | None = None
    extend: Candidates | None = None
    among: "Subset | None" = None

    @property
    def name(self) -> str:
        """The name of the pass in draws."""
        return "sweep" if self.kind == "second chance" else f"{LABELS[self.kind]} {self.length}"


class Outcome(NamedTuple):
    """The outcome of a pass for the schedule: a function of noisy weights.

    Attributes:
        names: int64, rising, the candidates that reach the lowest cutpoint; of words their ranks.
        levels: int64, number of cutpoints that each of them reaches; in a measurement the noisy weights by rank, in
            cells.
        words: at length 1 the released words, in order of bytes.
    """

    names: Int64s
    levels: Int64s
    words: pa.LargeStringArray | None = None


class Steps(NamedTuple):
    """The pure functions that choose passes.

    Attributes:
        schedule: returns the next pass from the public state, None at the end.
        after: returns the public state after a pass and its outcome.
        closed: whether every part of a released gram is released, too; if not, missing parts are added at the end.
    """

    schedule: "Callable[[State], Pass | None]"
    after: "Callable[[State, Pass, Outcome], State]"
    closed: bool = True


class Runner:
    """Executes passes on an engine; holds the private side."""

    def __init__(self, engine: "Engine", budget: "Budget", secret: "Secret") -> None:
        self._engine, self._budget, self._secret = engine, budget, secret
        self._walk = engine.length_walk()

    def execute(self, step: Pass) -> Outcome:
        """Weigh, add noise, and return the outcome."""
        if step.rounds is not None:
            return self._words_in_rounds(step.rounds)
        if step.shares is None:
            raise InternalError("a pass has neither a weighting nor rounds")
        if step.keep is not None:
            self._walk.keep(*step.keep)
        if step.extend is not None:
            self._walk.extend(step.extend)
        limit, name, secret = step.shares.setting.limit, step.name, self._secret
        if step.kind == "second chance":
            if step.charge is None:
                raise InternalError("a second-chance pass has no charge")
            weights = self._walk.weigh_deferred(step.shares, limit, secret, name, step.charge)
        else:
            weights = self._walk.weigh(step.shares, limit, secret, name, step.charge, step.among)
        if step.vote is None:
            unit, cell = step.shares.setting.unit, cell_below(step.sigma)
            noise = CellNoise(step.sigma, unit, max(1, round(cell * unit)), secret, f"noise/{name}")
            # (grams,), in cells: noise on every released gram, held or not, or its absence would show
            # (docs/privacy/ngrams.md, "Domain").
            return Outcome(np.arange(step.size), weights.measured(noise, step.size))
        names, levels = step.vote.levels(weights, secret, name)
        if step.kind != "words":
            return Outcome(names, levels)
        # Only words that users hold can be released, and all that reach the threshold are.
        self._walk.keep(names)
        return Outcome(np.arange(names.size), levels, weights.texts(names))

    def _words_in_rounds(self, rounds: AdaptiveRounds) -> Outcome:
        words = released_in_rounds(rounds, self._budget, self._engine, self._secret)
        self._walk.keep_words(words, self._secret)
        return Outcome(np.arange(len(words)), np.zeros(len(words), np.int64), words)
