"""Functions that compute with eighty digits, for the few values that cannot be computed reliably in doubles.

The mpmath context is separate, so it does not depend on the precision settings of other code.
"""

from threading import Lock
from typing import Any

from mpmath import MPContext

_PRECISE_DIGITS = 80
context: Any = MPContext()
context.dps = _PRECISE_DIGITS
ALONE = Lock()
"""A lock for computations that several threads may run at the same time. mpmath stores a constant and its precision in
two steps, and some of its functions change the context temporarily.
"""


def number(value: float | int) -> Any:
    """Return `value` as a high-precision number without rounding.

    Args:
        value: A double or an integer below 2^256.

    Returns:
        The high-precision number.
    """
    return context.mpf(value)


def normal_below(x: Any) -> Any:
    """Return the probability that a standard normal variable is below `x`, accurate in both tails.

    Args:
        x: A high-precision number.

    Returns:
        A high-precision number.
    """
    # Phi(x) = erfc(-x / sqrt 2) / 2 loses no precision if x is far below 0.
    return context.erfc(-x / context.sqrt(2)) / 2


def laplace_below(x: Any) -> Any:
    """Return the probability that a standard Laplace variable is below `x`.

    Args:
        x: A high-precision number.

    Returns:
        A high-precision number.
    """
    # The probability is e^x / 2 below 0, and 1 - e^-x / 2 above 0.
    return context.exp(x) / 2 if x < 0 else 1 - context.exp(-x) / 2


def gaussian_delta(epsilon: float, mu: Any) -> Any:
    """Return the delta of a Gaussian mechanism by the formula of Balle and Wang.

    Args:
        epsilon: The epsilon, any real number.
        mu: The ratio of sensitivity to sigma, a high-precision number above 0.

    Returns:
        A high-precision number.
    """
    exact = number(epsilon)
    # delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) (Balle and Wang, 2018, Theorem 8).
    near, far = mu / 2 - exact / mu, -mu / 2 - exact / mu
    return normal_below(near) - context.exp(exact) * normal_below(far)


def normal_quantile(probability: Any) -> Any:
    """Return the quantile of the standard normal distribution.

    Args:
        probability: A high-precision number strictly between 0 and 1.

    Returns:
        A high-precision number.
    """
    # Phi^-1(p) = sqrt 2 erfinv(2 p - 1).
    return context.sqrt(2) * context.erfinv(2 * probability - 1)
