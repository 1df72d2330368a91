"""The filter of mu^2: never more than the cap, exactly."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxpop.errors import InternalError
from voxpop.privacy.individual import GaussianFilter


@given(
    cap=st.floats(1e-6, 1e3),
    spending=st.lists(st.tuples(st.floats(1e-6, 1.0), st.floats(1.0, 1.1)), min_size=1, max_size=12),
)
def test_what_was_really_spent_never_exceeds_the_cap(cap, spending):
    """In exact fractions of the very sigmas that run, however the shares were chosen."""
    budget_filter = GaussianFilter(cap)
    spent = Fraction(0)
    for share, sensitivity in spending:
        asked = budget_filter.left * share
        if asked <= 0:
            break
        sigma = budget_filter.spend(asked, sensitivity)
        mine = (Fraction(sensitivity) / Fraction(sigma)) ** 2
        assert float(mine) == pytest.approx(asked, rel=1e-12)
        spent += mine
    assert spent <= Fraction(cap)


def test_the_last_release_may_take_all_that_is_left():
    """And nothing remains."""
    budget_filter = GaussianFilter(0.3)
    budget_filter.spend(0.1)
    budget_filter.spend(budget_filter.left)
    assert budget_filter.left < 1e-16


@pytest.mark.parametrize("asked", [0.0, -1.0, 0.31, math.inf, math.nan])
def test_more_than_there_is_is_refused(asked):
    """A fault of ours, not of the caller."""
    with pytest.raises(InternalError):
        GaussianFilter(0.3).spend(asked)
