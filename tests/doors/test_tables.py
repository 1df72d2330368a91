"""Tests that tables in common forms are read. The real libraries create the tables."""

import http.server
import os
import sqlite3
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import voxpop as vp
from support.look import read_engine
from voxpop.errors import ColumnError, InputError, SourceError

ROOT = Path(__file__).resolve().parents[2]

ROWS = [
    {"who": 3, "body": "Good morning!", "tags": ["a"], "shop": 7},
    {"who": 1, "body": "tea", "tags": ["b", "a"], "shop": 8},
    {"who": 3, "tags": None, "shop": None},
    {"who": 2, "body": 'it\'s tea; "tea"', "tags": [], "shop": 7},
    {"who": 1, "body": "good night", "tags": ["c"], "shop": 7},
]


class Stream:
    """An object that exposes only the Arrow stream interface."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


class Batch:
    """An object that exposes only the Arrow array interface, with one batch."""

    def __init__(self, batch):
        self._batch = batch

    def __arrow_c_array__(self, requested_schema=None):
        return self._batch.__arrow_c_array__(requested_schema)


@pytest.mark.parametrize(
    "make",
    [
        lambda table: Stream(table.to_arrow()),
        lambda table: Batch(table.to_arrow().combine_chunks().to_batches()[0]),
        lambda table: iter([table[:2], table[2:]]),
        lambda table: [table[:2].to_arrow(), table[2:].to_arrow()],
        lambda table: (Stream(table[n : n + 1].to_arrow()) for n in range(5)),
        lambda table: table.to_dict(as_series=False),
        lambda table: table.to_dict(),
        lambda _: ROWS,
        lambda _: iter(ROWS),
        lambda table: table.to_arrow().to_reader(),
    ],
    ids=["stream", "array", "frames", "list", "generator", "lists", "series", "dicts", "rows", "reader"],
)
def test_tables_in_every_form_are_read(table, reads_alike, make, request):
    """The forms are streams, batches, iterators, dictionaries and lists of dictionaries."""
    reads_alike(lambda: make(table), declared=request.node.callspec.id not in ("lists", "dicts", "rows"))


def test_chunks_of_pandas_are_read(tmp_path, table):
    """The chunks that `read_csv(chunksize=...)` returns are read."""
    table.select("who", "body").write_csv(tmp_path / "t.csv")
    corpus = read_engine(pd.read_csv(tmp_path / "t.csv", chunksize=2), user="who", text="body")
    assert corpus.vocabulary.equals(read_engine(table, user="who", text="body").vocabulary)


def test_relations_and_connections_of_duckdb_are_read(table, reads_alike):
    """The sources are relations of tables and queries, and a connection with a query.

    These sources are read with and without a memory limit.
    """
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: make exports")
    connection = duckdb.connect()
    connection.register("t", table.to_arrow())
    reads_alike(lambda: connection.sql("select * from t"))
    reads_alike(lambda: connection.sql("select * from t"), memory="2GiB")
    reads_alike(lambda: connection.execute("select * from t"))


def test_data_sets_of_hugging_face_are_read(table, reads_alike):
    """The sources are data sets, reordered data sets, and streaming data sets."""
    pytest.importorskip("datasets.arrow_dataset", reason="datasets is not installed: make exports")
    import datasets

    whole = datasets.Dataset.from_dict(table.to_dict(as_series=False))
    reads_alike(lambda: whole)
    backwards = whole.select([4, 3, 2, 1, 0])
    reads_alike(lambda: backwards.select([4, 3, 2, 1, 0]))
    reads_alike(lambda: whole.to_iterable_dataset())
    with pytest.raises(InputError, match="Give one of them"):
        read_engine(datasets.DatasetDict(train=whole), user="who", text="body")


def test_expressions_of_ibis_are_read(table, reads_alike):
    """The sources are expressions that ibis evaluates in its own database."""
    ibis = pytest.importorskip("ibis", reason="ibis is not installed: make exports")
    held = ibis.polars.connect().create_table("t", table)
    reads_alike(lambda: held.mutate(who=held.who))


def test_database_cursors_are_read(table):
    """The source is a cursor of Python's DB-API, which must have executed a query."""
    with sqlite3.connect(":memory:") as connection:
        connection.execute("create table t (who integer, body text)")
        connection.executemany("insert into t values (?, ?)", table.select("who", "body").rows())
        corpus = read_engine(connection.execute("select * from t"), user="who", text="body")
        assert corpus.vocabulary.equals(read_engine(table, user="who", text="body").vocabulary)
        with pytest.raises(InputError, match="Execute a query first"):
            read_engine(connection.cursor(), user="who", text="body")
        with pytest.raises(ColumnError, match='no column "author"'):
            read_engine(connection.execute("select * from t"), user="author", text="body")


