"""What was spent, in words and as data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What a release promises each user.

    Args:
        epsilon: The epsilon of differential privacy.
        delta: The delta of differential privacy.
        neighbours: How two data sets that must look alike differ.
        private: False if the randomness came from a seed that others may know; then nothing is promised.
        unproved: Why nothing is proved, for what only reproduces a paper; then `private` is False and `delta` is 1.

    Example:
        >>> print(Guarantee(4, 1e-7))
        (4, 1e-07)-DP, one user added or removed
    """

    epsilon: float
    delta: float
    neighbours: str = "one user added or removed"
    private: bool = True
    unproved: str = ""

    def __str__(self) -> str:
        if self.unproved:
            return f"NOT PRIVATE: {self.unproved}"
        promise = f"({self.epsilon:g}, {self.delta:g})-DP, {self.neighbours}"
        return promise if self.private else f"NOT PRIVATE: made with a seed; otherwise {promise}"

    def to_dict(self) -> dict[str, Any]:
        """The guarantee as JSON-able values.

        Returns:
            One entry per field; `unproved` only where it says something.
        """
        values = {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbours": self.neighbours,
            "private": self.private,
        }
        return {**values, "unproved": self.unproved} if self.unproved else values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Guarantee":
        """The guarantee that `to_dict` described.

        Args:
            values: What `to_dict` returned.

        Returns:
            An equal guarantee.
        """
        return cls(**values)
