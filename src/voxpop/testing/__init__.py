"""Tools that try to break a guarantee: for tests of voxpop and of weightings of your own.

| file | holds |
|---|---|
| `audit/` | audits |
| `broad_search.py` | a search of millions of neighbouring pairs for a weighting that moves further than it claims |
| `search.py` | `python -m voxpop.testing.search` |
| `sequence_loss.py` | what one user can cost a tree of sequences |
| `weighed_search.py` | a search of neighbouring pairs through the whole private side |
| `reach_search.py` | a search of neighbouring pairs whose users have reaches of their own |
| `crowds.py` | thousands of small neighbouring collections side by side |
| `sensitivity.py` | a search for two neighbouring collections |
| `walk_search.py` | a search of neighbouring collections through whole releases of n-grams |
| `watched_rounds.py` | adaptive rounds of neighbouring collections, side by side |
"""

from voxpop.testing.audit import audit
from voxpop.testing.broad_search import Searched, search_broadly
from voxpop.testing.sensitivity import Violation, neighbour_distance, search_sensitivity
from voxpop.testing.sequence_loss import CostliestPair, pair_loss, search_sequence_loss
from voxpop.testing.weighed_search import Weighed, search_weighing

__all__ = [
    "CostliestPair",
    "Searched",
    "Violation",
    "Weighed",
    "audit",
    "neighbour_distance",
    "pair_loss",
    "search_broadly",
    "search_sensitivity",
    "search_sequence_loss",
    "search_weighing",
]
