"""Functions for the power of the audit, which must detect broken variants almost surely, given true probabilities."""

from math import exp

from voxpop.testing.auditing import ERROR, TrialCounts, delta_shown, strays


def surely_refuted(
    joined: float, without: float, trials: int, epsilon: float, delta: float, error: float = ERROR, miss: float = 1e-3
) -> bool:
    """Return whether the audit refutes a mechanism with these true probabilities with probability above 1 - `miss`.

    Args:
        joined: The probability of the event with the canary.
        without: The probability of the event without the canary.
        trials: The number of trials with the canary, and of trials without it.
        epsilon: The epsilon of the claim.
        delta: The delta of the claim.
        error: The probability of a false alarm.
        miss: The probability of a miss.
    """
    likely = [_likely(probability, trials, miss / 4) for probability in (joined, without)]
    return all(
        delta_shown(TrialCounts(one, other, trials), epsilon, error) > delta for one in likely[0] for other in likely[1]
    ) and _same_side(likely, trials, epsilon, delta, error)


def _same_side(likely: list[tuple[int, int]], trials: int, epsilon: float, delta: float, error: float) -> bool:
    """Return whether one direction refutes the claim for all four pairs of extreme counts.

    Each direction is monotone in both counts, so this direction also refutes the claim for all counts between the
    extremes.
    """
    corners = [TrialCounts(one, other, trials).directions(error) for one in likely[0] for other in likely[1]]
    return any(all(each[way][0] - exp(epsilon) * each[way][1] > delta for each in corners) for way in range(4))


def surely_strays(claimed: float, real: float, trials: int, error: float = ERROR, miss: float = 1e-3) -> bool:
    """Return whether the count of hits almost surely distinguishes the real probability from the claimed probability.

    The probability of a miss is at most `miss`.

    Args:
        claimed: The probability of a hit according to the plan.
        real: The probability of a hit in the mechanism that runs.
        trials: The number of independent trials.
        error: The two-sided probability of a false alarm.
        miss: The probability of a miss.
    """
    low, high = _likely(real, trials, miss / 2)
    return all(strays(hits, trials, claimed) < error for hits in (low, high)) and (
        low > trials * claimed or high < trials * claimed
    )


def _likely(probability: float, trials: int, miss: float) -> tuple[int, int]:
    """Return a range for the number of hits. The number is outside on each side with probability at most `miss`."""
    from scipy.stats import binom

    return int(binom.ppf(miss, trials, probability)), int(binom.isf(miss, trials, probability))
