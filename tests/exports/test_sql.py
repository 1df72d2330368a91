"""Tests of released keys as SQL, which DuckDB runs and the parsers of other dialects read."""

import datetime as dt
import sqlite3
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voxpop as vp
from support.released_keys import keys_of
from voxpop.errors import InputError
from voxpop.release.result import StoredPlan

sqlglot = pytest.importorskip("sqlglot", reason="sqlglot is not installed: make exports")
NASTY = [
    "",
    "'",
    "it's",
    "\\",
    "\\'",
    "' OR 1=1 --",
    "'; DROP TABLE t; --",
    "a\nb",
    "a\rb",
    "%s",
    "{{ x }}",
    "é😀",
    "--",
]
DIALECTS = ["duckdb", "postgres", "bigquery", "snowflake"]
TYPED = pa.table(
    {
        "shop": pa.array([7, -8], pa.int32()),
        "we`i\"rd 'name": ["it's", "\\"],
        "day": [dt.date(2026, 11, 22), dt.date(1999, 1, 1)],
        "at": [dt.datetime(2026, 11, 22, 5, 56), dt.datetime(2026, 11, 22, 5, 56, 10, 5)],
        "open": [True, False],
        "price": pa.array([Decimal("1.50"), Decimal("-2.25")], pa.decimal128(9, 2)),
    }
)


def words_of(words):
    """Return the release of some words."""
    items = pa.array(sorted(set(words), key=str.encode), pa.string())
    return vp.Release.from_items(items, StoredPlan({}), vp.Guarantee(4, 1e-7))


@pytest.fixture(scope="module")
def connection():
    """Return a connection to DuckDB, because a new connection takes longer than a query."""
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: make exports")
    with duckdb.connect() as opened:
        yield opened


@given(words=st.sets(st.sampled_from(NASTY) | st.text("'\\\"`;-\n $%{", max_size=5), max_size=6))
@settings(max_examples=60, deadline=None)
def test_duckdb_runs_the_query(connection, words):
    """A condition keeps exactly the released words, and a query returns them. The words can contain any characters."""
    table = pa.table({"word": [*NASTY, *words]})
    release = words_of(words)
    connection.register("t", table)
    kept = connection.sql(f"SELECT word FROM t WHERE {vp.exports.to_sql(release, 'duckdb', columns='word')}").fetchall()
    assert sorted(word for (word,) in kept) == sorted(word for word in table["word"].to_pylist() if word in words)
    found = connection.sql(vp.exports.to_sql(release, "duckdb", "select", "word")).fetchall()
    assert {word for (word,) in found} == words


def test_duckdb_runs_the_query_with_keys_of_every_type(connection):
    """Conditions and queries work for several columns of any type, and for names that need quotes."""
    release = keys_of(TYPED)
    connection.register("t", pa.concat_tables([TYPED, TYPED.slice(1)]))
    assert len(connection.sql(f"SELECT * FROM t WHERE {vp.exports.to_sql(release, 'duckdb')}").fetchall()) == 3
    assert sorted(connection.sql(vp.exports.to_sql(release, "duckdb", "select")).fetchall(), key=str) == sorted(
        release, key=str
    )


