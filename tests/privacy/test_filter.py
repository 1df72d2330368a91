"""Tests that the squares of mu of all lengths of DPNE add up to at most the cap, in exact fractions."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxpop.papers.dpne import DPNE, squares
from voxpop.privacy.individual import noise_for


@given(
    cap=st.floats(1e-6, 1e3),
    lengths=st.integers(2, 12),
    ratio=st.floats(0.1, 10.0),
    sensitivities=st.lists(st.floats(1.0, 1.1), min_size=11, max_size=11),
)
def test_the_exact_spending_never_exceeds_the_cap(cap, lengths, ratio, sensitivities):
    """For any ratio of lengths, the sigmas spend nearly the whole cap and never more."""
    found, spent = squares(DPNE(max_length=lengths, ratio=ratio), cap), Fraction(0)
    assert len(found) == lengths - 1
    for square, sensitivity in zip(found, sensitivities, strict=False):
        mine = (Fraction(sensitivity) / Fraction(noise_for(square, sensitivity))) ** 2
        assert mine <= Fraction(square)
        assert float(mine) == pytest.approx(square, rel=1e-12)
        spent += mine
    assert Fraction(cap) * Fraction(1 - 1e-9) <= spent <= Fraction(cap)
