"""Differentially Private Set Union (Gopi, Gulhane, Kulkarni, Shen, Shokouhi, Yekhanin; ICML 2020).

There is one class for each sound algorithm of the paper, with the paper's accounting. With Gaussian noise, delta/2 is
for the noise and delta/2 for the threshold. With Laplace noise, epsilon is pure and delta is for the threshold. Two
details differ from the paper, and both make the release more private: candidates are only taken from the bounded sets
of users (docs/privacy/errata.md), and rounding costs a little noise (docs/privacy/set-union.md).

The paper's "Policy Gaussian l1" (Algorithm 8) is missing, because it is not private as claimed
(docs/privacy/algorithm-8.md).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from voxpop.mechanisms.set_union.plan import plan_classic
from voxpop.privacy import weightings
from voxpop.privacy.budget import LARGEST_LIMIT, Budget, check_budget, check_whole
from voxpop.privacy.planned import Mechanism
from voxpop.privacy.weightings.rule import WeightingRule

if TYPE_CHECKING:
    from voxpop.engine.data import Corpus  # noqa: F401
    from voxpop.mechanisms.set_union.plan import OnePlan
    from voxpop.release.release import Release  # noqa: F401

PAPER_ALPHA = 3.0
"""The alpha of Table 2. Section 6.2.3 finds that 3 releases the most items for Policy Laplace and Policy Gaussian
l2."""


@dataclass(frozen=True, slots=True)
class _Published(Mechanism["Corpus", "Release"]):
    """An algorithm of the paper.

    Attributes:
        delta_0: The maximum number of items per user, the paper's Delta_0.
    """

    _rule: ClassVar[WeightingRule]

    delta_0: int = 100

    def __post_init__(self) -> None:
        """Check every field."""
        check_whole("delta_0", self.delta_0, LARGEST_LIMIT, "the limit of items per user; the paper tries 1 to 300")
        self._weighting()

    def _weighting(self) -> WeightingRule:
        return self._rule

    def plan(self, budget: Budget) -> "OnePlan":
        """Compute noise and threshold for a budget; see `voxpop.Items.plan`."""
        check_budget(budget)
        return plan_classic(self, self._weighting(), self.delta_0, budget, accounting="published")

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""
        shown = self._weighting().to_dict()
        return {"mechanism": "items", "max_items_per_user": self.delta_0, **shown, "accounting": "published"}


@final
@dataclass(frozen=True, slots=True)
class CountLaplace(_Published):
    """Count Laplace (Section 1.1, Table 2). Every item weighs 1/Delta_0, with Laplace noise of scale 1/epsilon.

    Example:
        >>> import math
        >>> import voxpop as vp
        >>> plan = vp.papers.CountLaplace(delta_0=100).plan(vp.Budget(3, math.exp(-10)))
        >>> round(plan.scale, 4)
        0.3333
    """

    _rule = weightings.Count("laplace")


@final
@dataclass(frozen=True, slots=True)
class CountGaussian(_Published):
    """Count Gaussian (Section 1.1, Table 2). Every item weighs 1/sqrt(Delta_0), with Gaussian noise."""

    _rule = weightings.Count("gaussian")


@final
@dataclass(frozen=True, slots=True)
class WeightedLaplace(_Published):
    """Weighted Laplace (Algorithm 9, Theorem B.1, Table 2). Each item of a user with n items weighs 1/n."""

    _rule = weightings.Weighted("laplace")


@final
@dataclass(frozen=True, slots=True)
class WeightedGaussian(_Published):
    """Weighted Gaussian (Algorithm 10, Theorem B.2, Table 2). Each item of a user with n items weighs 1/sqrt(n)."""

    _rule = weightings.Weighted("gaussian")


@final
@dataclass(frozen=True, slots=True)
class PolicyLaplace(_Published):
    """Policy Laplace (Algorithms 3 and 4, Theorem 4.1, Table 2), l1-descent with Laplace noise of scale 1/epsilon.

    Attributes:
        delta_0: The maximum number of items per user, the paper's Delta_0.
        alpha: The distance from the threshold to the cutoff above which weight stops increasing, in units of 1 /
            epsilon.
    """

    alpha: float = PAPER_ALPHA

    def _weighting(self) -> WeightingRule:
        return weightings.PolicyLaplace(self.alpha)


@final
@dataclass(frozen=True, slots=True)
class PolicyGaussian(_Published):
    """Policy Gaussian l2 (Algorithms 5 and 7, Theorem 5.1, Table 2), l2-descent with Gaussian noise.

    Attributes:
        delta_0: The maximum number of items per user, the paper's Delta_0.
        alpha: The distance from the threshold to the cutoff above which weight stops increasing, in sigma.

    Example:
        >>> import math
        >>> import voxpop as vp
        >>> plan = vp.papers.PolicyGaussian(delta_0=100).plan(vp.Budget(3, math.exp(-10)))
        >>> round(plan.sigma, 4), round(plan.threshold, 3)
        (1.3328, 6.824)
    """

    alpha: float = PAPER_ALPHA

    def _weighting(self) -> WeightingRule:
        return weightings.PolicyGaussian(self.alpha)
