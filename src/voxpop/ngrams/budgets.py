"""How the budget is divided among the lengths: fixed shares, or shares that follow from what was released."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import final

FIRST_SHARE = 1 / 6
FALL, RISE = 0.45, 1.5
DENSE = 0.1
FEW_TOKENS = 100
LEAST_SHARE = 1 / 3


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
        return min(1.0, self.shares[length - 1] / fsum(self.shares[length - 1 :]))


@final
@dataclass(frozen=True, slots=True)
class AutoBudgets(Budgets):
    """About half of what is left for each length, or less where later lengths have more to give.

    On text each length from 2 on releases fewer grams for its budget than the one before, and shares that fall to 0.45
    from length to length come within 2 percent of the best fixed ones. Where tokens are few, as pages on a web site,
    short grams are nearly all released and later lengths grow. So where at least a tenth of all valid candidates is
    expected to be released, the shares that follow are taken to grow with the expected growth, by up to a half from
    length to length.

    Attributes:
        lengths: how many lengths there are.
    """

    lengths: int

    @property
    def first(self) -> float:
        """A sixth of the whole."""
        return FIRST_SHARE if self.lengths > 1 else 1.0

    def share(self, length: int, outlook: Outlook | None) -> float:
        """Return 1 / (1 + ratio + ratio^2 + ...), one term for each length that is left."""
        ratio = FALL
        if outlook is not None and outlook.density >= DENSE:
            ratio = min(max(outlook.growth, FALL), RISE)
        lengths_left = self.lengths - length + 1
        share = 1 / fsum(ratio**number for number in range(lengths_left))
        return min(1.0, max(share, LEAST_SHARE / lengths_left))


def budgets_of(wanted: str | float | Sequence[float], lengths: int) -> Budgets:
    """Return the rule for a value of `NGrams(budgets=...)`, which was checked before."""
    if wanted == "auto":
        return AutoBudgets(lengths)
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        raw = [float(share) for share in wanted]
    else:
        ratio = 1.0 if wanted == "equal" else float(wanted)
        raw = [ratio ** (-2 * number) for number in range(lengths)]
    return FixedBudgets(tuple(share / fsum(raw) for share in raw))
