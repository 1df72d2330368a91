"""Tools that try to break a guarantee: for tests of voxpop and of weightings of your own."""

from voxpop.testing.sensitivity import Violation, neighbour_distance, search_sensitivity
from voxpop.testing.sequence_loss import CostliestPair, pair_loss, search_sequence_loss

__all__ = [
    "CostliestPair",
    "Violation",
    "neighbour_distance",
    "pair_loss",
    "search_sensitivity",
    "search_sequence_loss",
]
