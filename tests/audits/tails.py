"""The tail of integer Laplace noise, by which cases of sequences know their exact probabilities."""

from math import exp


def users_bound(least: int, scale: float) -> float:
    """Return P(X >= least) of integer Laplace noise X of this scale.

    Example:
        >>> round(at_least(0, 1.0) + at_least(1, 1.0), 12)
        1.0
    """
    tail = exp(-max(least, 1 - least) / scale) / (1 + exp(-1 / scale))
    return tail if least > 0 else 1 - tail
