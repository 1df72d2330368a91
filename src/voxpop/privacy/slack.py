"""What finite arithmetic costs, charged to delta."""

import math

_LOG_SLACK = -97 * math.log(2)  # 2^31 items, each decided exactly up to 2^-128


def numerical_slack(epsilon: float) -> float:
    """The part of delta that pays for deciding with 128 random bits instead of infinitely many.

    Each item's release probability is met within 2^-128, so the laws of a release under two neighbours are each
    within 2^31 * 2^-128 in total variation of the exact ones, for up to 2^31 items that differ. By the triangle
    inequality that adds (1 + e^epsilon) times as much to delta. What AES adds is stated in `secret.py`.

    Args:
        epsilon: The epsilon of the guarantee.

    Returns:
        The charge.

    Example:
        >>> numerical_slack(3.0) < 1.5e-28
        True
    """
    return math.exp(_LOG_SLACK) + math.exp(min(_LOG_SLACK + epsilon, 0.0))
