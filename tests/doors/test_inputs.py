"""Tests that common forms of tables are read, or rejected with a message that contains the next step."""

import bz2
import datetime as dt
import io
import json
import sqlite3
import subprocess
import sys
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather
import pytest

import voxpop as vp
from support.look import read_engine
from voxpop.cli import main
from voxpop.errors import ColumnError, InputError, SourceError
from voxpop.reading import remote

ROWS = [(1, "tea"), (2, "milk"), (1, "bread"), (3, "tea")]
NAMES = ["user", "item"]
TABLE = pa.table({"user": [user for user, _ in ROWS], "item": [item for _, item in ROWS]})
CSV = "user,item\n" + "".join(f"{user},{item}\n" for user, item in ROWS)
JSON = [dict(zip(NAMES, row, strict=True)) for row in ROWS]
Bought = namedtuple("Bought", NAMES)


@dataclass
class Order:
    user: int
    item: str


def items_of(source, user="user", items="item", **arguments):
    """Return the items and the number of users of a source."""
    engine = read_engine(source, user=user, items=items, **arguments)
    return engine.vocabulary.to_pylist(), engine.user_key.size


READ = (["bread", "milk", "tea"], 3)


def saved(folder, name, content):
    """Write a file and return its path."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refused(error, words, source, **arguments):
    """Check that reading a source raises an error with the given words and without the data."""
    with pytest.raises(error, match=words) as caught:
        items_of(source, **{"options": vp.ReadOptions(exact=True), **arguments})
    assert not any(item in str(caught.value) for item in ("bread", "milk"))


def sqlite_rows():
    """Return sqlite3 rows that include their column names."""
    opened = sqlite3.connect(":memory:")
    opened.row_factory = sqlite3.Row
    opened.execute("create table t (user integer, item text)")
    opened.executemany("insert into t values (?, ?)", ROWS)
    return opened.execute("select * from t").fetchall()


@pytest.mark.parametrize(
    "make",
    [
        lambda: [Bought(*row) for row in ROWS],
        lambda: iter([Order(*row) for row in ROWS]),
        lambda: pd.DataFrame(ROWS, columns=NAMES).itertuples(),
        lambda: np.array(ROWS, [("user", "i8"), ("item", "U9")]),
        lambda: np.rec.array(ROWS, [("user", "i8"), ("item", "O")]),
        lambda: list(np.array(ROWS, [("user", "i8"), ("item", "U9")])),
        sqlite_rows,
        lambda: ds.dataset(TABLE),
        lambda: ds.dataset([ds.dataset(TABLE[:2]), ds.dataset(TABLE[2:])]),
        lambda: io.BytesIO(CSV.encode()),
        lambda: io.BytesIO(bz2.compress(CSV.encode())),
        lambda: io.StringIO("\n".join(map(json.dumps, JSON))),
        lambda: io.StringIO(json.dumps(JSON, indent=2)),
    ],
    ids=[
        *("named tuples", "dataclasses", "itertuples", "structured", "recarray", "records", "sqlite3", "dataset"),
        *("union of datasets", "bytes", "compressed bytes", "text of JSON lines", "text of a JSON array"),
    ],
)
def test_rows_with_field_names_datasets_and_open_files_are_read(make):
    """Rows with field names, data sets and open files are read, because they have column names."""
    assert items_of(make()) == READ


def test_rows_of_sqlalchemy_are_read():
    """The rows are the result of a query, either as an iterator or as a list."""
    sqlalchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed: make exports")
    with sqlalchemy.create_engine("sqlite://").connect() as connection:
        connection.exec_driver_sql("create table t (user integer, item text)")
        for row in ROWS:
            connection.exec_driver_sql("insert into t values (?, ?)", row)
        query = sqlalchemy.text("select * from t")
        assert items_of(connection.execute(query)) == items_of(connection.execute(query).all()) == READ
        assert items_of(connection.execute(query).mappings()) == READ


@pytest.mark.parametrize("name", ["t.feather", "t.arrow", "stream.arrow", "t.csv.bz2", "t.json", "lines.json"])
def test_files_in_further_formats_are_read(tmp_path, name):
    """The files are both Arrow file formats, CSV compressed with bzip2, and JSON as one array and as lines."""
    path = tmp_path / name
    if name == "stream.arrow":
        with pa.ipc.new_stream(path, TABLE.schema) as out:
            out.write_table(TABLE)
    elif name in ("t.feather", "t.arrow"):
        pyarrow.feather.write_feather(TABLE, path, compression="zstd")
    elif name == "t.csv.bz2":
        path.write_bytes(bz2.compress(CSV.encode()))
    else:
        path.write_text(json.dumps(JSON, indent=1) if name == "t.json" else "\n".join(map(json.dumps, JSON)))
    assert items_of(path) == READ
    if name == "t.json":
        refused(InputError, "so memory= cannot limit it", path, options=vp.ReadOptions(memory="2GiB"))
        refused(SourceError, r"t\.json.*not a JSON array", saved(tmp_path, "t.json", path.read_text()[:-1]))
        refused(SourceError, r"t\.json, row 2", saved(tmp_path, "t.json", '[{"user": 1, "item": "a"}, 7]'))
    elif not name.endswith(".json"):
        assert items_of(path, options=vp.ReadOptions(memory="3GiB")) == READ
        refused(SourceError, name, saved(tmp_path, name, path.read_bytes()[:-9]))


def test_standard_input_is_read(tmp_path):
    """Any format can be piped to standard input."""
    pl.DataFrame({"user": range(3000), "item": ["tea"] * 3000}).write_parquet(tmp_path / "t.parquet")
    call = ["items", "-", "--user", "user", "--items", "item", "--epsilon", "1", "--delta", "1e-8", "-o", "keys"]
    call += ["--max-items-per-user", "1"]  # Without a limit, the process would plan more than this test needs.
    program = "import sys; from voxpop.cli import main; sys.exit(main(sys.argv[1:]))"
    ran = subprocess.run(
        [sys.executable, "-c", program, *call], cwd=tmp_path, input=(tmp_path / "t.parquet").read_bytes(), check=False
    )
    assert ran.returncode == 0
    assert vp.load(tmp_path / "keys").to_list() == ["tea"]


def test_folder_names_become_columns(tmp_path):
    """The values are strings that are decoded from the folder names.

    A declared type applies to these values, and the value from a folder name replaces a column of the file.
    """
    for year, user in (("2026", 1), ("0007", 2), ("__HIVE_DEFAULT_PARTITION__", 3)):
        part = pl.DataFrame({"user": [user], "year": [0]})
        (tmp_path / f"hive/year={year}/shop=a%2Fb").mkdir(parents=True)
        part.write_parquet(tmp_path / f"hive/year={year}/shop=a%2Fb/part.parquet")
    assert items_of(tmp_path / "hive", items="year") == (["0007", "2026"], 3)
    assert items_of(str(tmp_path / "hive/*/*/part.parquet"), items="shop") == (["a/b"], 3)
    both = read_engine(tmp_path / "hive", user="user", items=["year", "shop"], types={"year": "int64"})
    assert [(each.name, each.kind) for each in both.keys.columns] == [("year", "int64"), ("shop", "string")]
    refused(SourceError, "does not fit int64", tmp_path / "hive", items="shop", types={"shop": "int64"})
    refused(InputError, "at least one column from the files", tmp_path / "hive", user="shop", items="year")


def test_datasets_with_inferred_types_are_rejected(tmp_path):
    """If types were inferred, one user's row or folder would determine the type of all values."""
    saved(tmp_path, "csv/t.csv", CSV)
    refused(InputError, "from their rows", ds.dataset(tmp_path / "csv", format="csv"))
    (tmp_path / "hive/year=7").mkdir(parents=True)
    pl.DataFrame({"user": [1]}).write_parquet(tmp_path / "hive/year=7/part.parquet")
    refused(
        InputError, "folder names|names of folders", ds.dataset(tmp_path / "hive", partitioning="hive"), items="year"
    )
    declared = ds.partitioning(pa.schema([("year", pa.string())]), flavor="hive")
    assert items_of(ds.dataset(tmp_path / "hive", partitioning=declared), items="year") == (["7"], 1)


