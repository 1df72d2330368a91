"""The private choice of the limit, by a pass like any other: a noisy histogram, and rounds for each limit of a menu.

Every user adds 1 to one class, by the number of its distinct items. The noisy counts select a limit, and the rounds of
this limit run. The guarantee follows from caps that hold for every limit (docs/privacy/limit.md).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import sqrt
from typing import TYPE_CHECKING, Any, Final, final

import pyarrow as pa

from voxpop.errors import BudgetError, InternalError
from voxpop.files.progress import track
from voxpop.kernels.arrays import Int64s
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
from voxpop.privacy.listed import KnownList
from voxpop.privacy.numerics import paired_pool
from voxpop.privacy.passes import AdaptiveProof, Choice, Later, Slack

if TYPE_CHECKING:
    from voxpop.engine.contract import Engine
    from voxpop.privacy.gate.rounds import AdaptiveGate, PublicParts

LIMITS: Final = tuple(100 * 2**step for step in range(11))
"""The menu: 100, 200, 400, ..., 102,400."""
_MENU_EDGES: Final = tuple(64 * 2**step for step in range(11))
"""Numbers of distinct items at which the next class of users begins: 64, 128, 256, ..., 65,536. With classes of twice
the width, the limit was twice the best one where all users are at the lower end: 2 to 3 percent fewer words."""
TYPICAL_OF_CLASSES: Final = (2**0.5 * 32, *(2**0.5 * edge for edge in _MENU_EDGES))
"""The number of items that stands for each class."""
SHARE_OF_CHOICE: Final = 0.005
"""The histogram's share of all mu^2. A quarter of a percent chose worse limits for few users."""
_POWER: Final = 0.7
"""A user of n items is worth min(n, limit)^0.7 ..."""
COST: Final = 0.05
"""... over limit^0.05. The optimum is flat: the powers 0.6 and 0.8 chose limits within 1.1 percent of the best."""
CERTAIN_SIGMAS_OF_CLASSES: Final = (2.5,) * 7 + (4.0,) * 5
"""By class: standard deviations of noise below which a count is taken as 0. From 4,096 items on a user is worth so much
that a count of noise only would select a large limit for a small collection."""
PRIOR: Final = 4
"""The class to which as many users as one standard deviation are added: where no class is visible, the limit is 800."""
WORTH: Final = tuple(
    tuple(round(2**20 * min(typical, limit) ** _POWER / limit**COST) for typical in TYPICAL_OF_CLASSES)
    for limit in LIMITS
)
"""By limit and class: the worth of a user, in whole numbers."""
MARGIN: Final = 1 + 1e-9
"""Factor of the caps over the targets of the entries, more than the error of the doubles that they are computed in."""


@final
@dataclass(frozen=True, slots=True)
class Menu:
    """Adaptive rounds for each limit, and the caps that all of them keep.

    Attributes:
        sigma: standard deviation of the noise on the number of users in a class.
        square: the most mu^2 of the rounds of any limit.
        novel: the largest probability that the rounds of any limit release a novel item.
        terms: the budget of the rounds; each data set has a separate choice.
    """

    sigma: float
    square: float
    novel: float
    terms: Terms

    def entry(self, limit: int) -> AdaptiveRounds:
        """Return the rounds of one limit.

        Raises:
            InternalError: they would exceed the caps.
        """
        return _entry(self, limit)

    def after(self, counts: Int64s) -> AdaptiveRounds:
        """Return the pass that follows noisy numbers of users by class."""
        return self.entry(self.limit_for(counts))

    def limit_for(self, counts: Int64s) -> int:
        """Return the limit for noisy numbers of users by class."""
        pairs = zip(counts.tolist(), CERTAIN_SIGMAS_OF_CLASSES, strict=True)
        kept: list[int] = [count if count >= sure * self.sigma else 0 for count, sure in pairs]
        kept[PRIOR] += max(1, round(self.sigma))
        scores = [sum(count * each for count, each in zip(kept, worth, strict=True)) for worth in WORTH]
        best: int = LIMITS[scores.index(max(scores))]
        return best

    def stated(self) -> Choice:
        """Return the numbers for a certificate: the histogram, and the caps."""
        return Choice(_MENU_EDGES, self.sigma, self.square, self.novel)

    def users_needed(
        self, probability: float, items: int, needed_by: "Callable[..., int | None] | None" = None
    ) -> int | None:
        """Return the number of users who must hold an item, for the worst limit of the menu."""
        # The number falls with the limit while users hold more items than it, and rises with it after that, so it is
        # largest at one end.
        ends = {LIMITS[-1]} if items <= LIMITS[0] else {LIMITS[0], LIMITS[-1]}
        needed_by = needed_by or adaptive_users_needed
        needed = [needed_by(self.entry(limit), probability, items) for limit in ends]
        return None if None in needed else max(each for each in needed if each is not None)

    def rows(self) -> list[dict[str, Any]]:
        """Return the public numbers of the choice, ready for JSON."""
        sizes = {"limits": list(LIMITS), "edges": list(_MENU_EDGES)}
        return [{"pass": "choice", **sizes, "sigma": self.sigma, "mu_squared": self.square}]


UnionStep = RoundPlan | Menu | AdaptiveRounds
"""A pass of a plan. Its `stated` are the numbers of the certificate, its `rows` those of texts and files."""


def deciding(step: UnionStep) -> RoundPlan | AdaptiveRounds:
    """Return the pass that decides: of a choice, before it is made, the rounds of the largest limit.

    These have the highest thresholds.
    """
    return step.entry(LIMITS[-1]) if isinstance(step, Menu) else step


