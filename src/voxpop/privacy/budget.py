"""What may be spent."""

import math
from dataclasses import dataclass
from numbers import Real

from voxpop.errors import BudgetError

_EPSILON = "1 is strong, 3 to 4 is common, above 10 protects little"
_DELTA = "1e-7 is common; keep it well below one over the number of users, and do not compute it from the data"


@dataclass(frozen=True, slots=True)
class Budget:
    """The most a release may cost each user.

    Args:
        epsilon: How much one user may change the log-odds of anything that is released. Finite, more than 0.
        delta: The probability with which the promise of epsilon may fail, about. At least 0, less than 1.

    Raises:
        BudgetError: A value is not a number or out of range.

    Example:
        >>> Budget(epsilon=4, delta=1e-7)
        Budget(epsilon=4.0, delta=1e-07)
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        epsilon, delta = _real("epsilon", self.epsilon), _real("delta", self.delta)
        if not (math.isfinite(epsilon) and epsilon > 0):
            raise BudgetError(f"`epsilon` must be finite and more than 0, got {self.epsilon}. {_EPSILON}.")
        if not 0 <= delta < 1:
            raise BudgetError(f"`delta` must be at least 0 and less than 1, got {self.delta}. {_DELTA}.")
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)


def budget_numbers(budget: Budget, spent: float) -> dict[str, float]:
    """Return what a plan's record says of its budget, and the delta that its own numbers spend at that epsilon."""
    return {"epsilon": budget.epsilon, "delta": budget.delta, "delta_spent": spent}


def _real(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise BudgetError(f"`{name}` must be a number, got a value of type {type(value).__name__}.")
    return float(value)


def too_large(epsilon: float) -> BudgetError:
    """Return the refusal of an epsilon at which no delta below 1 would do."""
    return BudgetError(
        f"epsilon {epsilon:g} is too large: no delta below 1 would do. 1 is strict, 4 is common, and above 10 hardly "
        "anybody is protected."
    )
