"""Tools that try to break a guarantee: for tests of voxpop and of weightings of your own."""

from voxpop.testing.sensitivity import Violation, neighbour_distance, search_sensitivity

__all__ = ["Violation", "neighbour_distance", "search_sensitivity"]
