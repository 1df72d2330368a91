"""What a guarantee means to whoever must judge it: odds before and after, and when to be cautious."""

from decimal import ROUND_CEILING, Context, Decimal
from math import exp, floor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from voxpop.privacy.guarantee import Guarantee

LARGE_EPSILON = 4.0
HARDLY_ANY = 10.0
LARGE_DELTA = 1e-5
FAR_BELOW = 0.01
"""Delta is far below one over the number of people where it is at most this part of it."""
LARGEST_EXPONENT = 700.0
SUPPORT = 100.0
"""Odds are stated for conclusions that more than so many times delta of all releases suggest."""
NINES = 8


def odds_after(epsilon: float, delta: float, before: float) -> float:
    """Return how sure somebody can be at most, after a release, that a certain person took part.

    This holds for every conclusion that a release suggests with a probability of at least 100 delta where the person
    took part. Let it be d. Where the person did not, its probability is at least (d - delta) / e^epsilon, which is
    0.99 d / e^epsilon or more, and Bayes' rule gives the rest. Without delta it holds for every conclusion.

    Args:
        epsilon: of the guarantee.
        delta: of the guarantee.
        before: how sure they were before, strictly between 0 and 1.

    Returns:
        A probability.
    """
    grown = exp(min(epsilon, LARGEST_EXPONENT)) * (SUPPORT / (SUPPORT - 1.0) if delta else 1.0)
    # Bayes: odds grow by e^epsilon at most, and by 100 / 99 for what delta may hide.
    return grown * before / (grown * before + 1.0 - before)


def least_accused(epsilon: float, delta: float, found: float) -> float:
    """Return which share of those who took no part a test accuses at least, if it finds who took part this often.

    The hypothesis-testing reading of (epsilon, delta)-differential privacy, exact in both directions.
    """
    grown = exp(min(epsilon, LARGEST_EXPONENT))
    # The trade-off function of (epsilon, delta), with beta = 1 - found: max(0, e^-eps (1 - delta - beta), 1 - delta -
    # e^eps beta) (Dong, Roth and Su, 2022).
    return min(1.0, max(0.0, (found - delta) / grown, 1.0 - delta - (1.0 - found) * grown))


def people_covered(delta: float) -> int:
    """Return the most people for whom a delta is far below one over their number: a hundredth of it or less."""
    return floor(FAR_BELOW / delta * (1 + 1e-12))


def meaning(guarantee: "Guarantee", user: str = "user") -> str:
    """Return what a guarantee means, in a sentence.

    Args:
        guarantee: of a release.
        user: what one user is called.
    """
    if guarantee.unproved:
        return "Nothing is promised to anybody: use this to reproduce a paper, not on what people hold."
    if not guarantee.private:
        return "Whoever knows the seed can compute the noise again and take it off. Use this for tests only."
    factor = f"{exp(min(guarantee.epsilon, LARGEST_EXPONENT)):.3g}"
    return (
        f"Take away any one {user}, or add one, with everything it holds: the probability of anything that could be "
        f"released becomes at most {factor} times (e^{guarantee.epsilon:g}) what it was, plus {guarantee.delta:g}."
    )


def cautions(guarantee: "Guarantee") -> list[str]:
    """Return what somebody should know before signing: nothing where epsilon and delta are usual.

    Args:
        guarantee: of a release.

    Returns:
        Sentences, on epsilon above 4 and on delta above 1e-5.
    """
    if not guarantee.private:
        return []
    said = []
    epsilon, delta = guarantee.epsilon, guarantee.delta
    if epsilon > LARGE_EPSILON:
        strength = "protects hardly anybody" if epsilon > HARDLY_ANY else "is large"
        sure = percent_at_most(odds_after(epsilon, delta, 0.5))
        said.append(
            f"Epsilon {epsilon:g} {strength}: who thought it as likely as not that a certain person took part may be "
            f"up to {sure} sure after this release. 1 is strict, 4 is common."
        )
    if delta > LARGE_DELTA:
        people = people_covered(delta)
        fits = f"It fits at most {people:,} people." if people else "It fits no number of people."
        said.append(
            f"Delta {delta:g} is large. It should be a hundredth of one over the number of people, or less. {fits}"
        )
    return said


def percent_at_most(share: float) -> str:
    """Return a bounding share in per cent, rounded up: to a tenth, or to as many nines as it has.

    "100 %" stands only where nothing is excluded.
    """
    exact = Context(prec=40, rounding=ROUND_CEILING).create_decimal_from_float(100 * share)
    for digits in range(1, NINES):
        up = exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_CEILING)
        if share >= 1.0 or up < 100:
            return f"{up.normalize():f} %"
    return "just below 100 %"


def chance_at_most(share: float) -> str:
    """Return a bounding probability, rounded up: "1 in 367" where it is small, else in per cent."""
    return f"1 in {floor(1 / share):,}" if 0 < share < 0.005 else percent_at_most(share)
