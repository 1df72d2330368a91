"""Tests of the count of user ids that differ only in case or spaces, which informs the owner of the data."""

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voxpop as vp
from support.look import load_engine, read_engine
from support.three_paths import tiny
from voxpop.engine.local import read
from voxpop.engine.local.exact import summary_of
from voxpop.reading import wanted
from voxpop.reading.limited.memory import MemoryLimit

IDS = st.text("aB \u00a0ß", max_size=3).filter(str.strip)
NAME = "ids that differ in case or spaces only"


def plain(user):
    """Return an id of one column without case and spaces, as the reference implementation computes it."""
    return user.lower().strip()


@pytest.mark.parametrize("spills", [False, True])
@given(ids=st.lists(IDS, min_size=1, max_size=40))
@settings(max_examples=40, deadline=None)
def test_similar_ids_are_counted(ids, spills):
    """The result is the number of distinct ids minus the number of distinct ids without case and spaces.

    A memory limit does not change this number.
    """
    table = pl.DataFrame({"who": ids * 10, "what": ["tea"] * (10 * len(ids))})
    with pytest.MonkeyPatch.context() as patch:
        options = vp.ReadOptions(memory="any" if spills else None)
        if spills:
            patch.setattr(MemoryLimit, "of", staticmethod(lambda *_: tiny(1 << 14)))
            patch.setattr(wanted, "_ITEMS_AT_ONCE", 64)
        corpus = read_engine(table, user="who", items="what", options=options)
    assert corpus.alike == len(set(ids)) - len(set(map(plain, ids)))


def table_of(people=400):
    """Return rows of persons. Half of the persons also have an id in lower case with a space."""
    ids = [f"C{number:03}" for number in range(people)]
    return pl.DataFrame({"who": [*ids, *(f"{each.lower()} " for each in ids[::2])], "shop": 7, "what": "tea"})


@pytest.mark.parametrize("suffix", ["csv", "parquet", "frame"])
@pytest.mark.parametrize("columns", ["who", ["who", "shop"], ["shop", "who"]])
def test_the_message_about_similar_ids_names_the_next_step(suffix, columns, tmp_path, capsys):
    """The message contains the rounded number of similar ids of one or several columns, and quotes no id."""
    table = table_of()
    path = tmp_path / f"rows.{suffix}"
    if suffix != "frame":
        table.write_csv(path) if suffix == "csv" else table.write_parquet(path)
    corpus = vp.read(table if suffix == "frame" else path, user=columns, items="what")
    shown = capsys.readouterr().err
    assert "about 200 ids of users differ from another id only in case or in spaces" in shown
    assert "lower(trim(id))" in shown
    assert "C0" not in shown
    assert corpus.summary().figures[NAME] == "about 200"
    assert corpus.summary(exact=True).figures[NAME] == "200"
    corpus.save(tmp_path / "corpus")
    assert vp.load_corpus(tmp_path / "corpus").summary(exact=True).figures[NAME] == "200"


def test_clean_ids_cause_no_message(capsys):
    """Integer ids, and ids with only one spelling, cause no message."""
    for who in (range(400), [f"C{number}" for number in range(400)]):
        corpus = vp.read(pl.DataFrame({"who": who, "what": "tea"}), user="who", items="what")
        assert corpus.summary(exact=True).figures[NAME] == "0"
    assert "differ" not in capsys.readouterr().err


def test_an_unknown_number_is_not_shown(tmp_path):
    """Beyond the memory limit, the number is unknown, and the summary has no line about it."""
    corpus = replace(read_engine(table_of(4), user="who", items="what"), alike=None)
    assert NAME not in summary_of(corpus).figures
    corpus.save(tmp_path / "corpus")
    assert load_engine(tmp_path / "corpus").alike is None
    spellings = read.Spellings(2)
    spellings.add(pl.Series(["a", "b", "c"]).to_arrow())
    spellings.add(pl.Series(["a"]).to_arrow())
    assert spellings.alike(3) is None
