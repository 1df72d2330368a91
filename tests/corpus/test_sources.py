"""Tests that every source gives the same corpus, and that errors of broken sources give advice and quote no data."""

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import voxpop as vp
from support.look import corpus_documents, load_engine, read_engine, user_items
from voxpop.errors import ColumnError, InputError, SourceError

TABLE = pl.DataFrame(
    {
        "who": ["ann", "bob", "ann", "cy", "bob"],
        "text": ["Good morning", 'say "hi",\nfriend', "good, night", "", "été"],
        "other": [1, 2, 3, 4, 5],
    }
)
SECRET = "zanzibar"


def write_zst(path: Path, data: bytes) -> None:
    import zstandard

    path.write_bytes(zstandard.ZstdCompressor().compress(data))


def jsonl(table: pl.DataFrame) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in table.to_dicts()).encode()


def write(folder: Path, kind: str) -> object:
    """Write TABLE in one form and return the source."""
    csv, tsv = TABLE.write_csv().encode(), TABLE.write_csv(separator="\t").encode()
    path = folder / f"table.{kind}"
    if kind == "parquet":
        TABLE.write_parquet(path)
    elif kind in ("polars", "lazy", "pandas", "arrow", "batch", "reader"):
        arrow = TABLE.to_arrow()
        return {
            "polars": TABLE,
            "lazy": TABLE.lazy(),
            "pandas": pd.DataFrame(TABLE.to_dict(as_series=False)),
            "arrow": arrow,
            "batch": arrow.to_batches()[0],
            "reader": arrow.to_reader(),
        }[kind]
    elif kind.endswith(".gz"):
        path.write_bytes(gzip.compress(csv if kind.startswith("csv") else jsonl(TABLE)))
    elif kind.endswith(".zst"):
        write_zst(path, tsv if kind.startswith("tsv") else jsonl(TABLE))
    else:
        path.write_bytes({"csv": csv, "tsv": tsv, "jsonl": jsonl(TABLE), "ndjson": jsonl(TABLE)}[kind])
    return path


FILES = ["parquet", "csv", "tsv", "jsonl", "ndjson", "csv.gz", "jsonl.gz", "tsv.zst", "jsonl.zst"]
FORMS = [*FILES, "polars", "lazy", "pandas", "arrow", "batch", "reader"]


@pytest.mark.parametrize("form", FORMS)
def test_every_source_gives_the_same_corpus(tmp_path, form):
    """The documents, vocabulary and keys are the same for every form of the rows."""
    quoted = vp.CSV(quote='"') if str(form).startswith("tsv") else None  # A cell contains a line break.
    corpus = read_engine(write(tmp_path, form), user="who", text="text", csv=quoted)
    assert corpus_documents(corpus) == [
        [["good", "morning"], ["good", "night"]],
        [["say", "hi", "friend"], ["été"]],
        [[]],
    ]
    reference = read_engine(TABLE, user="who", text="text")
    assert corpus.user_key.tolist() == reference.user_key.tolist()
    assert corpus.vocabulary.equals(reference.vocabulary)


def test_folders_globs_and_lists_of_files_are_read(tmp_path):
    """The rows of one user may be in several files of different types."""
    (tmp_path / "deep").mkdir()
    TABLE.head(2).write_parquet(tmp_path / "a.parquet")
    TABLE.tail(3).write_csv(tmp_path / "deep" / "b.csv")
    (tmp_path / "notes.txt").write_text("not a table")
    whole = corpus_documents(read_engine(TABLE, user="who", text="text"))
    pattern = str(tmp_path / "**" / "*.[pc]*")
    for source in (tmp_path, str(tmp_path), pattern, [tmp_path / "a.parquet", tmp_path / "deep" / "b.csv"]):
        assert corpus_documents(read_engine(source, user="who", text="text")) == whole


def test_integer_user_ids_are_used_as_keys():
    """Integer ids may be signed or unsigned, with any number of bits."""
    for kind in (pl.Int8, pl.Int32, pl.Int64, pl.UInt64):
        table = pl.DataFrame({"who": pl.Series([7, 3, 7], dtype=kind), "text": ["a", "b", "c"]})
        assert read_engine(table, user="who", text="text").user_key.tolist() == [7, 3]


