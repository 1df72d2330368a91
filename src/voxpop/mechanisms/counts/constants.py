"""The limiting constants of counts and rankings."""

from typing import Final

BITS: Final = 24
"""Counts are whole multiples of 2^-24 before noise; 2^33 users stay below 2^57."""
UNIT: Final = 1 << BITS
"""One user, in these multiples."""
MOST_PLACES: Final = 10**6
"""The largest number of grams that a ranking names."""
USUAL: Final = 0.95
"""The probability of the statement about the order of a ranking."""
