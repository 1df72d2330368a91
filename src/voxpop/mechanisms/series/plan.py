"""From a budget and a number of nights to the numbers that run. Nothing here reads data."""

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
"""The most items of one user in a series, if no limit is given."""
NOVELTY_OF_NIGHTS = 0.4
"""Part of delta for items of only one user; 0.3 and 0.5 release the same within a percent."""
CUTOFF = 9.5
"""Weight at which items stop rising, in standard deviations of the night's noise."""
_NIGHT_FALL = 0.5
"""The total decrease of thresholds over the series, in standard deviations."""
REST = {"growing": (-1.3, 4.0), "equal": (-0.7, 3.2)}
"""Below which score items rest, in standard deviations: from the first to the second number over the middle five
sevenths of the prices. With -0.7 for -1.3, growing prices release the same on posts and 4 percent less on the chat."""
TRIED = 15
"""An item of a user gets weight although it rests for this part of the nights, one in 15, from the night on which it
joined the pool: without these nights, words that become common late stay out (benchmarks/comparisons/series.py)."""
_NIGHT_CELLS_IN_SIGMA = 2**12
FACTOR = 2**20
NEVER = -(2**62)
"""A rest threshold below every score."""
UNPLANNED = ("budget", "ran")
"""Fields that are no numbers of a plan."""


@final
@dataclass(frozen=True, repr=False)
class SeriesPlan(Printed):
    """The plan of a series: every number that runs, fixed before the first night. `Items.plan_series` returns it.

    Attributes:
        budget: The privacy budget of all nights together.
        spending: "growing" or "equal".
        pool: Most items of one user in all nights.
        square: mu^2 that each user may spend in all nights.
        bits: Weights are whole multiples of 2^-bits.
        cell: Units of the grid in a cell of noisy weights.
        costs: By night, its price, in 2^-40 of all.
        sigmas: By night, the standard deviation of the noise on a weight.
        cutoffs: By night, the weight at which items stop rising, in units.
        factors: By night, the factor of a noisy weight, in cells, in the score.
        thresholds: By night, the score at which an item is released.
        rests: By night, the score below which an item rests on the next night.
        tried: Number of nights on which an item of a user gets weight although it rests.
        max_items_per_user: The most items of one user as given; None for the usual number.
        ran: In the plan of a release, the number of nights so far.

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
        """Everything on which the guarantee rests; `voxpop.privacy.certificate.check` computes delta from it."""
        own = {name: getattr(self, name) for name in ("costs", "sigmas", "cutoffs", "factors", "thresholds")}
        proof = NightsProof(self.square, self.pool, self.bits, self.cell, **own)
        return Certificate(Claim(self.budget.epsilon, self.budget.delta), proof)

    @property
    def transcript(self) -> list[dict[str, Any]]:
        """Every night so far."""
        return [{"pass": "night", "night": night} for night in range(1, self.ran + 1)]

    @property
    def spreads(self) -> np.ndarray[Any, Any]:
        """By night, the standard deviation that its noise adds to the score."""
        return spreads_of(self.factors, self.sigmas, self.cell, self.bits)

    @cached_property
    def delta(self) -> float:
        """The delta that these numbers spend at the epsilon of the budget (docs/privacy/series.md)."""
        return check(self.certificate)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of all nights together, computed from the numbers above.

        Raises:
            InternalError: They cost more than the budget.
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
        """Return the plan that `to_dict` described; its guarantee is computed again."""
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
        BudgetError: If delta is too small or epsilon too large.
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
    # The grid follows from the largest cutoff; twice as much leaves room for the sensitivity.
    bits = PolicyGaussian().bits(2 * CUTOFF / sqrt(float(filtered.square(min(costs)))))
    sensitivity = PolicyGaussian().sensitivity(RuleSetting(pool, 2, bits, bound=MOST_BOUND))
    sigmas = [filtered.charge(cost, sensitivity).sigma for cost in costs]
    cell = max(1, 2 ** floor(log2(min(sigmas) * 2.0**bits / _NIGHT_CELLS_IN_SIGMA)))
    # c_t = p_t^(1/2) t per standard deviation of the noise is p_t t per weight.
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
    # Rounded up, so that the last bits of `excess` do not matter.
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
    plan.guarantee  # noqa: B018  raises where the numbers exceed the budget
    return plan


def spreads_of(factors: Sequence[int], sigmas: Sequence[float], cell: int, bits: int) -> np.ndarray[Any, Any]:
    """Return by night the standard deviation that its noise adds to the score."""
    return np.multiply(factors, sigmas) / (cell * 2.0**-bits)


def _rests(costs: Sequence[int], spending: Spending, total: np.ndarray[Any, Any]) -> tuple[int, ...]:
    spent = np.cumsum(costs) / WHOLE
    low, high = REST[spending]
    levels = np.interp(spent, [1 / 7, 6 / 7], [low, high])
    return tuple(
        NEVER if part < 1 / 7 else floor(level * each) for part, level, each in zip(spent, levels, total, strict=True)
    )


def states_of(plan: SeriesPlan, scores: Int64s, released: Int64s, night: int) -> np.ndarray[Any, Any]:
    """Return the state of each item on a night: 0 for released items, 1 for resting ones, 2 for active ones.

    It follows from the score after the night before and from public numbers: an item that joined tonight has the same
    state as if it had been there before.
    """
    states = np.full(scores.size, 2, np.uint8)
    if night > 1:
        states[scores < plan.rests[night - 2]] = 1
    states[released > 0] = 0
    return states


def night_rows(plan: Mapping[str, Any]) -> list[list[str]]:
    """Return the numbers of some nights as the cells of a table, a head above them."""
    nights, spreads = plan["nights"], spreads_of(*(plan[name] for name in ("factors", "sigmas", "cell", "bits")))
    spread = np.sqrt(np.cumsum(np.square(spreads)))
    rows = [["night", "price", "sigma", "threshold", "rests below"]]
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
            f"Items over {plan['nights']:,} nights under one budget, at most {plan['pool']:,} items a user in all",
            "; ".join(filter(None, [guarantee, "thresholds in standard deviations of the score"])),
            "",
            *table(night_rows(plan)),
        ]
    )
