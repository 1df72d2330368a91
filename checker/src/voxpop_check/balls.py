"""Ball arithmetic.

Every number is an interval (ball) that contains the exact value, so every comparison is a proof: `a <= b` is true only
if it is true for all values in both balls. docs/privacy/set-union.md defines Phi and delta_G.
"""

from collections.abc import Iterable

from flint import arb, ctx

ctx.prec = 96
ONE, HALF, NEVER = arb(1), arb(1) / 2, arb(0)
ROOT_2 = arb(2).sqrt()
ROOT_2_PI = (2 * arb.pi()).sqrt()


class CertificateError(Exception):
    """A certificate does not have the form that its proof requires, or violates a condition of this proof."""


def require(condition: bool, what: str) -> None:
    """Raise an error if a condition of the proof is not met."""
    if not condition:
        raise CertificateError(what)


def up(x: arb) -> arb:
    """Return the exact upper end of a ball."""
    return arb(x.upper())


def down(x: arb) -> arb:
    """Return the exact lower end of a ball."""
    return arb(x.lower())


def largest(numbers: Iterable[arb]) -> arb:
    """Return an upper bound of all values in the balls, rounded up."""
    top = None
    for each in numbers:
        require(each.is_finite(), "a number is not finite")
        top = up(each) if top is None else up(top.max(each))
    require(top is not None, "a list is empty")
    return top


def root(x: arb) -> arb:
    """Return the square root of a nonnegative number, even if its ball extends below 0."""
    return up(x).sqrt() if not x >= 0 else x.sqrt()


def phi(x: arb) -> arb:
    """Return the density of the standard normal distribution."""
    return (-x * x / 2).exp() / ROOT_2_PI


def normal(x: arb) -> arb:
    """Return Phi(x), with a small relative error in both tails."""
    return HALF * (-x / ROOT_2).erfc()


def gauss(epsilon: arb, mu: arb) -> arb:
    """Return an upper bound of delta_G(epsilon; mu), which increases in mu and decreases in epsilon."""
    mu, epsilon = up(mu).max(arb(2) ** -40), down(epsilon)
    return up(normal(mu / 2 - epsilon / mu) - epsilon.exp() * normal(-mu / 2 - epsilon / mu))


def any_of(p: arb, t: int) -> arb:
    """Return the probability 1 - (1 - p)^t that one of t independent events occurs."""
    return -((-p).log1p() * t).expm1()


def odds(epsilon: arb) -> arb:
    """Return 1 + e^epsilon, the cost in delta of one unit of total variation (docs/privacy/README.md)."""
    return 1 + epsilon.exp()


def numerical(epsilon: arb) -> arb:
    """Return the cost in delta of one pass with 2^31 decisions of 128 bits (docs/privacy/randomness.md)."""
    return odds(epsilon) * arb(2) ** (31 - 128)


def walk(epsilon: arb, passes: int) -> arb:
    """Return the cost in delta of several passes, each with a total variation of 2^-74 (docs/privacy/README.md)."""
    return odds(epsilon) * arb(2) ** -74 * passes
