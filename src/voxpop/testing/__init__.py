"""Tools that test a privacy claim, namely a search for unsound weightings and an audit of the mechanisms.

`orders` returns the made-up table of the guides.
"""

from voxpop.testing.auditing import Case, Finding, audit, examine
from voxpop.testing.orders import orders
from voxpop.testing.sensitivity import Violation, neighbour_distance, search_sensitivity

__all__ = ["Case", "Finding", "Violation", "audit", "examine", "neighbour_distance", "orders", "search_sensitivity"]
