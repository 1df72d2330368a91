"""The plan of a series. All numbers of the run are computed from a budget and a number of nights, without data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import ceil, exp, floor, log, log2, sqrt
from typing import TYPE_CHECKING, Any, ClassVar, Literal, final

import numpy as np
from scipy.special import ndtr, ndtri

from voxpop.kernels.arrays import Bytes, Floats, Int64s
from voxpop.mechanisms.rounds.plan import SHARE_WITHOUT_USERS
from voxpop.mechanisms.rounds.users_needed import RELEASED_SHARE, level_at_a_tenth
from voxpop.privacy.budget import Budget, budget_numbers, check_slack
from voxpop.privacy.gaussian import sigma as gaussian_sigma
from voxpop.privacy.individual import MOST_BOUND, WHOLE, IndividualFilter
from voxpop.privacy.joint import ROUNDING
from voxpop.privacy.numerics import falling_to, walk_slack
from voxpop.privacy.parameters import KnownList, NightLevels
from voxpop.privacy.passes import NightsProof
from voxpop.privacy.planned import CertifiedPlan, certified
from voxpop.privacy.upcrossing import UNLISTED, ever_reached, night_tail, spreads_of
from voxpop.privacy.weightings.builtin import PolicyGaussian
from voxpop.privacy.weightings.rule import RuleSetting

if TYPE_CHECKING:
    from voxpop.release.known import KnownItems

Spending = Literal["growing", "equal"]
POOL = 1000
"""The default maximum number of items per user in a series."""
NOVELTY_OF_NIGHTS = 0.4
"""The part of delta for items that only one user has. The numbers of released items with 0.3 and 0.5 differ by less
than a percent.
"""
CUTOFF = 9.5
"""The upper limit of an item's weight, in standard deviations of the night's noise."""
_NIGHT_FALL = 0.5
"""The total decrease of thresholds over the series, in standard deviations."""
REST = {"growing": (-1.3, 4.0), "equal": (-0.7, 3.2)}
"""The score below which items rest, in standard deviations. It changes linearly from the first number to the second
number over the middle five sevenths of the charges. With -0.7 instead of -1.3, growing charges release the same number
of items of the posts, and 4 percent fewer items of the chat.
"""
TRIED = 15
"""From the night on which it joined a user's pool, a resting item still receives weight from the user for this part of
all nights (one in 15). Without these nights, words that become common late are never released
(benchmarks/comparisons/series.py).
"""
_NIGHT_CELLS_IN_SIGMA = 2**12
FACTOR = 2**20
REST_OF_LISTED = 0.25
"""The rest thresholds of listed items are lower by this part of the distance between the thresholds of unlisted and
listed items. With 0.4, releases have up to 6 percent more items, and up to 16 percent fewer unlisted items.
"""
LEVEL_STEP = 0.1
"""The distance between two levels of listed items, in standard deviations."""
NEVER = -(2**62)
"""A rest threshold below every score."""


@final
@dataclass(frozen=True, slots=True)
class SeriesSettings:
    """The public configuration of a series.

    Attributes:
        nights: The number of nights.
        spending: Whether the charges of the nights are "growing" or "equal".
        max_items_per_user: The maximum number of items per user over all nights (None for the default).
        known: The public list, if there is one.
    """

    nights: int
    spending: Spending
    max_items_per_user: int | None
    known: "KnownItems | None" = None

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration, without the list."""
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "known"}
        return {"mechanism": "items", **own}


@final
@dataclass(frozen=True, slots=True, repr=False)
class SeriesPlan(CertifiedPlan[SeriesSettings]):
    """The plan of a series, which fixes every number of the run before the first night. `Items.plan_series` returns it.

    Attributes:
        proof: The numbers of all nights, which determine the guarantee.
        rests: The score of each night below which an item rests on the next night.
        listed_rests: The scores below which items of the public list rest, or an empty tuple without a list.
        tried: The number of nights, from the night on which an item joined a user's pool, on which the item receives
            weight from the user even if it rests.
        ran: In the plan of a release, the number of nights so far.

    Example:
        >>> import voxpop as vp
        >>> plan = vp.Items().plan_series(vp.Budget(epsilon=3, delta=1e-6), nights=30)
        >>> len(plan.proof.sigmas), plan.delta_spent <= 1e-6
        (30, True)
    """

    _recorded: ClassVar = frozenset({"ran"})

    proof: NightsProof
    rests: tuple[int, ...]
    listed_rests: tuple[int, ...]
    tried: int
    ran: int = field(default=0, compare=False)

    def _proof(self) -> NightsProof:
        return self.proof

    @property
    def transcript(self) -> list[dict[str, Any]]:
        """The nights that have run so far."""
        return [{"pass": "night", "night": night} for night in range(1, self.ran + 1)]

    @property
    def spreads(self) -> Floats:
        """The standard deviation that the noise of each night adds to the score."""
        proof = self.proof
        return spreads_of(proof.factors, proof.sigmas, proof.cell, proof.bits)

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        proof = self.proof.to_dict()
        levels = proof.pop("known", None)
        own = {"mu_squared": proof.pop("square"), **proof, "rests": list(self.rests), "tried": self.tried}
        if self.mechanism.known is not None:
            known = {**self.mechanism.known.to_dict(), **numbers_of_list(self.proof)}
            own |= {"known": known, "levels": levels, "listed_rests": list(self.listed_rests)}
        passes = [{"pass": "night", "nights": self.mechanism.nights}]
        return {**self.mechanism.to_dict(), **budget_numbers(self.budget, self.delta_spent), **own, "passes": passes}

    @staticmethod
    def from_dict(numbers: Mapping[str, Any]) -> "SeriesPlan":
        """Return the plan from the dictionary that `to_dict` returned, and compute its guarantee again.

        Raises:
            InternalError: The numbers cost more than the budget.
        """
        from voxpop.release.known import KnownItems

        known = KnownItems.of(numbers["known"]) if "known" in numbers else None
        settings = SeriesSettings(numbers["nights"], numbers["spending"], numbers["max_items_per_user"], known)
        given = {**numbers, "square": numbers["mu_squared"], "known": numbers.get("levels")}
        proof = NightsProof.from_dict({each.name: given[each.name] for each in fields(NightsProof)})
        rests, listed = tuple(numbers["rests"]), tuple(numbers.get("listed_rests", ()))
        return certified(
            SeriesPlan(settings, Budget(numbers["epsilon"], numbers["delta"]), proof, rests, listed, numbers["tried"])
        )


