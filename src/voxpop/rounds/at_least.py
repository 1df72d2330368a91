"""Items of few users stay away: thresholds that so few reach with a stated probability at most.

Whatever else is in the data, `few` holders give an item at most `few` times what one user can give one item. So it is
enough that this weight, with the noise of all rounds, reaches a threshold so rarely. docs/privacy/at-least.md has the
proof.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from voxpop.errors import InternalError
from voxpop.privacy.threshold import Noise, exceeded_with, log_below
from voxpop.weighting.rule import CalibratedRule

if TYPE_CHECKING:
    from voxpop.rounds.plan import RoundPlan


UP: Final = 1 + 1e-9
"""More than the relative error of the doubles that weights and quantiles are computed in."""


@final
@dataclass(frozen=True, slots=True)
class AtLeast:
    """An item of fewer than so many users is released with probability at most beta.

    Attributes:
        users: how many an item needs at least.
        beta: how likely an item of fewer may be released all the same, in all rounds together.
    """

    users: int
    beta: float

    @property
    def few(self) -> int:
        """The most users who are too few."""
        return self.users - 1

    def weight(self, shares: CalibratedRule) -> float:
        """Return the most weight that too few users give one item in one round."""
        # (n - 1) w_max, whatever others hold: no user gives an item more than w_max (docs/privacy/at-least.md,
        # "Proof").
        return self.few * shares.largest * UP

    def deviations(self, noise: Noise, rounds: int) -> float:
        """Return what noise of scale 1 exceeds with one of so many even parts of beta, rounded up."""
        # t with P(N >= t) = beta / rounds: a union bound over rounds.
        return float(exceeded_with(noise, np.array([self.beta / rounds]))[0]) * UP + 1e-9

    def threshold(self, shares: CalibratedRule, noise: Noise, scale: float, rounds: int) -> float:
        """Return the threshold that too few users reach in one of so many rounds with an even part of beta."""
        return self.weight(shares) + scale * self.deviations(noise, rounds)

    def reached(self, shares: CalibratedRule, noise: str, scale: float, threshold: float) -> float:
        """Bound how likely too few users reach a threshold in one round.

        Raises:
            InternalError: where a round has no threshold.
        """
        if noise not in ("gaussian", "laplace"):
            raise InternalError("a promise about items of few users was asked of a round without a threshold.")
        # In scales of the noise; 1 - P(N < distance), without cancellation in the tail.
        distance = np.array([(threshold - self.weight(shares)) / scale])
        return float(-np.expm1(log_below("laplace" if noise == "laplace" else "gaussian", distance))[0]) * UP


def released_with_few(at_least: AtLeast, rounds: Sequence["RoundPlan"]) -> float:
    """Bound how likely an item of too few users is released in any of some rounds, by the numbers that run."""
    # A union bound over the rounds.
    return sum(at_least.reached(each.shares, each.noise, each.scale, each.threshold) for each in rounds)


def check_promise(at_least: AtLeast, chance: float) -> None:
    """Refuse a plan under which too few users reach a threshold more often than was promised.

    Args:
        at_least: the promise.
        chance: how likely they do, by the numbers that will run.

    Raises:
        InternalError: where it is above beta.
    """
    if not chance <= at_least.beta:
        raise InternalError("items of few users would be released more often than was promised; please report.")