@pytest.mark.parametrize("form", ["where", "select"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_reads_the_same_keys(dialect, form):
    """The parser of each dialect finds exactly the released strings, so no string ends too early."""
    release = words_of(NASTY)
    text = vp.exports.to_sql(release, dialect, form, "we`i\"rd 'name")
    whole = text if form == "select" else f"SELECT * FROM t WHERE {text}"
    (tree,) = sqlglot.parse(whole, read=dialect)
    exp = sqlglot.exp
    joined = (exp.Concat, exp.DPipe)
    whole = [each for each in tree.find_all(exp.Literal, *joined) if not isinstance(each.parent, (*joined, exp.Chr))]
    assert sorted(map(text_of, whole)) == sorted(NASTY)


def text_of(node):
    """Return the string of a literal or of concatenated literals."""
    if isinstance(node, sqlglot.exp.Chr):
        return chr(int(node.expressions[0].this))
    if isinstance(node, sqlglot.exp.Literal):
        return node.this
    return "".join(map(text_of, node.expressions or (node.this, node.expression)))


def test_keys_of_an_empty_release_keep_no_rows():
    """An empty release gives valid SQL without a list of values, because most databases reject an empty list."""
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: make exports")
    release = words_of([])
    assert duckdb.sql(f"SELECT 1 WHERE {vp.exports.to_sql(release, 'duckdb', columns='word')}").fetchall() == []
    assert duckdb.sql(vp.exports.to_sql(release, "duckdb", "select", "word")).fetchall() == []
    assert duckdb.sql(vp.exports.to_sql(release, "duckdb", "select", "word")).columns == ["word"]


def test_invalid_requests_are_rejected(released):
    """Grams, words without a column, unknown dialects and forms, and text that does not fit a dialect are rejected."""
    with pytest.raises(InputError, match="contains grams"):
        vp.exports.to_sql(released([("a", "b")]))
    with pytest.raises(InputError, match="Name the column to compare"):
        vp.exports.to_sql(words_of(["a"]))
    with pytest.raises(InputError, match="dialect"):
        vp.exports.to_sql(words_of(["a"]), "cobol", columns="word")
    with pytest.raises(InputError, match="form"):
        vp.exports.to_sql(words_of(["a"]), form="join", columns="word")
    with pytest.raises(InputError, match="zero byte"):
        vp.exports.to_sql(words_of(["a\0"]), columns="word")
    with pytest.raises(InputError, match="no such query"):
        vp.exports.to_sql(words_of(["a"]), "sqlite", "select", "word")


WHOLE, FINE = dt.datetime(2026, 11, 22, 5, 56), dt.datetime(2026, 11, 22, 5, 56, 0, 250_000)
NANOSECOND = pa.array([1], pa.timestamp("ns"))


@pytest.mark.parametrize(
    ("values", "dialects"),
    [
        (["tea"], ["mysql", "tsql", "fabric", "redshift", "teradata", "doris"]),
        ([WHOLE, FINE], ["sqlite", "mysql", "clickhouse", "hive"]),
        ([dt.time(5, 56, 0, 250)], ["sqlite", "trino"]),
        (NANOSECOND, ["duckdb", "postgres", "bigquery", "spark", "tsql", "trino"]),
        (pa.array([2**63], pa.uint64()), ["sqlite", "clickhouse"]),
        ([Decimal("123456789012345.25")], ["sqlite", "clickhouse"]),
    ],
)
def test_keys_that_a_database_compares_inexactly_are_rejected(values, dialects):
    """The statement would keep other rows too, because the database truncates times, rounds numbers or ignores case."""
    release = keys_of(pa.table({"key": values}))
    for dialect in dialects:
        for form in ("where", "select"):
            with pytest.raises(InputError, match=r"would remain\. Write Parquet or Arrow"):
                vp.exports.to_sql(release, dialect, form)


def test_sqlite_keeps_no_row_of_another_number():
    """SQLite would round large numbers to doubles, but the condition keeps exactly the released 64-bit integers."""
    values = [2**53 + 1, -(2**63), 2**63 - 1]
    database = sqlite3.connect(":memory:")
    database.execute("create table t (key integer)")
    database.executemany("insert into t values (?)", [(value + step,) for value in values[:1] for step in (-1, 0, 1)])
    database.executemany("insert into t values (?)", [(values[1],), (values[2] - 1,), (values[2],)])
    condition = vp.exports.to_sql(keys_of(pa.table({"key": pa.array(values, pa.int64())})), "sqlite")
    assert sorted(key for (key,) in database.execute(f"select key from t where {condition}")) == sorted(values)


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "bigquery", "snowflake", "spark", "tsql"])
def test_times_with_microseconds_are_written(dialect):
    """Times contain microseconds in the dialects that support them."""
    assert "05:56:00.25" in vp.exports.to_sql(keys_of(pa.table({"key": [WHOLE, FINE]})), dialect)


def test_a_file_for_dbt_contains_the_released_keys(tmp_path):
    """An SQL file contains the query as a dbt model."""
    vp.exports.write(keys_of(TYPED.select(["shop"])), tmp_path / "released_shops.sql", dialect="snowflake")
    text = (tmp_path / "released_shops.sql").read_text()
    assert text == 'SELECT\n  "shop"\nFROM (VALUES\n  (-8),\n  (7)) AS released("shop")\n'
