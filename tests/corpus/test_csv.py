"""Tests of common dialects of CSV files, and of other common problems with files and tokenisers."""

import bz2
import codecs
import csv
import gzip
import io
from itertools import accumulate, pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voxpop as vp
from support.look import read_engine
from voxpop.errors import ColumnError, InputError, SourceError
from voxpop.kernels.words import MODE, QUOTED, follow_quotes
from voxpop.reading import files
from voxpop.reading.text_files import Header, delimiter_of, transcoded, whole_rows

SECRET = "confidential 4711"
EXACT = vp.ReadOptions(exact=True)


def is_well_quoted(text):
    """Return whether Python's strict reader accepts the text."""
    try:
        list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        return False
    return True


@given(
    text=st.lists(st.sampled_from(["a", '"', '"', ",", ";", "\n", "\r\n"]), max_size=14).map("".join),
    cut=st.integers(0, 14),
)
def test_quotes_are_accepted_if_and_only_if_a_strict_reader_accepts_them(text, cut):
    """The kernel and a strict reader agree for any file and any division into blocks."""
    state = np.zeros(4, np.int64)
    data = text.encode()
    fine = all(
        follow_quotes(np.frombuffer(each, np.uint8), np.uint8(ord(",")), state) for each in (data[:cut], data[cut:])
    )
    assert (fine and state[MODE] != QUOTED) == is_well_quoted(text)


cells = st.lists(st.sampled_from(["a", "é", "\r", "\n", "\r\n", '"', ",", "\t"]), max_size=6).map("".join)


