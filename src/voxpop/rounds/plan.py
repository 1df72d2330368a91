"""One round with its noise filled in: a weighting on its grid, and the noise and threshold that decide."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, final

from voxpop.errors import InternalError
from voxpop.privacy.budget import Budget
from voxpop.privacy.slack import optimal_delta
from voxpop.weighting.rule import CalibratedRule

if TYPE_CHECKING:
    from voxpop.privacy.decide import Rule
    from voxpop.privacy.set_only import SetOnlyRound


@final
@dataclass(frozen=True, slots=True)
class RoundPlan:
    """One round: a weighting on its grid, and the noise and threshold that decide.

    Attributes:
        shares: the weighting with limit, grid and cutoff.
        noise: "gaussian", "laplace", "optimal" where items are selected by their number of users alone, or "set-only"
            where a table says how likely each weight is released.
        scale: sigma of Gaussian noise, b of Laplace noise, in units of weight; 0 where "optimal" or "set-only".
        threshold: an item is released where weight plus noise reaches it; where "optimal", so many users do not count;
            where "set-only", the least weight that is released more often than not.
        set_only: the table, and what it may cost, where "set-only".
    """

    shares: CalibratedRule
    noise: Literal["gaussian", "laplace", "optimal", "set-only"]
    scale: float
    threshold: float
    set_only: "SetOnlyRound | None" = field(default=None, repr=False, compare=False)

    @property
    def cutoff(self) -> float | None:
        """Weight at which items stop rising, or None where nothing stops them."""
        return self.shares.setting.cutoff_weight

    def rule(self, budget: Budget) -> "Rule":
        """Return the probability of release as a function of weight."""
        from voxpop.privacy.decide import SelectionRule, TableRule, ThresholdRule

        if self.noise == "set-only":
            if self.set_only is None:
                raise InternalError("a round under set-only accounting has no table; please report.")
            return TableRule(self.set_only.table)
        if self.noise == "optimal":
            # What 128 bits cost is taken off before the rule is made, not after.
            delta = optimal_delta(budget.epsilon, budget.delta)
            few = round(self.threshold)
            return SelectionRule(budget.epsilon, delta, unit_weight=self.shares.setting.unit, few=few)
        unit = self.shares.setting.unit
        # The threshold is a whole number of units; plans rounded it up to the grid.
        return ThresholdRule(self.noise, self.scale, round(self.threshold * unit), 1.0 / unit)

    def pair(self) -> tuple[float, float]:
        """Return the probability that something novel comes out, and sensitivity over sigma, of a Gaussian round."""
        from voxpop.privacy.threshold import release_probability

        shares = self.shares
        # d: the most over all numbers of novel items, of weight w each.
        novel = release_probability(shares.novelty, "gaussian", self.scale, self.threshold, shares.sensitivity)
        return novel, shares.sensitivity / self.scale

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of this round."""
        return {
            "noise": self.noise,
            "scale": self.scale,
            "threshold": self.threshold,
            "cutoff": self.cutoff,
            "grid_bits": self.shares.setting.bits,
            **({} if self.set_only is None else self.set_only.to_dict()),
        }
