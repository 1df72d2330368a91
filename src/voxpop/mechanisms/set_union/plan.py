"""Plans of set union: the numbers that will run, the guarantee, and the users needed by an item.

Nothing here reads data.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, final

from voxpop.errors import BudgetError
from voxpop.mechanisms.rounds import users_needed as needed
from voxpop.mechanisms.rounds.adaptive import AdaptiveRound, AdaptiveRounds, PlannedRounds, Terms
from voxpop.mechanisms.rounds.menu import Menu, adaptive_proof, planned_rounds, planned_slack
from voxpop.mechanisms.rounds.plan import RoundPlan, with_cutoff
from voxpop.mechanisms.rounds.users_needed import MinUsersBound
from voxpop.privacy.budget import Budget, budget_numbers, check_slack
from voxpop.privacy.calibrate import Accounting, Scale, calibrate
from voxpop.privacy.certificate import slack_delta
from voxpop.privacy.cumulative import CumulativeScore
from voxpop.privacy.numerics import numerical_slack, optimal_delta
from voxpop.privacy.passes import Proof, SelectionProof, ThresholdProof
from voxpop.privacy.planned import Configured, Data, DiscoveryPlan, Result, certified
from voxpop.privacy.weightings.builtin import Count
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting, WeightingRule

if TYPE_CHECKING:
    from voxpop.engine.data import Corpus
    from voxpop.release.release import Release


class Configuration(Configured, Protocol):
    """The fields of `SetUnion` that plans read."""

    @property
    def limit(self) -> int | None:
        """The most items of one user in a round; None for a private choice."""

    @property
    def promise(self) -> MinUsersBound | None:
        """The promise about items of few users; None without one."""


class UnionNumbers(DiscoveryPlan[Any, Data, Result], ABC):
    """The public numbers of every plan of a set union."""

    __slots__ = ()
    _usual = 10
    promise: MinUsersBound | None

    @property
    @abstractmethod
    def shown(self) -> RoundPlan | AdaptiveRounds:
        """The round, or the rounds, whose numbers the plan shows."""

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on an item's weight, in the last round; 0 if no noise is added."""
        return self.scale

    @property
    def scale(self) -> float:
        """Scale of the noise in the last round: sigma of Gaussian noise, b of Laplace noise."""
        return self.shown.scale

    @property
    def threshold(self) -> float:
        """Threshold of the last round, in units of weight: that of an item that no round dropped."""
        return self.shown.threshold

    @property
    def cutoff(self) -> float | None:
        """Weight at which items stop rising in the last round; None for weightings without a cutoff."""
        return self.shown.cutoff

    @abstractmethod
    def missing(self) -> float:
        """Return the probability that an item held by ten times the required number of users is missed.

        The worst of users with 1, 10 and 100 items, all as common as this one.
        """

    @abstractmethod
    def released_with_few(self) -> float:
        """Bound the probability that an item of fewer than `min_users` users is released; 1 without a bound."""

    def _without_promise(self) -> "UnionNumbers[Any, Any]":
        """Return the plan of the same mechanism without its promise about items of few users."""
        plan: UnionNumbers[Any, Any] = replace(self.mechanism, min_users=None).plan(self.budget)
        return plan

    def _sizes(self) -> dict[str, Any]:
        """Return the choices of the plan other than noise."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return every public number, ready for JSON."""
        return {
            **self.mechanism.to_dict(),
            **budget_numbers(self.budget, self.delta),
            **self._sizes(),
            "sigma": self.sigma,
            "scale": self.scale,
            "threshold": self.threshold,
            "cutoff": self.cutoff,
            "round_plans": self.shown.rows(),
            "users_needed": needed.users_needed_rows(self.users_needed),
            "missing": self.missing(),
            **self._promised(),
        }

    def _promised(self) -> dict[str, Any]:
        if self.promise is None:
            return {}
        return {
            "min_users": self.promise.users,
            "failure_probability": self.promise.beta,
            "released_with_few": self.released_with_few(),
            "users_needed_without_promise": needed.users_needed_rows(self._without_promise().users_needed),
        }