@given(
    rows=st.lists(cells, min_size=1, max_size=6),
    end=st.sampled_from(["\n", "\r\n"]),
    block=st.integers(1, 40),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252"]),
    ending=st.sampled_from([".csv", ".tsv", ".csv.gz", ".tsv.bz2"]),
    memory=st.sampled_from([None, "1GiB"]),
)
@settings(max_examples=60, deadline=None)
def test_blocks_do_not_change_cells(tmp_path_factory, rows, end, block, encoding, ending, memory):
    """The cells equal those of Python's reader, regardless of how the file is divided into blocks."""
    mark = "\t" if "tsv" in ending else ","
    quoted = [each.replace('"', '""') for each in rows]
    text = "".join(f'{who}{mark}"{what}"{end}' for who, what in [("who", "what"), *enumerate(quoted)])
    path = tmp_path_factory.mktemp("cells") / f"t{ending}"
    data = text.encode(encoding)
    path.write_bytes({".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix, bytes)(data))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("BLOCK", "SMALL_BLOCK"):
            patch.setattr(files, name, block)
        options = vp.ReadOptions(memory=memory)
        given = vp.CSV(encoding="cp1252" if encoding == "cp1252" else None, quote='"')
        corpus = read_engine(path, user="who", items="what", csv=given, options=options)
    assert corpus.user_key.size == len(rows)
    assert set(corpus.vocabulary.to_pylist()) == set(rows)


@given(blocks=st.lists(st.text('ab",\n', max_size=5), max_size=6))
def test_the_row_of_an_unclosed_quote_does_not_depend_on_blocks(blocks):
    """The error about an unclosed quote names the same row for any division into blocks."""

    def outcome(parts):
        try:
            list(whole_rows((part.encode() for part in parts), Header(None, ","), "t.csv"))
        except SourceError as error:
            return str(error)
        return None

    assert outcome(blocks) == outcome(["".join(blocks)]) == outcome(list("".join(blocks)))


def write(folder, text, name="t.csv"):
    (folder / name).write_bytes(text.encode())
    return folder / name


@pytest.mark.parametrize(("place", "words"), [(100, "row 100"), (2999, "row 2,999"), (0, "first row")])
@pytest.mark.parametrize("again", [False, True])
def test_an_unclosed_quote_is_an_error(tmp_path, place, words, again):
    """The error names the row of the opening quote. A later quote does not close this quote."""
    rows = ["who,text"] + [f"{number},{SECRET} said hello" for number in range(3000)]
    rows[place] = rows[place].replace(",", ',"', 1)
    if again:
        rows[-1] = rows[-1].replace(",", ',"', 1)
    with pytest.raises(SourceError) as caught:
        read_engine(write(tmp_path, "\n".join(rows)), user="who", text="text", options=EXACT)
    assert SECRET not in str(caught.value)
    assert words in str(caught.value) or place == 0


def test_quoted_cells_may_contain_any_character(tmp_path):
    """Quoted cells may contain line breaks, delimiters and doubled quotes."""
    path = write(tmp_path, 'who,text\r\n1,"two\r\nlines, one ""cell"""\r\n2,plain 5" pipe\r\n')
    corpus = read_engine(path, user="who", text="text")
    assert corpus.user_key.size == 2
    assert {"two", "lines", "cell", "pipe"} <= set(corpus.vocabulary.to_pylist())


@pytest.mark.parametrize("delimiter", [";", "\t", "|", ","])
def test_the_delimiter_is_detected(tmp_path, delimiter):
    """Semicolons, tabs and vertical bars are detected, as spreadsheets in some locales write them.

    The quoted column name contains another delimiter.
    """
    path = write(
        tmp_path, f'"User, Id"{delimiter}Text\nann{delimiter}tea\nbob{delimiter}tea; milk\n'.replace("; ", " ")
    )
    corpus = read_engine(path, user="User, Id", text="Text")
    assert corpus.user_key.size == 2
    assert "tea" in corpus.vocabulary.to_pylist()
    assert delimiter_of("a;b", ["c"], ",") == ","


@pytest.mark.parametrize("said", ["sep=;", '"sep=;"', "SEP=;", "\ufeffsep=;"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_first_row_can_name_the_delimiter(tmp_path, said, end):
    """Spreadsheets can write a first row that names the delimiter.

    The column names follow this row, and rows are counted from the row of names. An explicit delimiter overrides the
    first row.
    """
    rows = [said, "who;text", "ann;tea, or milk", "bob;tea"]
    corpus = read_engine(write(tmp_path, end.join(rows)), user="who", text="text")
    assert corpus.user_key.size == 2
    assert set(corpus.vocabulary.to_pylist()) == {"tea", "or", "milk"}
    with pytest.raises(SourceError, match="opened in row 2 "):
        read_engine(write(tmp_path, end.join([*rows[:3], 'bob;"tea'])), user="who", text="text", options=EXACT)
    with pytest.raises(SourceError, match="opened in the first row"):
        read_engine(write(tmp_path, end.join([said, 'who;text;"more', *rows[2:]])), user="who", text="text")
    spilled = read_engine(
        write(tmp_path, end.join(rows)), user="who", text="text", options=vp.ReadOptions(memory="1GiB")
    )
    assert spilled.vocabulary.equals(corpus.vocabulary)
    (tmp_path / "wide.csv").write_bytes(end.join(rows).removeprefix("\ufeff").encode("utf-16"))
    assert read_engine(tmp_path / "wide.csv", user="who", text="text").vocabulary.equals(corpus.vocabulary)
    commas = write(tmp_path, end.join(["sep=;", "who,text", "ann,tea"]))
    assert read_engine(commas, user="who", text="text", csv=vp.CSV(delimiter=",")).user_key.size == 1
    with pytest.raises(SourceError, match="no user column"):
        read_engine(write(tmp_path, said), user="who", text="text")


def test_a_missing_or_repeated_header_is_reported(tmp_path):
    """If the header is missing, the first row is data and must not appear in messages."""
    with pytest.raises(ColumnError, match=r"not shown.*The first row of CSV must name") as caught:
        read_engine(write(tmp_path, f"ann,{SECRET}\nbob,tea\n"), user="who", text="text")
    assert SECRET not in str(caught.value)
    assert "ann" not in str(caught.value)
    with pytest.raises(SourceError, match='2 columns called "text"'):
        read_engine(write(tmp_path, "who,text,text\nbob,tea,milk\n"), user="who", text="text")
    with pytest.raises(SourceError, match="3 values, but the header has 2"):
        read_engine(write(tmp_path, "who,text\nbob,tea,milk\n"), user="who", text="text")


@pytest.mark.jit
def test_the_error_for_broken_json_names_its_row(tmp_path):
    """The error names the row of the broken JSON. Rows are counted from 1."""
    rows = ['{"who": 1, "text": "tea"}'] * 2999 + ['{"who": 1, "text": ']
    with pytest.raises(SourceError, match="row 3,000: "):
        read_engine(write(tmp_path, "\n".join(rows), "t.jsonl"), user="who", text="text", options=EXACT)
    many = ['{"who": 1, "text": "' + "tea " * 300 + '"}'] * 8000 + ["{"]
    with pytest.raises(SourceError, match="row 8,001: "):
        read_engine(write(tmp_path, "\n".join(many), "t.jsonl"), user="who", text="text", options=EXACT)


@pytest.mark.parametrize("tokenizer", [str.split, lambda texts: 1 / 0])
def test_a_tokenizer_for_single_texts_is_rejected(tokenizer):
    """The message shows how to apply a tokenizer for single texts to a list, but omits the tokenizer's own message."""
    with pytest.raises(InputError, match=r"lambda texts: \[cut\(text\)") as caught:
        read_engine({"who": [1], "text": [SECRET]}, user="who", text="text", tokenizer=tokenizer)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-le", "shift_jis", "utf-8", "UTF-8-SIG"])
@pytest.mark.parametrize("memory", [None, "1GiB"])
def test_a_given_encoding_is_used(tmp_path, encoding, memory):
    """The reader decodes all characters correctly, with and without a memory limit."""
    words = ["東京", "テスト"] if encoding == "shift_jis" else ["café", "größe"]
    rows = 'who,text\r\n1,"{}, x"\r\n2,{}\r\n'.format(*words)
    (tmp_path / "t.csv").write_bytes(rows.encode(encoding))
    corpus = read_engine(
        tmp_path / "t.csv",
        user="who",
        text="text",
        csv=vp.CSV(encoding=encoding),
        options=vp.ReadOptions(memory=memory),
    )
    assert corpus.vocabulary.to_pylist() == sorted([*words, "x"], key=str.encode)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_the_byte_order_mark_selects_the_encoding(tmp_path, encoding):
    """Spreadsheets write a byte order mark in files of the type "Unicode text"."""
    (tmp_path / "t.tsv").write_bytes("who\ttext\r\n1\tcafé\r\n".encode(encoding))
    assert read_engine(tmp_path / "t.tsv", user="who", text="text").vocabulary.to_pylist() == ["café"]


def test_explicit_delimiters_override_detection(tmp_path):
    """The first header fits two delimiters, and the second header contains none of the usual delimiters."""
    path = write(tmp_path, "who;text,who,text\nann;tea,bob,milk\n")
    assert read_engine(path, user="who", text="text").vocabulary.to_pylist() == ["milk"]
    with pytest.raises(ColumnError, match='no column "text"'):
        read_engine(path, user="who", text="text", csv=vp.CSV(delimiter=";"))
    path = write(tmp_path, "who~text\nann~tea\n")
    assert read_engine(path, user="who", text="text", csv=vp.CSV(delimiter="~")).vocabulary.to_pylist() == ["tea"]


@pytest.mark.parametrize(("place", "words"), [(0, "the first row"), (7, "row 7 "), (5000, "row 5,000 ")])
@pytest.mark.parametrize("encoding", ["utf-16", "shift_jis", "ascii", None])
def test_decoding_errors_name_the_row(tmp_path, place, words, encoding):
    """The message quotes no data, and the rows before the fault are valid."""
    rows = ["who,text"] + [f"{number},{SECRET} said hello" for number in range(6000)]
    data = [f"{row}\n".encode(encoding or "utf-8") for row in rows]
    if encoding == "utf-16":
        data = [data[0], *(row[2:] for row in data[1:])]
    # The faults are half a surrogate pair, half a Shift JIS character, and a letter of another encoding.
    data[place] = data[place][:8] + (b"\x00\xd8" if encoding == "utf-16" else b"\xff") + data[place][8:]
    (tmp_path / "t.csv").write_bytes(b"".join(data))
    with pytest.raises(SourceError, match=f"{words}.*encoding=") as caught:
        read_engine(tmp_path / "t.csv", user="who", text="text", csv=vp.CSV(encoding=encoding), options=EXACT)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


@given(
    text=st.text(st.sampled_from(["a", "é", "東", "\n", '"', "\U0001f44d"]), max_size=40),
    encoding=st.sampled_from(["utf-16", "utf-32-be", "utf-8", "cp1252", "utf-7"]),
    sizes=st.lists(st.integers(1, 9), min_size=1),
    cut=st.integers(0, 9),
)
def test_a_stream_is_transcoded_like_the_whole_text(text, encoding, sizes, cut):
    """For any sizes of the parts, the stream returns only text before the fault and then raises an error."""
    data = text.encode(encoding, "ignore")
    data = data[: len(data) - cut]
    got, failed, ends = b"", False, [0, *accumulate(sizes), len(data)]
    try:
        for part in transcoded((data[begin:end] for begin, end in pairwise(ends) if data[begin:end]), encoding):
            got += part
    except UnicodeError:
        failed = True
    fault = None
    try:
        wanted = codecs.getincrementaldecoder(encoding)().decode(data, final=True)
    except UnicodeDecodeError as error:
        fault = error.start
    assert failed == (fault is not None)
    if fault is None:
        assert got.decode() == wanted
    else:
        assert data[:fault].decode(encoding, "ignore").startswith(got.decode())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"delimiter": ";;"}, "one ASCII character"),
        ({"delimiter": '"'}, "neither a quote"),
        ({"encoding": "base64"}, "Python knows"),
        ({"encoding": "klingon"}, "Python knows"),
        ({"encoding": 8}, "Python knows"),
        ({"quote": "'"}, "double quotes"),
        ({"escape": "/"}, "a backslash"),
        ({"escape": "\\", "quote": "none"}, "one of the two"),
    ],
)
def test_invalid_delimiters_and_encodings_are_rejected(tmp_path, options, words):
    """The options are checked before a file is opened."""
    with pytest.raises(InputError, match=words):
        read_engine(tmp_path / "nowhere.csv", user="who", text="text", csv=vp.CSV(**options))


