"""The charge of each pass after length 1, as a public share of each user's budget.

The charge of a pass depends on the length or, if there are few tokens, on the released grams. From length 5 on, a user
who has only short runs of candidates pays a larger part of the remaining budget, because such a user can take part in
fewer later lengths. Users pay only for passes over their candidates (docs/privacy/individual.md).

This module also defines the public numbers of a length before and after its passes run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from math import ceil, fsum
from operator import mul
from statistics import fmean
from typing import Any, Self, final

import numpy as np
from scipy.special import ndtri

from voxpop.errors import BudgetError
from voxpop.mechanisms.ngrams import constants as tuned
from voxpop.mechanisms.rounds.plan import RoundPlan, check_charged, with_cutoff
from voxpop.privacy.individual import BOUND_STEPS, Charge, IndividualFilter, noise_for
from voxpop.privacy.weightings.rule import RuleSetting, WeightingRule

LEAST_LEFT = 2.0**-30
"""The charge of the last length if rounding has used up all shares. Users never pay more than their remaining budget.
"""
Rates = tuple[int, ...]
"""The part of the remaining budget that a user pays, in units of 2^-20. It depends on the length of the user's longest
run of candidates.
"""


def growth(released: int, valid: int, expected: float) -> float:
    """Return the assumed ratio of each later length's share to the share of the preceding length.

    Args:
        released: The number of grams released at the preceding length.
        valid: The number of valid candidates of the next length.
        expected: The expected number of these candidates that are released.
    """
    if expected / valid < tuned.DENSE:
        return tuned.VOTE_FALL
    return min(max(expected / released, tuned.VOTE_FALL), tuned.RISE)


@dataclass(frozen=True, slots=True)
class Charges:
    """The charges of all passes after length 1, as shares of a cap, and the remaining share.

    Attributes:
        cap: The total mu^2 that each user may spend after length 1.
        worths: The worth of each length; see `worths_of`.
        dense: Whether there are few tokens, which is known after length 1.
        left: 1 minus the shares of earlier measurements and votes; used only if there are few tokens.
    """

    cap: float
    worths: tuple[float, ...]
    dense: bool = False
    left: float = 1.0

    def after_words(self, words: int) -> Self:
        """Return the charges that apply once the number of released words is known."""
        return replace(self, dense=words <= tuned.FEW_TOKENS)

    def measurement(self, length: int) -> tuple[Charge, Self]:
        """Return the charge of the measurement before the vote on a length, and the charges for later passes."""
        share = self._share(length) * tuned.MEASUREMENT
        charges = IndividualFilter(self.cap)
        # Users distribute their weight evenly and round each share down, so the sensitivity is 1
        # (docs/privacy/individual.md, "Given the past").
        return charges.charge(charges.cost(share), 1.0), replace(self, left=self.left - share)

    def usual(self, length: int) -> float:
        """Return the mu^2 that the vote on a length costs if nothing is known about earlier results."""
        return self._share(length) * self.cap

    def vote(self, length: int, ratio: float = tuned.VOTE_FALL) -> tuple[float, Rates | None, Self]:
        """Return the mu^2 of the vote on a length, the rates that users pay, and the charges for later passes.

        Args:
            length: The number of tokens in the grams.
            ratio: The ratio of the shares of later lengths, from `growth`. The ratio matters only if there are few
                tokens.
        """
        share = self._share(length, ratio)
        return share * self.cap, self._rates(length, ratio), replace(self, left=self.left - share)

    def screening(self, length: int) -> float | None:
        """Return the mu^2 of the screening vote before the vote on a length, or None if there is no screening vote."""
        if self.dense or length > 1 + len(tuned.SCREENING_CHARGES):
            return None
        return tuned.SCREENING_CHARGES[length - 2] * self.cap

    def second_chance(self) -> tuple[float, Rates]:
        """Return the mu^2 for the noise of the second-chance pass, and the rates that spend the remaining budget."""
        return tuned.SECOND_CHARGE * self.cap, (BOUND_STEPS,)

    def charge(self, square: float | Fraction, sensitivity: float, rates: Rates | None) -> Charge:
        """Return the charge of a vote together with its noise."""
        charges = IndividualFilter(self.cap)
        return charges.charge(charges.cost(float(square) / self.cap), sensitivity, rates)

    def _share(self, length: int, ratio: float = tuned.VOTE_FALL) -> float:
        if not self.dense:
            return usual_charges(self.worths)[length - 2]
        if length == len(self.worths):
            return max(self.left, LEAST_LEFT)
        return self.left * dense_share(self.worths[length - 1 :], ratio)

    def _rates(self, length: int, ratio: float) -> Rates | None:
        if not self.dense and length < tuned.PACED_FROM:
            return None
        if self.dense:
            # Shape (remaining lengths,), the charges relative to the charge of this length.
            coming = ratio ** np.arange(len(self.worths) - length + 1)
            spare = tuned.SPARE_OF_DENSE * float(coming.sum())
        else:
            coming = np.array(usual_charges(self.worths)[length - 2 :])
            spare = (
                tuned.SECOND_CHANCE_SPARE[length - tuned.PACED_FROM]
                if length - tuned.PACED_FROM < len(tuned.SECOND_CHANCE_SPARE)
                else 0.0
            )
        # If the longest run of a user has r candidates, the user can take part in at most r more lengths, including
        # this length. Therefore the user pays c_1 / (c_1 + ... + c_r + spare) of the remaining budget, rounded down.
        parts = coming[0] / (np.cumsum(coming) + spare)
        return (0, *(int(part * BOUND_STEPS) for part in np.minimum(parts, 1.0)))


def usual_charges(worths: Sequence[float]) -> tuple[float, ...]:
    """Return the charge of each length from 2 on, as a share of the budget after length 1.

    If the last length is one of the first lengths with a fixed charge, its charge is doubled, because no budget is
    needed for longer lengths.

    Args:
        worths: The worth of each length from 1 on; see `worths_of`.

    Example:
        >>> usual_charges((1.0, 1.0, 1.0)), [round(charge, 3) for charge in usual_charges((1.0, 1.0, 4.0))]
        ((0.25, 0.24), [0.246, 0.627])
    """
    lengths = len(worths) - 1
    first = tuned.FIRST_CHARGES[:lengths]
    rest = lengths - len(first)
    if rest:
        usual = (*first, *([(1.0 - fsum(tuned.FIRST_CHARGES)) / rest] * rest))
    else:
        usual = (*first[:-1], *(2.0 * last for last in first[-1:]))
    return usual if len(set(worths)) == 1 else _valued(usual, worths[1:])


def _valued(usual: tuple[float, ...], worths: Sequence[float]) -> tuple[float, ...]:
    # If short grams also count, the second-chance pass finds many of them, so the usual charges are multiplied by the
    # worths of the lengths.
    spread = _adding_up([charge * worth for charge, worth in zip(usual, worths, strict=True)], fsum(usual))
    # If only the longest grams count, all parts of such a gram must first be released in their own votes. Therefore the
    # shares decrease from length to length and spend the whole budget.
    chained = _adding_up([worth * tuned.CHAIN_FALL**number for number, worth in enumerate(worths)], 1.0)
    # The number `short` is 1 if length 2 is worth at least as much as the last length, and 0 if length 2 is worth
    # nothing.
    short = min(1.0, worths[0] / worths[-1])
    mixed = (short * one + (1.0 - short) * other for one, other in zip(spread, chained, strict=True))
    return tuple(max(charge, tuned.LEAST_SHARE * least) for charge, least in zip(mixed, usual, strict=True))


def _adding_up(parts: Sequence[float], total: float) -> list[float]:
    factor = total / fsum(parts)
    return [part * factor for part in parts]


def dense_share(worths: Sequence[float], ratio: float) -> float:
    """Return the share of the remaining budget, worth / (worth + ratio * next worth + ...), if there are few tokens.

    Args:
        worths: The worth of this length and of each longer length.
        ratio: The ratio of the share of each length to the share of the preceding length.
    """
    share = worths[0] / fsum(worth * ratio**number for number, worth in enumerate(worths))
    return min(1.0, max(share, tuned.LEAST_SHARE / len(worths)))


def words_shares(
    worths: Sequence[float], usual: Sequence[tuple[float, float]] = tuned.WORDS_OF_FEW
) -> tuple[tuple[float, float], ...]:
    """Return pairs of a number of users and the share of mu^2 that length 1 gets from this number of users on.

    If all grams have equal values, these are the usual pairs. Otherwise the odds of every share are multiplied by the
    worth of length 1 relative to the mean worth of later lengths.
    """
    # The shares of lengths 2, 3, ... relative to the share of length 2, if all grams have equal values.
    falling = [tuned.VOTE_FALL**number for number in range(len(worths) - 1)]
    later = fsum(map(mul, worths[1:], falling)) / fsum(falling)
    odds = [(users, share / (1 - share) * worths[0]) for users, share in usual]
    return tuple((users, each / (each + later)) for users, each in odds)


def worths_of(values: Sequence[float]) -> tuple[float, ...]:
    """Return the worth of each length's budget, which benefits the grams of the length and longer grams made of them.

    The number of grams released at a length increases approximately with the square root of its budget, so the budget
    should increase with the square of the value.

    Args:
        values: The value, at least 0, of a released gram of each length to the caller. The last value must be above 0.

    Returns:
        For each length, the square of the mean value over this length and all longer lengths.

    Example:
        >>> worths_of([1, 1, 1]), worths_of([10, 0, 4])
        ((1.0, 1.0, 1.0), (21.777777777777782, 4.0, 16.0))
    """
    return tuple(fmean(values[number:]) ** 2 for number in range(len(values)))


NORM = 2
"""The noise is Gaussian, so the weights of a user have l2 norm 1."""
_MOST_WEIGHT = 2.0**29
"""The upper limit of thresholds and cutoffs, which fits every grid. To reach this limit, an item needs at least this
number of users.
"""
ALL_SO_FAR, ONE_SHORTER = "all so far", "one shorter"


@final
@dataclass(frozen=True, slots=True)
class SpuriousAllowance:
    """The number of spurious grams that a length may add.

    Attributes:
        share: The number of spurious grams that are allowed per gram that counts.
        of: The grams that count, which are `ALL_SO_FAR` or `ONE_SHORTER`. `ALL_SO_FAR` includes the grams of this
            length, but the spurious grams of shorter lengths are subtracted from the allowed number.
    """

    share: float
    of: str


@final
@dataclass(frozen=True, slots=True)
class LengthPlan:
    """The numbers of one length that are known before any data is read.

    Attributes:
        length: The number of tokens in a gram.
        sigma: The noise scale of a gram's weight if the usual charges apply.
        measurement_sigma: The noise scale of the measurement for the forecast of this length, or None without a
            measurement.
        lowest_threshold: The threshold if there are no more candidates than grams of the preceding length.
        highest_threshold: The threshold if there are a million times as many candidates.
        spurious_allowance: The estimated number of spurious grams that the length may add (None at length 1, which has
            no spurious grams).
        screening_sigma: The noise scale of the screening vote, or None without a screening vote.
    """

    length: int
    sigma: float
    measurement_sigma: float | None
    lowest_threshold: float
    highest_threshold: float
    spurious_allowance: SpuriousAllowance | None = None
    screening_sigma: float | None = None

    def rows(self, run: "LengthRun | None", users: Mapping[str, int | None]) -> list[dict[str, Any]]:
        """Return one row per pass of this length, ready for JSON, with the planned and the used numbers.

        Args:
            run: The numbers that the length used, or None if it has not run.
            users: The numbers of users that a gram needs, such as `users_50` for a probability of release of 0.5.
        """
        numbers, used = {**asdict(self), **users}, {} if run is None else asdict(run)
        rows: list[dict[str, Any]] = []
        for kind, length in (("measurement", self.length - 1), ("screening", self.length)):
            sigma, ran = numbers.pop(f"{kind}_sigma"), used.get(f"{kind}_sigma")
            if sigma is not None:
                rows.append({"pass": kind, "length": length, "sigma": sigma, "ran": ran and {"sigma": ran}})
        kind = "words" if self.length == 1 else "vote"
        return [*rows, {"pass": kind, **numbers, "ran": run and run.to_dict()}]


@final
@dataclass(frozen=True, slots=True)
class LengthRun:
    """The numbers that one length used. These numbers are functions of the budget and of earlier results.

    Attributes:
        length: The number of tokens in a gram.
        sigma: The noise scale of a gram's weight.
        measurement_sigma: The noise scale of the measurement before the vote, or None without a measurement.
        candidates: The number of grams that could have been released (None at length 1, at which this number is
            unknown).
        threshold: The minimum noisy weight of a released gram. If bands have different thresholds, this is the mean
            threshold over the released grams.
        spurious: The estimated number of released grams without users (None at length 1 without a public list, because
            then all released words have users).
        bands: For each band of likelihood, the number of candidates, the threshold (None if no gram was released), and
            the number of released grams.
        screening_sigma: The noise scale of the screening vote, or None without a screening vote.
    """

    length: int
    sigma: float
    measurement_sigma: float | None
    candidates: int | None
    threshold: float
    spurious: float | None = None
    bands: tuple[tuple[int, float | None, int], ...] = ()
    screening_sigma: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers of the vote, ready for JSON."""
        names = "sigma", "candidates", "threshold", "spurious"
        bands = [dict(zip(("candidates", "threshold", "released"), band, strict=True)) for band in self.bands]
        return {name: getattr(self, name) for name in names} | {"bands": bands}


