"""The noise scale and the threshold for a budget.

Every number is rounded in the direction that increases privacy. The reported delta is computed afterwards from the
rounded numbers that the mechanism uses.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from voxpop.errors import BudgetError, InternalError
from voxpop.privacy import joint
from voxpop.privacy.budget import Budget, too_large
from voxpop.privacy.gaussian import NORMS, Noise, UniqueItems, lowest_threshold
from voxpop.privacy.gaussian import sigma as gaussian_sigma
from voxpop.privacy.numerics import around, crossing, lowest, numerical_slack

Accounting = Literal["joint", "published"]
_NINE_IN_TEN = 1.2815515655446004  # Phi(_NINE_IN_TEN) = 0.9
_UP = 1 + 2.0**-48
_MOST_UNITS = 2**62


@dataclass(frozen=True, slots=True)
class Scale:
    """The noise and the threshold of one round.

    Args:
        scale: The sigma of Gaussian noise, or the scale of the Laplace distribution.
        threshold: The smallest noisy weight of a released item.
        delta: The delta of this round on its own, at the epsilon of the budget, computed from the scale and the
            threshold.
    """

    scale: float
    threshold: float
    delta: float


def calibrate(
    budget: Budget,
    novelty: UniqueItems,
    *,
    noise: Noise = "gaussian",
    accounting: Accounting = "joint",
    sensitivity: float = 1.0,
    grid: float = 2.0**-32,
    rest: float = 0.0,
) -> Scale:
    """Return the noise scale and the threshold of a round within the budget.

    The accounting `published` follows the papers and uses half of delta for the noise and half for the threshold. The
    accounting `joint` uses the exact bound of `joint.py`. Many values of sigma satisfy this bound. The chosen sigma
    minimises threshold + 1.28 sigma, which is the weight of an item that is released with probability 0.9. For Laplace
    noise, both accountings are identical.

    Args:
        budget: The privacy budget.
        novelty: The possible weights of items that only one user has.
        noise: `gaussian` or `laplace`. Its norm must equal the norm of `novelty`.
        accounting: `joint` or `published`.
        sensitivity: The bound on how much one user changes all weights together, in the norm of `novelty`.
        grid: The unit of thresholds. Thresholds are rounded up to multiples of this unit.
        rest: The cost of later Gaussian releases about known items. Their total mu is at most `rest / scale`. Use 0 if
            there are no later releases.

    Raises:
        BudgetError: If the budget cannot be met, or the parameters are inconsistent.

    Example:
        >>> words = UniqueItems(limit=100, shape="symmetric", least=0.1, norm=2)
        >>> published = calibrate(Budget(3, math.exp(-10)), words, accounting="published")
        >>> round(published.scale, 5), round(published.threshold, 5)
        (1.33279, 6.82366)
        >>> exact = calibrate(Budget(3, math.exp(-10)), words)
        >>> exact.threshold < 6.4
        True
    """
    _check_calibration(novelty, noise, sensitivity)
    if accounting not in get_args(Accounting):
        raise BudgetError(f"`accounting` must be 'joint' or 'published', got {accounting!r}.")
    if rest and noise != "gaussian":
        raise BudgetError("`rest` applies only to Gaussian noise. Remove it.")
    target = _target(budget)
    if noise == "laplace":
        # The scale is b = S / epsilon, and novel items get all of delta.
        scale, share = sensitivity / budget.epsilon * _UP, -math.expm1(math.log1p(-target)) / _UP
        threshold = lowest_threshold(novelty, noise, scale, share, sensitivity)
    elif accounting == "published":
        scale = gaussian_sigma(budget.epsilon, target / 2, math.hypot(sensitivity, rest)) * (_UP if rest else 1.0)
        threshold = lowest_threshold(novelty, noise, scale, target / 2, sensitivity)
    else:
        scale, threshold = _joint(budget.epsilon, target, novelty, sensitivity, rest)
    settled = Scale(scale, _on_grid(threshold, grid), 0.0)
    for attempt in range(40):
        # Raise the threshold by 1, 2, 4, ... steps of the grid until the delta of the rounded numbers is within the
        # budget.
        spent = total_delta(
            settled, budget.epsilon, novelty, noise=noise, sensitivity=sensitivity, mu_rest=rest / scale
        )
        if spent <= budget.delta:
            return replace(settled, delta=spent)
        settled = replace(settled, threshold=_on_grid(settled.threshold + 2.0**attempt * grid, grid))
    raise InternalError("the calibrated numbers exceed the budget for which they were computed")


def total_delta(
    only: Scale,
    epsilon: float,
    novelty: UniqueItems,
    *,
    noise: Noise,
    sensitivity: float = 1.0,
    mu_rest: float = 0.0,
) -> float:
    """Return a certified upper bound on delta for a round, including numerical slack.

    Args:
        only: The noise scale and the threshold of the round.
        epsilon: The epsilon of the guarantee.
        novelty: The possible weights of items that only one user has.
        noise: `gaussian` or `laplace`.
        sensitivity: The bound on how much one user changes all weights together, in the norm of `novelty`.
        mu_rest: The total mu of other Gaussian releases about items that are known in advance or already released.

    Returns:
        The bound on delta, rounded up, at most 1.

    Raises:
        BudgetError: If the parameters are inconsistent.
    """
    _check_calibration(novelty, noise, sensitivity)
    if mu_rest and noise != "gaussian":
        raise BudgetError("`mu_rest` applies only to Gaussian noise. Remove it.")
    return joint.threshold_delta(novelty, noise, epsilon, only.scale, only.threshold, sensitivity, mu_rest)


def _joint(epsilon: float, target: float, novelty: UniqueItems, sensitivity: float, rest: float) -> tuple[float, float]:
    """Find the best sigma for the sampled cases, and return it with a threshold that satisfies every certified case."""
    goal = target / joint.ROUNDING * (1 - 1e-12)
    # This sigma would suffice if all items were known in advance, because then mu^2 = (S^2 + rest^2) / sigma^2, and
    # novel items would use no part of delta.
    least_sigma = gaussian_sigma(epsilon, goal, math.hypot(sensitivity, rest))
    sampled = joint.sampled_cases(novelty, sensitivity)

    def threshold(sigma: float, cases: joint.Cases, bracket: tuple[float, float], tolerance: float) -> float:
        def excess(value: float) -> float:
            worst = float(np.max(joint.deltas(cases, epsilon, sigma, value, rest / sigma)))
            return math.log(worst / goal) if worst > 0 else -math.inf

        # The probability that novel items are below this threshold is so close to 1 that doubles cannot distinguish it
        # from 1.
        highest = float(np.max(cases.weight)) + 45 * sigma
        return crossing(excess, *around(excess, *bracket, 0.0, highest), tolerance)

    guess = (0.0, math.inf)

    def cost(log_extra: float) -> float:
        nonlocal guess
        sigma = least_sigma * (1 + math.exp(log_extra))
        found = threshold(sigma, sampled, guess, 1e-9)
        guess = (found - 0.01 * sigma, found + 0.01 * sigma)  # where the search for the next sigma starts
        return found + _NINE_IN_TEN * sigma

    # If there are later releases, the smallest noise scale is best, because all releases share it.
    log_extra = math.log(1e-7) if rest else lowest(cost, math.log(1e-7), 0.0)
    sigma = least_sigma * (1 + math.exp(log_extra))
    least = threshold(sigma, sampled, guess, 1e-12)
    certified = joint.certified_cases(novelty, sensitivity)
    # A case that is satisfied at this threshold is also satisfied at higher thresholds, so only the remaining cases are
    # examined again.
    open_cases = certified.where(joint.deltas(certified, epsilon, sigma, least, rest / sigma) > goal)
    return sigma, threshold(sigma, open_cases, (least, least + 1e-3 * sigma), 1e-12) if len(open_cases.items) else least


def _on_grid(threshold: float, grid: float) -> float:
    units = math.ceil(max(threshold, 0.0) / grid)
    if units >= _MOST_UNITS:
        raise BudgetError(
            f"the threshold would be {threshold:.3g}, too high for integer weights in steps of {grid:.3g}. "
            "Raise `epsilon` or `delta`, or lower the limit."
        )
    return units * grid


def _target(budget: Budget) -> float:
    """Return delta minus the cost of finite arithmetic."""
    if budget.delta <= 0:
        raise BudgetError(
            "`delta` must be more than 0, got 0. Without a public list of items, every mechanism needs delta. "
            "Choose a small delta such as 1e-7."
        )
    slack = numerical_slack(budget.epsilon)
    if 2 * slack >= 1.0:
        raise too_large(budget.epsilon)
    if slack >= budget.delta / 2:
        raise BudgetError(
            f"`delta` must be at least {2 * slack:.2g} at epsilon {budget.epsilon:g}, got {budget.delta:g}. "
            "Below that, decisions with 128 random bits cost more than half of it. Raise `delta` or lower `epsilon`."
        )
    return budget.delta - slack


def _check_calibration(novelty: UniqueItems, noise: str, sensitivity: float) -> None:
    if noise not in NORMS:
        raise BudgetError(f"`noise` must be 'gaussian' or 'laplace', got {noise!r}.")
    if novelty.norm != NORMS[noise]:
        raise BudgetError(
            f"{noise} noise needs weights bounded in norm {NORMS[noise]}, got a weighting bounded in norm "
            f"{novelty.norm}. Choose the other noise, or a weighting with this norm."
        )
    if not 0 < sensitivity < math.inf:
        raise BudgetError(f"`sensitivity` must be finite and more than 0, got {sensitivity}.")
    # The norm of `limit` items that all have the smallest weight must not exceed the sensitivity.
    total = novelty.least * novelty.limit ** (1 / novelty.norm)
    if total > sensitivity * (1 + 1e-12):
        raise BudgetError(
            f"{novelty.limit} items of the smallest weight {novelty.least:g} have a total of {total:g} in norm "
            f"{novelty.norm}, more than the sensitivity {sensitivity:g}. Lower the limit or the smallest weight."
        )