@pytest.mark.parametrize("options", [{"delimiter": ";"}, {"encoding": "cp1252"}])
def test_csv_options_are_rejected_for_other_sources(tmp_path, options):
    """Options for CSV are rejected for other sources, because they would otherwise be silently ignored."""
    table = {"who": [1], "text": ["tea"]}
    for source in (table, write(tmp_path, '{"who": 1, "text": "tea"}', "t.jsonl"), "https://localhost/t.parquet"):
        with pytest.raises(InputError, match="Remove csv="):
            read_engine(source, user="who", text="text", csv=vp.CSV(**options))
    with pytest.raises(InputError, match="Download the file"):
        read_engine("https://localhost/t.csv", user="who", text="text", csv=vp.CSV(encoding="cp1252"))


@pytest.mark.parametrize("memory", [None, "1GiB"])
def test_plain_quotes_between_tabs_do_not_join_rows(tmp_path, memory):
    """Quoted cells with line breaks are rejected, because two plain quotes could otherwise join rows."""
    options = vp.ReadOptions(memory=memory)
    path = write(tmp_path, 'who\ttext\n1\t"hello there\n2\tsecret of two\n3\tbye"\n4\t5" pipe\n', "t.tsv")
    other = write(tmp_path, path.read_text())
    for source in (path, other):
        with pytest.raises(SourceError, match="--quote none"):
            read_engine(source, user="who", text="text", options=options)
    plain = read_engine(
        tmp_path / "t.csv", user="who", items="text", csv=vp.CSV(delimiter="\t", quote="none"), options=options
    )
    assert plain.vocabulary.to_pylist() == ['"hello there', '5" pipe', 'bye"', "secret of two"]
    joined = read_engine(
        tmp_path / "t.csv", user="who", text="text", csv=vp.CSV(delimiter="\t", quote='"'), options=options
    )
    assert joined.user_key.size == 2
    for one in ("4\ttext of four\n", '4\t"text of four"\n', "\n\n4\tx\n"):
        assert read_engine(write(tmp_path, f"who\ttext\n{one}", "s.tsv"), user="who", text="text").user_key.size == 1


