"""The same functions in eighty digits, for the few values that must be beyond doubt.

The context is separate, so the precision settings of other code do not matter.
"""

from threading import Lock
from typing import Any

from mpmath import MPContext

_PRECISE_DIGITS = 80
context: Any = MPContext()
context.dps = _PRECISE_DIGITS
ALONE = Lock()
"""Held during computations where several threads may run. mpmath stores constants and their precision one after the
other, and some of its functions change the context for a while."""


def number(value: float | int) -> Any:
    """`value` without rounding.

    Args:
        value: A double or an integer below 2^256.

    Returns:
        The equal high-precision number.
    """
    return context.mpf(value)


def normal_below(x: Any) -> Any:
    """The probability that a standard normal is below `x`, accurate in both tails.

    Args:
        x: A high-precision number.

    Returns:
        A high-precision number.
    """
    # Phi(x) = erfc(-x / sqrt 2) / 2 loses no digits where x is far below 0.
    return context.erfc(-x / context.sqrt(2)) / 2


def laplace_below(x: Any) -> Any:
    """The probability that a standard Laplace variable is below `x`.

    Args:
        x: A high-precision number.

    Returns:
        A high-precision number.
    """
    # e^x / 2 below 0, and 1 - e^-x / 2 above.
    return context.exp(x) / 2 if x < 0 else 1 - context.exp(-x) / 2


def gaussian_delta(epsilon: float, mu: Any) -> Any:
    """The delta of a Gaussian mechanism, Balle and Wang's formula.

    Args:
        epsilon: Any real number.
        mu: Sensitivity over sigma, a high-precision number above 0.

    Returns:
        A high-precision number.
    """
    exact = number(epsilon)
    # delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) (Balle and Wang, 2018, Theorem 8).
    near, far = mu / 2 - exact / mu, -mu / 2 - exact / mu
    return normal_below(near) - context.exp(exact) * normal_below(far)


def normal_quantile(probability: Any) -> Any:
    """The point below which a standard normal lies with a given probability.

    Args:
        probability: A high-precision number strictly between 0 and 1.

    Returns:
        A high-precision number.
    """
    # Phi^-1(p) = sqrt 2 erfinv(2 p - 1).
    return context.sqrt(2) * context.erfinv(2 * probability - 1)