def users_needed_by(step: UnionStep, budget: Budget, probability: float, items: int) -> int | None:
    """Return the number of users who must hold an item; see `DiscoveryPlan.users_needed`."""
    if isinstance(step, RoundPlan):
        return users_needed(step, budget, probability, items)
    if isinstance(step, Menu):
        return step.users_needed(probability, items)
    return adaptive_users_needed(step, probability, items)


def rows_of(*steps: UnionStep) -> list[dict[str, Any]]:
    """Return the numbers of passes, ready for JSON; of a choice, before it is made, with those that decide."""
    every = (*steps, deciding(steps[-1])) if isinstance(steps[-1], Menu) else steps
    return [row for step in every for row in step.rows()]


def released_in_rounds(
    step: Menu | AdaptiveRounds, gate: "AdaptiveGate", engine: "Engine", listed: "PublicParts | None" = None
) -> tuple[pa.LargeStringArray, AdaptiveRounds]:
    """Return the items that rounds release, in order of bytes, and the rounds that ran.

    Args:
        step: the first pass; the outcome of a choice selects the next one.
        gate: of the release.
        engine: the private side.
        listed: the public list of the rounds, if they have one.
    """
    gate.open(engine)
    if isinstance(step, Menu):
        step = step.after(gate.classes())
        gate.choose(step.stated())
    for _ in track(gate.rounds(listed), "releasing", lambda _: 1, None, "rounds", exact=True):
        pass
    return gate.released(), step


def planned_rounds(terms: Terms, limit: int | None) -> AdaptiveRounds | Menu:
    """Plan the rounds of a limit; without a limit, compute the noise of the histogram and the caps of the menu.

    Args:
        terms: the budget of the rounds. The histogram is paid from the part for later releases; without later
            releases it is paid from their share.
        limit: most items of one user in a round; None for a private choice.

    Raises:
        BudgetError: if the rounds do not fit integer weights. Of a menu the largest limit is checked, which has the
            finest grid, because a limit that cannot run would be found after the charge.
    """
    return planned_menu(terms) if limit is None else _planned_rounds(terms, limit)


def planned_menu(terms: Terms) -> Menu:
    """Compute the noise of the histogram and the caps of the menu; see `planned_rounds`."""
    terms = replace(terms, share=min(terms.share, 1.0 - SHARE_OF_CHOICE))
    try:
        begun(terms, LIMITS[-1], schedule_for(LIMITS[-1], _mu(terms)))
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
    """Return the cost of finite arithmetic: decisions, and draws from pools that are larger than the limit.

    Without a limit, the histogram is one more pass, and pools must cover the limit with the largest pool to draw from.
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
    """Return the numbers of rounds, or of a menu of them, for a certificate.

    Args:
        planned: the rounds, or the menu.
        limit: that was given; None for a private choice.
        later: releases that follow.
        data_sets: names of the data sets, each with such rounds.
        listed: the public list, if there is one.
    """
    stated, slack = planned.stated(), planned_slack(limit, listed)
    if isinstance(stated, Choice):
        return AdaptiveProof(data_sets, stated, None, later, slack, listed)
    return AdaptiveProof(data_sets, None, stated, later, slack, listed)


@lru_cache(maxsize=64)
def _entry(menu: Menu, limit: int) -> AdaptiveRounds:
    rounds = _planned_rounds(menu.terms, limit)
    # Computed from the rounds as they will run.
    if not admits(menu.stated(), planned_slack(None, menu.terms.listed), rounds.stated()):
        raise InternalError("the rounds of a limit would exceed the caps of their menu")
    return rounds


def _planned_rounds(terms: Terms, limit: int) -> AdaptiveRounds:
    """Return the rounds of one limit."""
    schedule = schedule_for(limit, _mu(terms))
    rounds = plan_rounds(terms, limit, pool_for(limit), schedule)
    if terms.listed is not None:
        rounds = with_list(rounds, schedule, terms.listed, terms.promise)
    if terms.promise is not None:
        for score in rounds.scores:
            check_promise(terms.promise, ever_released_with_few(terms.promise, rounds.first_round, score))
    return rounds


def _mu(terms: Terms) -> float:
    return sqrt(terms.share / terms.data_sets) / terms.sigma


def choice_in(plan: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the numbers of the private choice of a plan, or None where it has none."""
    return next((row for row in plan["passes"] if row["pass"] == "choice"), None)


def about_limit(plan: Mapping[str, Any], limit: int | None, noun: str = "items") -> str:
    """Return the limit of a plan in words.

    Args:
        plan: its public numbers.
        limit: the limit that runs; None before it is chosen.
        noun: name of the items.
    """
    choice = choice_in(plan)
    if choice is None:
        return f"at most {limit:,} {noun} a user"
    least, *_, most = choice["limits"]
    if limit is None:
        return f"at most {least:,} to {most:,} {noun} a user, to be chosen privately"
    return f"at most {limit:,} {noun} a user, chosen privately from {least:,} to {most:,}"


def about_menu(plan: Mapping[str, Any], limit: int | None) -> list[str]:
    """Return the lines about the choice of a limit that is not chosen yet, or none."""
    choice = choice_in(plan)
    if choice is None or limit is not None:
        return []
    return [
        f"the choice counts users by their number of distinct items, with noise of {choice['sigma']:.3g} users;",
        "the numbers of users below are for the limit at which an item needs the most",
    ]
