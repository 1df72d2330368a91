"""The one function that applies noise to private weights: engines call it here, and tasks on executors."""

from abc import ABC, abstractmethod
from typing import Any

from voxpop.errors import InternalError


class Opening(ABC):
    """Noise, or a decision by noise, which may be applied to private weights. Only a gate makes one."""

    __slots__ = ()

    @abstractmethod
    def __call__(self, *private: Any) -> Any:
        """Return a result that may leave the engine."""

    def restricted(self) -> "Opening":
        """Return the same noise, ready to be sent to where the weights are: it can draw for its own purpose only."""
        raise InternalError("noise that cannot be restricted was to be sent away")


def opened(noise: Opening, *private: Any) -> Any:
    """Return the result of noise on private weights.

    Args:
        noise: that a gate has made.
        private: weights, the names of their items in draws, and further arguments of the noise.

    Raises:
        InternalError: Another function would read the weights.
    """
    if not isinstance(noise, Opening):
        raise InternalError("private weights would be read without noise")
    return noise(*private)
