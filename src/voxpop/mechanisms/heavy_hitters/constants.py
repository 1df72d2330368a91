"""Limits of a federation with secure aggregation."""

MOST_SUMS = 1 << 22
"""Maximum length of the vector of a part, which has 16 MiB."""
MOST_PARTS = 16
"""Maximum number of parts in a round: 256 MiB for each node."""
