"""The total privacy cost of several releases from one collection.

Each release is dominated by one symmetric pair of distributions. Dominating pairs compose, even if the choice of a
later release depends on an earlier result (Zhu, Dong and Wang, 2022). On each side, the pair has a revealing outcome,
which is impossible on the other side. If no revealing outcome occurs, the pair is

* for a release with an `Expense`, a Gaussian mechanism with parameter mu, and the revealing outcome has probability
  `hit`;
* for any other (epsilon_j, delta_j)-private release, randomised response with loss epsilon_j or -epsilon_j, and the
  revealing outcome has probability delta_j (Kairouz, Oh and Viswanath, 2015).

Let D = 1 - (1 - d_1)(1 - d_2)... over all revealing outcomes, mu^2 the sum of the squares of all mu, and L the sum of
the losses of randomised responses. Then the delta in both directions between neighbours is

    D + (1 - D) E[delta_G(epsilon - L; mu)]

Every release may also be treated as a release of the second kind. The parameters of a release must not depend on the
outcomes of other releases. Otherwise, an account with caps is needed (`voxpop.ledger`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import Any, Final, TypeAlias, final

import numpy as np

from voxpop.errors import InputError
from voxpop.kernels.arrays import Floats
from voxpop.kernels.proved import proved
from voxpop.privacy.budget import Budget
from voxpop.privacy.gaussian import log_delta
from voxpop.privacy.guarantee import WHY_SMALLER, Guarantee
from voxpop.privacy.joint import ROUNDING, either
from voxpop.privacy.numerics import MOST_PASSES, crossing, walk_slack

MOST_LOSSES = 4096
LOSS_SLACK = 1e-12


def compose(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Return the total guarantee of releases about the same users.

    The delta of the total is the sum of all deltas, and its epsilon is the smallest epsilon for this delta.

    Args:
        guarantees: The guarantees of one or more releases.

    Returns:
        The guarantee of all releases together. Its epsilon is rounded up to six digits, and it is at most the sum of
        all epsilons.

    Raises:
        InputError: There is no guarantee, or the guarantees have different neighbouring relations.

    Example:
        >>> once = Guarantee(1, 1e-7)
        >>> print(compose([once, once]))
        (2, 2e-07)-DP, one user added or removed
    """
    neighbours = {each.neighbours for each in guarantees}
    if len(neighbours) != 1:
        raise InputError(
            f"all guarantees must have one neighbouring relation; these have {', '.join(sorted(neighbours)) or 'none'}."
        )
    most = sum_up([each.epsilon for each in guarantees])
    delta = min(1.0, sum_up([each.delta for each in guarantees]))
    private = all(each.private for each in guarantees)
    server_view = " ".join(dict.fromkeys(each.server_view for each in guarantees if each.server_view))
    return Guarantee(_least_epsilon(guarantees, delta, most), delta, neighbours.pop(), private, server_view)


@final
@dataclass(frozen=True, slots=True)
class Admission:
    """The entry of a ledger that admitted a result.

    Attributes:
        dataset: The name of the data set.
        entry: The number of the entry.
        label: The label of the run, or an empty string.
        budget: The budget of the data set, which bounds the total of all its entries.
        ledger: The random name of the account, which distinguishes the accounts of one data set in different ledgers.
    """

    dataset: str
    entry: int
    label: str
    budget: Budget
    ledger: str

    def __str__(self) -> str:
        budget = f"budget ({self.budget.epsilon:g}, {self.budget.delta:g})"
        return f'entry {self.entry} of "{self.dataset}", {budget}' + (f', run "{self.label}"' if self.label else "")

    @property
    def account(self) -> tuple[str, str, Budget]:
        """The fields that all entries of one data set share."""
        return self.ledger, self.dataset, self.budget

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "Admission":
        """Return the admission from the dictionary that `to_dict` returned.

        Raises:
            ValueError: A field has the wrong type, or is not a single line.
        """
        found = Admission(**{**values, "budget": Budget(**values["budget"])})
        texts = (found.dataset, found.label, found.ledger)
        if type(found.entry) is not int or not all(isinstance(each, str) and each.isprintable() for each in texts):
            raise ValueError("not an admission")
        return found


Charged: TypeAlias = tuple[Guarantee, Admission | None]
"""The guarantee of a result, and the entry of the ledger that admitted it."""


