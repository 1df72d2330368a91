"""The plan of a series, which computes all numbers of the run from a budget and a number of nights, without data."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from math import ceil, exp, floor, log, log2, sqrt
from typing import Any, ClassVar, Literal, final

import numpy as np
from scipy.special import ndtr, ndtri

from voxpop.kernels.arrays import Int64s
from voxpop.privacy.budget import Budget, budget_numbers, check_slack
from voxpop.privacy.gaussian import sigma as gaussian_sigma
from voxpop.privacy.individual import MOST_BOUND, WHOLE, IndividualFilter
from voxpop.privacy.joint import ROUNDING
from voxpop.privacy.numerics import falling_to, walk_slack
from voxpop.privacy.passes import NightsProof
from voxpop.privacy.planned import CertifiedPlan, certified
from voxpop.privacy.upcrossing import ever_reached
from voxpop.privacy.weightings.builtin import PolicyGaussian
from voxpop.privacy.weightings.rule import RuleSetting

Spending = Literal["growing", "equal"]
POOL = 1000
"""The default maximum number of items per user in a series."""
NOVELTY_OF_NIGHTS = 0.4
"""The part of delta for items of only one user. The numbers of released items with 0.3 and 0.5 differ by less than a
percent.
"""
CUTOFF = 9.5
"""The upper limit of an item's weight, in standard deviations of the night's noise."""
_NIGHT_FALL = 0.5
"""The total decrease of thresholds over the series, in standard deviations."""
REST = {"growing": (-1.3, 4.0), "equal": (-0.7, 3.2)}
"""The score below which items rest, in standard deviations. It changes linearly from the first number to the second
number over the middle five sevenths of the charges. With -0.7 instead of -1.3, growing charges release as many items of
the posts, and 4 percent fewer items of the chat.
"""
TRIED = 15
"""From the night on which it joined a user's pool, a resting item still receives weight from the user for this part of
all nights, which is one in 15. Without these nights, words that become common late are never released
(benchmarks/comparisons/series.py).
"""
_NIGHT_CELLS_IN_SIGMA = 2**12
FACTOR = 2**20
NEVER = -(2**62)
"""A rest threshold below every score."""


@final
@dataclass(frozen=True, slots=True)
class SeriesSettings:
    """The public configuration of a series.

    Attributes:
        nights: The number of nights.
        spending: The charges of the nights, "growing" or "equal".
        max_items_per_user: The maximum number of items per user over all nights, as given, or None for the default.
    """

    nights: int
    spending: Spending
    max_items_per_user: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        return {"mechanism": "items", "weighting": "series", **asdict(self)}


@final
@dataclass(frozen=True, slots=True, repr=False)
class SeriesPlan(CertifiedPlan[SeriesSettings]):
    """The plan of a series, which fixes every number of the run before the first night. `Items.plan_series` returns it.

    Attributes:
        proof: The numbers of all nights on which the guarantee is based.
        rests: The score below which an item rests on the next night, by night.
        tried: The number of nights on which a resting item of a user still receives weight.
        ran: In the plan of a release, the number of nights so far.

    Example:
        >>> import voxpop as vp
        >>> plan = vp.Items().plan_series(vp.Budget(epsilon=3, delta=1e-6), nights=30)
        >>> len(plan.proof.sigmas), plan.delta <= 1e-6
        (30, True)
    """

    _recorded: ClassVar = frozenset({"ran"})

    proof: NightsProof
    rests: tuple[int, ...]
    tried: int
    ran: int = field(default=0, compare=False)

    def _proof(self) -> NightsProof:
        return self.proof

    @property
    def transcript(self) -> list[dict[str, Any]]:
        """The nights that have run so far."""
        return [{"pass": "night", "night": night} for night in range(1, self.ran + 1)]

    @property
    def spreads(self) -> np.ndarray[Any, Any]:
        """The standard deviation that the noise of each night adds to the score."""
        proof = self.proof
        return spreads_of(proof.factors, proof.sigmas, proof.cell, proof.bits)

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        return {
            **self.mechanism.to_dict(),
            **budget_numbers(self.budget, self.delta),
            **self.proof.to_dict(),
            "rests": list(self.rests),
            "tried": self.tried,
        }

    @staticmethod
    def from_dict(numbers: Mapping[str, Any]) -> "SeriesPlan":
        """Return the plan from the dictionary that `to_dict` returned, and compute its guarantee again.

        Raises:
            InternalError: The numbers cost more than the budget.
        """
        settings = SeriesSettings(numbers["nights"], numbers["spending"], numbers["max_items_per_user"])
        proof = NightsProof.from_dict({each.name: numbers[each.name] for each in fields(NightsProof)})
        budget = Budget(numbers["epsilon"], numbers["delta"])
        return certified(SeriesPlan(settings, budget, proof, tuple(numbers["rests"]), numbers["tried"]))


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
    # The largest cutoff determines the grid. The factor 2 leaves room for the sensitivity.
    bits = PolicyGaussian().bits(2 * CUTOFF / sqrt(float(filtered.square(min(costs)))))
    sensitivity = PolicyGaussian().sensitivity(RuleSetting(pool, 2, bits, bound=MOST_BOUND))
    sigmas = [filtered.charge(cost, sensitivity).sigma for cost in costs]
    cell = max(1, 2 ** floor(log2(min(sigmas) * 2.0**bits / _NIGHT_CELLS_IN_SIGMA)))
    # A factor c_t = p_t^(1/2) t per standard deviation of the noise corresponds to p_t t per unit of weight.
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
    # Thresholds are rounded up, so the last bits of `excess` do not matter.
    thresholds = tuple(ceil(each) for each in (last + falls) * total * (1 + 1e-9) + margins)
    cutoffs = tuple(int(CUTOFF * sigma * 2.0**bits) for sigma in sigmas)
    proof = NightsProof(square, pool, bits, cell, tuple(costs), tuple(sigmas), cutoffs, tuple(factors), thresholds)
    settings, rests = SeriesSettings(nights, spending, max_items_per_user), _rests(costs, spending, total)
    return certified(SeriesPlan(settings, budget, proof, rests, -(-nights // TRIED)))


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
    """Return the state of each item on this night: 0 for released items, 1 for resting items, 2 for active items.

    The state follows from public numbers and the score after the preceding night. Therefore the state of an item does
    not depend on the night on which it joined.
    """
    states = np.full(scores.size, 2, np.uint8)
    if night > 1:
        states[scores < plan.rests[night - 2]] = 1
    states[released > 0] = 0
    return states
