"""What a mapped file lends is given back."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from voxpop.corpus.pages import forget_pages

STEP = 65_000


def resident_file_pages():
    """Return the megabytes of mapped files that are in memory."""
    return int(re.search(r"RssFile:\s+(\d+)", Path("/proc/self/status").read_text())[1]) >> 10


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_pass_leaves_nothing_resident(tmp_path):
    """Not the neighbours either that reading a page brings: they were 11 of 100 megabytes."""
    size = 25_000_000
    np.zeros(size, np.int32).tofile(tmp_path / "ids")
    ids = np.memmap(tmp_path / "ids", np.int32, "r+", shape=(size,))
    before = resident_file_pages()
    for begin in range(0, size, STEP):
        assert not ids[begin : begin + STEP].any()
        forget_pages(ids, begin, min(begin + STEP, size))
    assert resident_file_pages() - before < 5
