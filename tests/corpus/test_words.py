"""The word kernel, compared with loops over Python strings."""

from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import corpus as naive_corpus
from support.look import corpus_documents, read_engine
from voxpop.reading.arrow import text_buffers
from voxpop.reading.words import WordInterner

TRICKY = [
    "Good morning, World",
    "see https://example.org/a?b=c now",
    "HTTPS://X",
    "http://",
    "http:// spaced",
    "www.",
    "www.x",
    "awww.so cute",
    "xhttp://y z",
    "don't 'quote' rock'n'roll",
    "don\u2019t \u2018quoted\u2019 rock\u2018n\u2019roll p\u02bcyat\u02bc \u02bcem x\uff07y",
    "\u2019\u2019 a\u2019'b c'\u2019d \u2019",
    "dogs\u2019 (\u2018it\u2019s\u2019) 1234567\u20198 12345678\u2019 e\u0301\u2019e \u2019\u0301 \u03a3\u2019\u03a3",
    "İstanbul ΣΑΣ straße ẞ",
    "cafe\u0301 caf\u00e9 e\u0301\u0323",
    "\u1100\u1161\u11a8 한국어",
    "日本語テキスト",
    "नमस्ते दुनिया",
    "a\u0000b",
    "emoji 🎉 party🎉time",
    "x\u00a0y\u2003z\u3000w",
    "www.\u00a0x http://\u2003y",
    "Å \u212b \u2126",
    "١٢٣ ½ ²",
    "'",
    "'12 'em dogs' '' don''t ''a''b'c' é'e 'é' 1234567' 12345678' 1234567'9 1'\u0301",
    "",
    "12345678 123456789 abcdefgh abcdefghi abcdefghijklmnop",
    "ΑΒΓΔΕΖΗΘ",
    "https://bad\u0301 e\u0301 end",
]


def cut(texts: list[str]) -> list[list[str]]:
    """Tokenise texts with the kernel."""
    import pyarrow as pa

    interner = WordInterner()
    ids, ends = interner.cut(pa.array(texts, pa.large_string()))
    vocabulary = interner.vocabulary().to_pylist()
    assert all(ids[end - 1] == -1 for end in ends[1:])
    return [[vocabulary[i] for i in ids[a : b - 1]] for a, b in pairwise(ends)]


@pytest.mark.parametrize("text", TRICKY)
def test_tricky_texts_are_cut_as_by_hand(text):
    """The texts contain URLs, apostrophes, combining marks, special lower cases, other scripts and control codes."""
    assert cut([text]) == [naive_corpus.words(text)]


PIECES = [
    *"aAzZ hHtTpPsSwW:/.'09-\u2018\u2019\u02bc\uff07",
    "\n",
    "é",
    "e\u0301",
    "\u0301",
    "İ",
    "Σ",
    "σ",
    "ß",
    "ﬁ",
    "한",
]
TEXTS = st.one_of(
    st.text(max_size=40),
    st.lists(st.sampled_from(PIECES), max_size=30).map("".join),
    st.lists(st.sampled_from([*TRICKY, "http://", "www.", " "]), max_size=4).map("".join),
)


@given(texts=st.lists(TEXTS, max_size=8))
@settings(max_examples=300)
def test_any_text_is_cut_as_by_hand(texts):
    """The kernel equals the reference implementation for any Unicode text, including texts that take the slow path."""
    assert cut(texts) == [naive_corpus.words(text) for text in texts]


@pytest.mark.parametrize("apostrophe", "\u2019\u2018\u02bc\uff07")
def test_every_apostrophe_is_the_same(apostrophe):
    """Phones write other apostrophes than keyboards. The words are equal and contain the plain apostrophe."""
    assert cut([f"I don{apostrophe}t {apostrophe}quote{apostrophe}"]) == [["i", "don't", "quote"]]


@pytest.mark.jit
def test_the_interner_grows():
    """The texts contain far more words than the initial capacity, and one document larger than the arena."""
    texts = [f"word{i} {'x' * (i % 40)}{i}" for i in range(60_000)] + ["y" * 3_000_000 + " end"]
    assert cut(texts) == [text.split() for text in texts]


def test_text_buffers_of_slices_and_nulls():
    """Sliced arrays keep their positions, and a null is an empty text."""
    import pyarrow as pa

    sliced = pa.array(["aa", None, "b", "cc"]).slice(1, 3)
    data, starts = text_buffers(sliced)
    assert [bytes(data[a:b]) for a, b in pairwise(starts)] == [b"", b"b", b"cc"]


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 4), st.lists(st.sampled_from(["a", "b", "Cc", "d'e"]), max_size=4)), min_size=1
    )
)
def test_a_corpus_groups_documents_by_user(rows):
    """Users are contiguous in order of appearance, documents are in order, and ids are in the order of bytes."""
    table = pl.DataFrame({"who": [u for u, _ in rows], "text": [" ".join(tokens) for _, tokens in rows]})
    corpus = read_engine(table, user="who", text="text")
    lowered = [(user, [token.lower() for token in tokens]) for user, tokens in rows]
    assert corpus_documents(corpus) == list(naive_corpus.documents(lowered).values())
    assert corpus.vocabulary.to_pylist() == sorted({t for _, tokens in lowered for t in tokens})
