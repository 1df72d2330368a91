"""An individual filter. Each user pays separately, and only for the passes that they take part in.

A pass has a charge, which is the mu^2 that a user with bound 1 pays. A user who pays c moves the weights by at most
sqrt(c / charge), and by 0 if the user has no candidate. The payment of a user depends only on the data and the past of
this user and on public results. The payments of a user are integers that add up to at most the cap on every path.
Therefore all passes together are as private as one Gaussian mechanism whose mu^2 is the cap. The theorem and its proof
are in docs/privacy/individual.md (after Feldman and Zrnic, "Individual Privacy Accounting via a Renyi Filter", 2021).

The payments of users are secret, and charges, noise and thresholds never depend on them.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from voxpop.errors import InternalError
from voxpop.kernels.arrays import Bools, Int64s
from voxpop.kernels.proved import proved


@proved("individual.md#what-integers-and-doubles-change")
def noise_for(square: float | Fraction, sensitivity: float) -> float:
    """Return the smallest sigma, rounded up, for which (sensitivity / sigma)^2 is at most `square`.

    Proof: "the square of S_t / sigma_t is compared with m_t in exact fractions"
    """
    sigma = sensitivity / math.sqrt(square)
    # The division and the root in doubles can give a slightly smaller sigma, but this comparison is exact.
    while (Fraction(sensitivity) / Fraction(sigma)) ** 2 > Fraction(square):
        sigma = math.nextafter(sigma, math.inf)
    return sigma


WHOLE = 2**40
"""The number of parts of the cap that a user has at the beginning. Costs are whole numbers of parts."""
RATE_BITS = 20
"""Rates are multiples of 2^-RATE_BITS."""
BOUND_STEPS = 2**20
"""Bounds are multiples of 1 / BOUND_STEPS, rounded down."""
MOST_BOUND = 4
"""The maximum ratio of a user's effect on the weights to the effect of a user with bound 1. The charge for rounding
depends on this ratio.
"""


@dataclass(frozen=True, slots=True)
class Charge:
    """The charge for a pass and its noise. Both are in one object, so they cannot be inconsistent.

    Args:
        cost: The charge for a user with bound 1, in units of cap / WHOLE.
        square: The exact mu^2 of the cost.
        sensitivity: The effect of a user with bound 1 on the weights, including the rounding errors of all users.
        sigma: The standard deviation of the noise, at least sensitivity / sqrt(square).
        rates: The fractions of the remaining budget that users pay, by the length of a run of candidates, in units of
            2^-20. The last fraction also applies to all longer runs, and a single fraction applies to all users. If
            None, every user pays the cost, or the remaining budget if it is less than the cost.
    """

    cost: int
    square: Fraction
    sensitivity: float
    sigma: float
    rates: tuple[int, ...] | None = None

    @property
    def whole(self) -> int:
        """The budget of each user before the first pass."""
        return WHOLE

    @property
    def by_runs(self) -> bool:
        """Whether the charge depends on the length of a user's runs of candidates."""
        return self.rates is not None and len(self.rates) > 1

    @proved("individual.md#what-a-user-pays-does-not-depend-on-others")
    def costs(self, left: Int64s, holds: Bools, runs: Int64s | None = None) -> Int64s:
        """Return each user's payment, which is at most the remaining budget and is 0 for users without a candidate.

        Proof: "given Y_<t, every user except x pays the same in D and in D', and has the same individual sensitivity"

        Args:
            left: The remaining budget of each user.
            holds: Whether each user has a candidate.
            runs: The length of the run of candidates of each user, which is required if there are several rates.

        Returns:
            The number of parts of the cap that each user pays, as integers.

        Raises:
            InternalError: `runs` is None although there are several rates.
        """
        # A user's charge depends only on their own past and public numbers, as the induction in
        # docs/privacy/individual.md requires ("What a user pays does not depend on others").
        wish = np.int64(self.cost)
        if self.rates is not None:
            if runs is None and self.by_runs:
                raise InternalError("a pass with several rates was charged without the lengths of runs")
            rates = np.array(self.rates, np.int64)
            part = rates[0] if runs is None else rates[np.minimum(runs, rates.size - 1)]
            # left < 2^41 and part <= 2^20, so products are below 2^61. A charge is at most 16 times the cost, so bounds
            # are at most MOST_BOUND.
            wish = np.minimum((left * part) >> RATE_BITS, MOST_BOUND**2 * self.cost)
        # Shape (users,), in parts of the cap. No user pays more than the remaining budget, so the mu^2 of all passes
        # adds up to at most the cap on every path.
        return np.where(holds, np.minimum(wish, left), 0).astype(np.int64)

    @proved("individual.md#proof")
    def bounds(self, costs: Int64s) -> Int64s:
        """Return the largest effect on the weights that each user's payment covers, rounded down.

        Proof: "the distance is therefore at most r_x + kappa_t <= S_t sqrt(c_x / p_t)"

        Let S be the sensitivity. The part S - 1 covers the rounding errors of all users. The effect is S sqrt(costs /
        cost) - (S - 1), so the weights with and without the user differ by at most S sqrt(costs / cost). Each of the
        five operations in doubles has a relative error below 2^-52, and the factor covers these errors.

        Args:
            costs: The payment of each user, as returned by the method `costs`.

        Returns:
            The effects in steps of 1 / `BOUND_STEPS`, at most `MOST_BOUND`.
        """
        # kappa = S - 1 is the maximum that the rounding errors of all users add to a distance, rounded up.
        rounding = self.sensitivity - 1.0 + 2.0**-52 if self.sensitivity > 1.0 else 0.0
        # Shape (users,), in units of weight: r = S sqrt(costs / cost) - kappa, so r + kappa <= S sqrt(costs / cost).
        radius = self.sensitivity * np.sqrt(costs / self.cost) * (1.0 - 2.0**-49) - rounding
        # Round down, because the payment covers any smaller effect.
        steps = np.floor(np.clip(radius, 0.0, MOST_BOUND) * BOUND_STEPS)
        return np.asarray(steps, np.int64)


