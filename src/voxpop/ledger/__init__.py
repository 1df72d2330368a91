"""The ledger: what has been spent on each data set, kept in a file, and refused before it is too much.

| file | holds |
|---|---|
| `ledger.py` | the file with its data sets |
| `account.py` | one data set: charge first, then release |
| `caps.py` | when a further release may still run |
| `entry.py` | one release that was charged |
| `keeping.py` | the file itself: locked, checked, replaced in one step |
"""

from voxpop.ledger.account import LedgerAccount
from voxpop.ledger.entry import Entry
from voxpop.ledger.ledger import Ledger

__all__ = ["Entry", "Ledger", "LedgerAccount"]