def test_items_are_read_one_per_row_or_from_lists(tmp_path):
    """Nulls are omitted, integers become decimal strings, and Parquet dictionaries are used directly."""
    rows = pl.DataFrame({"who": [2, 1, 2, 1], "what": ["b", "a", None, "c"]})
    rows.write_parquet(tmp_path / "items.parquet")
    for source in (rows, tmp_path / "items.parquet"):
        assert user_items(read_engine(source, user="who", items="what")) == [["b"], ["a", "c"]]
    lists = pl.DataFrame({"who": [2, 1], "what": [["b", None], ["a", "c"]]})
    assert user_items(read_engine(lists, user="who", items="what")) == [["b"], ["a", "c"]]
    numbers = pl.DataFrame({"who": [1, 1], "what": [10, 9]})
    assert user_items(read_engine(numbers, user="who", items="what")) == [["10", "9"]]
    categories = pl.DataFrame({"who": [1, 1], "what": pl.Series(["x", "y"], dtype=pl.Categorical)})
    assert user_items(read_engine(categories, user="who", items="what")) == [["x", "y"]]


def test_tokens_and_sequences_keep_their_order():
    """Lists may contain strings or numbers. A null list is an empty document, and nulls in lists are omitted."""
    table = pl.DataFrame({"who": [1, 2, 1], "seq": [[3, 1, 2], None, [1, None]]})
    assert corpus_documents(read_engine(table, user="who", sequence="seq")) == [[["3", "1", "2"], ["1"]], [[]]]
    words = pl.DataFrame({"who": [1], "seq": [["b c", "a"]]})
    assert corpus_documents(read_engine(words, user="who", tokens="seq")) == [[["b c", "a"]]]


def test_many_batches_with_interleaved_users_are_read():
    """A hundred thousand rows in several batches are grouped by user."""
    rng = np.random.default_rng(0)
    who, what = rng.integers(0, 999, 100_000), rng.integers(0, 50, 100_000)
    table = pl.DataFrame({"who": who, "text": [f"w{i} x" for i in what]})
    corpus = read_engine(table, user="who", text="text")
    expected = pl.DataFrame({"who": who, "n": what}).group_by("who", maintain_order=True).agg(pl.col("n"))
    assert [[int(d[0][1:]) for d in user] for user in corpus_documents(corpus)] == expected["n"].to_list()


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"user": "Who", "text": "text"}, ['"who"', "Did you mean"]),
        ({"user": "who", "text": "body"}, ['"text"', '"other"']),
        ({"user": "who", "text": "other"}, ["strings", "int64"]),
        ({"user": "who", "tokens": "text"}, ["lists"]),
    ],
)
def test_errors_of_wrong_columns_list_the_existing_columns(columns, words):
    """For a missing or unsuitable column, the message lists the alternatives and advice."""
    with pytest.raises(ColumnError) as error:
        read_engine(TABLE, **columns)
    assert all(word in str(error.value) for word in words)


def test_floats_are_not_accepted_as_users():
    """Floats are rejected, because two different floats can be printed as the same text. The message gives advice."""
    with pytest.raises(ColumnError, match=r"contains double.*Cast them to whole numbers"):
        read_engine(pl.DataFrame({"who": [1.5], "text": ["a"]}), user="who", text="text")


@pytest.mark.parametrize("given", [{}, {"text": "text", "items": "text"}])
def test_exactly_one_content_column_is_required(given):
    """The reader rejects calls that name no content column, or two of text, tokens, items and sequence."""
    with pytest.raises(InputError, match="exactly one"):
        read_engine(TABLE, user="who", **given)


