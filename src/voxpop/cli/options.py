"""The options that commands share, and what they are turned into."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxpop.errors import InputError

if TYPE_CHECKING:
    from voxpop.privacy.budget import Budget
    from voxpop.union.set_union import SetUnion

Epsilon = Annotated[
    float | None, typer.Option(help="Privacy budget, above 0: 1 is strong, 4 is common.", show_default=False)
]
Delta = Annotated[
    float | None,
    typer.Option(help="Probability for which epsilon need not hold, such as 1e-7.", show_default=False),
]
Limit = Annotated[int, typer.Option(help="Most items one user may contribute.")]
WeightingName = Annotated[str, typer.Option("--weighting", help="count, weighted, l1-descent or l2-descent.")]
Noise = Annotated[str, typer.Option(help="gaussian or laplace. l1-descent needs laplace, l2-descent gaussian.")]
Alpha = Annotated[float, typer.Option(help="Weight stops rising at threshold + alpha * scale (descent weightings).")]
Rounds = Annotated[int, typer.Option(help="Rounds; what one releases is left out of the next.")]
Accounting = Annotated[str, typer.Option(help="joint (exact) or published (the paper's delta/2 + delta/2).")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]
Seed = Annotated[
    int | None, typer.Option(help="Make the release reproducible and NOT PRIVATE, for tests only.", show_default=False)
]
Saved = Annotated[Path, typer.Argument(metavar="DIR", help="A folder that a release was saved to.")]


def budget_of(epsilon: float | None, delta: float | None) -> "Budget":
    """Return the budget of a call, which must state both of its numbers.

    Raises:
        InputError: if one is missing or out of range.
    """
    from voxpop.privacy.budget import Budget

    if epsilon is None:
        raise InputError(
            "--epsilon is missing: give the privacy budget, such as --epsilon 4 (1 is strong, 4 is common)."
        )
    if delta is None:
        raise InputError(
            "--delta is missing: give the probability for which epsilon need not hold, such as --delta 1e-7. "
            "It must be public and far below one over the number of users, never computed from the data; "
            "1e-7 to 1e-10 are usual."
        )
    return Budget(epsilon, delta)


def set_union_of(**fields: Any) -> "SetUnion":
    """Return the mechanism of a call, which checks its fields itself."""
    from voxpop.union.set_union import SetUnion

    return SetUnion(**fields)
