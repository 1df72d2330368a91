"""Tests of one-dimensional searches."""

import math

from hypothesis import given
from hypothesis import strategies as st

from voxpop.privacy.numerics import around, crossing, lowest


@given(st.floats(0.001, 999), st.floats(0.1, 9))
def test_the_crossing_is_on_the_safe_side_and_close(root, power):
    """The returned point is not below the root and exceeds it by at most the tolerance."""

    def curve(x):
        return root**power - x**power

    found = crossing(curve, 0.0, 1000.0, 1e-12)
    assert curve(found) <= 0
    assert found <= root * (1 + 1e-11)


@given(st.floats(0.5, 9.5))
def test_a_crossing_at_a_jump_is_found(root):
    """The curve is infinite on one side of the jump."""
    found = crossing(lambda x: 1.0 if x < root else -math.inf, 0.0, 10.0)
    assert root <= found <= root * (1 + 1e-14)


def test_a_crossing_at_the_start_is_found():
    """If the curve is at most zero everywhere, the result is the start."""
    assert crossing(lambda x: -1.0, 2.0, 3.0) == 2.0


@given(st.floats(0.0, 10.0), st.floats(-1, 11), st.floats(1e-3, 12))
def test_a_wrong_initial_bracket_is_corrected(root, low, width):
    """For any initial guess, the resulting bracket contains the root and is within the limits."""

    def curve(x):
        return root - x

    found_low, found_high = around(curve, low, low + width, 0.0, 10.0)
    assert 0 <= found_low <= found_high <= 10
    assert curve(found_high) <= 0 <= curve(found_low)


@given(st.floats(0.1, 9.9))
def test_the_golden_section_search_ends_near_the_minimum(bottom):
    """The absolute error is below 1e-6."""
    assert abs(lowest(lambda x: abs(x - bottom), 0.0, 10.0, 40) - bottom) < 1e-6
