"""The caps of a ledger, which determine which further releases the budget of a data set allows.

A further release may run if certain sums remain within caps that are fixed in advance. These caps are needed because
the parameters of a release may depend on the results of earlier releases. For such adaptive releases, composed curves
are not a valid bound, but sums with caps are.

The probabilities of revealing outcomes add up under one cap. Randomised response or a Gaussian mechanism dominates the
remaining part of every release. Three methods of composition, called corners, add up these parts. A release may run if
one corner has room for it and for all earlier releases:

* plain: epsilons add up, and so do the deltas of Gaussian noise at the epsilons of the releases;
* gaussian: squares of mu add up, and a release without an `Expense` has the mu that dominates its epsilon;
* mixed: half of epsilon is reserved for releases without an `Expense`, and squares of mu add up for releases with one.

The first release, or a first reserve of identical releases, may run if it fits the budget as a whole, because no result
can have influenced it. The proof is in docs/privacy/composition.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final, final

from voxpop.kernels.proved import proved
from voxpop.privacy.budget import Budget
from voxpop.privacy.composition import composed_delta
from voxpop.privacy.gaussian import delta
from voxpop.privacy.guarantee import Guarantee, dominating_mu
from voxpop.privacy.joint import ROUNDING
from voxpop.privacy.numerics import MOST_PASSES, walk_slack

MOST_ENTRIES: Final = 1024
CHANCES, TRADE, NOISE = Fraction(1, 2), Fraction(1, 3), Fraction(1, 12)
"""The parts of delta for revealing outcomes, for Gaussian noise in the plain corner, and for noise in each other
corner.

