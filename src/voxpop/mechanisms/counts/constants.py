"""The limits and tuned constants of counts and rankings."""

from typing import Final

MOST_PLACES: Final = 10**6
"""The maximum number of grams in a ranking."""
USUAL: Final = 0.95
"""The probability that the error bound for the order of a ranking is correct."""

# ---- The private choice of the limit (docs/privacy/counts.md) ----
COUNT_LIMITS: Final = tuple(2**step for step in range(14))
"""The possible limits: 1, 2, 4, ..., 8,192 released words per user at full weight."""
CLASS_EDGES: Final = COUNT_LIMITS[1:]
"""The lower bound of each class of users except the first, in released words per user. With classes four times as wide,
the chosen limit could be far too low if all users of a class were at its upper end.
"""
TYPICAL_SIZES: Final = tuple(2**0.5 * limit for limit in COUNT_LIMITS)
"""The number of released words that represents each class."""
CERTAIN_SIGMAS: Final = 3.0
"""A noisy number of users is replaced by 0 if it is less than this number of standard deviations of the noise."""
SHARE_OF_LIMIT: Final = 0.005
"""The share of the total mu^2 that the histogram spends."""
