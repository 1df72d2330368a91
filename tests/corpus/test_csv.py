"""CSV as people export it, and what else face to face goes wrong with files and tokenisers."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import voxpop as vp
from voxpop.corpus.reading.csv_text import FollowedQuotes, delimiter_of
from voxpop.errors import ColumnError, InputError, SourceError
from voxpop.kernels.quotes import MODE, QUOTED, follow_quotes

SECRET = "confidential 4711"


def is_well_quoted(text):
    """Say what Python's own strict reader says."""
    try:
        list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        return False
    return True


@given(
    text=st.lists(st.sampled_from(["a", '"', '"', ",", ";", "\n", "\r\n"]), max_size=14).map("".join),
    cut=st.integers(0, 14),
)
def test_quotes_are_followed_as_a_strict_reader_follows_them(text, cut):
    """Whatever the file, and wherever it is cut into blocks."""
    state = np.zeros(3, np.int64)
    data = text.encode()
    fine = all(
        follow_quotes(np.frombuffer(each, np.uint8), np.uint8(ord(",")), state) for each in (data[:cut], data[cut:])
    )
    assert (fine and state[MODE] != QUOTED) == is_well_quoted(text)


@given(blocks=st.lists(st.text('ab",\n', max_size=5), max_size=6))
def test_blocks_without_quotes_take_a_short_way_to_the_same(blocks):
    """The row in which a quote is opened is the same, however the file is cut."""

    def outcome(parts):
        stream = FollowedQuotes(io.BytesIO(), ",", "t.csv")
        try:
            for each in [*(part.encode() for part in parts if part), b""]:
                stream._follow(each)
        except SourceError as error:
            return str(error)
        return None

    assert outcome(blocks) == outcome(["".join(blocks)]) == outcome(list("".join(blocks)))


def write(folder, text, name="t.csv"):
    (folder / name).write_bytes(text.encode())
    return folder / name


@pytest.mark.parametrize(("place", "words"), [(100, "row 100"), (2999, "row 2,999"), (0, "first row")])
@pytest.mark.parametrize("again", [False, True])
def test_an_unclosed_quote_swallows_nothing(tmp_path, place, words, again):
    """The row in which it is opened is named; a second one further down closes nothing."""
    rows = ["who,text"] + [f"{number},{SECRET} said hello" for number in range(3000)]
    rows[place] = rows[place].replace(",", ',"', 1)
    if again:
        rows[-1] = rows[-1].replace(",", ',"', 1)
    with pytest.raises(SourceError) as caught:
        vp.read(write(tmp_path, "\n".join(rows)), user="who", text="text")
    assert SECRET not in str(caught.value)
    assert words in str(caught.value) or place == 0


def test_quoted_cells_hold_what_they_like(tmp_path):
    """Line breaks, delimiters and doubled quotes."""
    path = write(tmp_path, 'who,text\r\n1,"two\r\nlines, one ""cell"""\r\n2,plain 5" pipe\r\n')
    corpus = vp.read(path, user="who", text="text")
    assert corpus.user_key.size == 2
    assert {"two", "lines", "cell", "pipe"} <= set(corpus.vocabulary.to_pylist())


@pytest.mark.parametrize("delimiter", [";", "\t", "|", ","])
def test_the_delimiter_is_found(tmp_path, delimiter):
    """As spreadsheets of other countries write it, with a name that others would cut."""
    path = write(
        tmp_path, f'"User, Id"{delimiter}Text\nann{delimiter}tea\nbob{delimiter}tea; milk\n'.replace("; ", " ")
    )
    corpus = vp.read(path, user="User, Id", text="Text")
    assert corpus.user_key.size == 2
    assert "tea" in corpus.vocabulary.to_pylist()
    assert delimiter_of("a;b", ["c"], ",") == ","


def test_a_header_that_is_missing_or_doubled(tmp_path):
    """Its first row is data, and stays out of messages; a close name is suggested."""
    with pytest.raises(ColumnError, match=r"which has 2\. Columns must be named") as caught:
        vp.read(write(tmp_path, f"ann,{SECRET}\nbob,tea\n"), user="who", text="text")
    assert SECRET not in str(caught.value)
    assert "ann" not in str(caught.value)
    with pytest.raises(ColumnError, match='Did you mean "author"'):
        vp.read(write(tmp_path, "author,text\nbob,tea\n"), user="Author", text="text")
    with pytest.raises(SourceError, match='2 columns called "text"'):
        vp.read(write(tmp_path, "who,text,text\nbob,tea,milk\n"), user="who", text="text")
    with pytest.raises(SourceError, match="3 values where 2"):
        vp.read(write(tmp_path, "who,text\nbob,tea,milk\n"), user="who", text="text")


@pytest.mark.jit
def test_broken_json_names_its_row(tmp_path):
    """The first row is row 1."""
    rows = ['{"who": 1, "text": "tea"}'] * 2999 + ['{"who": 1, "text": ']
    with pytest.raises(SourceError, match="row 3,000 "):
        vp.read(write(tmp_path, "\n".join(rows), "t.jsonl"), user="who", text="text")
    many = ['{"who": 1, "text": "' + "tea " * 300 + '"}'] * 8000 + ["{"]
    with pytest.raises(SourceError, match="row 8,001 "):
        vp.read(write(tmp_path, "\n".join(many), "t.jsonl"), user="who", text="text")


@pytest.mark.parametrize("tokenizer", [str.split, lambda texts: 1 / 0])
def test_a_tokenizer_for_one_text(tokenizer):
    """Is told what it is called with; what it said stays out."""
    with pytest.raises(InputError, match=r"lambda texts: \[cut\(text\)") as caught:
        vp.read({"who": [1], "text": [SECRET]}, user="who", text="text", tokenizer=tokenizer)
    assert SECRET not in str(caught.value)