@final
@dataclass(frozen=True, slots=True)
class Total:
    """The total guarantee of several releases, under two assumptions about their budgets.

    Attributes:
        adaptive: The guarantee that is valid even if each budget was chosen after earlier results. With a ledger, this
            is the budget of the ledger, which covers all its entries. Without a ledger, it consists of the sums of
            epsilons and deltas.
        fixed: The guarantee of the releases if all budgets were fixed in advance. It can be smaller, because the costs
            of Gaussian noise add up in squares.
        charged: Whether `adaptive` is the budget of a ledger.
        by_squares: Whether `fixed` is smaller than the sum of epsilons because the costs of noise add up in squares.

    Example:
        >>> once = Guarantee(1, 1e-7)
        >>> print(total_of([(once, None), (once, None)]))
        (2, 2e-07)-DP, one user added or removed; if all budgets were fixed in advance: (2, 2e-07)
    """

    adaptive: Guarantee
    fixed: Guarantee
    charged: bool = False
    by_squares: bool = False

    def __str__(self) -> str:
        return f"{self.adaptive}; {self.if_fixed}"

    @property
    def reason(self) -> str:
        """The reason why the second total is smaller than the sum of the epsilons, or an empty string if it is not."""
        return WHY_SMALLER if self.by_squares else ""

    @property
    def even_if(self) -> str:
        """The first total and its assumption."""
        covers = ", the budget of the ledger, for everything that is charged to it" if self.charged else ""
        return f"{self.adaptive}{covers}, even if each budget was chosen after earlier results"

    @property
    def if_fixed(self) -> str:
        """The second total and its assumption."""
        return f"if all budgets were fixed in advance: ({self.fixed.epsilon:g}, {self.fixed.delta:g})"

    def to_dict(self) -> dict[str, Any]:
        """Return both guarantees, ready for JSON."""
        return {"adaptive": self.adaptive.to_dict(), "fixed": self.fixed.to_dict()}


def total_of(results: Sequence[Charged]) -> Total:
    """Return the total of results about the same users.

    Args:
        results: One or more pairs of a guarantee and the ledger entry that admitted the result (or None).

    Raises:
        InputError: There is no result, or the guarantees have different neighbouring relations.
    """
    guarantees = [guarantee for guarantee, _ in results]
    fixed = compose(guarantees)
    accounts: dict[tuple[str, str, Budget], list[Guarantee]] = {}
    for guarantee, entry in results:
        if entry is not None:
            accounts.setdefault(entry.account, []).append(guarantee)
    alone = [guarantee for guarantee, entry in results if entry is None]
    for account in [each for each, charged in accounts.items() if not covers_guarantees(each[2], charged)]:
        alone += accounts.pop(account)
    counted: list[Guarantee | Budget] = [*alone, *(budget for _, _, budget in accounts)]
    epsilon, delta = map(float, _sums(counted))
    if accounts and fixed.epsilon > epsilon:
        # At the epsilon of a ledger, the total delta of admitted releases can exceed the sum of their deltas, but not
        # the delta of the ledger.
        delta = min(1.0, delta)
        fixed = replace(fixed, epsilon=_least_epsilon(guarantees, delta, epsilon), delta=delta)
    by_squares = Fraction(fixed.epsilon) < _sums(guarantees)[0]
    return Total(replace(fixed, epsilon=epsilon, delta=min(1.0, delta)), fixed, bool(accounts), by_squares)


def covers_guarantees(budget: Budget, guarantees: Sequence[Guarantee]) -> bool:
    """Return whether a ledger with this budget could have admitted the releases. If not, the budget was edited."""
    epsilon, delta = _sums(guarantees)
    if epsilon <= Fraction(repr(float(budget.epsilon))) and delta <= Fraction(repr(float(budget.delta))):
        return True
    # If all budgets were fixed in advance, the releases that a ledger admits would also be within its budget.
    return composed_delta(budget.epsilon, guarantees) <= budget.delta


LOOSE: Final = 4.0
"""A spend is loose if its delta, at the epsilon of its guarantee, exceeds the delta of the guarantee by more than this
factor. An example is the spend of a ranking, because a ranking is not a Gaussian mechanism.
"""


@proved("composition.md#claim-1-fixed-budgets")
def composed_delta(epsilon: float, guarantees: Sequence[Guarantee], *, plain: bool = True) -> float:
    """Return the delta of all releases together at one epsilon.

    Proof: "delta in both directions is D + (1 - D) E[delta_G(epsilon - L; mu)]."

    Args:
        epsilon: The epsilon of all releases together, at least 0.
        guarantees: The guarantees of the releases.
        plain: Whether to also use the bounds that consider only the epsilon and delta of releases with an `Expense`.

    Returns:
        The smallest of three bounds. One bound uses every `Expense`, one uses only the `Expense` objects that are not
        loose, and one uses none of them. If `plain` is False, only the first bound is computed.
    """
    tightest = _delta(epsilon, *_split(guarantees, math.inf))
    for loosest in (LOOSE, 0.0) if plain else ():
        tightest = min(tightest, _delta(epsilon, *_split(guarantees, loosest)))
    return tightest


