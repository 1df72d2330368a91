"""Tests that any input causes an error of this library or gives a correct result.

The default run is short, but `make fuzz` draws 30,000 inputs for each test. The findings are in `test_findings.py`.
"""

import contextlib
import gzip
import io
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import voxpop as vp
from naive.corpus import words as naive_words
from support.look import read_engine
from voxpop.cli import main
from voxpop.cli.app import app
from voxpop.errors import VoxpopError

EXAMPLES = int(os.environ.get("VOXPOP_FUZZ", "60"))
fuzzed = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(autouse=True)
def figure(record_property: Callable[[str, str], None]) -> None:
    """Record the number of inputs per test for the page of claims."""
    record_property("figure", f"{EXAMPLES:,} inputs")


ROWS = pl.DataFrame({"who": ["ann", "bob", "ann", "cy"], "text": ["Good day", 'a "b", c', "été 1", ""]})
LISTS = pl.DataFrame({"who": [3, 1, 3], "text": [["a", "b"], [], ["a", None]]})


def written(table: pl.DataFrame, kind: str) -> bytes:
    """Return a table as the bytes of a file of the given type."""
    sink = io.BytesIO()
    if kind == "parquet":
        table.write_parquet(sink)
    elif kind.startswith("csv"):
        table.write_csv(sink)
    elif kind == "feather":
        table.write_ipc(sink)
    elif kind == "json":
        table.write_json(sink)
    else:
        table.write_ndjson(sink)
    return gzip.compress(sink.getvalue(), mtime=0) if kind.endswith("gz") else sink.getvalue()


SEEDS = [(kind, written(ROWS, kind)) for kind in ("parquet", "csv", "csv.gz", "jsonl", "json", "feather")]
SEEDS += [(kind, written(LISTS, kind)) for kind in ("parquet", "jsonl")]
edits = st.lists(
    st.tuples(st.sampled_from(["cut", "flip", "put", "drop", "double"]), st.floats(0, 1), st.binary(max_size=6)),
    max_size=4,
)
contents = st.sampled_from(["text", "tokens", "items", "sequence"])


def edited(data: bytes, changes: list[tuple[str, float, bytes]]) -> bytes:
    """Return bytes with a few changes."""
    for change, where, piece in changes:
        place = int(where * len(data))
        if change == "cut":
            data = data[:place]
        elif change == "flip" and place < len(data):
            data = data[:place] + bytes([data[place] ^ (piece[0] if piece else 255)]) + data[place + 1 :]
        elif change == "put":
            data = data[:place] + piece + data[place:]
        elif change == "drop":
            data = data[:place] + data[place + len(piece) + 1 :]
        elif change == "double":
            data = data[:place] + data
    return data


def read_or_refuse(source: object, content: str, **options: object) -> None:
    """Read a source, and check the result unless this library raises an error."""
    try:
        corpus = read_engine(source, user="who", **{content: "text"}, **options)
    except VoxpopError:
        return
    words = corpus.vocabulary.to_pylist()
    assert words == sorted(set(words))
    assert corpus.user_start[0] == 0
    assert (np.diff(corpus.user_start) >= 0).all()
    assert corpus.user_start[-1] == corpus.tokens.size
    assert corpus.tokens.size == 0 or -1 <= corpus.tokens.min() <= corpus.tokens.max() < len(words)
    assert set(corpus.tokens[corpus.tokens >= 0].tolist()) == set(range(len(words)))


def read_bytes(kind: str, data: bytes, content: str) -> None:
    """Read bytes as a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"t.{kind}")
        path.write_bytes(data)
        read_or_refuse(path, content)


@given(st.sampled_from(SEEDS), edits, contents)
@fuzzed
def test_damaged_files_raise_only_input_errors(seed, changes, content):
    """The inputs are valid files of every type with a few bytes changed."""
    kind, data = seed
    read_bytes(kind, edited(data, changes), content)


@given(
    st.sampled_from(["csv", "tsv", "jsonl", "parquet", "csv.gz", "jsonl.zst", "json", "arrow", "csv.bz2", "txt"]),
    st.binary(max_size=80),
    contents,
)
@fuzzed
def test_random_bytes_raise_only_input_errors(kind, data, content):
    """The inputs are random bytes after a header that names the columns."""
    heads = {"csv": b"who,text\n", "tsv": b"who\ttext\n", "jsonl": b'{"who": 1, "text": "a"}\n', "parquet": b"PAR1"}
    read_bytes(kind, heads.get(kind, b"") + data, content)


plain = {
    "strings": (st.text(max_size=6), pa.large_string()),
    "short": (st.text(max_size=6), pa.string()),
    "bytes": (st.binary(max_size=6), pa.binary()),
    "small": (st.integers(-128, 127), pa.int8()),
    "large": (st.integers(-(2**63), 2**63 - 1), pa.int64()),
    "unsigned": (st.integers(0, 2**64 - 1), pa.uint64()),
    "floats": (st.floats(), pa.float64()),
    "truths": (st.booleans(), pa.bool_()),
    "nothing": (st.none(), pa.null()),
    "days": (st.dates(), pa.date32()),
}


@st.composite
def columns(draw: st.DrawFn, size: int) -> pa.Array:
    """Draw a column of some type.

    The column can be plain, have nulls, consist of lists or lists of lists, or be a dictionary.
    """
    values, kind = plain[draw(st.sampled_from(sorted(plain)))]
    values = st.none() | values if draw(st.booleans()) else values
    shape = draw(st.sampled_from(["plain", "list", "fixed", "deep", "dictionary"]))
    if shape == "list":
        values, kind = st.none() | st.lists(values, max_size=3), pa.list_(kind)
    elif shape == "fixed":
        values, kind = st.lists(values, min_size=2, max_size=2), pa.list_(kind, 2)
    elif shape == "deep":
        values, kind = st.lists(st.lists(values, max_size=2), max_size=2), pa.list_(pa.list_(kind))
    array = pa.array(draw(st.lists(values, min_size=size, max_size=size)), kind)
    if shape == "dictionary":
        with contextlib.suppress(pa.ArrowNotImplementedError):
            array = array.dictionary_encode()
    return array


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Draw a table, possibly sliced, with columns of any type."""
    size = draw(st.integers(0, 6))
    table = pa.table({"who": draw(columns(size)), "text": draw(columns(size))})
    return table.slice(draw(st.integers(0, 2)))