def test_folders_at_an_address_give_strings(tmp_path):
    """The values are strings, as for local folders, regardless of the form of the names."""
    for year in ("0007", "2026"):
        (tmp_path / f"year={year}").mkdir()
        pl.DataFrame({"user": [1]}).write_parquet(tmp_path / f"year={year}/part.parquet")
    assert remote._parquet(f"{tmp_path}/").collect().sort("year")["year"].to_list() == ["0007", "2026"]
    assert remote._parquet(f"{tmp_path}/year=2026/part.parquet").collect().columns == ["user"]


def test_a_folder_of_texts_has_one_user_per_file(tmp_path):
    """If the folder contains no table, each file is the text of one user.

    Messages do not quote file names, because these identify users.
    """
    for name, text in (("ann.smith.txt", "Good morning"), ("ann.jones.txt", "good night"), ("more/bob.TXT", "tea")):
        saved(tmp_path, f"texts/{name}", text)
    whole = read_engine(tmp_path / "texts", user="file", text="text")
    assert whole.vocabulary.to_pylist() == ["good", "morning", "night", "tea"]
    assert whole.user_key.size == 3
    saved(tmp_path, "texts/carla.txt", b"\xff\xfe\xfd")
    with pytest.raises(SourceError, match="text file cannot be read") as caught:
        vp.read(tmp_path / "texts", user="file", text="text")
    assert "carla" not in str(caught.value)
    with pytest.raises(ColumnError, match='"file", "text"'):
        vp.read(tmp_path / "texts/more", user="user", text="text")
    saved(tmp_path, "texts/t.csv", CSV)
    assert items_of(tmp_path / "texts") == READ


