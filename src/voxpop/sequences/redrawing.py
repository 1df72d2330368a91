"""Numbers for post-processing, and for models that are only compared with: no privacy rests on them."""

from typing import TYPE_CHECKING

import numpy as np

from voxpop.arrays import Floats

if TYPE_CHECKING:
    from voxpop.privacy.secret import Source


def uniforms(secret: "Source", purpose: str, size: int) -> Floats:
    """Return float64 (size, 2), above 0 and below 1, a function of secret and purpose."""
    # (size, 2), 64 bits each, of which a double holds 53.
    words = secret.draws(purpose, np.arange(size, dtype=np.uint64), 0)[:, :2]
    found: Floats = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return found


def laplace(secret: "Source", purpose: str, size: int) -> Floats:
    """Return float64 (size,), Laplace numbers of scale 1."""
    # Two exponential numbers; their difference is a Laplace one.
    two = np.log(uniforms(secret, purpose, size))
    found: Floats = two[:, 0] - two[:, 1]
    return found