class UnionPlan(UnionNumbers["Corpus", "Release"], ABC):
    """What `SetUnion.plan` returns: every number that will run, before any data is read."""

    __slots__ = ()


@final
@dataclass(frozen=True, slots=True, repr=False)
class ClassicPlan(UnionPlan):
    """The plan of one round with a classic weighting, or of optimal selection.

    Attributes:
        round: weighting, noise and threshold.
        promise: about items of few users; None without one.

    Example:
        >>> import voxpop as vp
        >>> plan = vp.SetUnion(weighting=vp.weightings.PolicyGaussian()).plan(vp.Budget(epsilon=3, delta=4.5e-5))
        >>> round(plan.sigma, 2), plan.users_needed(0.5, per_user=1)
        (1.28, 7)
    """

    round: RoundPlan
    promise: MinUsersBound | None = None

    def _proof(self) -> Proof:
        if self.round.noise == "optimal":
            # What 128 bits cost is taken off before the rule is made, not after.
            delta = optimal_delta(self.budget.epsilon, self.budget.delta)
            return SelectionProof(delta, round(self.round.threshold))
        return ThresholdProof(self.round.stated(), None)

    @property
    def shown(self) -> RoundPlan:
        """The round."""
        return self.round

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on an item's weight; 0 if no noise is added."""
        # Laplace noise of scale b has the variance 2 b^2.
        return self.scale * 2.0**0.5 if self.round.noise == "laplace" else self.scale

    def _users_needed(self, probability: float, length: int, per_user: int) -> int | None:
        return needed.users_needed(self.round, self.budget, probability, per_user)

    def missing(self) -> float:
        """Return the probability that an item held by ten times the required number of users is missed.

        The worst of users with 1, 10 and 100 items, all as common as this one.
        """
        return max(needed.missing(self.round, self.budget, items) for items in needed.SIZES)

    def released_with_few(self) -> float:
        """Bound the probability that an item of fewer than `min_users` users is released; 1 without a bound."""
        if self.promise is None:
            return 1.0
        # Optimal selection does not count so few users at all.
        return 0.0 if self.round.noise == "optimal" else self.promise.reached(self.round)

    def _run(self, data: "Corpus", seed: int | None) -> "Release":
        from voxpop.mechanisms.set_union.releasing import release_classic

        return release_classic(self, data, seed)


@dataclass(frozen=True, slots=True, repr=False)
class AdaptiveNumbers(UnionNumbers[Data, Result]):
    """The numbers of adaptive rounds, for one data set or several.

    The properties below are those of the rounds that ran. Before the release chooses a limit, they are those of the
    largest limit, at which items need the most users.

    Attributes:
        planned: the rounds of the limit; without a limit, the menu from which the release chooses.
        promise: about items of few users; None without one.
        ran: in the plan of a release without a limit, the rounds that ran.
    """

    _recorded: ClassVar = frozenset({"ran"})

    planned: AdaptiveRounds | Menu
    promise: MinUsersBound | None = None
    ran: AdaptiveRounds | None = None

    @property
    def _now(self) -> PlannedRounds:
        return self.planned if self.ran is None else self.ran

    @property
    def shown(self) -> AdaptiveRounds:
        """The rounds that ran, or those of the largest limit that may be chosen."""
        return self._now.shown

    @property
    def limit(self) -> int:
        """Most items of one user in a round."""
        return self.shown.limit

    @property
    def pool(self) -> int:
        """Most items of one user in all rounds after the first."""
        return self.shown.pool

    @property
    def first_round(self) -> RoundPlan:
        """The first round, which only releases."""
        return self.shown.first_round

    @property
    def rounds(self) -> tuple[AdaptiveRound, ...]:
        """The later rounds."""
        return self.shown.rounds

    @property
    def score(self) -> CumulativeScore:
        """How later rounds are added up, and when items are released or dropped."""
        return self.shown.score

    def _users_needed(self, probability: float, length: int, per_user: int) -> int | None:
        return self._now.users_needed(probability, per_user)

    def missing(self) -> float:
        """Return the probability that an item held by ten times the required number of users is missed.

        The worst of users with 1, 10 and 100 items, all as common as this one.
        """
        return max(needed.adaptive_missing(self.shown, items) for items in needed.SIZES)

    def released_with_few(self) -> float:
        """Bound the probability that an item of fewer than `min_users` users is released; 1 without a bound."""
        if self.promise is None:
            return 1.0
        if isinstance(self._now, Menu):
            return self.promise.beta  # every limit of the menu keeps it
        return needed.ever_released_with_few(self.promise, self.first_round, self.score)

    def _sizes(self) -> dict[str, Any]:
        menu = {"menu": self.planned.to_dict()} if isinstance(self.planned, Menu) else {}
        chosen = not isinstance(self._now, Menu)
        return {"limit": self.limit if chosen else None, "pool": self.pool if chosen else None, **menu}


