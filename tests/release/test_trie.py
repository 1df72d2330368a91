"""Tests that the packed data in a page contains exactly the grams of the release."""

import json
import zlib
from base64 import b64decode

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from voxpop.release.report.page import payload_of
from voxpop.release.table import SCHEMA

TOKENS = st.text(st.characters(codec="utf-8"), max_size=3)
GRAMS = st.sets(st.lists(TOKENS, min_size=1, max_size=4).map(tuple), max_size=30)


def table_of(grams):
    rows = sorted(grams, key=lambda gram: (len(gram), [token.encode() for token in gram]))
    return pa.table({"gram": [list(row) for row in rows], "length": [len(row) for row in rows]}, schema=SCHEMA)


def unpacked(packed):
    """Unpack the data as the page does, and return the number stored with each prefix of a gram."""
    content = json.loads(zlib.decompress(b64decode(packed)))
    above, found = [()], {}
    for children, tokens, numbers in content["depths"]:
        parents = [parent for parent, count in zip(above, children, strict=True) for _ in range(count)]
        above = [(*parent, content["words"][token]) for parent, token in zip(parents, tokens, strict=True)]
        found |= dict(zip(above, numbers, strict=True))
    return found


@given(GRAMS, st.integers(0, 2**40))
def test_packing_keeps_every_gram(grams, most):
    """Unpacking returns all prefixes of grams in canonical order, with the count of each gram."""
    counts = {gram: most // (1 + number) for number, gram in enumerate(grams)}
    table = table_of(grams)
    found = unpacked(payload_of(table, np.array([counts[tuple(gram)] for gram in table["gram"].to_pylist()], np.int64)))
    beginnings = {gram[:size] for gram in grams for size in range(1, len(gram) + 1)}
    assert list(found) == sorted(beginnings, key=lambda gram: (len(gram), [token.encode() for token in gram]))
    assert found == {gram: counts.get(gram, -1) for gram in beginnings}


@given(GRAMS)
def test_grams_without_counts_have_the_number_zero(grams):
    """Without counts, grams have the number 0, which distinguishes grams from prefixes that are not grams."""
    assert {gram for gram, number in unpacked(payload_of(table_of(grams))).items() if number == 0} == grams
