"""What an alphabet that was itself released from the data, and a model over it, cost together."""

from math import inf, nextafter
from typing import TYPE_CHECKING, Protocol

from voxpop.errors import InputError
from voxpop.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from collections.abc import Sequence


class Guaranteed(Protocol):
    """Whatever states a guarantee: a release, a model, a plan."""

    @property
    def guarantee(self) -> Guarantee:
        """What it promises."""


def spent_together(*releases: Guaranteed) -> Guarantee:
    """State what several releases from one collection cost each user: epsilons and deltas add up.

    This is basic composition. It holds though a later release was chosen in view of an earlier one, as a model over a
    released alphabet is. It counts the releases it is given and no others: whatever else was released from the same
    people costs extra.

    Args:
        releases: each with a `guarantee` about the same users.

    Returns:
        The guarantee of all of them together, each sum rounded up.

    Raises:
        InputError: where none is given, or they do not speak of the same neighbours.

    Example:
        >>> import voxpop as vp
        >>> words = vp.SetUnion().plan(vp.Budget(1, 1e-7))
        >>> model = vp.Sequences(alphabet=["tea", "milk"]).plan(vp.Budget(2))
        >>> print(spent_together(words, model))
        (3, 1e-07)-DP, one user added or removed
    """
    promises = [release.guarantee for release in releases]
    neighbours = {promise.neighbours for promise in promises}
    if len(neighbours) != 1:
        raise InputError(
            "give one release or more whose guarantees speak of the same neighbours; got "
            f"{', '.join(sorted(neighbours)) or 'none'}."
        )
    return Guarantee(
        _sum_up([promise.epsilon for promise in promises]),
        min(1.0, _sum_up([promise.delta for promise in promises])),
        neighbours.pop(),
        all(promise.private for promise in promises),
    )


def _sum_up(values: "Sequence[float]") -> float:
    """Add, and never come out below the true sum."""
    from fractions import Fraction

    exact = sum((Fraction(value) for value in values), Fraction(0))
    total = float(exact)
    return nextafter(total, inf) if Fraction(total) < exact else total