@final
@dataclass(frozen=True, slots=True, repr=False)
class AdaptivePlan(AdaptiveNumbers["Corpus", "Release"], UnionPlan):
    """What `SetUnion.plan` returns by default.

    Example:
        >>> import voxpop as vp
        >>> plan = vp.SetUnion(limit=100).plan(vp.Budget(epsilon=3, delta=4.5e-5))
        >>> len(plan.rounds), plan.delta <= 4.5e-5, plan.missing() < 1e-6
        (20, True, True)
    """

    def _proof(self) -> Proof:
        return adaptive_proof(self.planned, self.mechanism.limit)

    def _run(self, data: "Corpus", seed: int | None) -> "Release":
        from voxpop.mechanisms.set_union.releasing import release_adaptive

        return release_adaptive(self, data, seed)


@final
@dataclass(frozen=True, slots=True, repr=False)
class SeveralPlan(AdaptiveNumbers["Mapping[str, Corpus]", "dict[str, Release]"]):
    """The plan of `SetUnion.plan_each`: the numbers of each data set, and the guarantee of all of them together.

    Attributes:
        data_sets: the names of the data sets.
    """

    data_sets: tuple[str, ...] = field(kw_only=True)

    def _proof(self) -> Proof:
        return adaptive_proof(self.planned, self.mechanism.limit, data_sets=self.data_sets)

    def _run(self, data: "Mapping[str, Corpus]", seed: int | None) -> "dict[str, Release]":
        from voxpop.mechanisms.set_union.releasing import release_several

        return release_several(self, data, seed)

    def _sizes(self) -> dict[str, Any]:
        return {"data_sets": list(self.data_sets), **AdaptiveNumbers._sizes(self)}

    def _without_promise(self) -> "SeveralPlan":
        return plan_several(replace(self.mechanism, min_users=None), self.budget, self.data_sets)


def plan_optimal(union: Configuration, budget: Budget) -> ClassicPlan:
    """Plan optimal selection for one item per user: weights are numbers of users."""
    if budget.delta <= numerical_slack(budget.epsilon):
        least = 2 * numerical_slack(budget.epsilon)
        raise BudgetError(
            f"`delta` must be at least {least:.2g} at epsilon {budget.epsilon:g}, got {budget.delta:g}: below that, "
            "deciding with 128 random bits costs more than all of it. Raise `delta` or lower `epsilon`."
        )
    shares = CalibratedRule(Count(), RuleSetting(limit=1, norm=1, bits=0))
    few = 0 if union.promise is None else union.promise.few
    only = RoundPlan(shares, "optimal", scale=0.0, threshold=float(few))
    return certified(ClassicPlan(union, budget, only, union.promise))


