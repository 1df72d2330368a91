"""The public numbers of one length: the votes of its users, the planned numbers and the numbers that ran."""

from dataclasses import dataclass, replace
from math import ceil
from typing import Any, NamedTuple, Protocol, final

from scipy.special import ndtri

from voxpop.errors import BudgetError
from voxpop.mechanisms.ngrams.constants import EARLY_ETA, OWN_ETA_FROM, SECOND_ALPHA
from voxpop.mechanisms.rounds.plan import RoundPlan, check_charged, with_cutoff
from voxpop.mechanisms.weightings.rule import RuleSetting, WeightingRule
from voxpop.privacy.individual import noise_for

NORM = 2
"""Noise is Gaussian: a user has weight 1 in l2."""
MOST_WEIGHT = 2.0**29
"""Thresholds and cutoffs below it fit every grid; an item reaches it with as many users."""
ALL_SO_FAR, ONE_SHORTER = "all so far", "one shorter"


class SpuriousAllowance(NamedTuple):
    """The number of spurious grams that a length may add.

    Attributes:
        share: spurious grams for each gram that counts.
        of: which grams count: `ALL_SO_FAR`, with this length, less the spurious grams of shorter lengths, or
            `ONE_SHORTER`.
    """

    share: float
    of: str


@final
@dataclass(frozen=True, slots=True)
class LengthPlan:
    """The numbers of one length, before any data is read.

    Attributes:
        length: tokens in a gram.
        sigma: noise scale of a gram's weight, if the charges are the usual ones.
        measurement_sigma: noise scale of the measurement behind the forecast of this length; None without one.
        lowest_threshold: threshold with no more candidates than grams of the length before.
        highest_threshold: threshold with a million times as many.
        spurious: estimated number of spurious grams that are allowed; None at length 1, which has none.
    """

    length: int
    sigma: float
    measurement_sigma: float | None
    lowest_threshold: float
    highest_threshold: float
    spurious: SpuriousAllowance | None = None


@final
@dataclass(frozen=True, slots=True)
class LengthRun:
    """The numbers with which one length ran: functions of the budget and of earlier results.

    Attributes:
        length: tokens in a gram.
        sigma: noise scale of a gram's weight.
        measurement_sigma: noise scale of the measurement before the vote; None without one.
        candidates: number of grams that could have been released; None at length 1, where it is not known.
        threshold: weight that a noisy weight had to reach; the mean over the released grams where bands differ.
        spurious: estimated number of released grams without users; None at length 1, which has none.
        bands: (candidates, threshold or None if none was released, released) of each band of likelihood.
        screening_sigma: noise scale of the screening vote; None without one.
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
        """Return the numbers, ready for JSON."""
        names = "length", "sigma", "measurement_sigma", "screening_sigma", "candidates", "threshold", "spurious"
        bands = [dict(zip(("candidates", "threshold", "released"), band, strict=True)) for band in self.bands]
        return {name: getattr(self, name) for name in names} | {"bands": bands}


@final
@dataclass(frozen=True, slots=True)
class SecondChanceRun:
    """The numbers with which the second-chance pass ran, over the deferred candidates of all lengths.

    Attributes:
        sigma: noise scale.
        candidates: number of candidates.
        released: number of added grams, by length from 2 on.
        spurious: estimated number of added grams without users, by length from 2 on.
    """

    sigma: float
    candidates: int
    released: tuple[int, ...]
    spurious: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, ready for JSON."""
        lists = {"released": list(self.released), "spurious": list(self.spurious)}
        return {"sigma": self.sigma, "candidates": self.candidates, **lists}


