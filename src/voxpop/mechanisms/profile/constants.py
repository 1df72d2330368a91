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

# ---- Keys with counts (docs/privacy/keys.md) ----
SHARE_OF_ENTRY: Final = 0.03
"""The choice's share of epsilon. 0.02 misses classes of a tenth of 4,000 users at epsilon 0.5, and 0.04 loses one
percent of the keys more."""
SHARE_OF_REST: Final = 0.02
"""The share of epsilon of the sums of other rows, where these are wanted."""
KEY_LIMITS: Final = (1, 2, 3)
"""Numbers of keys per user with an entry of one noisy number per key. From 4 on, Gaussian rounds release more keys."""
KEY_EDGES: Final = (2, 3, 4)
"""Numbers of keys at which the next class of users begins."""
KEYS_HELD: Final = (1, 2, 3, 6)
"""The number of keys that stands for each class."""
KEY_SURE: Final = (0.0, 5.0, 5.0, 4.5)
"""By class: scales of the noise below which a number of users is taken as 0. In a table of one key per user, noise
alone reaches one of them in 1.2 percent of the releases."""
CONTRADICTED: Final = 2.5
"""Scales of the noise by which a number of users is below the expected number, if it contradicts it."""
SHARE_LOST: Final = 0.01
"""The share of pairs of a user and a key that an entry of few keys may leave out."""
SHARE_OF_ROUNDS: Final = 0.5
"""The rounds' share of mu^2; counts have the rest. 0.8 releases a fifth more keys, at 1.6 times the error."""
MOST_POOLINGS: Final = 20
"""Rounds in which margins below their cells get the mean of both; a cell of several margins may need more than one."""
