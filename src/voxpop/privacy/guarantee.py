"""What was spent, in words and as data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from voxpop.privacy.spend import MOST, Spend, is_within


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a release promises each user.

    Args:
        epsilon: The epsilon of differential privacy.
        delta: The delta of differential privacy.
        neighbours: How the two data sets differ whose releases are nearly indistinguishable.
        private: False if the randomness came from a seed that others may know; then nothing is promised.
        unproved: Why nothing is proved, for what only reproduces a paper; then `private` is False and `delta` is 1.
        seen: What others than the readers of the release saw on the way, and the promise does not cover.
        spend: For a Gaussian release, the finer numbers by which it composes with others. Not compared.

    Example:
        >>> print(Guarantee(4, 1e-7))
        (4, 1e-07)-DP, one user added or removed
    """

    epsilon: float
    delta: float
    neighbours: str = "one user added or removed"
    private: bool = True
    unproved: str = ""
    seen: str = ""
    spend: Spend | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        if self.unproved:
            return f"NOT PRIVATE: {self.unproved}"
        promise = f"({self.epsilon:g}, {self.delta:g})-DP, {self.neighbours}"
        return promise if self.private else f"NOT PRIVATE: made with a seed; otherwise {promise}"

    def _repr_html_(self) -> str:
        """Return statement, meaning and cautions for a notebook."""
        from voxpop.privacy.in_words import cautions, meaning
        from voxpop.showing import card

        return card(str(self), [meaning(self)], warned=cautions(self))

    def to_dict(self) -> dict[str, Any]:
        """The guarantee as JSON-able values.

        Returns:
            One entry per field; `unproved`, `seen` and `spend` only where they say something.
        """
        values: dict[str, Any] = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbours": self.neighbours,
            "private": self.private,
        }
        if self.unproved:
            values["unproved"] = self.unproved
        if self.seen:
            values["seen"] = self.seen
        if self.spend is not None:
            values["spend"] = self.spend.to_dict()
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Guarantee":
        """The guarantee that `to_dict` described.

        Args:
            values: What `to_dict` returned.

        Returns:
            An equal guarantee.

        Raises:
            TypeError: A field is missing, unknown or of another type.
            ValueError: A number is out of range.
        """
        spend = values.get("spend")
        found = cls(**{**values, "spend": None if spend is None else Spend.from_dict(spend)})
        words = (found.neighbours, found.unproved, found.seen)
        if type(found.private) is not bool or not all(isinstance(each, str) for each in words):
            raise TypeError("not a guarantee")
        # Whoever composes a loaded guarantee adds these up: below 0 they would take away what others spent.
        if not (is_within(found.epsilon, 0, MOST) and is_within(found.delta, 0, 1)):
            raise ValueError("out of range")
        return found

    def to_dp_event(self) -> Any:
        """The release as an event of dp-accounting, to compose it with what other software spent.

        A Gaussian release becomes the pair of its `spend`, one without delta becomes Laplace noise. Both are at least
        as bad as the release itself, in every composition, for epsilons up to 20. Needs dp-accounting.

        Returns:
            A `dp_accounting.DpEvent`, for neighbours that differ by one user added or removed.

        Raises:
            InputError: There is no event for it: it has a delta and no Gaussian noise.
        """
        from voxpop.privacy.event import event_of

        return event_of(self)
