"""Fixtures that return releases to export."""

from collections.abc import Callable, Iterable

import pyarrow as pa
import pytest

import voxpop as vp
from voxpop.release.result import StoredPlan
from voxpop.release.table import SCHEMA


@pytest.fixture
def released() -> Callable[[Iterable[tuple[str, ...]]], vp.Release]:
    """Return a function that makes a release of the given grams, in any order."""

    def make(grams: Iterable[tuple[str, ...]]) -> vp.Release:
        rows = sorted(set(grams), key=lambda gram: (len(gram), [token.encode() for token in gram]))
        table = pa.table({"gram": [list(row) for row in rows], "length": [len(row) for row in rows]}, schema=SCHEMA)
        return vp.Release(table, StoredPlan({"sigma": 1.5}), vp.Guarantee(4, 1e-7))

    return make


@pytest.fixture
def phrases(released: Callable[..., vp.Release]) -> vp.Release:
    """Return a release of words and phrases."""
    words = [("don't",), ("thank",), ("very",), ("you",), ("été",)]
    return released([*words, ("thank", "you"), ("you", "very"), ("thank", "you", "very")])


@pytest.fixture(autouse=True, scope="module")
def _few_sessions(few_sessions: None) -> None:
    """Draw few sessions, because these tests export results and do not check the accuracy of a model."""
