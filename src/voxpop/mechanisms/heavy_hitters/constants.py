"""The limit of a federation with secure aggregation."""

MOST_SUMS = 1 << 24
"""The maximum number of sums per round. These sums take 64 MiB on each node."""