@pytest.mark.parametrize(
    ("source", "error", "words"),
    [
        (7, InputError, "rows with column names"),
        ([7], InputError, "an iterable of int"),
        ({"who": [1]}, ColumnError, 'no column "body"'),
        ({"who": [1], "body": ["a", "b"]}, InputError, "different lengths"),
        ([{"who": 1, "body": "a"}, 7], InputError, "some do not"),
        ([{"who": 1, "body": ["secret"]}], SourceError, "type list, which has no spelling"),
        ("select who, body from t", InputError, r"vp.SQL\(query"),
        ("https://example.org/posts", SourceError, "does not end in"),
        (pa.table([[1], ["a"], ["secret"]], ["who", "body", "body"]), ColumnError, '2 columns called "body"'),
        (pl.DataFrame({"who": [1], "body": [["a"]]}), ColumnError, "for lists use tokens="),
    ],
)
def test_errors_give_advice_and_quote_no_data(source, error, words):
    """The sources are objects that are not tables, and invalid tables."""
    with pytest.raises(error, match=words) as caught:
        read_engine(source, user="who", text="body")
    assert "secret" not in str(caught.value)
    assert "4711" not in str(caught.value)


@pytest.mark.parametrize(("name", "words"), [("t.db", "sqlite:///"), ("t.duckdb", "duckdb:///"), ("t.xlsx", "as CSV")])
def test_unsupported_files_are_rejected(tmp_path, name, words):
    """For databases and spreadsheets, the message names an alternative."""
    (tmp_path / name).write_bytes(b"secret")
    with pytest.raises(SourceError, match=words):
        read_engine(tmp_path / name, user="who", text="body")


def test_single_values_without_an_order_are_rejected_as_a_sequence(table):
    """A column of single values is a sequence only if an order is given."""
    with pytest.raises(ColumnError, match="order="):
        read_engine(table, user="who", sequence="body")


def test_tokenizers_of_libraries_are_not_printed(table):
    """The repr of such a tokenizer would print the vocabulary, which can be private."""
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed: make exports")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({"secret": 0}, unk_token="secret"))
    with pytest.raises(InputError, match=r"got Tokenizer; .*encode_batch") as caught:
        read_engine(table, user="who", text="body", tokenizer=made)
    assert "secret" not in str(caught.value)


def test_the_message_of_a_failing_reader_is_omitted():
    """The message is omitted, because it can contain rows."""

    def batches():
        yield pa.record_batch({"who": [1], "body": ["a"]})
        raise ValueError("secret 4711")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"who": pa.int64(), "body": pa.string()}), batches())
    with pytest.raises(SourceError, match="quote rows") as caught:
        read_engine(Stream(reader), user="who", text="body")
    assert "4711" not in str(caught.value)
    assert caught.value.__cause__ is None


class Ranges(http.server.SimpleHTTPRequestHandler):
    """A file server that supports range requests, as common web servers do."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Log nothing."""

    def do_GET(self):
        path, wanted = Path(self.translate_path(self.path)), self.headers.get("Range")
        if wanted is None or not path.is_file():
            return super().do_GET()
        size = path.stat().st_size
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        begin = int(first) if first else max(0, size - int(last))
        with path.open("rb") as file:
            file.seek(begin)
            part = file.read(int(last) + 1 - begin if first and last else size)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {begin}-{begin + len(part) - 1}/{size}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        return self.wfile.write(part)


@pytest.fixture
def served(tmp_path, table):
    """Serve files on the loopback interface."""
    table.write_parquet(tmp_path / "t.parquet")
    table.select("who", "body").write_csv(tmp_path / "t.csv")
    table.write_ndjson(tmp_path / "t.jsonl")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Ranges, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_files_at_a_web_address_are_read(served, reads_alike, table):
    """Parquet, CSV and JSON lines are read from an address. The test uses http on the loopback interface."""
    reads_alike(lambda: f"{served}/t.parquet")
    wanted = read_engine(table, user="who", text="body")
    for name in ("t.csv", "t.jsonl"):
        corpus = read_engine(f"{served}/{name}", user="who", text="body")
        assert corpus.vocabulary.equals(wanted.vocabulary)
        assert corpus.tokens.size == wanted.tokens.size
    with pytest.raises(SourceError, match="its reader failed"):
        read_engine(f"{served}/nowhere.parquet", user="who", text="body")
    with pytest.raises(ColumnError, match='no column "author"'):
        read_engine(f"{served}/t.parquet", user="author", text="body")


@pytest.mark.parametrize("memory", [None, "1GiB"])
def test_addresses_are_streamed(served, reads_alike, table, tmp_path, memory, monkeypatch):
    """The test covers reading with and without a memory limit, several sources, local files, and a given delimiter."""
    monkeypatch.setattr("polars.LazyFrame.collect", None)
    reads_alike(lambda: f"{served}/t.parquet", memory=memory)
    table[:2].select("who", "body").write_csv(tmp_path / "a.csv", separator="|")
    table[2:].select("who", "body").write_csv(tmp_path / "b.csv", separator="|")
    wanted = read_engine(table, user="who", text="body")
    for sources in ([f"{served}/a.csv", tmp_path / "b.csv"], [str(tmp_path / "a.csv"), f"{served}/b.csv"]):
        corpus = read_engine(
            sources, user="who", text="body", csv=vp.CSV(delimiter="|"), options=vp.ReadOptions(memory=memory)
        )
        assert corpus.vocabulary.equals(wanted.vocabulary)
        assert corpus.tokens.tolist() == wanted.tokens.tolist()


