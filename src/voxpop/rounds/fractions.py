"""How rounds share a budget."""

from typing import Final

ROUND_RATIO: Final = 0.3
"""Each round gets this share of what the next one gets, of 1/sigma^2 (or epsilon) and of delta (DP-SIPS)."""


def round_fractions(rounds: int) -> tuple[float, ...]:
    """Return each round's share of the budget: rising by 1 / `ROUND_RATIO`, sum 1."""
    # Geometric in 1 / sigma^2, so the last of n rounds gets 1 / (1 + 0.3 + 0.09 + ...) of it, about 0.7.
    raw = [ROUND_RATIO ** (rounds - 1 - number) for number in range(rounds)]
    return tuple(share / sum(raw) for share in raw)
