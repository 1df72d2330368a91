"""Uniform random numbers inside kernels, from splitmix64.

Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014, describe the generator and the
constants of its 64-bit mix. Use this generator only for draws from public data. The noise and the samples of a release
use the release's secret.
"""

from typing import Any

import numpy as np

from voxpop.kernels._jit import jit
from voxpop.kernels.arrays import Uint64s

GOLDEN_STEP = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio; odd, so the state takes all 2^64 values
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)


@jit
def uniform(state: Uint64s) -> Any:
    """Return a multiple of 2^-53 in [0, 1), and advance the generator's state (uint64, one number)."""
    state[0] += GOLDEN_STEP
    mixed = state[0]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * FIRST
    mixed = (mixed ^ (mixed >> np.uint64(27))) * SECOND
    mixed = mixed ^ (mixed >> np.uint64(31))
    return np.float64(mixed >> np.uint64(11)) * 2.0**-53
