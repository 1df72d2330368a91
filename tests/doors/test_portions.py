"""Tests that, with a memory limit, batches have similar numbers of bytes for any size of rows and any source."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import voxpop as vp
from support.look import read_engine
from voxpop.errors import InputError
from voxpop.reading import columns as module
from voxpop.reading.columns import FEW_ROWS, PORTION, portions
from voxpop.reading.sources import open_source
from voxpop.reading.wanted import Request

ROOT = Path(__file__).resolve().parents[2]
WIDE = "x" * 100_000
NUMBER = 5 * FEW_ROWS
ROWS = [{"who": number, "body": f"{number} {WIDE}"} for number in range(NUMBER)]
KINDS = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.dictionary(pa.int32(), pa.string()),
    pa.list_(pa.string()),
]


@given(
    sizes=st.lists(st.lists(st.integers(0, 60), max_size=12), max_size=8),
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=2),
    places=st.integers(1, 2),
)
def test_rows_are_read_in_order(sizes, kinds, places):
    """Rows keep their order and their file names. A batch exceeds the size limit only if it has a single row."""
    given = []
    for number, each in enumerate(sizes):
        kind = kinds[number % len(kinds)]
        texts = [
            [chr(97 + size % 26) * size] if pa.types.is_list(kind) else chr(97 + size % 26) * size for size in each
        ]
        given.append((f"file {number % places}", pa.record_batch({"body": pa.array(texts, kind)})))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PORTION", 100)
        passed = list(portions(iter(given), 20))
    before = [(where, row) for where, batch in given for row in batch.column(0).to_pylist()]
    assert [(where, row) for where, batch in passed for row in batch.column(0).to_pylist()] == before
    for _, batch in passed:
        assert batch.num_rows < 2 or module._own_bytes(batch) <= 100
    joined = [batch.num_rows for _, batch in passed if batch.num_rows > 12]
    assert max(joined, default=0) <= 20


def sqlite():
    """Return a query result of Python's SQLite module."""
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.execute("create table t (who integer, body text)")
    connection.executemany("insert into t values (?, ?)", [tuple(row.values()) for row in ROWS])
    return connection.execute("select * from t")


def address(folder):
    """Return a query of a database that is identified by its address."""
    with sqlite3.connect(folder / "t.db") as connection:
        connection.execute("create table t (who integer, body text)")
        connection.executemany("insert into t values (?, ?)", [tuple(row.values()) for row in ROWS])
    return vp.SQL("select * from t", f"sqlite:///{folder}/t.db")


def hugging_face():
    """Return a data set that stores the order of its rows separately, so it is not a slice of its table."""
    pytest.importorskip("datasets.arrow_dataset", reason="datasets is not installed: make exports")
    import datasets

    return datasets.Dataset.from_list(ROWS).select(range(NUMBER - 1, -1, -1)).select(range(NUMBER - 1, -1, -1))


@pytest.mark.parametrize("door", ["sqlite", "address", "hugging_face", "rows", "table"])
def test_every_input_needs_little_memory(door, tmp_path):
    """Each row has 100 KB, so a source with a limit only on the number of rows would return all rows at once."""
    made = {"sqlite": sqlite, "address": lambda: address(tmp_path), "hugging_face": hugging_face}
    made |= {"rows": lambda: iter(ROWS), "table": lambda: pl.DataFrame(ROWS)}
    source = made[door]()
    held = pa.total_allocated_bytes()
    found, most, peak = [], 0, 0
    limited = vp.ReadOptions(memory="1GiB")
    for _, batch in open_source(source, Request.of(user="who", text="body", types={"who": "int64"}, options=limited)):
        found += batch.column(0).to_pylist()
        most = max(most, batch.nbytes)
        peak = max(peak, pa.total_allocated_bytes() - held)
    assert found == list(range(NUMBER))
    assert most <= PORTION
    assert peak < 3 * FEW_ROWS * len(WIDE) < NUMBER * len(WIDE)


@pytest.mark.parametrize("memory", [None, "1GiB"])
def test_both_kinds_of_duckdb_objects_are_read(table, memory):
    """Relations are streamed.

    With a memory limit, a connection that has run a query is rejected, because it would copy all rows to return
    batches.
    """
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: make exports")
    wanted = read_engine(table, user="who", text="body")
    connection = duckdb.connect()
    connection.register("t", table.to_arrow())
    options = vp.ReadOptions(memory=memory)
    corpus = read_engine(connection.sql("select * from t"), user="who", text="body", options=options)
    assert corpus.tokens.tolist() == wanted.tokens.tolist()
    ran = connection.execute("select * from t")
    if memory is None:
        corpus = read_engine(ran, user="who", text="body")
        assert corpus.tokens.tolist() == wanted.tokens.tolist()
    else:
        with pytest.raises(InputError, match="copies all rows"):
            read_engine(ran, user="who", text="body", options=options)


# `ru_maxrss` would include the memory of the parent process.
MEASURED = """
import sys
import voxpop as vp
from tools.memory import megabytes_of
source = vp.SQL(*sys.argv[1:])
corpus = vp.read(source, user="who", text="body", options=vp.ReadOptions(memory="896MiB"))
print(corpus._engine.tokens.size, megabytes_of("VmHWM"))
"""
BOOKS = 800


@pytest.mark.slow
def test_rows_of_a_megabyte_are_read(tmp_path):
    """The query returns 0.8 GB in few rows, so batches with only a limit on rows would contain all data at once."""
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute("create table t (who integer, body text)")
        text = "tea https://" + "x" * (1 << 20)
        connection.executemany("insert into t values (?, ?)", ((number, text) for number in range(BOOKS)))
    call = [sys.executable, "-c", MEASURED, "select * from t", f"sqlite:///{tmp_path}/t.db"]
    done = subprocess.run(call, check=True, capture_output=True, text=True, cwd=ROOT)
    tokens, peak = map(int, done.stdout.split())
    assert tokens == 2 * BOOKS
    assert peak < 896
