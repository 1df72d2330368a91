"""The tuned and limiting constants of set union. Those of adaptive rounds are in `mechanisms/rounds/plan.py`."""

from typing import Final

USUAL_LIMIT: Final = 100
"""The default limit and pool: the best of reddit_posts at three budgets; on ubuntu_irc 300 releases 2.4 percent more at
epsilon 3, 4.7 at 1 and 7.0 at 0.5."""
MOST_USERS: Final = 10**7
"""The largest `min_users`."""
