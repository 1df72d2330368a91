"""The tuned constants of profiles."""

from typing import Final

from voxpop.release.profile import SUMS_OF_ONE

SHARE_OF_COUNTS: Final = 0.22
"""The share of all mu^2 that counts spend if they are released. Discovery spends everything except this share and the
share for cover. The share does not follow from a target error, because the error of counts depends on a limit that the
release chooses.
"""
COVER: Final = 0.03
"""The share of all mu^2 that cover spends."""
SINGLES: Final = 0.3
"""The share of discovery that single values spend if joint values are released. Joint values spend the rest. With 0.2
or 0.4, the number of released values of synthetic orders and of the chat is 1 to 2 percent lower.
"""
SPURIOUS: Final = 0.1
"""The upper bound on the expected number of released joint values without users. Their single values have users. With
0.5, the number of released values of synthetic orders is 3.5 percent higher.
"""
SPURIOUS_EACH: Final = 1e-4
"""The upper bound on the probability that one such value is released. It matters if there are few candidates."""
COVER_UNIT: Final = 1 << 24
"""The integer that represents the share of all rows of one user."""
CELL: Final = COVER_UNIT // SUMS_OF_ONE
"""The noisy sums of shares are rounded to integer multiples of this number."""

# ---- Keys with counts (docs/privacy/keys.md) ----
SHARE_OF_ENTRY: Final = 0.03
"""The share of epsilon that the choice spends. With 0.02, a class of a tenth of 4,000 users is not detected at epsilon
0.5. With 0.04, another percent of the keys is lost.
"""
SHARE_OF_REST: Final = 0.02
"""The share of epsilon that the sums of other rows spend, if they are released."""
KEY_LIMITS: Final = (1, 2, 3)
"""The maximum numbers of keys per user for which the menu has an entry with one noisy number per key. From 4 keys on,
Gaussian rounds release more keys.
"""
KEY_EDGES: Final = (2, 3, 4)
"""The lower bound of each class of users except the first, in keys per user."""
KEYS_HELD: Final = (1, 2, 3, 6)
"""The number of keys that is assumed for users of each class."""
KEY_SURE: Final = (0.0, 5.0, 5.0, 4.5)
"""For each class, the number of noise scales below which a number of users is assumed to be 0. In a table with one key
per user, noise reaches one of these bounds in 1.2 percent of the releases.
"""
CONTRADICTED: Final = 2.5
"""A noisy number of users contradicts the expected number if it is lower by at least this number of noise scales."""
SHARE_LOST: Final = 0.01
"""The maximum share of all (user, key) pairs that an entry with few keys per user may omit."""
SHARE_OF_ONE: Final = 0.3
"""The entry for users in parts is chosen only if users with one key have at least this share of the pairs."""
SHARE_OF_FEW: Final = 0.5
"""This entry is chosen only if the share of pairs of users with one key, plus half of the share of pairs of users with
two keys, is at least this number. With a smaller share, rounds release more keys.
"""
SHARE_OF_SIZES: Final = 0.05
"""The share of epsilon that users with three or more keys spend on the choice of their limit."""
SIZE_EDGES: Final = (2, 3, 4, 5, 6, 8, 11)
"""The lower bound of each class of users with three or more keys except the first, in released keys per user."""
SIZES_HELD: Final = (1, 2, 3, 4, 5, 6.4, 9, 15)
"""The number of released keys that is assumed for users of each of these classes."""
SIZE_SURE: Final = (2.0, 2.0, 2.0, 2.0, 2.5, 3.5, 4.5, 5.0)
"""For each class, the number of noise scales below which a number of users is assumed to be 0. A large limit needs more
evidence, because its noise is large for every key.
"""
MORE_LIMITS: Final = (1, 2, 3, 4, 5, 6, 8, 10, 15)
"""The possible limits on the number of released keys for which a user with three or more keys is counted."""
UNEVEN: Final = 5.0
"""The assumed ratio of the root mean square to the mean of the numbers of users of released keys."""
SHARE_OF_ROUNDS: Final = 0.5
"""The share of mu^2 that rounds spend. Counts spend the rest. With 0.8, the number of released keys is a fifth higher,
but the error is 1.6 times as large.
"""
MOST_POOLINGS: Final = 20
"""The maximum number of rounds that average margins with the cells that exceed them. A cell with several margins may
need more than one round.
"""
PROFILED: Final = frozenset(("strings", "whole numbers", "truth values", "dates"))
"""The families of types that are part of a profile by default."""
IDENTIFIERS: Final = ("id", "uuid", "guid", "key", "email", "phone", "iban", "ssn", "hash", "token")
"""Columns with one of these words at the end of their name identify rows or people and are excluded by default."""