@pytest.mark.parametrize(
    "make",
    [
        lambda _: [{"user": {"id": 1, "name": "x"}, "item": "tea"}, {"user": {"id": 2}, "item": "milk"}],
        lambda _: pl.DataFrame([{"user": {"id": 1}, "item": "tea"}, {"user": {"id": 2}, "item": "milk"}]),
        lambda _: pl.LazyFrame([{"user": {"id": 1}, "item": "tea"}, {"user": {"id": 2}, "item": "milk"}]),
        lambda to: saved(
            to, "t.jsonl", '{"user": {"id": 1}, "item": "tea"}\n' * 3000 + '{"user": {"id": 2}, "item": "milk"}\n'
        ),
    ],
    ids=["rows", "polars", "lazy", "JSON lines"],
)
def test_nested_columns_are_read(tmp_path, make):
    """A nested column is named by its path. A column with a name that contains the dots has precedence."""
    assert items_of(make(tmp_path), user="user.id") == (["milk", "tea"], 2)


def test_nested_columns_of_files_are_read_or_reported(tmp_path):
    """The columns are struct fields in Parquet and Arrow, with nulls and a field that does not exist."""
    table = pa.table({"user": [{"id": {"n": 1}}, {"id": {"n": 2}}], "item": ["tea", "milk"], "x": [{"y": 5}, None]})
    pyarrow.feather.write_feather(table, tmp_path / "t.arrow")
    pl.DataFrame(table).write_parquet(tmp_path / "t.parquet")
    for source in (table, table.to_reader(), ds.dataset(table), tmp_path / "t.arrow", tmp_path / "t.parquet"):
        assert items_of(source, user="user.id.n") == (["milk", "tea"], 2)
    for source in (table, tmp_path / "t.parquet"):
        assert items_of(source, user="item", items="x.y") == (["5"], 2)
        refused(ColumnError, 'no column "user.name"', source, user="user.name")
    assert items_of([{"user.id": 1, "user": {"id": 2}, "item": "tea"}] * 2, user="user.id") == (["tea"], 1)
    refused(ColumnError, 'no column "user.id"', [{"user": 7, "item": "tea"}], user="user.id")


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: ROWS, InputError, "named tuples or dataclasses.*orient="),
        (lambda: np.array(ROWS), InputError, "structured array"),
        (lambda: pd.Series(["bread"]), InputError, "reset_index"),
        (lambda: pl.Series(["bread"]), InputError, "DataFrame of both"),
        (lambda: pd.DataFrame(ROWS, columns=NAMES).set_index("user"), ColumnError, r"table\.reset_index\(\)"),
        (lambda: pd.DataFrame(ROWS, columns=NAMES).set_index(NAMES), ColumnError, r"table\.reset_index\(\)"),
        (lambda: {f"u{number}": ["bread"] for number in range(30)}, ColumnError, "If the names are users"),
        (lambda: ["bread", "milk"], SourceError, "if the strings are texts, pass a table"),
        (lambda: TABLE.rename_columns(["USER", "item"]), ColumnError, 'Did you mean "USER"'),
        (lambda: [{"USER": 1, "item": "tea"}], ColumnError, "only in upper and lower case"),
        (lambda: {"user": np.array([1]), "item": np.array(["\ud800"])}, ColumnError, "not Unicode"),
        (lambda: [{"user": 1, "item": "\ud800"}], SourceError, "not Unicode"),
        (lambda: pa.table({"user": [1], "item": [19.99]}), ColumnError, "to decimals, or to strings"),
    ],
)
def test_errors_contain_hints(make, error, words):
    """Each error message contains the next step."""
    refused(error, words, make())


