"""Tests of queries with types that only one database has, of random queries, and of databases that cannot be opened."""

import sqlite3
from decimal import Decimal

import pyarrow as pa
import pytest

import voxpop as vp
from support.look import read_engine
from voxpop.errors import ColumnError, InputError, SourceError
from voxpop.reading.databases import without_password


class Cursor:
    """A cursor that returns Arrow batches, like the cursor of ADBC."""

    description = (("who",), ("what",))

    def __init__(self, what: pa.Array) -> None:
        self._table = pa.table({"who": list(range(len(what))), "what": what})

    def fetchmany(self, size):
        raise NotImplementedError

    def fetch_record_batch(self):
        """Return the rows."""
        return self._table.to_reader(max_chunksize=2)


class Rows:
    """A cursor of Python's DB-API."""

    description = (("who",), ("what",))

    def __init__(self, what) -> None:
        self._rows = list(enumerate(what))

    def fetchmany(self, size):
        rows, self._rows = self._rows, []
        return rows


def opaque(texts, name):
    """Return values of a type that ADBC wraps."""
    kind = pa.opaque(pa.string(), name, "PostgreSQL")
    return pa.ExtensionArray.from_storage(kind, pa.array(texts, pa.string()))


NUMBERS = ["2.50", "2.5", "-0.00", "0", "1000", "NaN", None]


@pytest.mark.parametrize("driver", ["adbc", "rows"])
def test_numbers_of_any_precision_have_one_spelling(driver):
    """ADBC returns numbers of any precision as text, and other drivers return Python decimals.

    Both have the same spelling.
    """
    decimals = [None if each is None else Decimal(each) for each in NUMBERS]
    cursor = Cursor(opaque(NUMBERS, "numeric")) if driver == "adbc" else Rows(decimals)
    engine = read_engine(cursor, user="who", items="what")
    assert engine.vocabulary.to_pylist() == ["0", "1000", "2.5"]
    assert [each.kind for each in engine.keys.columns] == ["string"]


@pytest.mark.parametrize("name", ["inet", "hstore", "tsvector"])
def test_the_error_for_other_types_of_a_database_names_the_cast(name):
    """The message names the type of the database and not the type of Arrow."""
    with pytest.raises(ColumnError, match=rf'"what" is of the type {name}.*cast\("what" as text\)'):
        read_engine(Cursor(opaque(["secret"], name)), user="who", items="what")
    with pytest.raises(SourceError, match=r"dict, which has no spelling.*cast it to text") as caught:
        read_engine(Rows([{"secret": 1}]), user="who", items="what")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "query",
    [
        "select who, what from t order by random() limit 10",
        "select * from t where RANDOM () < 0.5",
        "select * from t tablesample bernoulli (10)",
        "select * from t using sample 10",
        "select gen_random_uuid() as who, what from t",
        "select who, what from t order by random/* any */() limit 10",
        "select who, what from t order by dbms_random.value",
    ],
)
def test_queries_that_draw_at_random_are_rejected(query):
    """Such queries are rejected, because one user's rows would affect which of the other rows are drawn."""
    with pytest.raises(InputError, match="draws at random") as raised:
        read_engine(vp.SQL(query, sqlite3.connect(":memory:")), user="who", items="what")
    assert not isinstance(raised.value, SourceError)  # A SourceError would suggest a retry, which would not help.


def test_random_in_strings_comments_and_names_is_not_a_random_draw():
    """The word "random" may occur in strings, in comments and as a column name."""
    shop = sqlite3.connect(":memory:")
    shop.execute("create table t (who, random)")
    shop.execute("insert into t values (1, 'random()')")
    query = "select who, random from t where random = 'random()' -- not random()\n/* tablesample */"
    assert read_engine(vp.SQL(query, shop), user="who", items="random").vocabulary.to_pylist() == ["random()"]


def test_a_database_that_cannot_be_opened_is_explained(monkeypatch):
    """The error contains the driver's text, which quotes no rows because no query has run. Passwords are masked."""
    address = "postgresql://ann:s%40cret@db.example/shop?sslpassword=other"

    def connect(given):
        raise OSError(f'connection to "db.example" refused: password "s@cret" of {given}')

    class Driver:
        pass

    Driver.connect = staticmethod(connect)
    monkeypatch.setattr("voxpop.errors.import_module", lambda _: Driver)
    with pytest.raises(SourceError, match=r'OSError: connection to "db.example" refused') as caught:
        read_engine(vp.SQL("select 1", address), user="who", items="what")
    assert not any(word in str(caught.value) for word in ("s@cret", "s%40cret", "other"))
    assert without_password("user ann:pw", "sqlite:///shop.db") == "user ann:pw"


@pytest.mark.parametrize(
    "source", ["postgresql://ann:secret@db/shop", "sqlite:///shop.db", "postgresql+psycopg://db/shop", "duckdb:///a.db"]
)
def test_addresses_of_databases_cause_a_hint(source):
    """The hint for the address of a database does not quote the address, because it can contain a password."""
    for given in (source, [source]):
        with pytest.raises(InputError, match=r"vp\.SQL\(query, address\)") as caught:
            vp.read(given, user="who", items="what")
        assert "secret" not in str(caught.value)


def test_files_of_sqlite_cause_a_hint(tmp_path):
    """If the suffix of a file is unknown, its first bytes determine the format."""
    sqlite3.connect(tmp_path / "shop.data").execute("create table t (who, what)")
    with pytest.raises(SourceError, match=r"vp\.SQL"):
        vp.read(tmp_path / "shop.data", user="who", items="what")


def test_a_profile_of_a_query_is_released():
    """The database declares the columns without computing any rows."""
    shop = sqlite3.connect(":memory:")
    shop.execute("create table t (who integer, city text)")
    shop.executemany("insert into t values (?, ?)", [(number, "Delft") for number in range(3000)])
    options = vp.ReadOptions(progress=False)
    source = vp.SQL("select who, city from t;", shop)
    made = vp.profile(source, user="who", budget=vp.Budget(1, 1e-8), options=options)
    assert made.columns["city"].to_list() == ["Delft"]