def test_a_null_user_is_rejected_with_its_row(tmp_path):
    """The error names the file or the table, and also the row."""
    table = pl.DataFrame({"who": ["a", None], "text": [SECRET, SECRET]})
    table.write_csv(tmp_path / "t.csv")
    for source, where in ((table, "the table, row 2"), (tmp_path / "t.csv", "t.csv, row 2")):
        with pytest.raises(SourceError, match=where) as error:
            read_engine(source, user="who", text="text", options=vp.ReadOptions(exact=True))
        assert SECRET not in str(error.value)


def bad_file(folder: Path, kind: str) -> Path:
    """Write a broken file that contains SECRET."""
    good = f"who,text\na,{SECRET}\n".encode()
    path, data = {
        "width.csv": ("width.csv", good + f"b,{SECRET},{SECRET}\n".encode()),
        "latin.csv": ("latin.csv", good + b"b,caf\xe9 " + SECRET.encode() + b"\n"),
        "latin-header.csv": ("latin-header.csv", b"wh\xe9,text\n"),
        "broken.jsonl": ("broken.jsonl", json.dumps({"who": "a", "text": SECRET}).encode() + b'\n{"who": "b", "te'),
        "cut.csv.gz": ("cut.csv.gz", gzip.compress(good * 9999)[:-40]),
        "not.parquet": ("not.parquet", good),
        "cut.parquet": ("cut.parquet", b""),
    }[kind]
    if kind == "cut.parquet":
        TABLE.write_parquet(folder / path)
        data = (folder / path).read_bytes()[:-20]
    (folder / path).write_bytes(data)
    return folder / path


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("width.csv", ["3 values, but the header has 2"]),
        ("latin.csv", ["UTF-8"]),
        ("latin-header.csv", ["UTF-8"]),
        ("broken.jsonl", ["Correct the row"]),
        ("cut.csv.gz", ["truncated or damaged"]),
        ("not.parquet", ["Parquet"]),
        ("cut.parquet", ["Parquet"]),
    ],
)
def test_errors_of_broken_files_name_file_and_reason_and_quote_no_data(tmp_path, kind, words):
    """The reader's own message, which can quote rows, never appears."""
    with pytest.raises(SourceError) as error:
        read_engine(bad_file(tmp_path, kind), user="who", text="text")
    assert kind in str(error.value)
    assert all(word in str(error.value) for word in words)
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None


def test_parquet_strings_that_are_not_utf8_are_rejected(tmp_path):
    """The library checks the strings of Parquet files, because neither Parquet nor the kernels check them."""
    raw = pa.array([b"ok", b"\xff\xfe"], pa.binary())
    text = pa.StringArray.from_buffers(2, raw.buffers()[1], raw.buffers()[2])
    pq.write_table(pa.table({"who": [1, 2], "text": text}), tmp_path / "t.parquet")
    with pytest.raises(SourceError, match=r"row 1 on.*UTF-8"):
        read_engine(tmp_path / "t.parquet", user="who", text="text", options=vp.ReadOptions(exact=True))


@pytest.fixture(scope="module")
def plans():
    """Return a plan for each code path of a release."""
    mechanisms = [
        vp.Items(),
        vp.Items(max_items_per_user=1),
        vp.papers.SetUnion(100, "weighted", accounting="joint"),
        vp.NGrams(3),
    ]
    return [mechanism.plan(vp.Budget(1, 1e-6)) for mechanism in mechanisms]


@pytest.mark.parametrize("memory", [None, "1GiB"])
def test_a_source_without_rows_gives_an_empty_release(tmp_path, plans, memory):
    """The source has only a header. An error would distinguish such a source from a table with one user."""
    (tmp_path / "header.csv").write_text("who,text\n")
    corpus = read_engine(tmp_path / "header.csv", user="who", text="text", options=vp.ReadOptions(memory=memory))
    for plan in plans:
        release = plan.release(corpus)
        assert len(release) == 0
        assert release.guarantee == vp.Guarantee(1, 1e-6)
    corpus.save(tmp_path / "saved")
    assert len(plans[0].release(load_engine(tmp_path / "saved"))) == 0


