"""Differentially Private Set Union (Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin; ICML 2020).

The paper's "Policy Gaussian l1" (Algorithm 8) is not included, because it is not private as claimed
(docs/privacy/algorithm-8.md).
"""

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Any, Final, Literal, final, get_args

from voxpop.mechanisms.rounds.plan import RoundPlan, with_cutoff
from voxpop.mechanisms.rounds.users_needed import MinUsersBound, check_promise, promise_of
from voxpop.mechanisms.set_union.mechanism import check_min_users
from voxpop.mechanisms.set_union.plan import UnionPlan
from voxpop.privacy.budget import LARGEST_LIMIT, Budget, check_budget, check_choice, check_whole
from voxpop.privacy.calibrate import Accounting, Scale, calibrate
from voxpop.privacy.planned import Mechanism, certified
from voxpop.privacy.weightings.builtin import WEIGHTINGS
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting, WeightingRule

if TYPE_CHECKING:
    from voxpop.engine.data import Corpus  # noqa: F401
    from voxpop.mechanisms.set_union.plan import OnePlan
    from voxpop.release.release import Release  # noqa: F401

PAPER_ALPHA: Final = 3.0
"""The alpha of Table 2. Section 6.2.3 finds that 3 releases the most items for Policy Laplace and Policy Gaussian
l2."""
WeightingName = Literal["count", "count-laplace", "weighted", "weighted-laplace", "policy-laplace", "policy-gaussian"]


@final
@dataclass(frozen=True, slots=True)
class SetUnion(Mechanism["Corpus", "Release"]):
    """Release the items with high noisy weights in one round, with a weighting from the paper.

    By default, the accounting follows the paper. With Gaussian noise, half of delta is for the noise and half for the
    threshold. With Laplace noise, the noise spends all of epsilon and no delta, and all of delta is for the threshold.
    Two details differ from the paper, and both make the release more private. Candidates are taken only from the
    bounded sets of users (docs/privacy/errata.md), and rounding requires slightly more noise
    (docs/privacy/set-union.md). `voxpop.Items` releases more for the same budget.

    Attributes:
        max_items_per_user: The maximum number of items per user, the paper's Delta_0.
        weighting: The rule that divides a user's weight, which is 1, among the user's items. The norm is l1 for Laplace
            noise and l2 for Gaussian noise. "count" and "count-laplace" give each item the same weight (Section 1.1).
            "weighted" and "weighted-laplace" divide the weight evenly (Algorithms 10 and 9). "policy-gaussian" is
            l2-descent (Algorithms 5 and 7), and "policy-laplace" is l1-descent (Algorithms 3 and 4).
        alpha: The distance from the threshold to the cutoff at which weight stops increasing, in noise scales (only for
            the two policies).
        accounting: "published", or "joint", which computes delta exactly for noise and novel items together and
            therefore needs less noise.
        min_users: The number of users below which an item is released with probability at most 1e-6, as in
            `voxpop.Items`. The paper has no such bound.

    Raises:
        InputError: A field is out of range.

    Example:
        >>> import math
        >>> import voxpop as vp
        >>> plan = vp.papers.SetUnion(max_items_per_user=100).plan(vp.Budget(3, math.exp(-10)))
        >>> round(plan.sigma, 4), round(plan.threshold, 3)
        (1.3328, 6.824)
        >>> plan = vp.papers.SetUnion(weighting="count-laplace").plan(vp.Budget(3, math.exp(-10)))
        >>> round(plan.scale, 4)
        0.3333
    """

    max_items_per_user: int = 100
    weighting: WeightingName = "policy-gaussian"
    alpha: float = PAPER_ALPHA
    accounting: Accounting = "published"
    min_users: int | None = None

    def __post_init__(self) -> None:
        """Check every field."""
        check_whole(
            "max_items_per_user", self.max_items_per_user, LARGEST_LIMIT, "the items per user; the paper tries 1 to 300"
        )
        check_choice("weighting", self.weighting, get_args(WeightingName))
        check_choice("accounting", self.accounting, get_args(Accounting))
        check_min_users(self.min_users)
        _ = self.rule

    @property
    def promise(self) -> MinUsersBound | None:
        """The promise about items with few users, or None if there is no promise."""
        return promise_of(self.min_users)

    @property
    def rule(self) -> WeightingRule:
        """The weighting, with its noise and alpha."""
        rule = WEIGHTINGS[self.weighting]
        return rule if rule.alpha is None else replace(rule, alpha=self.alpha)  # type: ignore[type-var]

    def plan(self, budget: Budget) -> "OnePlan":
        """Compute the noise and the threshold for a budget, without data.

        Raises:
            BudgetError: No threshold can satisfy the budget.
        """
        check_budget(budget)
        return plan_round(self, budget, self.promise)

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        named = {"mechanism": "items", "paper": "set union", "max_items_per_user": self.max_items_per_user}
        return {**named, **self.rule.to_dict(), "accounting": self.accounting}


def plan_round(union: SetUnion, budget: Budget, promise: MinUsersBound | None) -> "OnePlan":
    """Plan the noise and the threshold of the round, including a promise about items with few users if there is one."""
    rule, limit = union.rule, union.max_items_per_user
    # The grid is chosen first, because the sensitivity depends on the grid, and the noise depends on the sensitivity.
    setting = RuleSetting(limit, rule.norm, rule.bits(_rough_cutoff(rule, limit, budget, promise)))
    # The novelty consists of the pairs (|T|, w) of items that only one user has, and the sensitivity is
    # S = 1 + 2 * 2^33 step_error (docs/privacy/set-union.md).
    novelty, sensitivity = rule.novelty(setting), rule.sensitivity(setting)
    found = calibrate(
        budget,
        novelty,
        noise=rule.noise,
        accounting=union.accounting,
        sensitivity=sensitivity,
        grid=2.0**-setting.bits,
    )
    threshold = _threshold(rule, found, setting, promise)
    shares = with_cutoff(rule, setting, threshold + (rule.alpha or 0.0) * found.scale)
    only = RoundPlan(shares, rule.noise, found.scale, threshold)
    # The promise and delta are computed from the round that will run, not from the targets of the calibration.
    if promise is not None:
        check_promise(promise, promise.reached(only))
    return certified(UnionPlan(union, budget, (only,), promise))


def _threshold(rule: WeightingRule, scale: Scale, setting: RuleSetting, promise: MinUsersBound | None) -> float:
    """Return the threshold that novel items require, or the bound for items with few users."""
    if promise is None:
        return scale.threshold
    # Use one unit more than rounding up requires, because the promise is checked again with the numbers that are used.
    least = promise.threshold(CalibratedRule(rule, setting).largest, rule.noise, scale.scale, 1)
    return max(scale.threshold, (ceil(least * setting.unit) + 1) / setting.unit)


def _rough_cutoff(rule: WeightingRule, limit: int, budget: Budget, promise: MinUsersBound | None) -> float:
    """Return an approximation of the cutoff from a coarse grid, for the choice of the fine grid."""
    if not rule.sequential:
        return 1.0
    coarse = RuleSetting(limit, rule.norm, bits=48)
    scale = calibrate(budget, rule.novelty(coarse), noise=rule.noise, accounting="published")
    # Add 1, so that the grid has room for changes by the fine calibration.
    return _threshold(rule, scale, coarse, promise) + (rule.alpha or 0.0) * scale.scale + 1.0