@given(
    rows=st.lists(st.text(st.sampled_from(["a", '"', "\\", ",", "\n", "N"]), max_size=6), min_size=1, max_size=5),
    block=st.integers(1, 40),
)
def test_backslashes_before_quotes_are_read_as_by_python(rows, block):
    """Cells are unchanged for any division into blocks, and a missing value differs from the same cell in quotes."""
    text = io.StringIO()
    out = csv.writer(text, quoting=csv.QUOTE_ALL, doublequote=False, escapechar="\\", lineterminator="\n")
    out.writerows([["who", "what"], *enumerate(rows)])
    text.write("x,\\N\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("voxpop.reading.files.BLOCK", block)
        engine = read_engine(
            io.StringIO(text.getvalue()),
            user="who",
            items="what",
            csv=vp.CSV(escape="\\"),
            options=vp.ReadOptions(progress=False),
        )
    assert engine.vocabulary.to_pylist() == sorted(set(rows), key=str.encode)


def test_the_error_for_other_escapes_names_the_option(tmp_path):
    """Without the option `escape`, a file with other escapes is rejected."""
    path = write(tmp_path, 'who,text\n1,"say \\"hi\\", twice"\n')
    with pytest.raises(SourceError, match=r"escape=.*--escape"):
        read_engine(path, user="who", text="text")
    assert read_engine(path, user="who", text="text", csv=vp.CSV(escape="\\")).vocabulary.to_pylist() == [
        "hi",
        "say",
        "twice",
    ]


@pytest.mark.jit  # Without compiled kernels, long inputs would take minutes and test nothing more.
@pytest.mark.parametrize("memory", [None, "1GiB"])
@pytest.mark.parametrize("quote", ["", '"'])
def test_long_cells_are_valid(tmp_path, memory, quote):
    """Cells may be longer than the blocks of the reader."""
    path = write(tmp_path, f"who,text\n1,{quote}{'tea ' * 3_000_000}{quote}\n2,milk\n")
    corpus = read_engine(path, user="who", text="text", options=vp.ReadOptions(memory=memory))
    assert corpus.vocabulary.to_pylist() == ["milk", "tea"]


@pytest.mark.parametrize(
    "tokenizer", [lambda texts: texts, lambda texts: [set(text.split()) for text in texts], lambda texts: [b"ab"] * 1]
)
def test_a_tokenizer_that_returns_no_lists_is_rejected(tokenizer):
    """Strings and sets are rejected, because each letter would become a token and the order of a set varies."""
    with pytest.raises(InputError, match=r"a list of strings for each text, got a (str|set|bytes)") as caught:
        read_engine({"who": [1], "text": [SECRET]}, user="who", text="text", tokenizer=tokenizer)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("kind", ["tokens", "sequence"])
@pytest.mark.parametrize("make", [list, pl.DataFrame, lambda rows: pl.DataFrame(rows).to_arrow()])
def test_nulls_in_lists_are_counted_in_a_message(kind, make, capsys):
    """The tokens before and after a null become neighbours, so a message reports nulls."""
    rows = [{"who": number, "held": ["a", None, "b"]} for number in range(300)]
    read_engine(make(rows), user="who", **{kind: "held"})
    assert 'about 300 of the values in "held" are null and were skipped. The tokens before' in capsys.readouterr().err
