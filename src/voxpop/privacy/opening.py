"""The only function that applies noise to private weights. Engines and tasks on executors call it."""

from abc import ABC, abstractmethod
from typing import Any

from voxpop.errors import InternalError


class Opening(ABC):
    """Noise, or a decision based on noise, that may be applied to private weights. Only gates create such objects."""

    __slots__ = ()

    @abstractmethod
    def __call__(self, *private: Any) -> Any:
        """Return a result that may leave the engine."""

    def restricted(self) -> "Opening":
        """Return a copy that is restricted to its purpose and may be sent to the machines that store the weights."""
        raise InternalError("noise would be sent to another machine, but it cannot be restricted")


def opened(noise: Opening, *private: Any) -> Any:
    """Return the result of applying noise to private weights.

    Args:
        noise: The noise, created by a gate.
        private: The weights, the names of their items in draws, and further arguments of the noise.

    Raises:
        InternalError: The argument `noise` is not an `Opening`. Any other function could read the weights.
    """
    if not isinstance(noise, Opening):
        raise InternalError("private weights would be read without noise")
    return noise(*private)