@final
@dataclass(frozen=True, slots=True)
class Voting:
    """The votes of one length: the numbers that determine its grid, noise and threshold.

    Attributes:
        rule: the weighting.
        limit: most grams of one user.
        eta: expected share of spurious grams.
        alpha: weight stops rising at threshold + alpha * sigma.
        reach: the sensitivity of one user.
    """

    rule: WeightingRule
    limit: int
    eta: float
    alpha: float
    reach: int = 1

    def setting(self, square: float, released: int, candidates: int) -> RuleSetting:
        """Return the finest grid that fits its own noise.

        A coarse grid needs more noise, noise a higher threshold and cutoff, and these may need a coarser grid still. So
        grids are tried from fine to coarse until one fits its own noise: that grid is charged for, and it runs.

        Args:
            square: the mu^2 that may be spent.
            released: grams of the length before.
            candidates: most candidates there can be; fewer have a lower threshold.

        Raises:
            BudgetError: no grid fits, or no weight could reach the threshold.
        """
        setting, sigma = RuleSetting(self.limit, NORM, self.rule.bits(1.0), reach=self.reach), square**-0.5
        while sigma <= MOST_WEIGHT:
            # The sensitivity grows as the grid becomes coarser, sigma with it, and the cutoff with sigma.
            sigma = noise_for(square, self.rule.sensitivity(setting))
            top = threshold_for(self.eta, sigma, released, candidates) + self.alpha * sigma
            if top > MOST_WEIGHT:
                break
            bits = self.rule.bits(top + 1.0)
            if bits >= setting.bits:
                return setting
            setting = RuleSetting(self.limit, NORM, bits, reach=self.reach)
        raise BudgetError(
            f"a length would get so little of the budget that its noise has sigma {sigma:.3g}: no phrase could be "
            "released. Use a smaller max_length, a lower limit, or more epsilon."
        )

    def round(self, setting: RuleSetting, sigma: float, threshold: float) -> RoundPlan:
        """Return one round on a grid, with the threshold rounded up to the grid."""
        # A higher threshold has fewer spurious grams, and privacy does not depend on it.
        on_grid = ceil(threshold * setting.unit) / setting.unit
        return RoundPlan(with_cutoff(self.rule, setting, threshold + self.alpha * sigma), "gaussian", sigma, on_grid)

    def charged(self, setting: RuleSetting, sigma: float, threshold: float, square: Any) -> RoundPlan:
        """Return one round whose noise was compared with its charge."""
        found = self.round(setting, sigma, threshold)
        check_charged(found.shares, sigma, square)
        return found

    def finest(self, sigma: float, threshold: float) -> RoundPlan:
        """Return a round on the finest grid, to explain its numbers; it is not charged for."""
        bits = self.rule.bits(threshold + self.alpha * sigma + 1.0)
        return self.round(RuleSetting(self.limit, NORM, bits), sigma, threshold)

    def threshold(self, sigma: float, released: int, candidates: int) -> float:
        """Return the usual threshold; see `threshold_for`."""
        return threshold_for(self.eta, sigma, released, candidates)


def threshold_for(eta: float, sigma: float, released: int, candidates: int) -> float:
    """Return the threshold that empty candidates reach with probability eta * min(1, released / candidates).

    So the expected number of spurious grams is at most eta times the number released before (DPNE, Section 2).
    """
    # sigma Phi^-1(1 - p) for p = eta min(1, |S_k| / N), by the tail so that small p keep their digits.
    return float(-sigma * ndtri(eta * min(1.0, released / candidates)))


class Extraction(Protocol):
    """A configuration whose plan is an `NGramsPlan`: `NGrams`, or `papers.DPNE`."""

    @property
    def max_length(self) -> int:
        """Most tokens in a gram."""

    def voting(self, length: int) -> Voting:
        """Return how users vote on a length."""

    def to_dict(self) -> dict[str, Any]:
        """Return the public configuration."""


class Settings(Extraction, Protocol):
    """The fields of `NGrams` that the plan and the schedule read."""

    @property
    def bound(self) -> int:
        """Most grams of one user at one length."""

    @property
    def eta(self) -> float:
        """Expected share of spurious grams."""

    @property
    def passes(self) -> int:
        """Most passes."""

    @property
    def worths(self) -> tuple[float, ...]:
        """The worth of the budget of each length."""


def second_chance_voting(ngrams: Extraction) -> Voting:
    """Return how users vote in the second-chance pass: as at any length, but weight stops rising earlier."""
    return replace(ngrams.voting(2), alpha=SECOND_ALPHA)


def allowance(eta: float, length: int) -> SpuriousAllowance:
    """Return the number of spurious grams that a length from 2 on may add."""
    return (
        SpuriousAllowance(EARLY_ETA * eta, ALL_SO_FAR) if length < OWN_ETA_FROM else SpuriousAllowance(eta, ONE_SHORTER)
    )
