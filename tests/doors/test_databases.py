"""Tests of queries of SQLite, DuckDB and a PostgreSQL server."""

import sqlite3

import pytest

import voxpop as vp
from support import postgres
from support.look import read_engine
from voxpop.errors import ColumnError, InputError, SourceError

QUERY = "select who, body, shop from posts order by place"


@pytest.fixture
def rows(table):
    """Return the table without its lists, which databases represent differently."""
    return table.drop("tags").with_row_index("place")


def types(columns):
    """Return the types of integer columns, which some databases do not declare."""
    return {"who": "int64"} | ({"shop": "int64"} if "items" in columns else {})


def check(rows, connection):
    """Read texts and items through a connection, and compare them with the table."""
    for columns in ({"text": "body"}, {"items": "shop"}):
        corpus, wanted = (
            read_engine(vp.SQL(QUERY, connection), user="who", types=types(columns), **columns),
            read_engine(rows, user="who", **columns),
        )
        assert corpus.tokens.tolist() == wanted.tokens.tolist()
        assert corpus.user_key.tolist() == wanted.user_key.tolist()
        assert corpus.vocabulary.equals(wanted.vocabulary)


@pytest.fixture
def file(tmp_path, rows):
    """Return the path of an SQLite file."""
    with sqlite3.connect(tmp_path / "posts.db") as connection:
        connection.execute("create table posts (place integer, who integer, body text, shop integer)")
        connection.executemany("insert into posts values (?, ?, ?, ?)", rows.rows())
    return tmp_path / "posts.db"


def test_sqlite_is_read(rows, file):
    """SQLite is read by address and through an open connection."""
    with sqlite3.connect(file) as connection:
        check(rows, connection)
    check(rows, f"sqlite:///{file}")


def test_adbc_connections_to_sqlite_are_rejected(file):
    """These connections are rejected because the ADBC driver for SQLite infers types from the first rows."""
    pytest.importorskip("adbc_driver_sqlite", reason="ADBC for SQLite is not installed: make exports")
    from adbc_driver_sqlite import dbapi

    with dbapi.connect(str(file)) as connection, pytest.raises(InputError, match="infers types from rows"):
        read_engine(vp.SQL(QUERY, connection), user="who", text="body")


def test_duckdb_files_and_connections_are_read(rows, tmp_path):
    """A DuckDB file is read by address and through an open connection."""
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: make exports")
    with duckdb.connect(tmp_path / "posts.duckdb") as connection:
        connection.register("held", rows.to_arrow())
        connection.execute("create table posts as select * from held")
        check(rows, connection)
    check(rows, f"duckdb:///{tmp_path}/posts.duckdb")


def test_duckdb_downloads_nothing(rows, tmp_path, file):
    """By default, DuckDB would download an extension for an SQLite file and for an address.

    The messages name the next step.
    """
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: make exports")
    with pytest.raises(InputError, match=r"Write sqlite:/// before the path"):
        read_engine(vp.SQL(QUERY, f"duckdb:///{file}"), user="who", text="body")
    address = f"duckdb:///{tmp_path}/shop.duckdb"
    duckdb.connect(tmp_path / "shop.duckdb").close()
    asked = "select value as who, value as body from duckdb_settings() where name = 'autoinstall_known_extensions'"
    corpus = read_engine(vp.SQL(asked, address), user="who", text="body")
    assert corpus.vocabulary.to_pylist() == ["false"]
    away = vp.SQL("select * from 'https://127.0.0.1:9/secret.parquet'", address)
    with pytest.raises(InputError, match=r"extension of DuckDB .* downloads none\. Install it") as caught:
        read_engine(away, user="who", text="body")
    assert "secret" not in str(caught.value)
    with duckdb.connect(tmp_path / "shop.duckdb"), pytest.raises(InputError, match="open connection instead"):
        read_engine(vp.SQL(asked, address), user="who", text="body")


def test_a_duckdb_file_with_a_sqlite_address_is_rejected(tmp_path):
    """The message contains the right address, and a file without a query is recognised by its contents."""
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: make exports")
    duckdb.connect(tmp_path / "shop.db").close()
    with pytest.raises(InputError, match=r"Write duckdb:/// before the path"):
        read_engine(vp.SQL(QUERY, f"sqlite:///{tmp_path}/shop.db"), user="who", text="body")
    with pytest.raises(SourceError, match=r'vp\.SQL\(query, "duckdb:///'):
        vp.read(tmp_path / "shop.db", user="who", text="body")


def test_the_error_for_a_database_file_explains_queries(file):
    """The message explains how to query the database, even if the caller names no columns."""
    with pytest.raises(SourceError, match=r'vp\.SQL\(query, "sqlite:///'):
        vp.read(file)


def test_a_missing_sqlite_file_is_reported(tmp_path):
    """A missing SQLite file is an error. The reader does not create the file, whereas SQLite itself would."""
    with pytest.raises(SourceError, match="no existing SQLite file"):
        read_engine(vp.SQL(QUERY, f"sqlite:///{tmp_path}/none.db"), user="who", text="body")
    assert not (tmp_path / "none.db").exists()


def test_a_statement_that_selects_no_rows_is_reported(tmp_path):
    """A statement that is not a SELECT statement is reported."""
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: make exports")
    with duckdb.connect(tmp_path / "posts.duckdb") as connection, pytest.raises((InputError, ColumnError)):
        read_engine(vp.SQL("create table t (who integer, body text)", connection), user="who", text="body")
    with sqlite3.connect(":memory:") as connection, pytest.raises(InputError, match="no result"):
        read_engine(vp.SQL("create table t (who integer, body text)", connection), user="who", text="body")


def test_engines_and_connections_of_sqlalchemy_are_read(rows, file):
    """The reader accepts SQLAlchemy engines and connections."""
    sqlalchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed")
    engine = sqlalchemy.create_engine(f"sqlite:///{file}")
    check(rows, engine)
    with engine.connect() as connection:
        check(rows, connection)
    engine.dispose()


def test_a_postgres_server_is_read(rows):
    """A local test server is read by address and through an open connection."""
    adbc = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="ADBC for PostgreSQL is not installed")
    if postgres.binaries() is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with postgres.server() as address:
        with adbc.connect(address) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest("posts", rows.to_arrow(), mode="create")
            connection.commit()
            check(rows, connection)
        check(rows, address)


@pytest.mark.parametrize(
    ("connection", "error", "words"),
    [
        ("mysql://somewhere/secret", InputError, "postgresql://"),
        ("nothing", InputError, "postgresql://"),
        (7, InputError, "got int"),
    ],
)
def test_invalid_requests_are_rejected(connection, error, words):
    """Addresses of unsupported types are rejected. The message does not contain their passwords."""
    with pytest.raises(error, match=words) as caught:
        read_engine(vp.SQL("select 1", connection), user="who", text="body")
    assert "secret" not in str(caught.value)


def test_a_wrong_query_is_reported(file):
    """The error for a wrong query omits the message of the database."""
    with sqlite3.connect(file) as connection:
        with pytest.raises(SourceError, match="refuses the query"):
            read_engine(vp.SQL("select secret from nowhere", connection), user="who", text="body")
        with pytest.raises(ColumnError, match='no column "author"'):
            read_engine(vp.SQL(QUERY, connection), user="author", text="body")