def test_an_older_polars_is_rejected_with_a_memory_limit(served, reads_alike, monkeypatch):
    """Older versions collect remote data in memory, so they are rejected if there is a memory limit."""
    monkeypatch.delattr("polars.LazyFrame.collect_batches")
    reads_alike(lambda: f"{served}/t.parquet")
    with pytest.raises(InputError, match="pip install -U polars"):
        read_engine(f"{served}/t.parquet", user="who", text="body", options=vp.ReadOptions(memory="1GiB"))


# `ru_maxrss` would include the memory of the parent process.
MEASURED = """
import sys
import voxpop as vp
from tools.memory import megabytes_of
corpus = vp.read(sys.argv[1], user="who", text="body", options=vp.ReadOptions(memory="896MiB", progress=False))
print(corpus._engine.tokens.size, megabytes_of("VmHWM"))
"""


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_a_remote_file_larger_than_memory_is_read(served, tmp_path, ending):
    """A file of 0.7 GB in rows of 2 KB, which are mostly URLs, would exceed the limit if it were read at once."""
    rows = 64
    table = pl.DataFrame({"who": range(rows), "body": ["tea " * 50 + "https://" + "x" * 2000] * rows})
    path = tmp_path / f"large.{ending}"
    parts = pl.concat([table.lazy()] * 5000)
    if ending == "csv":
        parts.sink_csv(path)
    else:
        parts.sink_parquet(path, compression="uncompressed", row_group_size=1000, statistics=False)
    call = [sys.executable, "-c", MEASURED, f"{served}/{path.name}"]
    done = subprocess.run(call, check=True, capture_output=True, text=True, cwd=ROOT)
    tokens, peak = map(int, done.stdout.split())
    assert tokens == rows * 5000 * 51
    assert peak < 896


@pytest.mark.slow
def test_rows_of_a_megabyte_are_read_from_an_address(served, tmp_path):
    """The source is a file of 0.8 GB in few rows, mostly URLs, which are not words.

    Batches that are limited only by the number of rows would contain all data at once.
    """
    books, group = 800, 16
    schema = pa.schema({"who": pa.int64(), "body": pa.string()})
    with pq.ParquetWriter(tmp_path / "books.parquet", schema, compression="none", use_dictionary=False) as file:
        for first in range(0, books, group):
            who = range(first, first + group)
            bodies = [f"tea https://{number}{'x' * (1 << 20)}" for number in who]
            file.write_table(pa.table({"who": pa.array(who, pa.int64()), "body": bodies}))
    call = [sys.executable, "-c", MEASURED, f"{served}/books.parquet"]
    done = subprocess.run(call, check=True, capture_output=True, text=True, cwd=ROOT)
    tokens, peak = map(int, done.stdout.split())
    assert tokens == 2 * books
    assert peak < 896


def test_files_on_s3_are_read(table, reads_alike, tmp_path, monkeypatch):
    """The test runs an S3 server on the loopback interface."""
    moto = pytest.importorskip("moto.server", reason="moto is not installed: make exports")
    boto3 = pytest.importorskip("boto3", reason="boto3 is not installed: make exports")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        settings = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}
        settings |= {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ALLOW_HTTP": "true"}
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        table.write_parquet(tmp_path / "t.parquet")
        store = boto3.client("s3", endpoint_url=settings["AWS_ENDPOINT_URL"], region_name="us-east-1")
        store.create_bucket(Bucket="private")
        store.upload_file(str(tmp_path / "t.parquet"), "private", "t.parquet")
        for memory in (None, "1GiB"):
            reads_alike(lambda: "s3://private/t.parquet", memory=memory)
        with pytest.raises(SourceError, match="its reader failed"):
            read_engine("s3://private/nowhere.parquet", user="who", text="body")
    finally:
        server.stop()
    assert os.environ["AWS_REGION"] == "us-east-1"


@pytest.mark.parametrize("source", [[], iter(())])
def test_a_table_without_rows_has_no_users(source):
    """The table is read without an error, because an error would distinguish it from a table with one user."""
    corpus = read_engine(source, user="who", items="body")
    assert len(vp.Items().release(corpus, vp.Budget(1, 1e-8))) == corpus.user_key.size == 0


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (lambda pd: pd.period_range("2026-01", periods=2, freq="M"), "pandas.period"),
        (lambda pd: pd.interval_range(0, 2), "pandas.interval"),
    ],
)
@pytest.mark.parametrize("column", ["user", "items"])
def test_types_of_pandas_without_a_spelling_are_rejected(values, name, column):
    """The message uses the pandas names of periods and intervals, and shows the required conversion."""
    table = pd.DataFrame({"user": [1, 2], "items": ["a", "b"]})
    table[column] = values(pd)
    with pytest.raises(ColumnError, match=rf'"{column}" contains values of {name}\. Convert it in pandas'):
        vp.read(table, user="user", items="items")
