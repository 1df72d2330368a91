"""The plan of a series, which computes all numbers of the run from a budget and a number of nights, without data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from math import ceil, exp, floor, log, log2, sqrt
from typing import Any, Literal, final

import numpy as np
from scipy.special import ndtr, ndtri

from voxpop.errors import InternalError
from voxpop.kernels.arrays import Int64s
from voxpop.privacy.budget import Budget, Printed, budget_numbers, check_slack, table
from voxpop.privacy.certificate import check, spend_of
from voxpop.privacy.gaussian import sigma as gaussian_sigma
from voxpop.privacy.guarantee import Guarantee
from voxpop.privacy.individual import MOST_BOUND, WHOLE, IndividualFilter
from voxpop.privacy.joint import ROUNDING
from voxpop.privacy.numerics import falling_to, walk_slack
from voxpop.privacy.passes import Certificate, Claim, NightsProof
from voxpop.privacy.upcrossing import ever_reached
from voxpop.privacy.weightings.builtin import PolicyGaussian
from voxpop.privacy.weightings.rule import RuleSetting

Spending = Literal["growing", "equal"]
POOL = 1000
"""The default maximum number of items per user in a series."""
NOVELTY_OF_NIGHTS = 0.4
"""Part of delta for items of only one user. The numbers of released items with 0.3 and 0.5 differ by less than a
percent."""
CUTOFF = 9.5
"""Limit of an item's weight, in standard deviations of the night's noise."""
_NIGHT_FALL = 0.5
"""The total decrease of thresholds over the series, in standard deviations."""
REST = {"growing": (-1.3, 4.0), "equal": (-0.7, 3.2)}
"""Score below which items rest, in standard deviations. It changes linearly from the first number to the second over
the middle five sevenths of the charges. With -0.7 instead of -1.3, growing charges release the same number on posts and
4 percent fewer on the chat."""
TRIED = 15
"""A resting item of a user still receives weight for this part of the nights, one in 15, from the night on which it
joined the pool. Without these nights, words that become common late are never released
(benchmarks/comparisons/series.py)."""
_NIGHT_CELLS_IN_SIGMA = 2**12
FACTOR = 2**20
NEVER = -(2**62)
"""A rest threshold below every score."""
UNPLANNED = ("budget", "ran")
"""Fields that are not numbers of the plan."""


@final
@dataclass(frozen=True, repr=False)
class SeriesPlan(Printed):
    """The plan of a series, which fixes every number of the run before the first night. `Items.plan_series` returns it.

    Attributes:
        budget: The privacy budget of all nights together.
        spending: The charges over the nights, "growing" or "equal".
        pool: The maximum number of items per user over all nights.
        square: The mu^2 that each user may spend over all nights.
        bits: The precision of weights, which are whole multiples of 2^-bits.
        cell: The number of grid units in a cell of noisy weights.
        costs: The charge of each night, in units of 2^-40 of the total.
        sigmas: The standard deviation of the noise on a weight, by night.
        cutoffs: The limit of an item's weight, by night, in grid units.
        factors: The factor of a noisy weight, in cells, in the score, by night.
        thresholds: The minimum score of a released item, by night.
        rests: The score below which an item rests on the next night, by night.
        tried: The number of nights on which a resting item of a user still receives weight.
        max_items_per_user: The maximum number of items per user as given; None for the default.
        ran: The number of nights so far, in the plan of a release.

    Example:
        >>> import voxpop as vp
        >>> plan = vp.Items().plan_series(vp.Budget(epsilon=3, delta=1e-6), nights=30)
        >>> len(plan.sigmas), plan.delta <= 1e-6
        (30, True)
    """

    budget: Budget
    spending: Spending
    pool: int
    square: float
    bits: int
    cell: int
    costs: tuple[int, ...]
    sigmas: tuple[float, ...]
    cutoffs: tuple[int, ...]
    factors: tuple[int, ...]
    thresholds: tuple[int, ...]
    rests: tuple[int, ...]
    tried: int
    max_items_per_user: int | None = field(default=None, kw_only=True)
    ran: int = field(default=0, kw_only=True, compare=False)

    @property
    def nights(self) -> int:
        """The number of nights."""
        return len(self.costs)

    @property
    def certificate(self) -> Certificate:
        """All numbers on which the guarantee depends; `voxpop.privacy.certificate.check` computes delta from them."""
        own = {name: getattr(self, name) for name in ("costs", "sigmas", "cutoffs", "factors", "thresholds")}
        proof = NightsProof(self.square, self.pool, self.bits, self.cell, **own)
        return Certificate(Claim(self.budget.epsilon, self.budget.delta), proof)

    @property
    def transcript(self) -> list[dict[str, Any]]:
        """The nights so far."""
        return [{"pass": "night", "night": night} for night in range(1, self.ran + 1)]

    @property
    def spreads(self) -> np.ndarray[Any, Any]:
        """The standard deviation that the noise of each night adds to the score."""
        return spreads_of(self.factors, self.sigmas, self.cell, self.bits)

    @cached_property
    def delta(self) -> float:
        """The delta that these numbers spend at the epsilon of the budget (docs/privacy/series.md)."""
        return check(self.certificate)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of all nights together, computed from the numbers above.

        Raises:
            InternalError: The numbers cost more than the budget.
        """
        if not self.delta <= self.budget.delta:
            raise InternalError("the plan's own numbers exceed the budget")
        return Guarantee(self.budget.epsilon, self.budget.delta, spend=spend_of(self.certificate))

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in UNPLANNED}
        lists = {name: list(value) if isinstance(value, tuple) else value for name, value in own.items()}
        spent = budget_numbers(self.budget, self.delta)
        return {"mechanism": "items", "weighting": "series", "nights": self.nights, **spent, **lists}

    @staticmethod
    def from_dict(numbers: Mapping[str, Any]) -> "SeriesPlan":
        """Return the plan from the output of `to_dict`, and compute its guarantee again."""
        own = {each.name: numbers[each.name] for each in fields(SeriesPlan) if each.name not in UNPLANNED}
        tuples: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in own.items()
        }
        return SeriesPlan(Budget(numbers["epsilon"], numbers["delta"]), **tuples)

    def __str__(self) -> str:
        """Return the plan as text."""
        return describe(self.to_dict(), str(self.guarantee))


