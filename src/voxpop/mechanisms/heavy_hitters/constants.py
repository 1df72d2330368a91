"""The limit of a federation with secure aggregation."""

MOST_SUMS = 1 << 24
"""Maximum number of sums of a round: 64 MiB for each node."""
