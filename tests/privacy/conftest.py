"""Secrets of the tests of noise, thresholds and accounting."""

import pytest


@pytest.fixture(autouse=True)
def secrets():
    """Leave secrets fresh: these tests are about what is drawn, and state how seldom they err."""
