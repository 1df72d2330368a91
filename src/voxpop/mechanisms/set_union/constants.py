"""The tuned and limiting constants of set union. Those of adaptive rounds are in `mechanisms/rounds/plan.py`."""

from typing import Final

USUAL_LIMIT: Final = 100
"""The default limit of classic weightings. Adaptive rounds choose theirs privately (`mechanisms/rounds/menu.py`)."""
MOST_MIN_USERS: Final = 10**7
"""The largest `min_users`."""
MOST_NIGHTS: Final = 1000
"""Of a series: its plan takes about a second then."""