@final
@dataclass(frozen=True, slots=True)
class SecondChanceRun:
    """The numbers of the second-chance pass over the deferred candidates of all lengths.

    Attributes:
        sigma: The noise scale.
        candidates: The number of candidates.
        released: The number of added grams for each length from 2 on.
        spurious: The estimated number of added grams without users, for each length from 2 on.
        lowest_threshold: The lowest threshold of all pieces, or None if no gram was released.
    """

    sigma: float
    candidates: int
    released: tuple[int, ...]
    spurious: tuple[float, ...]
    lowest_threshold: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, ready for JSON."""
        lists = {"released": list(self.released), "spurious": list(self.spurious)}
        return {**asdict(self), **lists}


@final
@dataclass(frozen=True, slots=True)
class Voting:
    """The numbers that determine the grid, the noise and the threshold of the vote on one length.

    Attributes:
        rule: The weighting.
        limit: The maximum number of grams per user.
        eta: The expected share of spurious grams.
        alpha: The distance from the threshold to the cutoff, above which weight stops increasing, in sigma.
        bound: The maximum change of the weights by one user, which is above 1 if users have individual sensitivities.
    """

    rule: WeightingRule
    limit: int
    eta: float
    alpha: float
    bound: int = 1

    @property
    def second_chance(self) -> "Voting":
        """Return the parameters of the second-chance pass.

        These parameters are the same as for other votes, except that alpha is smaller.
        """
        return replace(self, alpha=tuned.SECOND_ALPHA)

    def grid_and_charge(
        self, charges: Charges, square: float, rates: Rates | None, released: int, candidates: int
    ) -> tuple[RuleSetting, Charge]:
        """Return the grid of a vote, with its charge and noise; see `setting` and `Charges.charge`."""
        setting = self.setting(square, released, candidates)
        return setting, charges.charge(square, self.rule.sensitivity(setting), rates)

    def setting(self, square: float, released: int, candidates: int) -> RuleSetting:
        """Return the finest grid that is coarse enough for the noise that it requires.

        A coarser grid requires more noise, more noise requires a higher threshold and cutoff, and these can require an
        even coarser grid. Therefore grids are tried from fine to coarse until one is coarse enough. The release is
        charged for this grid and runs on it.

        Args:
            square: The mu^2 that may be spent.
            released: The number of grams of the preceding length.
            candidates: The maximum number of candidates. If there are fewer candidates, the threshold is lower.

        Raises:
            BudgetError: No grid fits, or no weight could reach the threshold.
        """
        setting, sigma = RuleSetting(self.limit, NORM, self.rule.bits(1.0), bound=self.bound), square**-0.5
        while sigma <= _MOST_WEIGHT:
            # As the grid becomes coarser, the sensitivity increases, and therefore sigma and the cutoff also increase.
            sigma = noise_for(square, self.rule.sensitivity(setting))
            top = threshold_for(self.eta, sigma, released, candidates) + self.alpha * sigma
            if top > _MOST_WEIGHT:
                break
            bits = self.rule.bits(top + 1.0)
            if bits >= setting.bits:
                return setting
            setting = RuleSetting(self.limit, NORM, bits, bound=self.bound)
        raise BudgetError(
            f"a length would get so little of the budget that its noise has sigma {sigma:.3g}, so no phrase could be "
            "released. Use a smaller max_length, a lower limit, or more epsilon."
        )

    def round(self, setting: RuleSetting, sigma: float, threshold: float) -> RoundPlan:
        """Return a round on a grid, with the threshold rounded up to a multiple of the grid's unit."""
        # A higher threshold releases fewer spurious grams, and privacy does not depend on the threshold.
        on_grid = ceil(threshold * setting.unit) / setting.unit
        return RoundPlan(with_cutoff(self.rule, setting, threshold + self.alpha * sigma), "gaussian", sigma, on_grid)

    def charged(self, setting: RuleSetting, sigma: float, threshold: float, square: Any) -> RoundPlan:
        """Return a round after checking that its noise is at least the noise that was charged for."""
        found = self.round(setting, sigma, threshold)
        check_charged(found.shares, sigma, square)
        return found

    def finest(self, sigma: float, threshold: float) -> RoundPlan:
        """Return a round on the finest grid. This round is used only to explain numbers, so it is not charged for."""
        bits = self.rule.bits(threshold + self.alpha * sigma + 1.0)
        return self.round(RuleSetting(self.limit, NORM, bits), sigma, threshold)

    def threshold(self, sigma: float, released: int, candidates: int) -> float:
        """Return the usual threshold; see `threshold_for`."""
        return threshold_for(self.eta, sigma, released, candidates)


def threshold_for(eta: float, sigma: float, released: int, candidates: int) -> float:
    """Return the threshold that candidates without users reach with probability eta * min(1, released / candidates).

    Therefore the expected number of spurious grams is at most eta times the number of grams that were released at the
    preceding length (DPNE, Section 2).
    """
    # Compute sigma Phi^-1(1 - p) for p = eta min(1, |S_k| / N) from the lower tail, so that no precision is lost for a
    # small p.
    return float(-sigma * ndtri(eta * min(1.0, released / candidates)))


def allowance(eta: float, length: int) -> SpuriousAllowance:
    """Return the number of spurious grams that a length may add, for lengths from 2 on."""
    if length < tuned.OWN_ETA_FROM:
        return SpuriousAllowance(tuned.EARLY_ETA * eta, ALL_SO_FAR)
    return SpuriousAllowance(eta, ONE_SHORTER)
