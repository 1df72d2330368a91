"""How the budget is divided among the lengths: fixed shares, or shares that follow from what was released."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from operator import mul
from statistics import fmean
from typing import final

from voxpop.ngrams.schedule import DENSE, FALL, FIRST_SHARE, LEAST_SHARE, RISE


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is publicly known when the next length is given its share.

    Attributes:
        released: grams released at the length before.
        valid: valid candidates of the next length.
        expected: how many of them are likely to be released.
    """

    released: int
    valid: int
    expected: float

    @property
    def growth(self) -> float:
        """Grams expected for each one released before."""
        return self.expected / self.released

    @property
    def density(self) -> float:
        """Share of the valid candidates that is expected to be released."""
        return self.expected / self.valid


class Budgets(ABC):
    """A rule for dividing mu^2 among the lengths."""

    @property
    @abstractmethod
    def first(self) -> float:
        """Share of length 1 in the whole; fixed before any data are read."""

    @abstractmethod
    def share(self, length: int, outlook: Outlook | None) -> float:
        """Return the share of a length in what is left; None asks for the usual share."""


@final
@dataclass(frozen=True, slots=True)
class FixedBudgets(Budgets):
    """Shares that are known beforehand.

    Attributes:
        shares: of each length, adding up to 1.
    """

    shares: tuple[float, ...]

    @property
    def first(self) -> float:
        """The first share."""
        return self.shares[0]

    def share(self, length: int, outlook: Outlook | None) -> float:
        """Return a length's part of what this and later lengths have."""
        # Of what is left: s_k / (s_k + ... + s_T), exactly 1 for the last length.
        return min(1.0, self.shares[length - 1] / fsum(self.shares[length - 1 :]))


@final
@dataclass(frozen=True, slots=True)
class AutoBudgets(Budgets):
    """About half of what is left for each length, or less where later lengths have more to give.

    On text each length from 2 on releases fewer grams for its budget than the one before, and shares that fall to 0.45
    from length to length come within 2 percent of the best fixed ones. Where tokens are few, as pages on a web site,
    short grams are nearly all released and later lengths grow. So where at least a tenth of all valid candidates is
    expected to be released, the shares that follow are taken to grow with the expected growth, by up to a half from
    length to length. Each share is then multiplied by what its length is worth.

    Attributes:
        worths: of each length, by `worths_of`; all 1 where every gram counts the same.
    """

    worths: tuple[float, ...]

    @property
    def first(self) -> float:
        """A sixth of the whole, if every gram counts the same."""
        if len(self.worths) == 1:
            return 1.0
        # Shares of lengths 2, 3, ... over that of length 2, if every gram counts the same.
        falling = [FALL**number for number in range(len(self.worths) - 1)]
        later = fsum(map(mul, self.worths[1:], falling)) / fsum(falling)
        # w_1 s / (w_1 s + w' (1 - s)), with w' the mean worth of later lengths by their usual shares.
        return FIRST_SHARE * self.worths[0] / (FIRST_SHARE * self.worths[0] + (1 - FIRST_SHARE) * later)

    def share(self, length: int, outlook: Outlook | None) -> float:
        """Return worth / (worth + ratio * next worth + ratio^2 * ...), one term for each length that is left."""
        ratio = FALL
        if outlook is not None and outlook.density >= DENSE:
            # Both are functions of released sets and paid measurements: public (docs/privacy/ngrams.md, "Noise chosen
            # from results").
            ratio = min(max(outlook.growth, FALL), RISE)
        left = self.worths[length - 1 :]
        # A geometric series: the share of its first term in all of it.
        share = left[0] / fsum(worth * ratio**number for number, worth in enumerate(left))
        return min(1.0, max(share, LEAST_SHARE / len(left)))


def worths_of(values: Sequence[float]) -> tuple[float, ...]:
    """Return what the budget of each length is worth: it serves its own grams, and all longer ones made of them.

    What a length releases grows about as the root of its budget, so a budget should grow as the square of the value.

    Args:
        values: what a released gram of each length is worth to the caller, at least 0, the last above 0.

    Returns:
        For each length the square of the mean value of this and longer lengths.

    Example:
        >>> worths_of([1, 1, 1]), worths_of([10, 0, 4])
        ((1.0, 1.0, 1.0), (21.777777777777782, 4.0, 16.0))
    """
    # Released grams grow about as mu, so their worth as mu^2 grows as the square of the value.
    return tuple(fmean(values[number:]) ** 2 for number in range(len(values)))


def budgets_of(wanted: str | float | Sequence[float], values: Sequence[float]) -> Budgets:
    """Return the rule for `NGrams(budgets=..., values=...)`, which were checked before."""
    lengths = len(values)
    if wanted == "auto":
        return AutoBudgets(worths_of(values))
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        raw = [float(share) for share in wanted]
    else:
        ratio = 1.0 if wanted == "equal" else float(wanted)
        # Shares are of mu^2, which goes as 1 / sigma^2.
        raw = [ratio ** (-2 * number) for number in range(lengths)]
    return FixedBudgets(tuple(share / fsum(raw) for share in raw))
