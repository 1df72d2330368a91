"""What a Gaussian release spends, in the form in which several of them compose without loss."""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

UP = 1 + 1e-10
"""More than the relative error of the doubles that go into a spend."""
MOST = sys.float_info.max
"""Below infinity."""


@dataclass(frozen=True, slots=True)
class Spend:
    """A pair that dominates a release: "something of one user alone comes out, otherwise shifted by mu deviations".

    With the user, something that nobody else holds is released with probability at most `novel`, whatever came before;
    otherwise the release is a Gaussian mechanism whose sensitivity is at most `mu` times its sigma. Without the user,
    nothing novel is there. `round_composition.py` and `composition.py` say how pairs compose.

    Adaptive rounds are no such pair, for what novel items use up of a user's unit follows from results. Theirs is
    `apart`: the chance is added to the delta of everything else (docs/privacy/composition.md, "Adaptive rounds").

    Args:
        novel: Probability, numerical slack included; 0 where all that can come out is known beforehand.
        mu: Sensitivity over sigma; of several releases, the root of the sum of squares.
        apart: Whether `novel` is added to delta, instead of being part of a pair.
    """

    novel: float
    mu: float
    apart: bool = False

    def to_dict(self) -> dict[str, float | bool]:
        """The numbers, ready for JSON."""
        return {"novel": self.novel, "mu": self.mu, **({"apart": True} if self.apart else {})}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Spend":
        """The spend that `to_dict` described; a ValueError where a number is out of range or no number."""
        novel, mu, apart = values["novel"], values["mu"], values.get("apart", False)
        # What says neither true nor false must not pass for a pair, which counts for less than what is apart.
        if type(apart) is not bool or not (is_within(novel, 0, 1) and is_within(mu, 0, MOST)):
            raise ValueError("out of range")
        return cls(float(novel), float(mu), apart)


def is_within(value: object, least: float, most: float) -> bool:
    """Say whether something from a file is a number in a range, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def gaussian_spend(pairs: Sequence[tuple[float, float]], slack: float = 0.0, rest: float = 0.0) -> Spend:
    """The spend of Gaussian rounds, rounded up.

    Args:
        pairs: For each round, the probability that something novel comes out, and sensitivity over sigma.
        slack: What finite arithmetic costs.
        rest: Total mu^2 of later releases about known items.

    Returns:
        The spend of all together.
    """
    from voxpop.privacy.round_composition import either

    novel = either([novel for novel, _ in pairs])
    mu = math.sqrt(math.fsum([rest, *(mu * mu for _, mu in pairs)]))
    return Spend(min(1.0, novel * UP + slack), mu * UP)
