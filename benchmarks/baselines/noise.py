"""Noise of the baselines, drawn in doubles, which is sufficient for comparisons, but not for releases."""

import numpy as np
from scipy.special import ndtri

from voxpop.kernels.arrays import Floats
from voxpop.privacy.secret import Secret


def uniform(secret: Secret, purpose: str, size: int) -> Floats:
    """Return numbers strictly between 0 and 1, one for each item, as float64 (size)."""
    words = secret.draws(purpose, np.arange(size, dtype=np.uint64), 0)[:, 0]
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52


def gaussian(secret: Secret, purpose: str, size: int) -> Floats:
    """Return standard normal numbers, as float64 (size)."""
    return np.asarray(ndtri(uniform(secret, purpose, size)))


def laplace(secret: Secret, purpose: str, size: int) -> Floats:
    """Return standard Laplace numbers, as float64 (size)."""
    centred = uniform(secret, purpose, size) - 0.5
    return -np.sign(centred) * np.log1p(-2.0 * np.abs(centred))
