"""An individual filter: every user pays for itself, and only for the passes in which it takes part.

A pass has a charge, the mu^2 that a user with bound 1 pays. A user who pays c of it moves the weights by at most
sqrt(c / charge), and by nothing if it holds no candidate. The payment of a user is a function of its own data, its own
past and public results, and adds up to at most the cap on every path, in whole numbers; so everything together is as
private as one Gaussian whose mu^2 is the cap. Theorem and proof: docs/privacy/individual.md (after Feldman and Zrnic,
"Individual Privacy Accounting via a Renyi Filter", 2021).

The payments of users are secret: charges, noise and thresholds never depend on them.
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
    """Return the least sigma, rounded up, whose (sensitivity / sigma)^2 is at most so much.

    Proof: "the square of S_t / sigma_t is compared with m_t in exact fractions"
    """
    sigma = sensitivity / math.sqrt(square)
    # Division and root in doubles may end a little low; the comparison is exact.
    while (Fraction(sensitivity) / Fraction(sigma)) ** 2 > Fraction(square):
        sigma = math.nextafter(sigma, math.inf)
    return sigma


WHOLE = 2**40
"""The number of parts of the cap that a user has at the beginning. Costs are whole numbers of parts."""
RATE_BITS = 20
"""Rates are whole numbers of 2^-RATE_BITS."""
BOUND_STEPS = 2**20
"""Bounds are whole numbers of 1 / REACH_STEPS, rounded down."""
MOST_BOUND = 4
"""The largest ratio of a user's effect on the weights to the effect at the charge; rounding is charged for it."""


@dataclass(frozen=True, slots=True)
class Charge:
    """The charge for a pass with the noise for it, in one object, so that the two cannot disagree.

    Args:
        cost: The charge for a user with bound 1, in parts of the cap.
        square: The exact mu^2 of the cost.
        sensitivity: The effect of a user with bound 1 on the weights, rounding of all users included.
        sigma: Standard deviation of the noise, at least sensitivity / sqrt(square).
        rates: By length of a run of candidates, the fraction of the remaining budget that the user pays, in 2^-20. The
            last one is for all longer runs; a single one is for all users. None: every user pays the cost, or the
            remaining budget if that is less.
    """

    cost: int
    square: Fraction
    sensitivity: float
    sigma: float
    rates: tuple[int, ...] | None = None

    @property
    def whole(self) -> int:
        """The budget of a user at the beginning."""
        return WHOLE

    @property
    def by_runs(self) -> bool:
        """Whether the charge depends on the length of a user's runs of candidates."""
        return self.rates is not None and len(self.rates) > 1

    @proved("individual.md#what-a-user-pays-does-not-depend-on-others")
    def costs(self, left: Int64s, holds: Bools, runs: Int64s | None = None) -> Int64s:
        """Return the charge for each user: at most its remaining budget, and 0 if it holds no candidate.

        Proof: "given Y_<t, every user except x pays the same in D and in D', and has the same individual sensitivity"

        Args:
            left: By user.
            holds: By user, whether it holds a candidate.
            runs: By user, the length of its run of candidates; needed with several rates.

        Returns:
            Whole numbers of parts of the cap, by user.

        Raises:
            InternalError: Runs are missing.
        """
        # A user's charge is a function of its own past and of public numbers only: the induction of
        # docs/privacy/individual.md ("What a user pays does not depend on others").
        wish = np.int64(self.cost)
        if self.rates is not None:
            if runs is None and self.by_runs:
                raise InternalError("a pass with rates was paid without runs")
            rates = np.array(self.rates, np.int64)
            part = rates[0] if runs is None else rates[np.minimum(runs, rates.size - 1)]
            # left < 2^41 and part <= 2^20, so products stay below 2^61. The cap of 16 charges keeps bounds at most
            # MOST_BOUND.
            wish = np.minimum((left * part) >> RATE_BITS, MOST_BOUND**2 * self.cost)
        # (users,), parts of the cap: never more than is left, so mu^2 adds up to at most the cap on every path.
        return np.where(holds, np.minimum(wish, left), 0).astype(np.int64)

    @proved("individual.md#proof")
    def bounds(self, costs: Int64s) -> Int64s:
        """Return the largest effect of each user on the weights for its charge, rounded down.

        Proof: "the distance is therefore at most r_x + kappa_t <= S_t sqrt(c_x / p_t)"

        With S the sensitivity, S - 1 of which is for the rounding of all users, that is S sqrt(paid / cost) - (S - 1):
        two runs then differ by at most S sqrt(paid / cost). Each operation in doubles errs by less than one part in
        2^52, and there are five, which the factor covers.

        Args:
            costs: The charge for each user.

        Returns:
            In steps of 1 / `BOUND_STEPS`, at most `MOST_BOUND`.
        """
        # kappa = S - 1, the most that the rounding of all users adds to a distance, rounded up.
        rounding = self.sensitivity - 1.0 + 2.0**-52 if self.sensitivity > 1.0 else 0.0
        # r = S sqrt(c / charge) - kappa, (users,), in weight; then r + kappa <= S sqrt(c / charge).
        radius = self.sensitivity * np.sqrt(costs / self.cost) * (1.0 - 2.0**-49) - rounding
        # Rounded down: a smaller effect than the paid one is covered.
        steps = np.floor(np.clip(radius, 0.0, MOST_BOUND) * BOUND_STEPS)
        return np.asarray(steps, np.int64)


class IndividualFilter:
    """Charges of passes under a cap that holds for every user separately.

    Example:
        >>> one = IndividualFilter(0.5).charge(2**39, sensitivity=1.0)
        >>> one.sigma, one.costs(np.array([2**40, 2**38, 2**40]), np.array([True, True, False])) * 2.0**-40
        (2.0, array([0.5 , 0.25, 0.  ]))
    """

    def __init__(self, cap: float) -> None:
        """Start with a cap.

        Args:
            cap: The total mu^2 of a user, above 0.
        """
        # Exact: WHOLE parts are the cap, with nothing lost between.
        self._part = Fraction(cap) / WHOLE

    def cost(self, share: float) -> int:
        """The parts of the cap in a share of it, rounded down; at least one, at most all.

        Args:
            share: Of the cap.

        Returns:
            A whole number.
        """
        # share * 2^40 is exact in a double, so only `int` rounds, and down.
        return min(max(int(share * WHOLE), 1), WHOLE)

    @proved("individual.md#all-passes")
    def square(self, cost: int) -> Fraction:
        """Return the exact mu^2 of `cost` parts of the cap.

        Proof: "the sum of mu_t^2 is at most M on every sequence Y"

        Args:
            cost: Number of parts.

        Returns:
            Their mu^2.
        """
        return self._part * cost

    def charge(self, cost: int, sensitivity: float, rates: tuple[int, ...] | None = None) -> Charge:
        """Return the charge of a pass; public, so it must not depend on the remaining budgets of users.

        Args:
            cost: The charge for a user with bound 1, in parts of the cap.
            sensitivity: The effect of such a user on the weights, rounding of all users included.
            rates: See `Charge`.

        Returns:
            The charge, with the noise that it buys.

        Raises:
            InternalError: No part of the cap, more than all of it, or rates beyond all that is left.
        """
        if not 0 < cost <= WHOLE or (rates is not None and not all(0 <= rate <= BOUND_STEPS for rate in rates)):
            raise InternalError("a pass was charged at nothing, or at more than users have")
        square = self.square(cost)
        # Charge and noise in one object: a pass cannot be charged by one and run with the other.
        return Charge(cost, square, sensitivity, noise_for(square, sensitivity), rates)
