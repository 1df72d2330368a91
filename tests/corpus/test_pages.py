"""Tests that the memory of mapped files is returned to the system."""

import sys

import numpy as np
import pytest
from tools.memory import megabytes_of

from voxpop.reading.limited.memory import forget_pages

STEP = 65_000


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_pass_frees_its_memory(tmp_path):
    """Pages that the system reads ahead must also be returned, because they would otherwise use 11 of 100 megabytes."""
    size = 25_000_000
    np.zeros(size, np.int32).tofile(tmp_path / "ids")
    ids = np.memmap(tmp_path / "ids", np.int32, "r+", shape=(size,))
    before = megabytes_of("RssFile")
    for begin in range(0, size, STEP):
        assert not ids[begin : begin + STEP].any()
        forget_pages(ids, begin, min(begin + STEP, size))
    assert megabytes_of("RssFile") - before < 5
