"""The tree of beginnings and the text it is packed into: both hold exactly the grams."""

import zlib
from base64 import b64decode

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from voxpop.release.completing import GramTrie
from voxpop.release.cutting import SCHEMA
from voxpop.release.report.page import payload_of

TOKENS = st.text(st.characters(codec="utf-8"), max_size=3)
GRAMS = st.sets(st.lists(TOKENS, min_size=1, max_size=4).map(tuple), max_size=30)


def table_of(grams):
    rows = sorted(grams, key=lambda gram: (len(gram), [token.encode() for token in gram]))
    return pa.table({"gram": [list(row) for row in rows], "length": [len(row) for row in rows]}, schema=SCHEMA)


def beginnings(grams, size):
    """List all beginnings of one length in canonical order."""
    found = {gram[:size] for gram in grams if len(gram) >= size}
    return sorted(found, key=lambda gram: [token.encode() for token in gram])


def unpacked(shape, packed):
    """Read the packed text in the plainest way, as the page does."""
    stream = zlib.decompress(b64decode(packed))
    assert len(stream) == shape["bytes"]
    at = shape["letters"]

    def planes(size):
        nonlocal at
        at += 4 * size
        part = stream[at - 4 * size : at]
        return [sum(part[plane * size + place] << (8 * plane) for plane in range(4)) for place in range(size)]

    words, place = [], 0
    for size in planes(shape["words"]):
        words.append(stream[place : place + size].decode())
        place += size
    above, grams = [()], []
    for width in shape["depths"]:
        children, steps, released = planes(len(above)), planes(width), planes(width)
        here, node = [], 0
        for parent, count in zip(above, children, strict=True):
            token = 0
            for child in range(count):
                token = steps[node] + (token if child else 0)
                here.append((*parent, words[token]))
                node += 1
        grams += [gram for gram, own in zip(here, released, strict=True) if own]
        above = here
    counts = planes(sum(shape["depths"])) if shape["counts"] else None
    assert at == len(stream)
    return grams, counts


@given(GRAMS)
def test_tree_holds_the_beginnings(grams):
    """Every length lists its beginnings in canonical order, with those that are grams marked."""
    trie = GramTrie.of(table_of(grams))
    assert len(trie.depths) == max(map(len, grams), default=0)
    above = [()]
    for depth in trie.depths:
        parents = np.repeat(np.arange(len(above)), np.diff(depth.starts))
        here = [(*above[parent], trie.words[token]) for parent, token in zip(parents, depth.tokens, strict=True)]
        assert here == beginnings(grams, len(above[0]) + 1)
        assert [gram in grams for gram in here] == depth.released.tolist()
        above = here


@given(GRAMS)
def test_packing_keeps_every_gram(grams):
    """What the page unpacks are the grams, in canonical order, whatever letters they hold."""
    table = table_of(grams)
    found, _ = unpacked(*payload_of(GramTrie.of(table)))
    assert found == list(map(tuple, table["gram"].to_pylist()))


def test_packing_keeps_counts():
    """Counts beyond 2^24 keep all their bytes."""
    trie = GramTrie.of(table_of({("a",), ("b",)}))
    _, counts = unpacked(*payload_of(trie, np.array([7, 2**32 - 1])))
    assert counts == [7, 2**32 - 1]
