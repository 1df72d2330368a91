"""The gate of the later passes of n-grams.

These passes are measurements and votes about public candidates, under one cap on mu^2.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from math import inf, nextafter
from typing import Any, Protocol, final

import numpy as np

from voxpop.kernels.arrays import Int64s
from voxpop.kernels.proved import proved
from voxpop.privacy.certificate import bounding_of, calibrated_rule, square_of
from voxpop.privacy.decisions import CellNoise, NoisyLevels, ThresholdRule
from voxpop.privacy.gate.gate import refused
from voxpop.privacy.gate.simulating import MOST_CUTPOINTS, Numbered, simulated
from voxpop.privacy.individual import BOUND_STEPS, MOST_BOUND, WHOLE, Charge
from voxpop.privacy.passes import AdaptiveProof, Bounding, Later
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.rule import CalibratedRule


@proved("limit.md#proof")
def later_after(proof: AdaptiveProof) -> Later:
    """Return the later passes with their cap on mu^2.

    The cap includes the part of the cap of the rounds that the chosen rounds did not spend.

    Proof: "Later passes spend at most $M' + M - M_k$, which is known as soon as h is known"

    If there is no choice, or before the choice is made, the result has the cap of the certificate.
    """
    later, choice, rounds = proof.later, proof.choice, proof.rounds
    if later is None or later.charged != "each user":
        raise refused("the certificate contains no later passes")
    if choice is None or rounds is None:
        return later
    exact = Fraction(later.square) + max(Fraction(0), Fraction(choice.square) - square_of(rounds))
    rounded = float(exact)
    return replace(later, square=nextafter(rounded, 0.0) if Fraction(rounded) > exact else rounded)


class Vote(Protocol):
    """The candidates and the cutpoints of a vote. `privacy` must not import the implementation, `ThresholdVote`."""

    @property
    def candidates(self) -> Numbered | None:
        """The set of all candidates."""

    @property
    def rules(self) -> tuple[ThresholdRule, ...]:
        """The probability that a noisy weight reaches each cutpoint. Thresholds increase."""


class Step(Protocol):
    """A pass that a schedule proposes, with public fields. `privacy` must not import the implementation, `Pass`."""

    @property
    def kind(self) -> str:
        """The kind of the pass, such as "measurement"."""

    @property
    def name(self) -> str:
        """The name that identifies the pass in draws."""

    @property
    def length(self) -> int:
        """The number of tokens per gram."""

    @property
    def shares(self) -> CalibratedRule | None:
        """The weighting."""

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise."""

    @property
    def cell(self) -> int:
        """The number of units of the grid in a cell of a measurement."""

    @property
    def charge(self) -> Charge | None:
        """The charge of the pass, or None if every user pays for all passes."""

    @property
    def vote(self) -> Vote | None:
        """The candidates and cutpoints; None for a measurement."""

    @property
    def size(self) -> int:
        """The number of measured grams, for a measurement."""

    @property
    def keep(self) -> tuple[Int64s, Int64s | None] | None:
        """The grams that users keep before the pass, and the grams that are deferred."""

    @property
    def extend(self) -> Any:
        """The candidates that extend the grams of users to this length before the pass."""

    @property
    def among(self) -> Any:
        """The candidates that take part, or None if all of them do."""