def test_unnamed_columns_are_selected_by_number():
    """Pandas numbers unnamed columns, and the caller can select them by a number or a string."""
    for zero, one in ((0, 1), ("0", "1")):
        assert items_of(pd.DataFrame(ROWS), user=zero, items=one) == READ
    refused(ColumnError, 'no column "2"', pd.DataFrame(ROWS), user=0, items=2)
    refused(ColumnError, '2 columns called "0"', pd.DataFrame([[1, 2, 3]], columns=[0, "0", 1]), user=0, items=1)


@pytest.mark.parametrize("above", ["# made on Monday\n#\n", "\n\n", "sep=,\n# by shop\n\n"])
def test_lines_above_the_header_are_skipped(tmp_path, above):
    """Comments and blank lines are skipped, unless the line with the column names begins with a number sign."""
    assert items_of(saved(tmp_path, "t.csv", above + CSV)) == READ
    assert items_of(saved(tmp_path, "t.csv", above + "#user,item\n1,tea\n"), user="#user") == (["tea"], 1)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (CSV + "4,milk,bread\n", "row 5: the row has 3 values"),
        ("# made\n\n" + CSV + "4\n", "row 5: the row has 1 values"),
        (CSV + "1,bread\n" * 900_000 + "4\n", "row 900,005: the row has 1 values"),
        (CSV.partition("\n")[2], "Write such a row if the file has none"),
        ("USER,item\n1,tea\n", "only in upper and lower case"),
        (CSV.encode("utf-16-le"), "utf-16-le"),
        (CSV.encode("utf-16-be"), "utf-16-be"),
    ],
    ids=["long row", "short row", "far row", "no header", "capitals", "UTF-16LE", "UTF-16BE"],
)
def test_csv_that_cannot_be_read_is_reported(tmp_path, content, words):
    """The error names the row, the header or the encoding."""
    refused(SourceError, words, saved(tmp_path, "t.csv", content))


