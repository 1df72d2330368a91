"""The tail of integer Laplace noise, for the exact probabilities of the sequence cases."""

from math import exp


def users_bound(least: int, scale: float) -> float:
    """Return P(X >= least) for integer Laplace noise X of this scale.

    Example:
        >>> round(users_bound(0, 1.0) + users_bound(1, 1.0), 12)
        1.0
    """
    tail = exp(-max(least, 1 - least) / scale) / (1 + exp(-1 / scale))
    return tail if least > 0 else 1 - tail
