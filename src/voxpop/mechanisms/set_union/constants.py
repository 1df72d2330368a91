"""The constants of set union. The constants of adaptive rounds are in `mechanisms/rounds/plan.py`."""

from typing import Final

MOST_MIN_USERS: Final = 10**7
"""The maximum value of `min_users`."""
MOST_NIGHTS: Final = 1000
"""The maximum number of nights in a series. Planning so many nights takes about a second."""