@given(tables(), contents, st.sampled_from(["words", "whitespace", "characters"]), st.booleans())
@fuzzed
def test_tables_of_any_types_raise_only_input_errors(table, content, tokenizer, sentences):
    """The user and content columns may have any Arrow type."""
    read_or_refuse(
        table, content, tokenizer=vp.Tokenizer(tokenizer, sentences=sentences) if content == "text" else tokenizer
    )


@given(st.lists(st.text(max_size=40) | st.text("aA'ßΣσİ\u0301\u1160 .\nhttps:/w", max_size=30), max_size=5))
@fuzzed
def test_texts_are_split_like_the_reference(texts):
    """Any Unicode text gives the same words as the reference implementation."""
    texts = [text.encode("utf-8", "ignore").decode() for text in texts]
    corpus = read_engine(pl.DataFrame({"who": range(len(texts) + 1), "text": [*texts, "a"]}), user="who", text="text")
    words = corpus.vocabulary.to_pylist()
    for number, text in enumerate(texts):
        own = corpus.tokens[corpus.user_start[number] : corpus.user_start[number + 1]]
        assert [words[token] for token in own[:-1]] == naive_words(text)


junk = st.text(max_size=8) | st.sampled_from(
    ["", "-1", "0", "nan", "inf", "1e999", "1e-400", "7", "a,b", "regex:(", "∞"]
)


def options() -> list[str]:
    """Return the names of the options of all commands."""
    each_command = [app[name] for name in app if not name.startswith("-") and app[name].default_command]
    arguments = [each for command in each_command for each in command.assemble_argument_collection()]
    return sorted({name for each in arguments for name in each.names if name.startswith("-")})


flags = st.sampled_from(options())
commands = st.sampled_from(
    ["items", "ngrams", "heavy-hitters", "sequences", "ask", "plan", "show", "complete", "demo", "", "--help"]
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that contains a small table."""
    made = tmp_path_factory.mktemp("cli")
    ROWS.write_csv(made / "t.csv")
    return made


@given(commands, st.lists(st.tuples(flags, junk | st.sampled_from(["who", "text", "1"])), max_size=5))
@fuzzed
def test_generated_command_lines_raise_only_expected_errors(folder, command, options):
    """Any command with any options succeeds or prints an error message without a traceback."""
    given_ = [part.replace("\0", "") for option in options for part in option]
    out, err, before = io.StringIO(), io.StringIO(), Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([command, "t.csv", *given_, "--epsilon", "nan"])  # an epsilon of NaN prevents any release
    finally:
        os.chdir(before)
    assert code in (0, 2), err.getvalue()
    assert "Traceback" not in err.getvalue()


@given(st.sampled_from(["release.json", "release.parquet"]), edits)
@fuzzed
def test_damaged_releases_raise_only_release_errors(name, changes):
    """A changed release is either rejected or loaded with its original contents."""
    from voxpop.release.result import StoredPlan

    release = vp.Release.from_items(pa.array(["tea", "toast"]), StoredPlan({"sigma": 1.2}), vp.Guarantee(4, 1e-7))
    with tempfile.TemporaryDirectory() as here:
        release.save(f"{here}/r")
        path = Path(here, "r", name)
        path.write_bytes(edited(path.read_bytes(), changes))
        with contextlib.suppress(VoxpopError):
            assert json.dumps(list(vp.load(f"{here}/r").grams["gram"].to_pylist())) == '[["tea"], ["toast"]]'