def test_encodings_that_messages_name_are_read(tmp_path):
    """The reader accepts the encoding names that its messages suggest."""
    for name in ("utf-16-le", "utf-16-be"):
        assert items_of(saved(tmp_path, "t.csv", CSV.encode(name)), csv=vp.CSV(encoding=name)) == READ


def test_repeated_headers_are_skipped(tmp_path, capsys):
    """Repeated headers count as rows without a user, and `missing_users="drop"` omits them."""
    path = saved(tmp_path, "t.csv", CSV + CSV)
    assert items_of(path) == (["bread", "item", "milk", "tea"], 4)
    assert "like the name of the column" in capsys.readouterr().err
    assert items_of(path, options=vp.ReadOptions(missing_users="drop")) == READ


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([dt.datetime(2026, 11, 22, 5, 56)], True),
        (pl.Series(["1.50"]).cast(pl.Decimal(9, 2)), True),
        ([dt.date(2026, 11, 22)], False),
        ([7], False),
    ],
)
def test_items_with_too_many_values_cause_a_hint(items, said, capsys):
    """The hint depends only on the type of the items, which is public."""
    read_engine(pl.DataFrame({"user": [1], "item": items}), user="user", items="item")
    assert ("truncate times" in capsys.readouterr().err) == said


@pytest.mark.parametrize("delta", [1e-3, 0.01])
def test_a_large_delta_is_accepted_with_a_warning(delta, recwarn):
    """A delta above 0.001 causes a warning."""
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vp.Budget(1, delta)
    assert [each.filename for each in caught] == ([] if delta == 1e-3 else [__file__])


def test_large_deltas_are_reported_on_the_command_line(capfd, tmp_path):
    """The warning is one line, like all messages."""
    ran = subprocess.run(
        [sys.executable, "-m", "voxpop.cli", "plan", "items", "--epsilon", "1", "--delta", "0.01"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0
    assert ran.stderr.startswith("voxpop: `delta` 0.01 is large")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "pause", ["30 minutes", "30min", "0.5 hours", "1800 seconds", "1800 s", dt.timedelta(minutes=30)]
)
def test_pauses_may_have_units_in_words(pause):
    """Names of units may be written in full."""
    events = pl.DataFrame(
        {"user": [1] * 3, "item": list("abc"), "at": [dt.datetime(2026, 1, 1, 0, m) for m in (0, 30, 59)]}
    )
    events = events.with_columns(
        at=pl.when(pl.col("item") == "c").then(pl.col("at") + pl.duration(minutes=2)).otherwise("at")
    )
    corpus = read_engine(events, user="user", sequence="item", order="at", session_gap=pause)
    assert [None if each < 0 else each for each in corpus.tokens.tolist()].count(None) == 1 + 1


def test_phrases_are_found_by_one_string():
    """A string with spaces between the tokens finds a phrase. Tokens that contain spaces are not split."""
    posts = pl.DataFrame({"user": range(3000), "item": ["how do i know"] * 3000})
    phrases = vp.NGrams(max_length=3).release(vp.read(posts, user="user", text="item"), vp.Budget(4, 1e-7))
    assert "how do i" in phrases
    assert "do how" not in phrases
    lists = pl.DataFrame({"user": range(3000), "item": [["new york", "a"]] * 3000})
    cities = vp.NGrams(max_length=3).release(vp.read(lists, user="user", tokens="item"), vp.Budget(4, 1e-7))
    assert "new york" in cities
    assert "york a" not in cities
    assert "new york a" not in cities


def test_the_command_line_has_the_same_message(tmp_path, capsys):
    """The command line prints the same message for a file without a header."""
    path = saved(tmp_path, "t.csv", CSV.partition("\n")[2])
    call = ["items", str(path), "--user", "user", "--items", "item", "--epsilon", "1", "--delta", "1e-8"]
    assert main([*call, "--max-items-per-user", "1", "-o", str(tmp_path / "keys")]) == 2
    assert "Write such a row" in capsys.readouterr().err
