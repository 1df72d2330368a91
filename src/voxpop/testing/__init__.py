"""The audit of the mechanisms, which tests their privacy claims.

`orders` returns the made-up table that the guides use.
"""

from voxpop.testing.auditing import Case, Finding, audit, examine
from voxpop.testing.orders import orders

__all__ = ["Case", "Finding", "audit", "examine", "orders"]
