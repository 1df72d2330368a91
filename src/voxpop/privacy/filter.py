"""A budget for Gaussian releases whose noise is chosen from earlier results.

If the sum of (sensitivity / sigma)^2 stays within a cap on every path, whatever came out before, all releases together
are as private as one Gaussian whose mu^2 is the cap: append a dummy release of what is left, and the privacy loss is
exactly normal (Smith and Thakurta 2022, arXiv 2210.17520; docs/privacy/ngrams.md). A cap that held on average only
would not do.
"""

import math
from fractions import Fraction

from voxpop.errors import InternalError


class GaussianFilter:
    """What may still be spent, in units of mu^2: (sensitivity / sigma)^2.

    Example:
        >>> budget = GaussianFilter(0.5)
        >>> budget.spend(0.25)
        2.0
        >>> budget.left
        0.25
    """

    def __init__(self, cap: float) -> None:
        """Start with a cap.

        Args:
            cap: The total mu^2, at least 0.
        """
        # A double is a fraction, so nothing is rounded here or below.
        self._left = Fraction(cap)

    @property
    def left(self) -> float:
        """What may still be spent, rounded down."""
        value = float(self._left)
        return value if Fraction(value) <= self._left else math.nextafter(value, 0.0)

    def spend(self, square: float, sensitivity: float = 1.0) -> float:
        """Take mu^2 away and return the noise that it buys.

        Args:
            square: The mu^2 to spend, more than 0, at most what is left.
            sensitivity: The l2-sensitivity of what the noise is added to.

        Returns:
            Sigma, rounded up, so that its true mu^2 is at most what was taken.

        Raises:
            InternalError: More was asked for than is left.
        """
        if not 0 < square <= self.left:
            raise InternalError("a release asked for more than the budget has left; please report it.")
        # The sum of all squares is at most the cap on every path: what makes the total loss one normal
        # (docs/privacy/ngrams.md, "Noise chosen from results").
        self._left -= Fraction(square)
        return noise_for(square, sensitivity)


def noise_for(square: float | Fraction, sensitivity: float) -> float:
    """Return the least sigma, rounded up, whose (sensitivity / sigma)^2 is at most so much."""
    sigma = sensitivity / math.sqrt(square)
    # Division and root in doubles may end a little low; the comparison is exact.
    while (Fraction(sensitivity) / Fraction(sigma)) ** 2 > Fraction(square):
        sigma = math.nextafter(sigma, math.inf)
    return sigma
