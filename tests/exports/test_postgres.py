"""Tests of released keys as SQL, which a real PostgreSQL server runs."""

import pyarrow as pa
import pytest

import voxpop as vp
from exports.test_sql import NASTY, TYPED, keys_of, words_of
from support import postgres

adbc = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="ADBC for PostgreSQL is not installed: make exports")


@pytest.fixture(scope="module")
def connection():
    """Return a connection to a server that only these tests use."""
    if postgres.binaries() is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    with postgres.server() as address, adbc.connect(address) as opened:
        yield opened


def rows_of(connection, query):
    with connection.cursor() as cursor:
        cursor.execute(query)
        return cursor.fetch_arrow_table()


def test_a_condition_keeps_the_released_words(connection):
    """A condition keeps exactly the released words, and a query returns them. The words contain special characters."""
    with connection.cursor() as cursor:
        cursor.adbc_ingest("words", pa.table({"word": [*NASTY, "not released", None]}), mode="create")
    release = words_of(NASTY)
    kept = rows_of(connection, f"SELECT word FROM words WHERE {vp.exports.to_sql(release, 'postgres', columns='word')}")
    assert sorted(kept["word"].to_pylist()) == sorted(NASTY)
    found = rows_of(connection, vp.exports.to_sql(release, "postgres", "select", "word"))
    assert sorted(found["word"].to_pylist()) == sorted(NASTY)


def test_conditions_and_queries_work_for_keys_of_every_type(connection):
    """Conditions and queries work for several columns of any type, and for names that need quotes."""
    release = keys_of(TYPED)
    with connection.cursor() as cursor:
        cursor.adbc_ingest("shops", pa.concat_tables([TYPED, TYPED.slice(1)]), mode="create")
    assert rows_of(connection, f"SELECT * FROM shops WHERE {vp.exports.to_sql(release, 'postgres')}").num_rows == 3
    query = vp.exports.to_sql(release, "postgres", "select")
    assert rows_of(connection, f"SELECT * FROM ({query}) AS keys JOIN shops USING (shop)").num_rows == 3
