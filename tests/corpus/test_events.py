"""Tests that rows of events are converted to sequences. A reference implementation gives the expected sequences."""

import datetime as dt
from itertools import pairwise

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import voxpop as vp
from support.corpora import by_key
from support.look import read_engine
from voxpop.errors import ColumnError, InputError, SourceError
from voxpop.reading import events
from voxpop.reading.limited import memory

START = dt.datetime(2026, 11, 22, 6, 0)
ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(["home", "news", "é", None]), st.integers(0, 200)),
    min_size=1,
    max_size=40,
)


def naive(rows, pause):
    """Return the time-ordered sequences of each user from rows (user, page or None, time)."""
    held = {}
    for user, page, time in rows:
        if page is not None:
            held.setdefault(user, []).append((time, page.encode(), page))
    found = {}
    for user, mine in held.items():
        mine.sort()
        sessions = [[mine[0]]]
        for before, event in pairwise(mine):
            if pause is not None and event[0] - before[0] > pause:
                sessions.append([])
            sessions[-1].append(event)
        found[user] = [tuple(page for _, _, page in each) for each in sessions]
    return found


def sequences_of(corpus):
    """Return the sequences of each user of a corpus, by user key."""
    words, found = corpus.vocabulary.to_pylist(), {}
    for number, key in enumerate(corpus.user_key.tolist()):
        tokens = corpus.tokens[corpus.user_start[number] : corpus.user_start[number + 1]].tolist()
        mine, current = [], []
        for token in tokens:
            if token < 0:
                mine.append(tuple(current))
                current = []
            else:
                current.append(words[token])
        found[key] = mine
    return found


def table_of(rows, when=lambda time: time):
    return pl.DataFrame(
        {"who": [row[0] for row in rows], "page": [row[1] for row in rows], "at": [when(row[2]) for row in rows]},
        schema_overrides={"page": pl.String},
    )


@given(rows=ROWS, pause=st.none() | st.integers(0, 60))
def test_sequences_equal_the_reference_implementation(rows, pause):
    """Rows may have any order. Ties are ordered by bytes, and a pause above the session gap begins a new sequence."""
    if all(page is None for _, page, _ in rows):
        return
    corpus = read_engine(table_of(rows), user="who", sequence="page", order="at", session_gap=pause)
    assert sequences_of(corpus) == naive(rows, pause)
    backwards = read_engine(table_of(rows[::-1]), user="who", sequence="page", order="at", session_gap=pause)
    assert sequences_of(backwards) == sequences_of(corpus)


@pytest.mark.parametrize(
    "when",
    [
        lambda minutes: START + dt.timedelta(minutes=minutes),
        lambda minutes: (START + dt.timedelta(minutes=minutes)).replace(tzinfo=dt.UTC),
        lambda minutes: f"{START + dt.timedelta(minutes=minutes):%Y-%m-%d %H:%M:%S}",
        lambda minutes: f"{START + dt.timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}",
    ],
)
def test_times_in_every_form_are_read(when):
    """Times with a time zone, times without a time zone, and strings are read."""
    rows = [(1, "home", 40), (1, "news", 10), (1, "é", 41), (2, "home", 0), (1, "home", 72)]
    corpus = read_engine(table_of(rows, when), user="who", sequence="page", order="at", session_gap="30min")
    assert sequences_of(corpus) == {1: [("news", "home", "é"), ("home",)], 2: [("home",)]}
    longer = read_engine(
        table_of(rows, when), user="who", sequence="page", order="at", session_gap=dt.timedelta(hours=1)
    )
    assert sequences_of(longer)[1] == [("news", "home", "é", "home")]


def test_days_and_fractions_are_read():
    """The unit of dates is a day, and numbers have their own unit."""
    table = pl.DataFrame({"who": [1, 1, 1], "page": [7, 8, 9], "at": [dt.date(2026, 11, day) for day in (22, 20, 21)]})
    corpus = read_engine(table, user="who", sequence="page", order="at", session_gap="1d")
    assert sequences_of(corpus) == {1: [("8", "9", "7")]}
    numbers = table.with_columns(at=pl.Series([0.5, 0.25, 9.0]))
    assert sequences_of(read_engine(numbers, user="who", sequence="page", order="at", session_gap=2)) == {
        1: [("8", "7"), ("9",)]
    }


def test_a_memory_limit_does_not_change_the_result(monkeypatch, tmp_path):
    """Each user's result is the same, even if rows are repeatedly written to work files."""
    rows = [(user % 97, f"page {(user * 7) % 11}", (user * 31) % 1000) for user in range(20_000)]
    wanted = read_engine(table_of(rows), user="who", sequence="page", order="at", session_gap=5)
    written = []
    plain = events._Parts._write
    monkeypatch.setattr(events._Parts, "_write", lambda *given: written.append(1) or plain(*given))
    limit = memory.MemoryLimit(memory.FIXED_MEMORY + (1 << 20), 1 << 20, tmp_path)
    monkeypatch.setattr(memory.MemoryLimit, "of", staticmethod(lambda *_: limit))
    reader = pa.Table.to_reader(table_of(rows).to_arrow(), max_chunksize=1000)
    found = read_engine(
        reader, user="who", sequence="page", order="at", session_gap=5, options=vp.ReadOptions(memory="any")
    )
    assert len(written) > 1
    assert by_key(found) == by_key(wanted)
    assert list(tmp_path.iterdir()) == []


