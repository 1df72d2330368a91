"""What each pass of an extraction may cost: from one budget for all users, or from every user's own."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import fsum
from typing import TYPE_CHECKING, final

import numpy as np

from voxpop.ngrams.budgets import Budgets, Outlook, worths_of
from voxpop.ngrams.schedule import (
    CHAIN_FALL,
    DENSE,
    FALL,
    FIRST_PRICES,
    LEAST_SHARE,
    PACED_FROM,
    PREVOTE_PRICES,
    RISE,
    SPARE,
    SPARE_OF_DENSE,
    SWEEP_PRICE,
)
from voxpop.privacy.filter import GaussianFilter
from voxpop.privacy.individual import MOST_REACH, REACH_STEPS, IndividualFilter, Price

if TYPE_CHECKING:
    from voxpop.ngrams.ngrams import NGrams


@dataclass(frozen=True, slots=True)
class Charge:
    """What a pass pays for.

    Attributes:
        square: mu^2 of a user of reach 1.
        sigma: of the noise.
        price: what users pay each for itself; None where all pay the same.
    """

    square: float | Fraction
    sigma: float
    price: Price | None


class Spending(ABC):
    """A rule for what each pass costs."""

    reach: int = 1
    """The most by which one user moves the weights."""
    dense: bool = False
    """Whether tokens are few; public, known after length 1."""

    @abstractmethod
    def measurement(self, length: int, share: float) -> Charge:
        """Pay for a measurement of grams one shorter than `length`, a share of what the vote on that length costs."""

    @abstractmethod
    def rough(self, length: int) -> float:
        """Return what the vote on a length usually costs."""

    @abstractmethod
    def vote(self, length: int, outlook: Outlook | None) -> float:
        """Return the mu^2 of the vote on a length; without an outlook the usual one."""

    @abstractmethod
    def prevote(self, length: int) -> float | None:
        """Return the mu^2 of the wide vote before the vote on a length, None where there is none."""

    @abstractmethod
    def pay(self, square: float, sensitivity: float) -> Charge:
        """Pay for the vote that was asked about last, on the grid that was settled."""


@final
class SharedSpending(Spending):
    """All users pay for every pass, whether they take part in it or not."""

    def __init__(self, cap: float, budgets: Budgets, max_length: int) -> None:
        """Begin with the mu^2 of everything after length 1."""
        self._filter = GaussianFilter(cap)
        self._budgets = budgets
        self._max_length = max_length

    def measurement(self, length: int, share: float) -> Charge:
        """Take it from the whole."""
        # mu^2: part of what this length would get of what is left.
        return self.pay(self._filter.left * self._budgets.share(length, None) * share, 1.0)

    def rough(self, length: int) -> float:
        """Return the usual share of what is left."""
        return self._filter.left * self._budgets.share(length, None)

    def vote(self, length: int, outlook: Outlook | None) -> float:
        """Return a share of what is left, and for the last length all of it."""
        last = length == self._max_length
        # The last length takes all: what is left over would be lost.
        return self._filter.left if last else self._filter.left * self._budgets.share(length, outlook)

    def prevote(self, length: int) -> float | None:
        """There is none."""
        return None

    def pay(self, square: float, sensitivity: float) -> Charge:
        """Take it from the whole."""
        return Charge(square, self._filter.spend(square, sensitivity), None)


@final
class IndividualSpending(Spending):
    """Users pay for the passes in which they hold a candidate, each from a budget of its own.

    Prices are public: fixed shares of the cap, or where tokens are few the shares of `Budgets`. From some length on a
    user whose candidates stand in short runs pays more than the price, since it cannot take part in many more lengths.
    """

    reach = MOST_REACH

    def __init__(
        self,
        cap: float,
        budgets: Budgets,
        max_length: int,
        worths: Sequence[float] | None = None,
        *,
        prevote: bool = True,
    ) -> None:
        """Begin with the mu^2 that every user may spend after length 1."""
        self._prevotes = PREVOTE_PRICES if prevote else ()
        self._filter = IndividualFilter(cap)
        self._cap = cap
        self._budgets = budgets
        self._max_length = max_length
        self._usual = prices(max_length, worths)
        self._left = 1.0
        self._ratio = FALL
        self._paces: tuple[int, ...] | None = None

    def measurement(self, length: int, share: float) -> Charge:
        """Ask a part of the price of the vote."""
        # In parts of M, the mu^2 after length 1, as everything here.
        asked = self._share(length, None) * share
        self._left -= asked
        # Even shares are rounded down one by one, so sensitivity is 1: kappa is 0 (docs/privacy/individual.md, "Given
        # the past").
        price = self._filter.price(self._filter.cost(asked), 1.0)
        return Charge(price.square, price.sigma, price)

    def rough(self, length: int) -> float:
        """Return the usual price."""
        return self._share(length, None) * self._cap

    def vote(self, length: int, outlook: Outlook | None) -> float:
        """Return the price, and settle who pays more or less."""
        share = self._share(length, outlook)
        self._ratio = FALL
        if outlook is not None and outlook.density >= DENSE:
            # What a paced user keeps for later lengths grows with what these are expected to release.
            self._ratio = min(max(outlook.growth, FALL), RISE)
        self._left -= share
        self._paces = self._pace(length)
        return share * self._cap

    def prevote(self, length: int) -> float | None:
        """Return a little of the cap at short lengths, None where tokens are few; nobody pays more than the price."""
        self._paces = None
        return None if self.dense or length > 1 + len(self._prevotes) else self._prevotes[length - 2] * self._cap

    def pay(self, square: float, sensitivity: float) -> Charge:
        """Put the price on the vote."""
        price = self._filter.price(self._filter.cost(square / self._cap), sensitivity, self._paces)
        return Charge(price.square, price.sigma, price)

    def sweep(self) -> float:
        """Return the price of the sweep, for which users pay all that they have left."""
        # One pace for all: the whole of what is left, in 2^-20.
        self._paces = (REACH_STEPS,)
        return SWEEP_PRICE * self._cap

    def _share(self, length: int, outlook: Outlook | None) -> float:
        if not self.dense:
            return self._usual[length - 2]
        if length == self._max_length:
            # All that prices have left of 1, but something even if doubles have used it up: users pay no more than they
            # have.
            return max(self._left, 2.0**-30)
        return self._left * self._budgets.share(length, outlook)

    def _pace(self, length: int) -> tuple[int, ...] | None:
        """Return the part of what is left that users pay by their run, rounded down."""
        if not self.dense and length < PACED_FROM:
            return None
        most = self._max_length - length + 1
        if self.dense:
            # (lengths left,), prices relative to this length's.
            coming = self._ratio ** np.arange(most)
            spare = SPARE_OF_DENSE * float(coming.sum())
        else:
            coming = np.array(self._usual[length - 2 :])
            spare = SPARE[length - PACED_FROM] if length - PACED_FROM < len(SPARE) else 0.0
        # A run of r takes part in at most r more lengths, this one counted: it pays p_1 / (p_1 + ... + p_r + spare) of
        # what it has left.
        parts = coming[0] / (np.cumsum(coming) + spare)
        # By run, from 0; rounded down, so payments never exceed the part.
        return (0, *(int(part * REACH_STEPS) for part in np.minimum(parts, 1.0)))


def spending_of(ngrams: "NGrams", cap: float) -> Spending:
    """Return the rule of an extraction."""
    if ngrams.spending == "individual":
        worths = None if ngrams.values is None else worths_of(ngrams.values)
        return IndividualSpending(cap, ngrams.shares, ngrams.max_length, worths, prevote=ngrams.prevote)
    return SharedSpending(cap, ngrams.shares, ngrams.max_length)


def prices(max_length: int, worths: Sequence[float] | None = None) -> tuple[float, ...]:
    """Return the prices of lengths from 2 on, as shares of what follows length 1.

    Of walks that end before the prices become even, the last length costs twice as much: it need not leave anything for
    longer ones.

    Args:
        max_length: most tokens in a gram.
        worths: of each length, by `worths_of`; None where every gram counts the same.

    Example:
        >>> prices(3), [round(price, 3) for price in prices(3, (1.0, 1.0, 4.0))]
        ((0.25, 0.24), [0.246, 0.627])
    """
    first = FIRST_PRICES[: max_length - 1]
    rest = max_length - 1 - len(first)
    if rest:
        usual = (*first, *([(1.0 - fsum(FIRST_PRICES)) / rest] * rest))
    else:
        usual = (*first[:-1], *(2.0 * last for last in first[-1:]))
    return usual if worths is None or len(set(worths)) == 1 else _valued(usual, worths[1:])


def _valued(usual: tuple[float, ...], worths: Sequence[float]) -> tuple[float, ...]:
    """Return prices where a gram of one length is worth more than one of another."""
    # Where short grams count too, what users have left finds many of them in the sweep: usual prices by worth.
    spread = _adding_up([price * worth for price, worth in zip(usual, worths, strict=True)], fsum(usual))
    # Where the longest alone count, all parts of one must come out in their own votes: falling, and all is spent.
    chained = _adding_up([worth * CHAIN_FALL**number for number, worth in enumerate(worths)], 1.0)
    # 1 where length 2 is worth as much as the last, 0 where it is worth nothing.
    short = min(1.0, worths[0] / worths[-1])
    mixed = (short * one + (1.0 - short) * other for one, other in zip(spread, chained, strict=True))
    return tuple(max(price, LEAST_SHARE * least) for price, least in zip(mixed, usual, strict=True))


def _adding_up(parts: Sequence[float], total: float) -> list[float]:
    factor = total / fsum(parts)
    return [part * factor for part in parts]