@final
class LaterPasses:
    """The passes about released grams. Before noise is drawn for a pass, its noise is compared with its charge."""

    def __init__(
        self,
        later: Later,
        secret: Secret,
        walk: Any,
        kept: int,
        note: Callable[[str, Mapping[str, Any]], None],
    ) -> None:
        """Start the later passes with the released words.

        Args:
            later: The cap on mu^2, and the users who are charged for each pass.
            secret: The source of all draws and noise.
            walk: The private state, which contains the words.
            kept: The number of grams in the private state.
            note: A function that adds a pass to the transcript.
        """
        self._later, self._secret, self._walk, self._kept, self._note = later, secret, walk, kept, note
        self._names: set[str] = set()
        self._votes = 0
        self._deferred = 0
        self._left = Fraction(later.square)

    @proved("ngrams.md#proof")
    def run(self, step: Step) -> tuple[Int64s, Int64s]:
        """Run a pass if its charge is covered.

        Proof: "A released set consists of the coordinates that reach the threshold, so it is a function of one Gaussian
        mechanism with mu = S / sigma."

        Returns:
            For a vote, the candidates that reach the lowest cutpoint, and the number of cutpoints that each candidate
            reaches. For a measurement, all ranks and their noisy weights in cells.

        Raises:
            InternalError: The pass has less noise than its charge requires, its candidates differ from those that users
                weigh, or it has already run.
        """
        shares = step.shares
        if type(shares) is not CalibratedRule or step.name in self._names or len(self._names) > 2 * self._later.passes:
            raise refused("a pass would run twice, or without a weighting")
        bounding = bounding_of(shares)
        charge = self._paid(step, bounding)
        rules = None if step.vote is None else self._cutpoints(step, step.vote)
        self._names.add(step.name)
        if step.keep is not None:
            self._keep(*step.keep)
        if rules is None and step.size != self._kept:
            raise refused("a measurement would omit released grams")
        if step.extend is not None:
            self._walk.extend(step.extend)
        price = {} if charge is None else {"cost": charge.cost, "rates": charge.rates and list(charge.rates)}
        numbers = {"length": step.length, "sigma": step.sigma, "bounding": bounding.to_dict(), **price}
        self._note(step.kind, numbers)
        weights = self._weighed(step, shares, charge)
        if step.vote is None or rules is None:
            noise = CellNoise(step.sigma, shares.setting.unit, step.cell, self._secret, f"noise/{step.name}")
            # Shape (grams,), in cells. Every released gram gets noise, with or without users. Otherwise the result
            # would reveal which grams have no users (docs/privacy/ngrams.md, "Domain").
            return np.arange(step.size), weights.measured(noise, step.size)
        hits = simulated(step.vote.candidates, rules, self._secret, step.name)
        found: tuple[Int64s, Int64s] = weights.noisy_levels(
            NoisyLevels(rules, self._secret, f"noise/{step.name}"), *hits
        )
        return found

    @proved("ngrams.md#proof")
    def _paid(self, step: Step, bounding: Bounding) -> Charge | None:
        """Check the noise of a pass against its charge in exact fractions, and return the charge.

        Proof: "a_2 + a_3 + ... <= M on every path, measurements and votes together"
        """
        sensitivity = calibrated_rule(bounding).sensitivity
        if not 0.0 < step.sigma < inf or step.cell < 1:
            raise refused("a pass would run without noise")
        # This is (S / sigma)^2 with the sensitivity S on the grid of the pass.
        square = (Fraction(sensitivity) / Fraction(step.sigma)) ** 2
        if self._later.charged == "everybody":
            if step.charge is not None or bounding.bound != 1 or square > self._left:
                raise refused("a pass would cost more than the remaining budget")
            self._left -= square
            return None
        given = step.charge
        if given is None or not 0 < given.cost <= WHOLE:
            raise refused("a pass would run without a charge")
        rates = given.rates
        if rates is not None and not (rates and all(0 <= rate <= BOUND_STEPS for rate in rates)):
            raise refused("users would pay more than they have")
        # The proof covers individual sensitivities for these weightings, including the effects of rounding for users
        # with any bound.
        proved = {"policy-gaussian": bounding.bound == MOST_BOUND, "weighted": True}
        paid = Fraction(self._later.square) / WHOLE * given.cost
        if not proved.get(bounding.name, False) or bounding.norm != 2 or square > paid:
            raise refused("a pass would run with less noise than was charged for")
        return Charge(given.cost, paid, sensitivity, step.sigma, rates)

    @proved("ngrams.md#proof")
    def _cutpoints(self, step: Step, vote: Vote) -> tuple[ThresholdRule, ...]:
        """Return the cutpoints of a vote, after checking its noise and that it covers the whole set that users weigh.

        Proof: "Weights are defined on the whole public set, and are zero for candidates without users."
        """
        self._votes += 1
        if self._votes > self._later.passes:
            raise refused("there would be more votes than the slack of their decisions covers")
        unit = 1.0 / (step.shares.setting.unit if step.shares else 1)
        levels = [rule.threshold_units for rule in vote.rules]
        rules = tuple(ThresholdRule("gaussian", step.sigma, level, unit) for level in levels)
        if rules != vote.rules or not 0 < len(rules) < MOST_CUTPOINTS or levels != sorted(set(levels)):
            raise refused("a vote would have different cutpoints, or less noise than was charged for")
        candidates: Any = vote.candidates
        if candidates is None:
            raise refused("a vote would have no list of candidates")
        if step.kind == "second chance":
            whole = candidates.count == self._deferred + (0 if step.keep is None else _size(step.keep[1]))
        elif step.extend is not None:
            # Users must weigh the pairs of this set, or only the pairs of this set that take part.
            whole = candidates is step.extend
        else:
            whole = step.among is not None and _same(candidates.subset, step.among)
        if not whole:
            raise refused("the candidates of a vote would differ from those that users weigh")
        return rules

    def _keep(self, names: Int64s, deferred: Int64s | None) -> None:
        self._walk.keep(names, deferred)
        self._kept = names.size
        self._deferred += _size(deferred)

    def _weighed(self, step: Step, shares: CalibratedRule, charge: Charge | None) -> Any:
        if step.kind == "second chance" and charge is not None:
            return self._walk.weigh_deferred(shares, shares.setting.limit, self._secret, step.name, charge)
        return self._walk.weigh(shares, shares.setting.limit, self._secret, step.name, charge, step.among)


def _size(names: Int64s | None) -> int:
    return 0 if names is None else int(names.size)


def _same(one: Any, other: Any) -> bool:
    """Return whether two subsets have the same rule and the same further pairs."""
    return one.rule is other.rule and one.further is not None and np.array_equal(one.further, other.further)
