"""The tuned constants of profiles."""

from typing import Final

SHARE_OF_COUNTS: Final = 0.22
"""The counts' share of all mu^2 where counts are wanted; the rest of this and the next goes to discovery. These are
shares, not targets as in `vp.split_budget`: the error of counts depends on a limit that the release chooses."""
COVER: Final = 0.03
"""The share of cover."""
SINGLES: Final = 0.3
"""The single values' share of discovery where joint values are wanted; joint values have the rest. 0.2 and 0.4
release 1 to 2 percent fewer values of made-up orders and of the chat."""
SPURIOUS: Final = 0.1
"""The expected number of released joint values without users, at most; their single values have users. 0.5
releases 3.5 percent more values of made-up orders."""
SPURIOUS_EACH: Final = 1e-4
"""The probability that one such value is released, at most: where candidates are few."""
COVER_UNIT: Final = 1 << 24
"""The share of all rows of one user, in whole numbers."""
CELL: Final = COVER_UNIT >> 10
"""Noisy sums of shares are rounded to these."""
