"""A fixture that builds releases for tests of counts."""

import pyarrow as pa
import pytest

import voxpop as vp
from voxpop.release.result import StoredPlan
from voxpop.release.table import SCHEMA


@pytest.fixture(scope="session")
def release_of():
    """Return a function that builds releases of the given grams, in any order."""

    def make(grams, guarantee=None):
        rows = sorted({tuple(gram) for gram in grams}, key=lambda gram: (len(gram), [t.encode() for t in gram]))
        table = pa.table({"gram": [list(row) for row in rows], "length": [len(row) for row in rows]}, schema=SCHEMA)
        return vp.Release(table, StoredPlan({"sigma": 1.0}), guarantee or vp.Guarantee(1, 1e-8))

    return make
