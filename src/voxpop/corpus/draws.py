"""Where uniform bits come from, as the private side sees it."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Draws(Protocol):
    """Whatever yields uniform bits by purpose: the secret of the release."""

    def draws(self, purpose: str, first: NDArray[np.uint64], second: NDArray[np.uint64] | int) -> NDArray[np.uint64]:
        """Return (n, 2) uniform 64-bit words, a function of the purpose and of each (first, second)."""

    def text_draws(self, purpose: str, data: NDArray[np.uint8], starts: NDArray[np.int64]) -> NDArray[np.uint64]:
        """Return (n, 2) uniform 64-bit words, a function of the purpose and of the bytes of each text."""
