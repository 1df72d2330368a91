"""The search for violations, long enough to find those that a short search misses."""

import pytest

from searches.sensitivity import search_sensitivity
from support.lengths import at_length
from voxpop.privacy.weightings.builtin import WEIGHTINGS

CELLS = [(name, each.norm) for name, each in WEIGHTINGS.items()]


@pytest.mark.slow
@pytest.mark.parametrize("limit", [3, 12])
@pytest.mark.parametrize(("name", "norm"), CELLS)
def test_many_pairs_of_neighbours_stay_within_one(name, norm, limit):
    """No pair of a long search on the real kernels is further apart than 1, except for rounding.

    The search has 120,000 pairs in all, and 360,000 with VOXPOP_FULL=1. A million more pairs, of another kind, are
    searched by default (`test_broad_search.py`), and ten million by `make audit`.
    """
    pairs = at_length(30_000, 10_000)
    assert search_sensitivity(name, norm=norm, pairs=pairs, limit=limit, seed=limit).distance <= 1.0 + 1e-12
