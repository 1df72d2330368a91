"""The private choice of the limit from a noisy histogram, and the menu with the rounds of each limit.

Every user adds 1 to one class, which depends on the user's number of distinct items. The noisy counts select a limit,
and the rounds of this limit run. The guarantee follows from caps that every limit satisfies (docs/privacy/limit.md).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import fsum, inf, nextafter, sqrt
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, final

import numpy as np

from voxpop.errors import BudgetError, InternalError
from voxpop.kernels.arrays import Bools, Int64s
from voxpop.mechanisms.rounds.adaptive import AdaptiveRounds, Terms, begun, plan_rounds
from voxpop.mechanisms.rounds.known import with_list
from voxpop.mechanisms.rounds.plan import ROUNDS, RoundPlan, pool_for, schedule_for
from voxpop.mechanisms.rounds.users_needed import (
    adaptive_users_needed,
    check_promise,
    ever_released_with_few,
    users_needed,
)
from voxpop.privacy.budget import Budget
from voxpop.privacy.certificate import admits
from voxpop.privacy.numerics import paired_pool
from voxpop.privacy.parameters import KnownList
from voxpop.privacy.passes import AdaptiveProof, Choice, Later, Slack
from voxpop.privacy.planned import GateCall, run_passes

if TYPE_CHECKING:
    import pyarrow as pa

    from voxpop.engine.contract import Engine
    from voxpop.privacy.gate.rounds import AdaptiveGate, PublicParts

LIMITS: Final = tuple(100 * 2**step for step in range(11))
"""The limits of the menu (100, 200, 400, ..., 102,400)."""
_MENU_EDGES: Final = tuple(64 * 2**step for step in range(11))
"""The smallest number of distinct items in each class of users except the first (64, 128, 256, ..., 65,536). With
classes of twice the width, the limit was twice the best limit if all users were at the lower end of a class, and 2 to 3
percent fewer words were released.
"""
TYPICAL_OF_CLASSES: Final = (2**0.5 * 32, *(2**0.5 * edge for edge in _MENU_EDGES))
"""The number of items that represents each class."""
SHARE_OF_CHOICE: Final = 0.005
"""The share of the total mu^2 that the histogram spends. With a quarter of a percent, the chosen limits were worse for
few users.
"""
_POWER: Final = 0.7
"""The exponent in the worth of a user with n items, which is min(n, limit)^0.7 / limit^0.05. The optimum is flat. With
the exponents 0.6 and 0.8, the chosen limits were within 1.1 percent of the best.
"""
COST: Final = 0.05
"""The exponent of the limit in the worth of a user; see `_POWER`."""
CERTAIN_SIGMAS_OF_CLASSES: Final = (2.5,) * 7 + (4.0,) * 5
"""For each class, the number of standard deviations of noise below which its count is treated as 0. A user with 4,096
or more items is worth so much that a count that is only noise would select a large limit for a small collection.
"""
PRIOR: Final = 4
"""The class to which one standard deviation of users is added. Therefore the limit is 800 if no class exceeds the
noise.
"""
WORTH: Final = tuple(
    tuple(round(2**20 * min(typical, limit) ** _POWER / limit**COST) for typical in TYPICAL_OF_CLASSES)
    for limit in LIMITS
)
"""The worth of a user by limit and class, as whole numbers."""
MARGIN: Final = 1 + 1e-9
"""The ratio of the caps to the targets of the entries, which exceeds the error of computing them in doubles."""


@final
@dataclass(frozen=True, slots=True)
class Menu:
    """The adaptive rounds for each limit, and the caps that all of them satisfy.

    Attributes:
        sigma: The standard deviation of the noise on the number of users in a class.
        square: The largest mu^2 of the rounds of any limit.
        novel: The largest probability that the rounds of any limit release a novel item.
        terms: The budget of the rounds. Each data set has a separate choice.
    """

    sigma: float
    square: float
    novel: float
    terms: Terms

    @property
    def shares(self) -> tuple[float, ...]:
        """The possible shares of the total mu^2 for rounds, in increasing order of the number of users."""
        return self.terms.share, *(share for _, share in self.terms.falling)

    def entry(self, limit: int, share: float | None = None) -> AdaptiveRounds:
        """Return the rounds of one limit.

        Args:
            limit: The maximum number of items per user in a round.
            share: One of `shares` (None for the last share).

        Raises:
            InternalError: The rounds would exceed the caps.
        """
        return _entry(self, limit, self.shares[-1] if share is None else share)

    def after(self, counts: Int64s) -> AdaptiveRounds:
        """Return the rounds that the noisy numbers of users by class select."""
        return self.entry(self.limit_for(counts), self.share_for(counts))

    def chosen(self, gate: "AdaptiveGate") -> AdaptiveRounds:
        """Choose the rounds through the gate, which compares them with the caps."""
        rounds = self.after(gate.classes())
        gate.choose(rounds.stated())
        return rounds

    def share_for(self, counts: Int64s) -> float:
        """Return the part of the total mu^2 that rounds spend, for noisy numbers of users by class."""
        # Compute the number of users, in units of the sigma of one count that spends the whole budget.
        users = int(counts.sum()) / (self.sigma * sqrt(SHARE_OF_CHOICE))
        return self.shares[sum(users >= least for least, _ in self.terms.falling)]

    def limit_for(self, counts: Int64s) -> int:
        """Return the limit that the noisy numbers of users by class select."""
        pairs = zip(counts.tolist(), CERTAIN_SIGMAS_OF_CLASSES, strict=True)
        kept: list[int] = [count if count >= sure * self.sigma else 0 for count, sure in pairs]
        kept[PRIOR] += max(1, round(self.sigma))
        scores = [sum(count * each for count, each in zip(kept, worth, strict=True)) for worth in WORTH]
        best: int = LIMITS[scores.index(max(scores))]
        return best

    def stated(self) -> Choice:
        """Return the numbers of the histogram and the caps that a certificate contains."""
        return Choice(_MENU_EDGES, self.sigma, self.square, self.novel)

    def users_needed(
        self, probability: float, items: int, needed_by: "Callable[..., int | None] | None" = None
    ) -> int | None:
        """Return the number of users that an item needs with the worst limit of the menu."""
        # The number of users decreases as the limit increases up to the number of items per user, and increases at
        # higher limits. Therefore the number is largest at the smallest or at the largest limit.
        ends = {LIMITS[-1]} if items <= LIMITS[0] else {LIMITS[0], LIMITS[-1]}
        needed_by = needed_by or adaptive_users_needed
        needed = [needed_by(self.entry(limit), probability, items) for limit in ends]
        return None if None in needed else max(each for each in needed if each is not None)

    def rows(self) -> list[dict[str, Any]]:
        """Return the public numbers of the choice, ready for JSON."""
        sizes = {"limits": list(LIMITS), "edges": list(_MENU_EDGES)}
        return [{"pass": "choice", **sizes, "sigma": self.sigma, "mu_squared": self.square}]


UnionStep = RoundPlan | Menu | AdaptiveRounds
"""A pass of a plan. Its method `stated` returns the numbers for the certificate, and its method `rows` returns the
numbers for texts and files.
"""
_Decided = TypeVar("_Decided", bound="RoundPlan | AdaptiveRounds")


def deciding(step: Menu | _Decided) -> AdaptiveRounds | _Decided:
    """Return the pass that decides which items are released.

    Before a choice, the function returns the rounds of the largest limit, which have the highest thresholds.
    """
    return step.entry(LIMITS[-1]) if isinstance(step, Menu) else step


def users_needed_by(step: UnionStep, budget: Budget, probability: float, items: int) -> int | None:
    """Return the number of users that an item needs; see `DiscoveryPlan.users_needed`."""
    if isinstance(step, RoundPlan):
        return users_needed(step, budget, probability, items)
    if isinstance(step, Menu):
        return step.users_needed(probability, items)
    return adaptive_users_needed(step, probability, items)


def rows_of(*steps: UnionStep) -> list[dict[str, Any]]:
    """Return the numbers of passes, ready for JSON. Before a choice, they include the rounds of the largest limit."""
    every = (*steps, deciding(steps[-1])) if isinstance(steps[-1], Menu) else steps
    return [row for step in every for row in step.rows()]


class _Rounds(NamedTuple):
    """The rounds (or their menu before the choice), the number of completed rounds, and the released items."""

    step: Menu | AdaptiveRounds
    ran: int = 0
    items: "pa.LargeStringArray | None" = None


def _next_round(listed: "PublicParts | None", state: _Rounds) -> "GateCall[AdaptiveGate, _Rounds] | None":
    """Return the next pass, which is the choice of the limit, a round, or the release of the items."""
    step, number, items = state
    if isinstance(step, Menu):
        return GateCall(step.chosen, _Rounds, counted=False)
    if number > len(step.rounds):
        if items is not None:
            return None
        return GateCall(lambda gate: gate.released(), lambda items: _Rounds(step, number, items), counted=False)
    return GateCall(lambda gate: gate.round(number, listed), lambda _: _Rounds(step, number + 1))


def released_in_rounds(
    step: Menu | AdaptiveRounds, gate: "AdaptiveGate", engine: "Engine", listed: "PublicParts | None" = None
) -> "tuple[pa.LargeStringArray, AdaptiveRounds]":
    """Return the items that rounds release, in the order of their bytes, and the rounds that ran.

    Args:
        step: The first pass. The outcome of a choice selects the next pass.
        gate: The gate of the release.
        engine: The engine with the private data.
        listed: The public list of the rounds, if they have one.
    """
    gate.open(engine)
    rounds, _, items = run_passes(_Rounds(step), partial(_next_round, listed), gate, "rounds")
    return items, deciding(rounds)


def on_list(items: "pa.LargeStringArray", listed: "PublicParts") -> Bools:
    """Return whether each released item is on the list."""
    import pyarrow.compute as pc

    from voxpop.reading.arrow import numbers_of

    found = np.zeros(len(items), np.bool_)
    # Lists are longer than releases, so the hash table contains the released items.
    for part in listed.parts:
        found[numbers_of(pc.index_in(part, value_set=items).drop_null())] = True
    return found


def planned_rounds(terms: Terms, limit: int | None) -> AdaptiveRounds | Menu:
    """Plan the rounds for a given limit. Without a limit, compute the noise of the histogram and the caps of the menu.

    Args:
        terms: The budget of the rounds. The histogram is paid for from the part for later releases, or from the part of
            the rounds if there are no later releases.
        limit: The maximum number of items per user and round (None for a private choice).

    Raises:
        BudgetError: Integer weights cannot represent the rounds. For a menu, the largest limit is checked here, because
            it has the finest grid. Otherwise a limit that cannot run would be detected only after the charge.
    """
    return planned_menu(terms) if limit is None else _planned_rounds(terms, limit)


def planned_menu(terms: Terms) -> Menu:
    """Compute the noise of the histogram and the caps of the menu; see `planned_rounds`."""
    terms = replace(terms, share=min(terms.share, 1.0 - SHARE_OF_CHOICE))
    least = replace(terms, share=terms.falling[-1][1]) if terms.falling else terms
    try:
        begun(least, LIMITS[-1], schedule_for(LIMITS[-1], _mu(least)))
    except BudgetError:
        raise BudgetError(
            f"the budget is too small to choose the limit privately, since limits up to {LIMITS[-1]:,} must be able to "
            "run. Set max_items_per_user=100 (--max-items-per-user 100) or another number, or raise epsilon."
        ) from None
    whole = terms.sigma * sqrt(terms.data_sets)
    return Menu(
        sigma=whole / sqrt(SHARE_OF_CHOICE),
        square=terms.share / whole**2 * MARGIN,
        novel=terms.target * terms.novelty / terms.data_sets * MARGIN,
        terms=terms,
    )


def planned_slack(limit: int | None, listed: KnownList | None = None) -> Slack:
    """Return the cost of finite arithmetic, for decisions and for draws from pools that are larger than the limit.

    Without a limit, the histogram is one more pass, and the charge covers the limit with the largest pool.
    """
    passes, limits = (ROUNDS + 1, LIMITS) if limit is None else (ROUNDS, (limit,))
    pool = max((pool_for(each) for each in limits if pool_for(each) > each), default=0)
    drawn = paired_pool(pool, 0 if listed is None else listed.size) if pool else 0
    return Slack(1 + passes, drawn, passes if drawn else 0)


def adaptive_proof(
    planned: AdaptiveRounds | Menu,
    limit: int | None,
    later: Later | None = None,
    data_sets: tuple[str, ...] = (),
    listed: KnownList | None = None,
) -> AdaptiveProof:
    """Return the numbers that a certificate contains about rounds or about a menu of rounds.

    Args:
        planned: The rounds, or the menu.
        limit: The given limit (None for a private choice).
        later: The releases after the rounds, if there are any.
        data_sets: The names of the data sets, if several data sets have such rounds.
        listed: The public list, if there is one.
    """
    stated, slack = planned.stated(), planned_slack(limit, listed)
    if isinstance(stated, Choice):
        return AdaptiveProof(data_sets, stated, None, later, slack, listed)
    return AdaptiveProof(data_sets, None, stated, later, slack, listed)


def later_square(joining: float, counting: float, cover_sigma: float, columns: int) -> float:
    """Return the mu^2 of joint values, counts and cover, rounded up.

    Each user changes the two sums of each column by at most 1 in l2. Therefore each user changes all sums together by
    at most the square root of the number of columns (docs/privacy/profile.md, "Cover").
    """
    cover = max(1, columns) / cover_sigma**2 if cover_sigma else 0.0
    return nextafter(fsum([joining, counting, cover]) * (1 + 2.0**-40), inf)


@lru_cache(maxsize=64)
def _entry(menu: Menu, limit: int, share: float) -> AdaptiveRounds:
    rounds = _planned_rounds(replace(menu.terms, share=share), limit)
    # The check uses the numbers of the rounds that will run.
    if not admits(menu.stated(), planned_slack(None, menu.terms.listed), rounds.stated()):
        raise InternalError("the rounds of a limit would exceed the caps of their menu")
    return rounds


def _planned_rounds(terms: Terms, limit: int) -> AdaptiveRounds:
    """Return the rounds of one limit."""
    schedule = schedule_for(limit, _mu(terms))
    rounds = plan_rounds(terms, limit, pool_for(limit), schedule)
    if terms.listed is not None:
        rounds = with_list(rounds, schedule, terms.listed, terms.promise, terms.share_without_users)
    if terms.promise is not None:
        for score in rounds.scores:
            check_promise(terms.promise, ever_released_with_few(terms.promise, rounds.first_round, score))
    return rounds


def _mu(terms: Terms) -> float:
    return sqrt(terms.share / terms.data_sets) / terms.sigma


def choice_in(plan: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the numbers of the private choice of a plan, or None without such a choice."""
    return next((row for row in plan["passes"] if row["pass"] == "choice"), None)


def about_limit(plan: Mapping[str, Any], limit: int | None, noun: str = "items") -> str:
    """Return the limit of a plan as text.

    Args:
        plan: The public numbers of the plan.
        limit: The chosen limit, or None if no limit is chosen yet.
        noun: The plural noun for the items.
    """
    choice = choice_in(plan)
    if choice is None:
        return f"at most {limit:,} {noun} per user"
    least, *_, most = choice["limits"]
    if limit is None:
        return f"at most {least:,} to {most:,} {noun} per user, to be chosen privately"
    return f"at most {limit:,} {noun} per user, chosen privately from {least:,} to {most:,}"


def about_menu(plan: Mapping[str, Any], limit: int | None) -> list[str]:
    """Return the lines about a limit that has not been chosen yet, or an empty list for any other limit."""
    choice = choice_in(plan)
    if choice is None or limit is not None:
        return []
    return [
        f"the choice counts users by their number of distinct items, with noise of {choice['sigma']:.3g} users;",
        "the numbers of users below assume the limit at which an item needs the most users",
    ]