def plan_classic(
    mechanism: object,
    rule: WeightingRule,
    limit: int,
    budget: Budget,
    *,
    accounting: Accounting = "joint",
    promise: MinUsersBound | None = None,
) -> ClassicPlan:
    """Plan noise and threshold of one round.

    Args:
        mechanism: the configuration that the plan names.
        rule: the weighting, with its noise and alpha.
        limit: most items of one user.
        budget: the budget.
        accounting: "joint" computes delta exactly for noise and novel items together; "published" is the paper's
            delta/2 + delta/2.
        promise: about items of few users.
    """
    # The grid comes first: sensitivity depends on it, and noise on sensitivity.
    bits = rule.bits(_rough_cutoff(rule, limit, budget, promise))
    setting = RuleSetting(limit, rule.norm, bits)
    # (|T|, w) of items that only one user holds, and S = 1 + 2 * 2^33 step_error (docs/privacy/set-union.md).
    novelty, sensitivity = rule.novelty(setting), rule.sensitivity(setting)
    scale = calibrate(
        budget, novelty, noise=rule.noise, accounting=accounting, sensitivity=sensitivity, grid=2.0**-bits
    )
    threshold = _threshold(rule, scale, setting, promise)
    shares = with_cutoff(rule, setting, threshold + (rule.alpha or 0.0) * scale.scale)
    only = RoundPlan(shares, rule.noise, scale.scale, threshold)
    # Both are computed from the round as it will run, not from the targets of the calibration.
    if promise is not None:
        needed.check_promise(promise, promise.reached(only))
    return certified(ClassicPlan(mechanism, budget, only, promise))


def _threshold(rule: WeightingRule, scale: Scale, setting: RuleSetting, promise: MinUsersBound | None) -> float:
    """Return the threshold: what novel items require, or the bound for items of few users."""
    if promise is None:
        return scale.threshold
    # One unit more than rounding up requires: the promise is checked again from the numbers that run.
    least = promise.threshold(CalibratedRule(rule, setting).largest, rule.noise, scale.scale, 1)
    return max(scale.threshold, (ceil(least * setting.unit) + 1) / setting.unit)


def _rough_cutoff(rule: WeightingRule, limit: int, budget: Budget, promise: MinUsersBound | None) -> float:
    """Return about the cutoff, computed on a coarse grid, to choose the fine one."""
    if not rule.sequential:
        return 1.0
    coarse = RuleSetting(limit, rule.norm, bits=48)
    scale = calibrate(budget, rule.novelty(coarse), noise=rule.noise, accounting="published")
    # Plus 1, so that the grid has room for the changes of the fine calibration.
    return _threshold(rule, scale, coarse, promise) + (rule.alpha or 0.0) * scale.scale + 1.0


def plan_adaptive(union: Configuration, budget: Budget, promise: MinUsersBound | None = None) -> AdaptivePlan:
    """Plan adaptive rounds for one data set.

    Args:
        union: the configuration.
        budget: the budget.
        promise: that of the configuration by default.
    """
    promise = promise or union.promise
    return certified(AdaptivePlan(union, budget, _planned(union.limit, budget, 1, promise), promise))


def plan_several(union: Configuration, budget: Budget, data_sets: tuple[str, ...]) -> SeveralPlan:
    """Plan adaptive rounds for several data sets that share a budget."""
    planned = _planned(union.limit, budget, len(data_sets), union.promise)
    return certified(SeveralPlan(union, budget, planned, union.promise, data_sets=data_sets))


def _planned(limit: int | None, budget: Budget, many: int, promise: MinUsersBound | None) -> AdaptiveRounds | Menu:
    """Return the rounds of a limit, or the menu of all limits."""
    # Data sets are independent, so the costs of arithmetic add up.
    slack = many * slack_delta(planned_slack(limit), budget.epsilon)
    check_slack("adaptive rounds need", budget, slack)
    return planned_rounds(Terms(budget.epsilon, budget.delta - slack, data_sets=many, promise=promise), limit)
