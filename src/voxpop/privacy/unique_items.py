"""How much weight the items that only one user holds can have."""

from dataclasses import dataclass
from typing import Literal, get_args

from voxpop.errors import BudgetError

Shape = Literal["fixed", "even", "symmetric", "any"]
_SHAPES: tuple[str, ...] = get_args(Shape)


@dataclass(frozen=True, slots=True)
class UniqueItems:
    """How much weight items that only one user holds can have.

    An item held by one user alone must stay below the threshold, or its release betrays that user. How much room that
    leaves depends on how the weighting shares a user's unit of weight. Every shape asks that a user gives each of its
    (at most `limit`) items a positive weight as long as nobody else holds it; otherwise items of other users could be
    novel too. `symmetric` asks besides that such items get equal weights, whatever came before.

    Args:
        limit: The most items of one user.
        shape: `fixed`: every item weighs `least`. `even`: a user with n items gives each at most n^(-1/norm).
            `symmetric`: novel items weigh the same, at least `least`, at most t^(-1/norm) when there are t of them.
            `any`: each of up to `limit` novel items weighs at most the sensitivity.
        least: The least positive weight a user gives an item.
        norm: 1 if users' weights are bounded in sum (Laplace noise), 2 if in sum of squares (Gaussian noise).

    Raises:
        BudgetError: A value is out of range.

    Example:
        >>> UniqueItems(limit=100, shape="symmetric", least=0.0999, norm=2).limit
        100
    """

    limit: int
    shape: Shape
    least: float
    norm: int

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise BudgetError(
                f"`limit` must be at least 1, got {self.limit}. It is the most items one user may contribute; "
                "100 is a common start."
            )
        if self.shape not in _SHAPES:
            raise BudgetError(f"`shape` must be one of {', '.join(_SHAPES)}, got {self.shape!r}.")
        if not 0 < self.least < float("inf"):
            raise BudgetError(f"`least` must be a finite weight above 0, got {self.least}.")
        if self.norm not in (1, 2):
            raise BudgetError(f"`norm` must be 1 (Laplace) or 2 (Gaussian), got {self.norm}.")