def test_omitted_values_are_reported(capsys):
    """The reader informs the operator of omitted values, unless progress messages are disabled."""
    table = table_of([(1, "home", 1), (1, None, 2), (2, None, 3)])
    read_engine(table, user="who", sequence="page", order="at")
    text = 'fewer than 100 of the values in "page" are null and were skipped.'
    neighbours = "The tokens before and after such a value count as neighbours."
    assert capsys.readouterr().err == f"voxpop: {text} {neighbours}\n"
    read_engine(table, user="who", sequence="page", order="at", options=vp.ReadOptions(progress=False))
    read_engine(table.drop_nulls(), user="who", items="page")
    assert capsys.readouterr().err == ""
    read_engine(table, user="who", items="page", options=vp.ReadOptions(exact=True))
    assert "2 of the values" in capsys.readouterr().err


@pytest.mark.parametrize("memory", [None, "900MiB"])
@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("2026-11-22 05:56:10", "2026-11-22T05:56:10Z"),
        ("2026-11-22T05:56:10Z", "2026-11-22"),
        ("20261122", "2026-11-22"),
        ("2026-11-22", "20261122"),
        ("7", "2026-11-22T05:56:10+01:00"),
    ],
)
def test_the_first_row_of_a_source_determines_the_kind_of_times(tmp_path, first, later, memory):
    """A time of another kind is rejected in any row, so the borders of batches and files do not change the result."""
    how = {"user": "who", "sequence": "page", "order": "at", "options": vp.ReadOptions(memory=memory, progress=False)}

    def table(time, number):
        return pl.DataFrame({"who": range(number), "page": ["home"] * number, "at": [time] * number})

    def csv(before):
        path = tmp_path / f"{before}.csv"
        pl.concat([table(first, before), table(later, 3)]).with_columns(x=pl.lit("x" * 100)).write_csv(path)
        return path

    parts = [table(first, 2), table(later, 2)]
    for number, each in enumerate(parts):
        each.write_parquet(tmp_path / f"{number}.parquet")
    pl.concat(parts).write_parquet(tmp_path / "groups.parquet", row_group_size=2)
    files = [tmp_path / "0.parquet", tmp_path / "1.parquet"]
    sources = [lambda: iter(parts), lambda: pl.concat(parts), lambda: files, lambda: tmp_path / "groups.parquet"]
    sources += [lambda: csv(1), lambda: csv(40_000), lambda: (row for part in parts for row in part.to_dicts())]
    for source in sources:
        with pytest.raises(SourceError, match="not of the same kind as the first row"):
            vp.read(source(), **how)


def test_batches_of_one_kind_of_times_are_read():
    """Dates and times without a zone are of the same kind. A batch without rows has no kind of times."""
    empty = table_of([], str)
    parts = [empty, table_of([(1, "home", 2)], lambda _: "2026-11-22"), empty]
    parts.append(table_of([(1, "news", 2)], lambda _: "2026-11-21 05:56:10.5"))
    schema = {"who": pl.Int64, "page": pl.String, "at": pl.String}
    corpus = read_engine(iter([part.cast(schema) for part in parts]), user="who", sequence="page", order="at")
    assert sequences_of(corpus) == {1: [("news", "home")]}


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"session_gap": "30min"}, InputError, "Name the time column"),
        ({"order": "at", "session_gap": "soon"}, InputError, "length of time"),
        ({"order": "at", "session_gap": "30min"}, InputError, "same unit"),
        ({"order": "at", "session_gap": -1}, InputError, "same unit"),
        ({"order": "page"}, InputError, "for the order"),
        ({"order": "when"}, ColumnError, 'no column "when"'),
        ({"order": "list"}, ColumnError, "times, dates or numbers"),
        ({"order": "empty"}, SourceError, 'first 100 rows .*: the column "empty" is empty'),
        ({"order": "words"}, SourceError, "neither an integer nor an ISO 8601 time.*timestamp.ns."),
    ],
)
def test_invalid_requests_are_rejected(options, error, words):
    """Invalid calls raise an error before anything is read.

    Errors about columns name the row and never quote a cell.
    """
    table = pl.DataFrame(
        {"who": [1, 2], "page": ["a", "b"], "at": [1, 2], "list": [[1], [2]], "empty": [1, None], "words": ["x", "y"]}
    )
    with pytest.raises(error, match=words):
        read_engine(table, user="who", sequence="page", **options)
    with pytest.raises(InputError, match="applies only to sequence="):
        read_engine(table, user="who", text="page", order="at")
    with pytest.raises(ColumnError, match="one event per row"):
        read_engine(table, user="who", sequence="list", order="at")
