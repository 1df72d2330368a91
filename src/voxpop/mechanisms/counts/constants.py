"""The limiting and tuned constants of counts and rankings."""

from typing import Final

MOST_PLACES: Final = 10**6
"""The largest number of grams that a ranking names."""
USUAL: Final = 0.95
"""The probability of the statement about the order of a ranking."""

# ---- The private choice of the limit (docs/privacy/counts.md) ----
COUNT_LIMITS: Final = tuple(2**step for step in range(14))
"""The menu: 1, 2, 4, ..., 8,192 released words for which a user counts in full."""
CLASS_EDGES: Final = COUNT_LIMITS[1:]
"""Numbers of released words at which the next class of users begins. Of four times that width, a limit may be far too
low where all users of a class are at its upper end."""
TYPICAL_SIZES: Final = tuple(2**0.5 * limit for limit in COUNT_LIMITS)
"""The number of released words that stands for each class."""
CERTAIN_SIGMAS: Final = 3.0
"""Standard deviations of noise below which a number of users is taken as 0."""
SHARE_OF_LIMIT: Final = 0.005
"""The histogram's share of all mu^2."""
