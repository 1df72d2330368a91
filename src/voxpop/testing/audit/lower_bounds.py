"""From counts to certain lower bounds of epsilon and delta.

An event happened in so many of n independent trials with the canary, and in so many without it. Clopper and Pearson's
intervals (Biometrika 1934) hold both probabilities but with a chance of error, split over four one-sided bounds: low
and high, with and without. A mechanism that is (epsilon, delta)-private satisfies P(E) <= e^epsilon P'(E) + delta in
both directions, for the event and for its complement; each of these four is evaluated at the bounds.
"""

from dataclasses import dataclass
from math import exp, inf, log

ERROR = 1e-9
"""Chance that the bounds of one case are wrong, by default."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How often an event happened.

    Attributes:
        joined: trials with the canary in which it did.
        without: trials without the canary in which it did.
        trials: how many there were of each.
    """

    joined: int
    without: int
    trials: int

    def directions(self, error: float) -> list[tuple[float, float]]:
        """Return (at least, at most) of the probabilities that privacy compares, right but with probability `error`."""
        low, high = clopper_pearson(self.joined, self.trials, error / 4)
        low_without, high_without = clopper_pearson(self.without, self.trials, error / 4)
        return [
            (low, high_without),
            (low_without, high),
            (1.0 - high, 1.0 - low_without),
            (1.0 - high_without, 1.0 - low),
        ]


def clopper_pearson(hits: int, trials: int, error: float) -> tuple[float, float]:
    """Return a lower and an upper bound of a probability, each wrong with probability at most `error`.

    Args:
        hits: in so many trials the event happened.
        trials: independent, at least 1.
        error: more than 0.

    Example:
        >>> low, high = clopper_pearson(0, 100, 0.05)
        >>> low, round(high, 4)
        (0.0, 0.0295)
    """
    from scipy.special import betaincinv

    low = float(betaincinv(hits, trials - hits + 1, error)) if hits else 0.0
    high = 1.0 - float(betaincinv(trials - hits, hits + 1, error)) if hits < trials else 1.0
    return low, high


def epsilon_shown(counts: Counts, delta: float, error: float = ERROR) -> float:
    """Return an epsilon below which no mechanism of this delta shows such counts, but with probability `error`.

    Args:
        counts: of an event.
        delta: of the claim.
        error: chance that the bound is wrong.

    Returns:
        The lower bound, at least 0; infinite where no epsilon would do.

    Example:
        >>> 0.9 < epsilon_shown(Counts(joined=73_000, without=27_000, trials=100_000), delta=0.0) < 1
        True
    """
    return max(0.0, *(ratio(least - delta, most) for least, most in counts.directions(error)))


def ratio(least: float, most: float) -> float:
    """Return the logarithm of a ratio: 0 where there is nothing above, infinite where there is nothing below."""
    if least <= 0.0:
        return 0.0
    return log(least / most) if most > 0.0 else inf


def delta_shown(counts: Counts, epsilon: float, error: float = ERROR) -> float:
    """Return a delta below which no mechanism of this epsilon shows such counts, but with probability `error`.

    Args:
        counts: of an event.
        epsilon: of the claim.
        error: chance that the bound is wrong.
    """
    return max(0.0, *(least - exp(epsilon) * most for least, most in counts.directions(error)))


def strays(hits: int, trials: int, probability: float) -> float:
    """Return how likely so many hits, or more extreme ones, are if the probability is this one: two-sided.

    Args:
        hits: in so many trials the event happened.
        trials: independent.
        probability: of one trial.
    """
    from scipy.special import bdtr, bdtrc

    below = float(bdtr(hits, trials, probability))
    above = float(bdtrc(hits - 1, trials, probability)) if hits else 1.0
    return min(1.0, 2.0 * min(below, above))


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
