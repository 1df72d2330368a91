"""A search that is long enough to find violations that a short search misses."""

import pytest

from searches.sensitivity import search_sensitivity
from support.lengths import at_length
from voxpop.privacy.weightings.builtin import WEIGHTINGS

CELLS = [(name, each.norm) for name, each in WEIGHTINGS.items()]


@pytest.mark.slow
@pytest.mark.parametrize("limit", [3, 12])
@pytest.mark.parametrize(("name", "norm"), CELLS)
def test_the_distance_of_many_neighbouring_pairs_is_at_most_one(name, norm, limit):
    """The distance of every pair of a long search on the real kernels is at most 1, except for rounding.

    The search tries 120,000 pairs in total, and 360,000 with VOXPOP_FULL=1. In addition, `test_broad_search.py`
    searches a million pairs of another kind by default, and `make audit` searches ten million.
    """
    pairs = at_length(30_000, 10_000)
    assert search_sensitivity(name, norm=norm, pairs=pairs, limit=limit, seed=limit).distance <= 1.0 + 1e-12
