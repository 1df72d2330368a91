"""Tests that rows without a user are rejected, or skipped and counted in a message."""

import polars as pl
import pyarrow as pa
import pytest

import voxpop as vp
from support.look import read_engine
from voxpop.errors import InputError, SourceError

ROWS = {"who": ["ann", None, "bob", "NULL", "nan", ""], "town": ["a", "a", None, "b", "b", "b"], "what": list("abcdef")}


def read(missing_users="error", user="who", **options):
    options = vp.ReadOptions(missing_users=missing_users, **options)
    return read_engine(pl.DataFrame(ROWS), user=user, items="what", options=options)


def held(corpus):
    """Return the items of all users."""
    return corpus.vocabulary.to_pylist()


def test_a_row_without_a_user_is_an_error_that_names_the_option():
    """By default, a row without a user raises an error that contains the number of the row."""
    with pytest.raises(SourceError, match=r"row 2: .*missing_users=\"drop\" \(--drop-missing-users\)"):
        read(exact=True)


@pytest.mark.parametrize("memory", [None, "3GiB"])
def test_rows_without_a_user_are_skipped(memory, capsys):
    """Rows are also skipped if their user is spelled like a missing value.

    A message contains the number of skipped rows.
    """
    corpus = read("drop", memory=memory, exact=True)
    assert (held(corpus), corpus.user_key.size) == (["a", "c"], 2)
    assert "4 rows have no user and were skipped" in capsys.readouterr().err


def test_each_of_several_user_columns_must_have_a_value():
    """If two columns identify a user, both columns must have a value."""
    corpus = read("drop", user=["who", "town"])
    assert held(corpus) == ["a"]


def test_numbers_are_rounded_by_default(capsys):
    """The numbers in messages are rounded by default, because exact numbers are private."""
    read("drop")
    assert "fewer than 100 rows have no user" in capsys.readouterr().err


def test_users_that_look_missing_remain_with_a_warning(capsys):
    """If there are no nulls, no row is rejected, and the warning names the option."""
    table = pl.DataFrame({"who": ["ann", "NULL", "nan"], "what": ["a", "b", "c"]})
    corpus = read_engine(table, user="who", items="what")
    assert corpus.user_key.size == 3
    shown = capsys.readouterr().err
    assert "spelled like a missing value" in shown
    assert "--drop-missing-users" in shown


@pytest.mark.parametrize("kind", [pa.int64(), pa.dictionary(pa.int32(), pa.string())])
def test_numbers_and_dictionaries_are_read(kind):
    """The user columns contain a null among integers, and a missing-value string in a dictionary."""
    users = pa.array([1, None, 2] if kind == pa.int64() else ["ann", None, "NULL"]).cast(kind)
    table = pa.table({"who": users, "what": ["a", "b", "c"]})
    corpus = read_engine(table, user="who", items="what", options=vp.ReadOptions(missing_users="drop"))
    assert held(corpus) == (["a", "c"] if kind == pa.int64() else ["a"])


def test_events_without_a_user_are_skipped():
    """An event without a user is skipped even if its time is null."""
    table = pl.DataFrame({"who": ["ann", None, "ann"], "at": [2, None, 1], "what": ["b", "x", "a"]})
    options = vp.ReadOptions(missing_users="drop")
    corpus = read_engine(table, user="who", sequence="what", order="at", options=options)
    assert held(corpus) == ["a", "b"]


def test_other_values_of_the_option_are_rejected():
    """Any value of the option except its two valid values is rejected."""
    with pytest.raises(InputError, match="missing_users"):
        vp.ReadOptions(missing_users="ignore")


def test_the_command_line_has_the_option(tmp_path, monkeypatch, capsys):
    """The command rejects the table without the option, and releases its items with the option."""
    from voxpop.cli import main

    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"who": [*range(3000), None], "what": ["tea"] * 3001}).write_parquet("t.parquet")
    call = ["items", "t.parquet", "--user", "who", "--items", "what", "--epsilon", "1", "--delta", "1e-8", "-o", "keys"]
    assert main(call) == 5
    assert "--drop-missing-users" in capsys.readouterr().err
    assert main([*call, "--drop-missing-users"]) == 0
    assert vp.load("keys").to_list() == ["tea"]