@pytest.mark.parametrize("days", [400, 40_000])
def test_json_strings_that_look_like_dates_are_strings(tmp_path, days):
    """The type does not depend on other rows, so one user's row "tea" does not determine whether dates can be read."""
    rows = [json.dumps({"who": user, "what": f"2020-01-{user % 28 + 1:02d}"}) for user in range(days)]
    tea = json.dumps({"who": days, "what": "tea"})
    (tmp_path / "dates.jsonl").write_text("\n".join(rows))
    (tmp_path / "tea.jsonl").write_text("\n".join([*rows, tea]))
    dates, with_tea = (read_engine(tmp_path / f"{name}.jsonl", user="who", items="what") for name in ("dates", "tea"))
    assert dates.vocabulary.to_pylist() == [f"2020-01-{day:02d}" for day in range(1, 29)]
    assert with_tea.vocabulary.to_pylist() == [*dates.vocabulary.to_pylist(), "tea"]
    small = read_engine(tmp_path / "dates.jsonl", user="who", items="what", options=vp.ReadOptions(memory="1GiB"))
    assert small.vocabulary.equals(dates.vocabulary)


def test_json_users_texts_and_lists_that_look_like_dates_are_strings(tmp_path):
    """Users, texts and lists that look like dates are also strings.

    If all lists are empty, they are lists of strings.
    """
    rows = [
        {"who": f"2020-01-{day:02d}", "text": "2020-01-01T00:00:00", "bag": ["2020-01-01"], "no": []} for day in (1, 2)
    ]
    path = tmp_path / "dates.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert read_engine(path, user="who", text="text", tokenizer="whitespace").vocabulary.to_pylist() == [
        "2020-01-01T00:00:00"
    ]
    assert read_engine(path, user="who", tokens="bag").vocabulary.to_pylist() == ["2020-01-01"]
    assert read_engine(path, user="who", sequence="no").user_key.size == 2


def test_missing_paths_and_unknown_suffixes_are_reported(tmp_path):
    """A missing path, a folder without tables, a file of an unsupported type, and an integer are reported as errors."""
    (tmp_path / "x.docx").write_text("x")
    for source, words in (
        ("/no/such/file", "check the path"),
        (tmp_path, "contains no table"),
        (tmp_path / "x.docx", ".zst"),
    ):
        with pytest.raises(SourceError, match=words):
            read_engine(source, user="who", text="text")
    with pytest.raises(InputError, match="got int"):
        read_engine(7, user="who", text="text")


def test_repr_of_a_corpus_contains_no_data():
    """The repr contains neither words nor numbers of users."""
    assert repr(vp.read(TABLE, user="who", text="text")) == "Corpus(kind='text', private)"


def test_codes_beyond_their_dictionary_are_reported_as_damage():
    """Damaged Parquet files can contain codes beyond the dictionary, and Arrow reads such codes without an error.

    Fuzzing found this case. The reader rejects the column without quoting data.
    """
    codes = pa.array([0, 21, 1], pa.int32())
    damaged = pa.DictionaryArray.from_arrays(codes, pa.array(["tea", "milk"]), safe=False)
    table = pa.table({"who": ["ann", "bob", "cy"], "what": damaged})
    with pytest.raises(SourceError, match=r'column "what" is damaged') as found:
        read_engine(table, user="who", items="what")
    assert "milk" not in str(found.value)


def test_a_column_name_that_is_not_utf8_is_reported_as_damage(tmp_path):
    """Arrow reads a schema with such a name, but raises a Python error when the name is used.

    Fuzzing found this case.
    """
    path = tmp_path / "t.feather"
    feather.write_feather(pa.table({"who": ["ann"], "text": ["tea"]}), path, compression="uncompressed")
    head, footer = path.read_bytes()[:-100], path.read_bytes()[-100:]
    assert footer.count(b"who") == 1
    path.write_bytes(head + footer.replace(b"who", b"\x90ho"))
    with pytest.raises(SourceError, match=r"t.feather is damaged, because a column name is not UTF-8") as found:
        read_engine(path, user="who", text="text")
    assert found.value.__context__ is None or "ho" not in str(found.value.__context__)
