"""How likely noise alone keeps evidence above the floors of all rounds so far, bounded from both sides.

The law of c_1 N + ... + c_r N, floors passed, goes forwards on a fine grid: rounded up for an upper bound, down for a
lower one. It is convolved by fast Fourier transforms, whose error is far below what is added or taken away for it.
"""

from math import ceil

import numpy as np
from scipy.special import ndtr

from voxpop.arrays import Floats

FINENESS = 2000
"""Points of the grid in the largest part; the chance to pass a floor comes out at most one percent too low with it."""
REACH = 9.0
"""Standard deviations beyond which a step of noise is left out, and above which the sum is."""
LOST = 1e-12
"""More than one step loses beyond REACH (2.3e-19, and 1.2e-19 of the sum) and by transforms of 2^20 doubles (1e-15)."""


def passing(parts: tuple[float, ...], floors: tuple[float, ...], margin: float) -> tuple[float, ...]:
    """Bound from below how likely noise alone passes each floor, given that it passed those before.

    Args:
        parts: By round, its factor c_r, more than 0.
        floors: By round but the last, in standard deviations of the sum.
        margin: How far the evidence that is really compared may lie from the exact one, in standard deviations.

    Returns:
        By round but the last.

    Example:
        >>> one, two = passing((1.0, 1.0), (0.0,), 0.0) + passing((2.0, 1.0), (-1.0,), 0.0)
        >>> 0.499 < one <= 0.5, 0.840 < two <= 0.8414
        (True, True)
    """
    most = _above(parts, floors, -margin, upper=True)
    least = _above(parts, floors, margin, upper=False)
    return tuple(min(1.0, max(0.0, low) / before) for low, before in zip(least, [1.0, *most], strict=False))


def _above(parts: tuple[float, ...], floors: tuple[float, ...], shift: float, *, upper: bool) -> list[float]:
    """Bound how likely noise alone passes the floors up to each; they are moved by `shift`."""
    step = max(parts) / FINENESS
    # (rounds,), standard deviation of c_1 N + ... + c_r N.
    spreads = np.sqrt(np.cumsum(np.square(parts)))
    law, first, chances = np.ones(1), 0, []
    for number, floor in enumerate(floors):
        reach = ceil(REACH * parts[number] / step)
        # Chances of moves between k and k + 1 grid points: Phi((k + 1) h / c) - Phi(k h / c).
        edges = step * np.arange(-reach, reach + 2) / parts[number]
        moves = np.diff(ndtr(edges))
        # Transforms leave errors of either sign near 0; `LOST` pays for them.
        law = np.maximum(_convolved(law, moves), 0.0)
        # A move into (k - 1, k] counts as k above, one into [k, k + 1) as k below.
        first += -reach + (1 if upper else 0)
        # Rounded up in every round, the sum is that many points too high at most.
        law = law[: max(0, ceil(REACH * float(spreads[number]) / step) + number + 2 - first)]
        kept = step * (first + np.arange(law.size)) >= float(spreads[number]) * (floor + shift)
        place = int(np.argmax(kept)) if kept.any() else law.size
        # Given that it passed: what lies below the floor is gone, and its mass with it.
        law, first = law[place:], first + place
        error = LOST * (number + 1)
        chances.append(float(law.sum()) + (error if upper else -error))
        if not law.size:
            law = np.zeros(1)
    return chances


def _convolved(first: Floats, second: Floats) -> Floats:
    """Return the convolution of two laws."""
    size = first.size + second.size - 1
    # Padded to a power of two of at least `size`, so that nothing wraps around.
    length = 1 << (size - 1).bit_length()
    product = np.fft.rfft(first, length) * np.fft.rfft(second, length)
    return np.asarray(np.fft.irfft(product, length)[:size], np.float64)
