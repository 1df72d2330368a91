"""An individual filter: every user pays for itself, and only for the passes in which it takes part.

A pass has a price, the mu^2 that a user of reach 1 pays. A user who pays c of it moves the weights by at most
sqrt(c / price), and by nothing where it holds no candidate. What a user pays is a function of its own data, its own
past and public results, and adds up to at most the cap on every path, in whole numbers; so everything together is as
private as one Gaussian whose mu^2 is the cap. Theorem and proof: docs/privacy/individual.md (after Feldman and Zrnic,
"Individual Privacy Accounting via a Renyi Filter", 2021).

Nobody may learn what users spent: prices, noise and thresholds never depend on it.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from voxpop.arrays import Bools, Int64s
from voxpop.errors import InternalError
from voxpop.privacy.filter import noise_for

WHOLE = 2**40
"""What a user has at the beginning: so many parts of the cap. Costs are whole numbers of them."""
PACE_BITS = 20
"""Paces are whole numbers of 2^-PACE_BITS."""
REACH_STEPS = 2**20
"""Reaches are whole numbers of 1 / REACH_STEPS, rounded down."""
MOST_REACH = 4
"""No user moves the weights by more than so many times what it does at the price: rounding is charged for it."""


@dataclass(frozen=True, slots=True)
class Price:
    """What a pass costs, with the noise that it buys: one object, so that they cannot disagree.

    Args:
        cost: What a user of reach 1 pays, in parts of the cap.
        square: The mu^2 which that is, exactly.
        sensitivity: How far a user of reach 1 moves the weights, rounding of all users included.
        sigma: Standard deviation of the noise, at least sensitivity / sqrt(square).
        paces: By how many candidates in a row a user holds, the part of what it has left that it pays, in 2^-20; the
            last one for all who hold more, and a single one for all. None: every user pays the cost, or what it has
            left of it.
    """

    cost: int
    square: Fraction
    sensitivity: float
    sigma: float
    paces: tuple[int, ...] | None = None

    @property
    def whole(self) -> int:
        """What a user has at the beginning."""
        return WHOLE

    @property
    def by_runs(self) -> bool:
        """Whether it matters how many candidates in a row a user holds."""
        return self.paces is not None and len(self.paces) > 1

    def costs(self, left: Int64s, holds: Bools, runs: Int64s | None = None) -> Int64s:
        """What each user pays: never more than it has left, and nothing where it holds no candidate.

        Args:
            left: By user.
            holds: By user, whether it holds a candidate.
            runs: By user, how many candidates in a row it holds; needed where there are paces.

        Returns:
            Whole numbers of parts of the cap, by user.

        Raises:
            InternalError: Runs are missing.
        """
        # What a user pays is a function of its own past and of public numbers alone: the induction of
        # docs/privacy/individual.md ("What a user pays does not depend on others").
        wish = np.int64(self.cost)
        if self.paces is not None:
            if runs is None and self.by_runs:
                raise InternalError("a pass with paces was paid without runs; please report the call.")
            paces = np.array(self.paces, np.int64)
            part = paces[0] if runs is None else paces[np.minimum(runs, paces.size - 1)]
            # left < 2^41 and part <= 2^20, so products stay below 2^61. The cap of 16 prices keeps reaches at most
            # MOST_REACH.
            wish = np.minimum((left * part) >> PACE_BITS, MOST_REACH**2 * self.cost)
        # (users,), parts of the cap: never more than is left, so mu^2 adds up to at most the cap on every path.
        return np.where(holds, np.minimum(wish, left), 0).astype(np.int64)

    def reaches(self, costs: Int64s) -> Int64s:
        """How far each user may move the weights for what it pays, rounded down.

        With S the sensitivity, S - 1 of which is for the rounding of all users, that is S sqrt(paid / cost) - (S - 1):
        two runs then differ by at most S sqrt(paid / cost). Each operation in doubles errs by less than one part in
        2^52, and there are five, which the factor covers.

        Args:
            costs: What each user pays.

        Returns:
            In steps of 1 / `REACH_STEPS`, at most `MOST_REACH`.
        """
        # kappa = S - 1, what the rounding of all users adds to a distance, rounded up.
        rounding = self.sensitivity - 1.0 + 2.0**-52 if self.sensitivity > 1.0 else 0.0
        # r = S sqrt(c / price) - kappa, (users,), in weight; then r + kappa <= S sqrt(c / price).
        radius = self.sensitivity * np.sqrt(costs / self.cost) * (1.0 - 2.0**-49) - rounding
        # Rounded down: whoever moves less than it paid for is covered.
        steps = np.floor(np.clip(radius, 0.0, MOST_REACH) * REACH_STEPS)
        return np.asarray(steps, np.int64)


class IndividualFilter:
    """Prices of passes under a cap that every user keeps by itself.

    Example:
        >>> one = IndividualFilter(0.5).price(2**39, sensitivity=1.0)
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

    def square(self, cost: int) -> Fraction:
        """The mu^2 of so many parts of the cap, exactly.

        Args:
            cost: How many parts.

        Returns:
            Their mu^2.
        """
        return self._part * cost

    def price(self, cost: int, sensitivity: float, paces: tuple[int, ...] | None = None) -> Price:
        """Put a price on a pass; public, so it must not depend on what users have left.

        Args:
            cost: What a user of reach 1 pays, in parts of the cap.
            sensitivity: How far such a user moves the weights, rounding of all users included.
            paces: See `Price`.

        Returns:
            The price, with the noise that it buys.

        Raises:
            InternalError: No part of the cap, more than all of it, or paces beyond all that is left.
        """
        if not 0 < cost <= WHOLE or (paces is not None and not all(0 <= pace <= REACH_STEPS for pace in paces)):
            raise InternalError("a pass was priced at nothing, or at more than users have; please report the call.")
        square = self.square(cost)
        # Price and noise in one object: a pass cannot be charged by one and run with the other.
        return Price(cost, square, sensitivity, noise_for(square, sensitivity), paces)