class IndividualFilter:
    """The charges of passes under a cap that applies to each user separately.

    Example:
        >>> one = IndividualFilter(0.5).charge(2**39, sensitivity=1.0)
        >>> one.sigma, one.costs(np.array([2**40, 2**38, 2**40]), np.array([True, True, False])) * 2.0**-40
        (2.0, array([0.5 , 0.25, 0.  ]))
    """

    def __init__(self, cap: float) -> None:
        """Create a filter with a cap.

        Args:
            cap: The maximum total mu^2 per user, above 0.
        """
        # Fractions are exact, so WHOLE parts are exactly the cap.
        self._part = Fraction(cap) / WHOLE

    def cost(self, share: float) -> int:
        """Return the number of parts in a share of the cap, rounded down, but at least one part and at most all parts.

        Args:
            share: The share of the cap.

        Returns:
            The number of parts, as an integer.
        """
        # share * 2^40 is exact in a double, so only `int` rounds, and it rounds down.
        return min(max(int(share * WHOLE), 1), WHOLE)

    @proved("individual.md#all-passes")
    def square(self, cost: int) -> Fraction:
        """Return the exact mu^2 of `cost` parts of the cap.

        Proof: "the sum of mu_t^2 is at most M on every sequence Y"

        Args:
            cost: The number of parts.

        Returns:
            The mu^2 of these parts.
        """
        return self._part * cost

    @proved("individual.md#the-mechanism")
    def charge(self, cost: int, sensitivity: float, rates: tuple[int, ...] | None = None) -> Charge:
        """Return the charge of a pass. It is public, so it must not depend on the remaining budgets of users.

        Proof: "the noise sigma_t, at least S_t / sqrt(m_t), where m_t is the mu^2 of p_t parts of M"

        Args:
            cost: The charge for a user with bound 1, in units of cap / WHOLE.
            sensitivity: The effect of such a user on the weights, including the rounding errors of all users.
            rates: The fractions of the remaining budget that users pay; see `Charge`.

        Returns:
            The charge with its noise.

        Raises:
            InternalError: The cost is not between one part and the whole cap, or a rate is negative or exceeds the
                remaining budget.
        """
        if not 0 < cost <= WHOLE or (rates is not None and not all(0 <= rate <= BOUND_STEPS for rate in rates)):
            raise InternalError("a pass was charged nothing, or more than users have")
        square = self.square(cost)
        # The charge and the noise are in one object, so a pass cannot run with the noise of another charge.
        return Charge(cost, square, sensitivity, noise_for(square, sensitivity), rates)