def plan_series(budget: Budget, nights: int, max_items_per_user: int | None, spending: Spending) -> SeriesPlan:
    """Compute the noise, the thresholds and the rest thresholds of all nights.

    Raises:
        BudgetError: Delta is too small or epsilon too large.
    """
    slack = walk_slack(budget.epsilon, nights)
    check_slack("a series needs", budget, slack)
    pool, target = max_items_per_user or POOL, (budget.delta - slack) * (1 - 1e-6) / ROUNDING
    mu = (1 - 2.0**-40) / gaussian_sigma(budget.epsilon, target * (1 - NOVELTY_OF_NIGHTS))
    square = mu * mu
    number = np.arange(1, nights + 1)
    weights = number if spending == "growing" else np.ones_like(number)
    costs = [max(1, WHOLE * int(each) // int(weights.sum())) for each in weights]
    filtered = IndividualFilter(square)
    # The grid follows from the largest cutoff. The factor 2 leaves room for the sensitivity.
    bits = PolicyGaussian().bits(2 * CUTOFF / sqrt(float(filtered.square(min(costs)))))
    sensitivity = PolicyGaussian().sensitivity(RuleSetting(pool, 2, bits, bound=MOST_BOUND))
    sigmas = [filtered.charge(cost, sensitivity).sigma for cost in costs]
    cell = max(1, 2 ** floor(log2(min(sigmas) * 2.0**bits / _NIGHT_CELLS_IN_SIGMA)))
    # c_t = p_t^(1/2) t per standard deviation of the noise corresponds to p_t t per unit of weight.
    raised = np.multiply(costs, number / nights)
    factors = [max(1, round(FACTOR * each)) for each in raised / raised.max()]
    spreads = spreads_of(factors, sigmas, cell, bits)
    total = np.sqrt(np.cumsum(np.square(spreads)))
    goal = float(ndtr(ndtri(NOVELTY_OF_NIGHTS * target) - mu * ROUNDING)) / pool
    falls = _NIGHT_FALL * (1 - np.square(total / total[-1]))

    def excess(last: float) -> float:
        return log(max(ever_reached(spreads, (last + falls) * total), exp(-700.0)) / goal)

    last = falling_to(excess, start=sqrt(-2 * log(goal)), tolerance=1e-4)
    margins = np.cumsum(factors) / 2
    # Thresholds are rounded up, so that the last bits of `excess` do not matter.
    thresholds = tuple(ceil(each) for each in (last + falls) * total * (1 + 1e-9) + margins)
    plan = SeriesPlan(
        budget,
        spending,
        pool,
        square,
        bits,
        cell,
        tuple(costs),
        tuple(sigmas),
        tuple(int(CUTOFF * sigma * 2.0**bits) for sigma in sigmas),
        tuple(factors),
        thresholds,
        _rests(costs, spending, total),
        -(-nights // TRIED),
        max_items_per_user=max_items_per_user,
    )
    plan.guarantee  # noqa: B018  raises an error if the numbers exceed the budget
    return plan


def spreads_of(factors: Sequence[int], sigmas: Sequence[float], cell: int, bits: int) -> np.ndarray[Any, Any]:
    """Return the standard deviation that the noise of each night adds to the score."""
    return np.multiply(factors, sigmas) / (cell * 2.0**-bits)


def _rests(costs: Sequence[int], spending: Spending, total: np.ndarray[Any, Any]) -> tuple[int, ...]:
    spent = np.cumsum(costs) / WHOLE
    low, high = REST[spending]
    levels = np.interp(spent, [1 / 7, 6 / 7], [low, high])
    return tuple(
        NEVER if part < 1 / 7 else floor(level * each) for part, level, each in zip(spent, levels, total, strict=True)
    )


def states_of(plan: SeriesPlan, scores: Int64s, released: Int64s, night: int) -> np.ndarray[Any, Any]:
    """Return the state of each item on this night: 0 for released items, 1 for resting ones, 2 for active ones.

    The state follows from public numbers and the score after the preceding night. Therefore an item that joined tonight
    has the same state as if it had joined earlier.
    """
    states = np.full(scores.size, 2, np.uint8)
    if night > 1:
        states[scores < plan.rests[night - 2]] = 1
    states[released > 0] = 0
    return states


def night_rows(plan: Mapping[str, Any]) -> list[list[str]]:
    """Return the numbers of some nights as the cells of a table, including the header."""
    nights, spreads = plan["nights"], spreads_of(*(plan[name] for name in ("factors", "sigmas", "cell", "bits")))
    spread = np.sqrt(np.cumsum(np.square(spreads)))
    rows = [["night", "share", "sigma", "threshold", "rests below"]]
    for night in sorted({1, *(ceil(nights * part / 4) for part in range(1, 5))}):
        at = night - 1
        rest = "-" if plan["rests"][at] == NEVER else f"{plan['rests'][at] / spread[at]:.3g}"
        level = plan["thresholds"][at] / spread[at]
        rows.append([str(night), f"{plan['costs'][at] / WHOLE:.3g}", f"{plan['sigmas'][at]:.4g}", f"{level:.4g}", rest])
    return rows


def describe(plan: Mapping[str, Any], guarantee: str = "") -> str:
    """Return the text of a plan from its public numbers."""
    return "\n".join(
        [
            f"Items over {plan['nights']:,} nights under one budget, at most {plan['pool']:,} items per user in all",
            "; ".join(filter(None, [guarantee, "thresholds in standard deviations of the score"])),
            "",
            *table(night_rows(plan)),
        ]
    )
