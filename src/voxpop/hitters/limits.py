"""How many sums a round of a federation can add up in secret."""

MOST_SUMS = 1 << 22
"""Most places of a part: a node sends it as 16 MiB."""
MOST_PARTS = 16
"""Most parts of a round: 256 MiB a node."""