Any fixed parts that add up to one are sound. With these parts, the corners admit all releases that three accounts with
a third of delta each would admit."""


@final
@dataclass(frozen=True, slots=True)
class Corner:
    """A method of composition with fixed caps, which adds up releases without their revealing outcomes.

    Attributes:
        name: "plain", "gaussian" or "mixed".
        epsilon: The cap on the sum of epsilons.
        trade: The cap on the sum of deltas of Gaussian noise, which is 0 outside the plain corner.
        square: The cap on the sum of mu^2, which is 0 in the plain corner.
    """

    name: str
    epsilon: Fraction
    trade: Fraction
    square: Fraction

    def sums(self, guarantees: Sequence[Guarantee]) -> dict[str, Fraction]:
        """Return the sum of each cap over the releases, by cap name.

        Args:
            guarantees: The guarantees of all releases, in any order.
        """
        epsilon, trade, square = Fraction(0), Fraction(0), Fraction(0)
        for each in guarantees:
            # The representation of a release in a corner depends only on the release and the corner. The proof does not
            # cover a choice between representations that depends on other releases.
            if self.name == "plain":
                epsilon += as_written(each.epsilon)
                trade += _trade(each)
            elif each.spend is not None:
                square += Fraction(each.spend.mu) ** 2
            elif self.name == "mixed":
                epsilon += as_written(each.epsilon)
            else:
                square += Fraction(dominating_mu(each.epsilon)) ** 2
        return {"epsilon": epsilon, "trade": trade, "square": square}

    @property
    def caps(self) -> dict[str, Fraction]:
        """The caps by name."""
        return {"epsilon": self.epsilon, "trade": self.trade, "square": self.square}


@final
@dataclass(frozen=True, slots=True)
class AccountLimits:
    """All caps for the budget of a data set.

    Attributes:
        chance: The cap on the sum of probabilities of revealing outcomes, in every corner.
        corners: The corners.
    """

    chance: Fraction
    corners: tuple[Corner, ...]

    @staticmethod
    def of(budget: Budget) -> "AccountLimits":
        """Return the caps of a budget, with only the plain corner if delta is 0."""
        epsilon, delta = as_written(budget.epsilon), as_written(budget.delta)
        if delta == 0:
            return AccountLimits(delta, (Corner("plain", epsilon, delta, Fraction(0)),))
        slack = Fraction(MOST_ENTRIES * walk_slack(budget.epsilon, MOST_PASSES) * ROUNDING)
        corners = [Corner("plain", epsilon, delta * TRADE, Fraction(0))]
        for name, part in (("gaussian", Fraction(0)), ("mixed", epsilon / 2)):
            square = _largest_square(float(epsilon - part), float(delta * NOISE - slack))
            corners.append(Corner(name, part, Fraction(0), square))
        return AccountLimits(delta * CHANCES, tuple(corners))

    def used(self, guarantees: Sequence[Guarantee]) -> dict[str, dict[str, float]]:
        """Return the used part of each cap by corner. A part above 1 exceeds the cap.

        Args:
            guarantees: The guarantees of all releases, in any order.
        """
        chance = _part(_chances(guarantees), self.chance)
        found = {}
        for corner in self.corners:
            sums, caps = corner.sums(guarantees), corner.caps
            found[corner.name] = {
                "chance": chance,
                **{name: _part(sums[name], cap) for name, cap in caps.items() if cap or sums[name]},
            }
        return found

    @proved("composition.md#claim-2-budgets-chosen-after-results")
    def hold(self, guarantees: Sequence[Guarantee]) -> bool:
        """Return whether one corner has room for all releases.

        Proof: "Sums only grow, so the corner in which a path ends had room throughout."
        """
        return any(all(part <= 1 for part in parts.values()) for parts in self.used(guarantees).values())


def as_written(number: float) -> Fraction:
    """Return the shortest decimal that identifies a double.

    With such decimals, ten releases of 0.1 fit a budget of 1.
    """
    return Fraction(repr(float(number)))


@proved("composition.md#claim-2-budgets-chosen-after-results")
def may_run(budget: Budget, before: Sequence[Guarantee], now: Guarantee, times: int = 1) -> bool:
    """Return whether a release, or a number of identical releases, may run after earlier releases.

    Proof: "Every h_i bounds the probability of a revealing outcome given any past, so P(H) <= C."

    Args:
        budget: The limit on the total cost of all releases to one user.
        before: The guarantees of all earlier releases.
        now: The guarantee of the release.
        times: The number of identical releases that are charged in advance.
    """
    if len(before) + times > MOST_ENTRIES:
        return False
    if before:
        return AccountLimits.of(budget).hold([*before, *[now] * times])
    if times == 1:
        return now.epsilon <= budget.epsilon and now.delta <= budget.delta
    # No result can have influenced a first release, so it may fit either by exact composition or within the corners.
    every = [now] * times
    return composed_delta(budget.epsilon, every) <= budget.delta or AccountLimits.of(budget).hold(every)


def shortage(budget: Budget, before: Sequence[Guarantee], now: Guarantee, times: int = 1) -> str:
    """Return a sentence about the sum that exceeds its cap, with its spent, remaining and requested parts.

    Args:
        budget: The budget of the data set.
        before: The guarantees of the charged releases, fewer than `MOST_ENTRIES`.
        now: The guarantee of a release that `may_run` rejects.
        times: The number of identical releases that are requested.
    """
    every = [now] * times
    if not before:
        if times > 1:
            return (
                f"{times:,} releases with this guarantee have a delta of {composed_delta(budget.epsilon, every):.3g} "
                f"at epsilon {budget.epsilon:g}, and the budget has {budget.delta:g}"
            )
        first = "epsilon" if now.epsilon > budget.epsilon else "delta"
        whole, wanted = apart(as_written(getattr(budget, first)), as_written(getattr(now, first)))
        return f"{first}: 0 of {whole} spent, {whole} left, {wanted} requested"
    caps = AccountLimits.of(budget)
    if not caps.hold(before):
        return "the first charge was admitted because no result was known, and it leaves no room for another release"
    # Select the corner that the release exceeds by the smallest factor, and the cap that is exceeded most in this
    # corner.
    parts = caps.used([*before, *every])
    corner = min(caps.corners, key=lambda each: max(parts[each.name].values()))
    name = max(parts[corner.name], key=parts[corner.name].__getitem__)
    cap = caps.chance if name == "chance" else corner.caps[name]
    # Show noise as a fraction of its cap, because mu^2 is unfamiliar to most readers.
    unit = cap if cap and name in ("trade", "square") else Fraction(1)

    def shown(guarantees: Sequence[Guarantee]) -> Fraction:
        return (_chances(guarantees) if name == "chance" else corner.sums(guarantees)[name]) / unit

    what = {"epsilon": "epsilon", "chance": "delta for revealing outcomes"}.get(name, "Gaussian noise")
    spent, most = shown(before), cap / unit
    left, asked = apart(max(Fraction(0), most - spent), shown(every))
    return f"{what}: {apart(spent, most)[0]} of {float(most):.4g} spent, {left} left, {asked} requested"


def apart(one: Fraction, other: Fraction) -> tuple[str, str]:
    """Return two numbers as text, with enough digits to distinguish them."""
    for digits in (4, 8, 12, 17):
        shown = f"{float(one):.{digits}g}", f"{float(other):.{digits}g}"
        if one == other or shown[0] != shown[1]:
            return shown
    return f"just below {shown[1]}" if one < other else f"just above {shown[1]}", shown[1]


def _chances(guarantees: Sequence[Guarantee]) -> Fraction:
    """Return the sum of the probabilities of revealing outcomes."""
    return sum(
        (as_written(each.delta) if each.spend is None else Fraction(each.spend.hit) for each in guarantees), Fraction(0)
    )


def _trade(guarantee: Guarantee) -> Fraction:
    """Return the delta of the Gaussian noise of a release at its epsilon.

    This delta is at most the delta of the release.
    """
    if guarantee.spend is None:
        return Fraction(0)
    noise = _gaussian_delta(guarantee.epsilon, guarantee.spend.mu) + walk_slack(guarantee.epsilon, MOST_PASSES)
    return min(as_written(guarantee.delta), Fraction(noise * ROUNDING))


@lru_cache(maxsize=1024)
def _gaussian_delta(epsilon: float, mu: float) -> float:
    return delta(epsilon, mu) * ROUNDING


@lru_cache(maxsize=64)
def _largest_square(epsilon: float, delta: float) -> Fraction:
    """Return the largest mu^2, rounded down, for which the noise costs at most delta."""
    room = max(0.0, delta * (1 - 1e-12))
    low, high = 0.0, 1e3 if room else 0.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _gaussian_delta(epsilon, middle) <= room else (low, middle)
    return Fraction(low) ** 2


def _part(total: Fraction, cap: Fraction) -> float:
    if total <= cap:
        return float(total / cap) if cap else 0.0
    return max(math.nextafter(1.0, 2.0), float(total / cap)) if cap else math.inf
