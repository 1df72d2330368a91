"""The cost of finite arithmetic, charged to delta."""

import math

MOST_PASSES = 58
"""Of one release: 32 lengths of n-grams, four wide votes, a sweep and 21 adaptive rounds; `walk_slack` charges each."""
_LOG_SLACK = -97 * math.log(2)  # 2^31 items, each decided exactly up to 2^-128


def numerical_slack(epsilon: float) -> float:
    """The part of delta that pays for deciding with 128 random bits instead of infinitely many.

    Each item's release probability is met within 2^-128, so the laws of a release under two neighbours are each
    within 2^31 * 2^-128 in total variation of the exact ones, for up to 2^31 items that differ. By the triangle
    inequality that adds (1 + e^epsilon) times as much to delta. The cost of AES is given in `secret.py`.

    Args:
        epsilon: The epsilon of the guarantee.

    Returns:
        The charge.

    Example:
        >>> numerical_slack(3.0) < 1.5e-28
        True
    """
    # (1 + e^eps) 2^-97, by exponents: e^eps may exceed the range of doubles.
    return math.exp(_LOG_SLACK) + math.exp(min(_LOG_SLACK + epsilon, 0.0))


def optimal_delta(epsilon: float, delta: float) -> float:
    """Return the delta for optimal selection: the part that decisions with 128 bits leave, and less than all.

    Args:
        epsilon: The epsilon of the guarantee.
        delta: The delta of the guarantee.

    Returns:
        The delta of its rule.

    Example:
        >>> 0 < 1e-7 - optimal_delta(1.0, 1e-7) < 1e-22
        True
    """
    # The slack may vanish in rounding; the next smaller number leaves more than it.
    return min(delta - numerical_slack(epsilon), math.nextafter(delta, 0.0))


def walk_slack(epsilon: float, passes: int) -> float:
    """Return the cost of finite arithmetic in a walk through the lengths of grams beyond `numerical_slack`.

    In each pass, a vote with the measurement before it, the law of a release is within 2^-74 in total variation of the
    exact one: up to 2^31 candidates, each compared with fewer than 2^7 cutpoints, and measured cells (2^-128 for each
    cutpoint, and for each cell that is not almost impossible, of which there are fewer than 2^20), and the gaps between
    unsupported candidates (2^-128 for each of up to 2^46 candidates, and again 88 times as many beyond).

    Args:
        epsilon: The epsilon of the guarantee.
        passes: The number of votes: lengths, screening votes and a second-chance pass.

    Returns:
        The charge.

    Example:
        >>> walk_slack(4.0, 9) < 1e-19
        True
    """
    # passes * 2^-74 in total variation, on either side of the inequality.
    log_each = -74 * math.log(2) + math.log(passes)
    return math.exp(log_each) + math.exp(min(log_each + epsilon, 0.0))


def draw_slack(pool: int, rounds: int) -> float:
    """What 64 bits cost where a proof averages over draws of items, charged to delta.

    Draws are uniform unless two items of a pool share the 64 bits that name them, or in some round the 64 bits that
    order them.

    Args:
        pool: Most items of one user that are drawn from.
        rounds: The number of rounds.

    Returns:
        The charge.

    Example:
        >>> draw_slack(60, 14) < 2e-15
        True
    """
    # A birthday bound: W^2 / 2 pairs, each equal with 2^-64, in R rounds and once for the names.
    return (rounds + 1) * pool * pool * 2.0**-65
