"""Power of the audit: whether a deliberately broken variant is detected almost surely, by its true probabilities."""

from math import exp

from voxpop.testing.auditing import ERROR, Counts, delta_shown, strays


def surely_refuted(
    joined: float, without: float, trials: int, epsilon: float, delta: float, error: float = ERROR, miss: float = 1e-3
) -> bool:
    """Say whether a mechanism with these true probabilities is refuted with probability above 1 - `miss`.

    Args:
        joined: probability of the event with the canary.
        without: the same without it.
        trials: of each.
        epsilon: of the claim.
        delta: of the claim.
        error: chance of a false alarm.
        miss: chance of a miss.
    """
    likely = [_likely(probability, trials, miss / 4) for probability in (joined, without)]
    return all(
        delta_shown(Counts(one, other, trials), epsilon, error) > delta for one in likely[0] for other in likely[1]
    ) and _same_side(likely, trials, epsilon, delta, error)


def _same_side(likely: list[tuple[int, int]], trials: int, epsilon: float, delta: float, error: float) -> bool:
    """Say whether one direction refutes at all four corners, so that it does between them: each is monotone."""
    corners = [Counts(one, other, trials).directions(error) for one in likely[0] for other in likely[1]]
    return any(all(each[way][0] - exp(epsilon) * each[way][1] > delta for each in corners) for way in range(4))


def surely_strays(claimed: float, real: float, trials: int, error: float = ERROR, miss: float = 1e-3) -> bool:
    """Say whether hits of a real probability are told from a claimed one with probability above 1 - `miss`.

    Args:
        claimed: what the plan says.
        real: what runs.
        trials: independent.
        error: chance of a false alarm, two-sided.
        miss: chance of a miss.
    """
    low, high = _likely(real, trials, miss / 2)
    return all(strays(hits, trials, claimed) < error for hits in (low, high)) and (
        low > trials * claimed or high < trials * claimed
    )


def _likely(probability: float, trials: int, miss: float) -> tuple[int, int]:
    """Return a range of hits, left on either side with probability at most `miss`."""
    from scipy.stats import binom

    return int(binom.ppf(miss, trials, probability)), int(binom.isf(miss, trials, probability))
