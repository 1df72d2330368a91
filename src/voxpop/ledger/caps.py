"""The caps of a ledger: which further releases the budget of a data set allows.

A further release may run if sums that are capped on every path allow it. Who looks at one release before choosing the
next makes the numbers of the next depend on the outcome of the last. Composed curves then promise nothing; sums with
caps fixed beforehand do. Three accounts are kept side by side, each with a third of delta, and a release may run as
long as one of them holds it with all that came before:

* plain: epsilons and deltas add up;
* gaussian: squares of mu add up, and so do the chances of novel items; nothing without a `Spend` goes in;
* mixed: half of epsilon is set aside for releases without a `Spend`, whose deltas count as chances.

A first release that fits the budget as a whole may always run: nothing was seen before it was chosen. The proof is
in docs/privacy/composition.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

from voxpop.privacy.budget import Budget
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.joint import ROUNDING
from voxpop.privacy.numerics import MOST_PASSES, walk_slack

MOST_ENTRIES = 1024
NOVEL_SHARE = Fraction(9, 10)
"""Part of an account's delta that pays for novel items; the rest pays for noise, which hardly needs more."""


@final
@dataclass(frozen=True, slots=True)
class Caps:
    """The limits of one account.

    Attributes:
        name: "plain", "gaussian" or "mixed".
        epsilon: of releases that go in by epsilon and delta.
        chance: of their deltas, and of the chances of novel items.
        square: of mu^2; 0 where nothing goes in by its spend.
    """

    name: str
    epsilon: Fraction
    chance: Fraction
    square: Fraction

    def used(self, guarantees: Sequence[Guarantee]) -> dict[str, float]:
        """Return which part of each cap releases use up; more than 1 is too much.

        Args:
            guarantees: of all releases, in any order.
        """
        epsilon, chance, square = Fraction(0), Fraction(0), Fraction(0)
        for each in guarantees:
            # A chance that is added, and no part of a pair, has no place in the proof of these sums.
            if each.spend is None or each.spend.apart or self.name == "plain":
                epsilon += as_written(each.epsilon)
                chance += as_written(each.delta)
            else:
                chance += Fraction(each.spend.novel)
                square += Fraction(each.spend.mu) ** 2
        pairs = {
            "epsilon": (epsilon, self.epsilon),
            "chance": (chance, self.chance),
            "mu squared": (square, self.square),
        }
        return {name: _part(sum_, cap) for name, (sum_, cap) in pairs.items()}

    def hold(self, guarantees: Sequence[Guarantee]) -> bool:
        """Return whether releases fit under every cap."""
        return all(part <= 1 for part in self.used(guarantees).values())


def as_written(number: float) -> Fraction:
    """Return the shortest decimal of a double, so that ten releases of 0.1 fit a budget of 1."""
    return Fraction(repr(float(number)))


def accounts_of(budget: Budget) -> tuple[Caps, ...]:
    """Return the accounts of a data set's budget.

    Args:
        budget: the limit on the total cost of all releases to one user.

    Returns:
        The three accounts; only the plain one where delta is 0.
    """
    epsilon, delta = as_written(budget.epsilon), as_written(budget.delta)
    if delta == 0:
        return (Caps("plain", epsilon, delta, Fraction(0)),)
    third = delta / 3
    novel = third * NOVEL_SHARE
    return (
        Caps("plain", epsilon, third, Fraction(0)),
        Caps("gaussian", Fraction(0), novel, _square(budget.epsilon, float(novel), float(third))),
        Caps("mixed", epsilon / 2, novel, _square(budget.epsilon / 2, float(novel), float(third))),
    )


def may_run(budget: Budget, before: Sequence[Guarantee], now: Guarantee) -> bool:
    """Return whether a release may run after others.

    Args:
        budget: the limit on the total cost of all releases to one user.
        before: the guarantees that are already charged.
        now: the guarantee of the release.
    """
    if not before:
        return now.epsilon <= budget.epsilon and now.delta <= budget.delta
    every = [*before, now]
    return len(every) <= MOST_ENTRIES and any(caps.hold(every) for caps in accounts_of(budget))


def shortage(budget: Budget, before: Sequence[Guarantee], now: Guarantee) -> str:
    """Return which sum a release exceeds: spent, left and requested.

    Args:
        budget: The budget of the data set.
        before: The releases that were charged, fewer than `MOST_ENTRIES`.
        now: A release for which `may_run` is False.
    """
    if not before:
        name, cap, asked = ("epsilon", budget.epsilon, now.epsilon)
        if now.epsilon <= budget.epsilon:
            name, cap, asked = ("delta", budget.delta, now.delta)
        return f"{name}: 0 of {cap:g} spent, {cap:g} left, {asked:g} requested"
    # The account that comes closest to holding the release, and the cap that it exceeds most.
    closest = min(accounts_of(budget), key=lambda caps: max(caps.used([*before, now]).values()))
    parts = closest.used([*before, now])
    name = max(parts, key=parts.__getitem__)
    spent, asked = closest.used(before)[name], closest.used([now])[name]
    if name == "mu squared":
        left = max(0.0, 1 - spent)
        return f"Gaussian noise: {spent:.3g} of 1 spent, {left:.3g} left, {asked:.3g} requested"
    cap = float(closest.epsilon if name == "epsilon" else closest.chance)
    if not cap:
        return f"delta: 0 of 0 left, {now.delta:g} requested"
    share = f" (of the ledger's delta, {cap:.3g} counts here)" if name == "chance" else ""
    said = "epsilon" if name == "epsilon" else "delta"
    left = max(0.0, cap - spent * cap)
    return f"{said}: {spent * cap:.4g} of {cap:.4g} spent, {left:.4g} left, {asked * cap:.4g} requested{share}"


@lru_cache(maxsize=64)
def _square(epsilon: float, novel: float, delta: float) -> Fraction:
    """Return the largest mu^2 at which a chance of novel items and noise stay within delta, rounded down."""
    from voxpop.privacy.gaussian import delta as gaussian_delta

    room = delta * (1 - 1e-12) - MOST_ENTRIES * walk_slack(epsilon, MOST_PASSES)
    low, high = 0.0, 1e3
    for _ in range(200):
        middle = (low + high) / 2
        spent = (novel + (1 - novel) * gaussian_delta(epsilon + math.log1p(-novel), middle)) * ROUNDING
        low, high = (middle, high) if spent <= room else (low, middle)
    return Fraction(low) ** 2


def _part(total: Fraction, cap: Fraction) -> float:
    if total <= cap:
        return float(total / cap) if cap else 0.0
    return max(math.nextafter(1.0, 2.0), float(total / cap)) if cap else math.inf