def plan_series(settings: SeriesSettings, budget: Budget) -> SeriesPlan:
    """Compute the noise, the thresholds and the rest thresholds of all nights.

    Raises:
        BudgetError: Delta is too small, or epsilon is too large.
    """
    nights, spending = settings.nights, settings.spending
    slack = walk_slack(budget.epsilon, nights)
    check_slack("a series needs", budget, slack)
    pool, target = settings.max_items_per_user or POOL, (budget.delta - slack) * (1 - 1e-6) / ROUNDING
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

    last = _last_threshold(spreads, falls, goal)
    margins = np.cumsum(factors) / 2
    # Thresholds are rounded up, so the last bits of `excess` do not matter.
    thresholds = tuple(ceil(each) for each in (last + falls) * total * (1 + 1e-9) + margins)
    cutoffs = tuple(int(CUTOFF * sigma * 2.0**bits) for sigma in sigmas)
    proof = NightsProof(square, pool, bits, cell, tuple(costs), tuple(sigmas), cutoffs, tuple(factors), thresholds)
    rests, listed_rests = _rests(costs, spending, total), tuple[int, ...]()
    if settings.known is not None:
        proof, aim = _with_levels(proof, settings.known.listed, falls, spreads)
        listed_rests = _rests(costs, spending, total, lower=REST_OF_LISTED * (last - aim))
    return certified(SeriesPlan(settings, budget, proof, rests, listed_rests, -(-nights // TRIED)))


def _with_levels(proof: NightsProof, listed: KnownList, falls: Floats, spreads: Floats) -> tuple[NightsProof, float]:
    """Return the numbers with the levels of a public list, and the usual last threshold in standard deviations."""
    total, margins = np.sqrt(np.cumsum(np.square(spreads))), np.cumsum(proof.factors) / 2
    first = _last_threshold(spreads, falls, SHARE_WITHOUT_USERS)
    lowest = tuple(ceil(each) for each in (first + falls) * total * (1 + 1e-9) + margins)
    steps = tuple(ceil(each) for each in LEVEL_STEP * total)
    levels = NightLevels(listed, SHARE_WITHOUT_USERS, lowest, steps, (1.0,))
    tails = [night_tail(proof, levels, 0)]
    # An item that reaches the highest level is released at every admitted level, so it needs no more weight.
    while tails[-1] * listed.size > SHARE_WITHOUT_USERS / 2:
        tails.append(night_tail(proof, levels, len(tails)))
    levels = replace(levels, tails=tuple(np.maximum.accumulate(tails[::-1])[::-1].tolist()))
    return replace(proof, known=levels), _last_threshold(spreads, falls, RELEASED_SHARE * SHARE_WITHOUT_USERS)


def _last_threshold(spreads: Floats, falls: Floats, goal: float) -> float:
    """Return the last threshold, in standard deviations, if noise is to reach a threshold with probability `goal`."""
    total = np.sqrt(np.cumsum(np.square(spreads)))

    def excess(last: float) -> float:
        return log(max(ever_reached(spreads, (last + falls) * total), exp(-700.0)) / goal)

    return falling_to(excess, start=sqrt(-2 * log(goal)), tolerance=1e-4)


def numbers_of_list(proof: NightsProof) -> dict[str, float]:
    """Return the share of listed items without users, and the probabilities that a listed item of one user is released.

    One user shifts all readings by at most M, so the Neyman-Pearson lemma bounds the probability of each level.
    """
    known: Any = proof.known
    usual = known.tails[level_at_a_tenth(known.tails, known.share)]
    alone = [min(1.0, float(ndtr(ndtri(tail) + sqrt(proof.square))) * ROUNDING) for tail in (known.tails[0], usual)]
    return {"share_without_users": known.share, "alone_at_most": alone[0], "alone_at_a_tenth": alone[1]}


def _rests(costs: Sequence[int], spending: Spending, total: Floats, lower: float = 0.0) -> tuple[int, ...]:
    spent = np.cumsum(costs) / WHOLE
    low, high = REST[spending]
    levels = np.interp(spent, [1 / 7, 6 / 7], [low, max(low, high - lower)])
    return tuple(
        NEVER if part < 1 / 7 else floor(level * each) for part, level, each in zip(spent, levels, total, strict=True)
    )


def states_of(plan: SeriesPlan, scores: Int64s, decided: Int64s, levels: Int64s, night: int) -> Bytes:
    """Return the state of each item on this night: 0 for decided items, 1 for resting items, 2 for active items.

    The state depends only on public numbers and on the score after the preceding night. Therefore the state of an item
    does not depend on the night on which it joined.
    """
    states = np.full(scores.size, 2, np.uint8)
    if night > 1:
        rests = np.full(scores.size, plan.rests[night - 2])
        if plan.listed_rests:
            rests[levels != UNLISTED] = plan.listed_rests[night - 2]
        states[scores < rests] = 1
    states[decided > 0] = 0
    return states