def _split(guarantees: Sequence[Guarantee], loosest: float) -> tuple[list[Guarantee], list[Guarantee]]:
    """Return the releases that are composed by epsilon and delta, and the releases that are composed by their spend."""

    def loose(each: Guarantee) -> bool:
        if each.spend is None or loosest == math.inf:
            return each.spend is None
        return _delta(each.epsilon, [], [each]) > loosest * each.delta

    return [each for each in guarantees if loose(each)], [each for each in guarantees if not loose(each)]


def sum_up(values: Sequence[float]) -> float:
    """Return the sum of values, rounded up, so it is never below the true sum."""
    exact = sum((Fraction(value) for value in values), Fraction(0))
    total = float(exact)
    return math.nextafter(total, math.inf) if Fraction(total) < exact else total


def _sums(counted: Sequence[Guarantee | Budget]) -> tuple[Fraction, Fraction]:
    """Return the sums of epsilons and deltas as written in decimal, so that 0.1 + 0.2 is 0.3 as in a ledger."""
    pairs = [(Fraction(repr(float(each.epsilon))), Fraction(repr(float(each.delta)))) for each in counted]
    return sum((epsilon for epsilon, _ in pairs), Fraction(0)), sum((delta for _, delta in pairs), Fraction(0))


def _least_epsilon(guarantees: Sequence[Guarantee], delta: float, most: float) -> float:
    if len(guarantees) == 1 or delta <= 0:
        return most

    def excess(epsilon: float) -> float:
        value = composed_delta(epsilon, guarantees)
        return math.log(value / delta) if value > 0 else -math.inf

    if excess(most) > 0:
        return most
    # Guarantees are printed with six digits.
    least = Context(prec=6, rounding=ROUND_CEILING).create_decimal_from_float(crossing(excess, 0.0, most, 1e-12))
    return min(most, float(least))


@proved("composition.md#claim-1-fixed-budgets")
def _delta(epsilon: float, plain: Sequence[Guarantee], spending: Sequence[Guarantee]) -> float:
    """Return the delta of all releases together, both the releases without a spend and the releases with one.

    Proof: "On outcomes that are possible on both sides, the densities are 1 - D times those of a shifted Gaussian and
    randomised responses."
    """
    spends = [each.spend for each in spending if each.spend]
    hit = either([*(each.hit for each in spends), *(each.delta for each in plain)])
    if hit >= 1:
        return 1.0
    mu = math.hypot(*(each.mu for each in spends))
    # These are float64 arrays of the values of L and of the probability of each value if the user is in the data.
    losses, chances = _losses([each.epsilon for each in plain])
    # This is the formula in the docstring of this module.
    exact = hit + (1 - hit) * float(chances @ np.exp(log_delta(epsilon - losses, mu)))
    return min(1.0, exact * ROUNDING + walk_slack(epsilon, MOST_PASSES) * len(spending))


@proved("composition.md#claim-1-fixed-budgets")
def _losses(epsilons: Sequence[float]) -> tuple[Floats, Floats]:
    """Return the possible sums of the losses of randomised responses, never rounded down, and their probabilities.

    Proof: "More than 4,096 different values of L are rounded up to a grid."

    The probabilities apply if the user is in the data.
    """
    losses: Floats = np.zeros(1)
    chances: Floats = np.ones(1)
    for number, epsilon in enumerate(sorted(epsilons), start=1):
        # Randomised response returns the true answer with probability e^epsilon / (1 + e^epsilon).
        likelier = 1 / (1 + math.exp(-epsilon))
        both = np.concatenate([losses - epsilon, losses + epsilon])
        weights = np.concatenate([chances * (1 - likelier), chances * likelier])
        distinct, place = np.unique(both.round(12), return_inverse=True)
        if distinct.size > MOST_LOSSES:
            step = sum(sorted(epsilons)[:number]) / (MOST_LOSSES // 4)
            # If there are too many losses, they are rounded up to a grid, which can only increase delta.
            steps, place = np.unique(np.ceil(both / step), return_inverse=True)
            distinct = steps * step
        losses, chances = distinct + LOSS_SLACK, np.bincount(place, weights).astype(np.float64)
    return losses, chances
