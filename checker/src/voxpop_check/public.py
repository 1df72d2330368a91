"""Releases about public items (counts, rankings and sequences), and optimal selection with one item per user."""

from fractions import Fraction
from types import SimpleNamespace

from flint import arb

from .balls import down, gauss, largest, numerical, odds, require, up, walk
from .schema import exact

Terms = list[tuple[str, arb, str]]


def counts(numbers: SimpleNamespace, epsilon: arb, _: arb) -> Terms:
    """Prove counts (docs/privacy/counts.md).

    The mu^2 of counts is the maximum of the sum of limits divided by sigma^2, over the entries of the menu.
    """
    square, menu, classes = counts_square(numbers), numbers.menu, numbers.classes_sigma
    passes = max(1, *(len(each.limits) for each in menu)) + (1 if classes > 0 else 0)
    shared = gauss(epsilon, square.sqrt())
    return [
        ("shared", shared, f"delta_G at mu {square.sqrt().str(9, radius=False)}"),
        ("slack", walk(epsilon, passes), "128 bits"),
    ]


def counts_square(numbers: SimpleNamespace) -> arb:
    """Return the mu^2 of counts, including the choice of a limit."""
    menu, classes = numbers.menu, numbers.classes_sigma
    require(len(menu) >= 1 and all(each.sigma > 0 and min(each.limits, default=0) >= 0 for each in menu), "no menu")
    require(classes >= 0 and (len(menu) == 1 or classes > 0), "a choice without noise")
    require(numbers.chosen is None or 0 <= numbers.chosen < len(menu), "the choice is not in the menu")
    square = largest(max(1, sum(each.limits)) / each.sigma**2 for each in menu)
    # One user changes one class of the histogram for the choice by 1.
    return square + 1 / classes**2 if classes > 0 else square


def picks(numbers: SimpleNamespace, epsilon: arb, _: arb) -> Terms:
    """Prove rankings (docs/privacy/top.md), which are k picks of bounded range, by the better of two bounds."""
    k, m, r = max(1, numbers.picks), max(1, numbers.candidates), numbers.rate
    require(r > 0 and 0 <= numbers.picks <= numbers.candidates, "the numbers of a ranking are out of range")
    g = rounded(numbers)
    left = down(epsilon - 2 * g)
    require(left > 0, "rounding takes the whole epsilon")
    if k * r <= left:
        picked = arb(0)
    else:
        # Every order a > 1 gives a bound. As a function of ln(a - 1), this bound has one minimum near the best order.
        low, high = -20.0, 20.0
        while high - low > 1e-6:
            x, y = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, y) if _order(k, r, left, x) < _order(k, r, left, y) else (x, high)
        picked = _order(k, r, left, low)
    slack = m * arb(2) ** -77 * odds(epsilon)
    return [
        ("picks", up(g.exp() * picked), f"{k} picks of bounded range {r.str(6, radius=False)}"),
        ("slack", slack, "draws"),
    ]


def rounded(numbers: SimpleNamespace) -> arb:
    """Return g for which rounded noise changes the probability of every ranking by a factor of at most e^g."""
    k = max(1, numbers.picks)
    return k * (k + 1) * (numbers.rate * arb(2) ** -28 + arb(2) ** -43)


def _order(k: int, r: arb, epsilon: arb, log: float) -> arb:
    """Return the delta that the Renyi divergence of order a = 1 + e^log gives."""
    a = 1 + arb(log).exp()
    return up(((a - 1) * (k * a * r * r / 8 - epsilon)).exp() * (1 - 1 / a) ** a / (a - 1))


def selection(numbers: SimpleNamespace, epsilon: arb, _: arb) -> Terms:
    """Prove optimal selection (docs/privacy/optimal-selection.md), which is private at the delta in the certificate."""
    require(0 < numbers.delta < 1 and numbers.few >= 0, "the numbers of the rule are out of range")
    return [
        ("rule", numbers.delta, "the recursion of the rule"),
        ("slack", numerical(epsilon), "decisions by 128 bits"),
    ]


def paths(numbers: SimpleNamespace, epsilon: arb, _: arb) -> Terms:
    """Prove sequences (docs/privacy/sequences.md).

    The shares add up to at most 1 on every path, so the counts cost at most their epsilon.
    """
    require(numbers.epsilon > 0 and numbers.max_length >= 1 and numbers.max_gram >= 1, "the tree is out of range")
    least, found = numbers.least, numbers.finding
    # Fewer steps are counted only if lengths are released, and only trees of contexts release lengths.
    ruled = least is not None and numbers.per_noise is not None and numbers.tree == "contexts" and 0 < least <= 1
    require(ruled or least is numbers.per_noise is None, "the rule for the number of steps is out of range")
    require(numbers.usual is None or (ruled and 1 <= numbers.usual <= numbers.max_length), "no length would be usual")
    require(found is not None or numbers.alphabet is not None, "the alphabet is neither given nor found")
    spent = numbers.epsilon + (Fraction(0) if found is None else exact(found.claim.epsilon))
    require(spent <= exact(epsilon), "the parts add up to more than epsilon")
    return [("counts", arb(0), f"pure at {numbers.epsilon}")]
