"""Set-only tables again, one weight after the other, by plain bisection and plain sums."""

from math import comb, exp, expm1, inf, log, log1p, nan


def moment(order, p, q):
    """E[(P/Q)^order] under Q, of two coins."""
    return p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)


def furthest(p, order, allowed):
    """The largest q at or above p with both divergences within the allowance, by bisection of the log-odds."""
    low = log(p / (1 - p))
    high = min(low + 60, 33.0)
    for _ in range(60):
        middle = (low + high) / 2
        q = 1 / (1 + exp(-middle))
        try:
            worst = max(moment(order, p, q), moment(order, q, p))
        except (OverflowError, ZeroDivisionError):
            worst = inf
        low, high = (middle, high) if worst <= exp((order - 1) * allowed) else (low, middle)
    return 1 / (1 + exp(-low))


def table(order, tau, rate, shares, weights):
    """Probabilities of weights from the least to the last of `weights`; `shares` by number of items held."""
    least = min(shares[1:])
    steps = {share: max(n for n in range(1, len(shares)) if shares[n] == share) for share in shares[1:]}
    found = {}
    for weight in range(least, weights):
        bounds = [furthest(found[max(weight - x, least)], order, tau / n) for x, n in steps.items() if found]
        bounds += [-expm1(-rate / n) for x, n in steps.items() if x >= weight]
        found[weight] = min(bounds) if bounds else nan
    return found


def pair_delta(epsilon, novel, groups):
    """The exact delta of a release by one user more, the larger direction, by enumeration.

    `novel` holds the probabilities of items that nobody else has; `groups` (number, with, without) the others, equal
    ones together: what was released is then known by the number of each group.
    """
    none = 1.0
    for probability in novel:
        none *= 1 - probability
    laws = [(none, 1.0)]
    for number, with_user, without in groups:
        pairs = [
            tuple(comb(number, k) * c**k * (1 - c) ** (number - k) for c in (with_user, without))
            for k in range(number + 1)
        ]
        laws = [(a * c, b * d) for a, b in laws for c, d in pairs]
    factor = exp(epsilon)
    forward = 1 - none + sum(max(0.0, a - factor * b) for a, b in laws)
    return max(forward, sum(max(0.0, b - factor * a) for a, b in laws))


def rate_of(delta):
    """The rate that a probability stands for."""
    return -log1p(-delta)
