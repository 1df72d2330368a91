"""The limit of a federation with secure aggregation."""

MOST_SUMS = 1 << 24
"""Maximum number of sums per round, which take 64 MiB on each node."""
