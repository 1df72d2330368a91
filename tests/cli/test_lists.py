"""Tests of public lists on the command line and in files, such as alphabets, symbols and column names."""

import csv
import io

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import voxpop as vp
from voxpop.cli.options import listed, listed_file
from voxpop.errors import InputError


@given(st.lists(st.text(st.sampled_from('ab ,"\n|'), max_size=5).filter(str.strip), max_size=5))
def test_a_list_that_a_csv_writer_quoted_is_read_correctly(entries):
    """Quoted entries are read without their quotes."""
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="").writerow(entries)
    assert listed(text.getvalue(), "--alphabet") == entries


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("pay, ship , Create,", ["pay", "ship", "Create"]),
        ('pay,"Create, invoice",x', ["pay", "Create, invoice", "x"]),
        ('"a ""b"" c", d', ['a "b" c', "d"]),
        ("\ufeffpay,,ship", ["pay", "ship"]),
        ('" edge "', [" edge "]),
        ("", []),
    ],
)
def test_outer_spaces_byte_order_marks_and_empty_entries_are_ignored(text, entries):
    """Spaces at the beginning or end of an entry are kept only within quotes."""
    assert listed(text, "--alphabet") == entries


@pytest.mark.parametrize("text", ['"pay, ship', '"pay"x, ship', 'pay, "'])
def test_quotes_that_are_not_closed_are_rejected(text):
    """The message names the option."""
    with pytest.raises(InputError, match="--alphabet must be a list"):
        listed(text, "--alphabet")


def test_a_file_has_one_entry_on_each_line(tmp_path):
    """Byte order marks, blank lines, carriage returns and outer spaces are ignored, and a comma is part of an entry."""
    (tmp_path / "a.txt").write_bytes('\ufeffpay\r\n\r\n ship \nCreate, invoice\n"say ""hi"" "\n'.encode())
    assert listed_file(tmp_path / "a.txt", "--alphabet") == ["pay", "ship", "Create, invoice", 'say "hi" ']
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="one entry per line"):
        listed_file(tmp_path / "a.txt", "--alphabet")


@pytest.mark.parametrize("option", ["--alphabet", "--alphabet-file"])
def test_spaces_in_an_alphabet_file_create_no_symbols(voxpop, tmp_path, option):
    """Spaces after commas do not create additional symbols, and the alphabet is printed."""
    visits = [["pay", "ship", "a, b"]] * 600
    pl.DataFrame({"who": range(600), "visit": visits}).write_parquet(tmp_path / "t.parquet")
    (tmp_path / "alphabet.txt").write_text("\ufeffpay\n ship \n\na, b\n", encoding="utf-8")
    given = "alphabet.txt" if option == "--alphabet-file" else 'pay, ship , "a, b"'
    call = ["sequences", "t.parquet", "--user", "who", "--sequence", "visit", "--epsilon", "9", "--seed", "1"]
    ran = voxpop(*call, option, given, "-o", "model")
    assert ran.code == 0
    assert "Alphabet of 3 symbols: a, b | pay | ship" in ran.out
    assert "outside of the alphabet" not in ran.err
    assert "ship" in voxpop("ask", "model", "next", "--symbols", " pay ").out.splitlines()[0]
    ran = voxpop(*call, "--alphabet", "pay", "-o", "other")
    assert "about 1,200 of the events are outside of the alphabet and were removed" in ran.err


def test_columns_with_commas_are_read(voxpop, tmp_path):
    """A name in double quotes is one column."""
    pl.DataFrame({"who": range(600), "a, b": ["tea"] * 600, "c": ["x"] * 600}).write_parquet(tmp_path / "t.parquet")
    call = ["items", "t.parquet", "--user", " who ", "--epsilon", "4", "--delta", "1e-6"]
    assert voxpop(*call, "--items", '"a, b", c', "-o", "keys").code == 0
    assert vp.load(tmp_path / "keys").to_list() == [("tea", "x")]


def test_grams_with_different_token_borders_are_printed_differently(voxpop, tmp_path):
    """Tokens may contain spaces, as names of activities do."""
    visits = [["new york", "city"], ["new", "york city"]] * 600
    pl.DataFrame({"who": range(1200), "visit": visits}).write_parquet(tmp_path / "t.parquet")
    call = ["ngrams", "t.parquet", "--user", "who", "--sequence", "visit", "--max-length", "2", "--epsilon", "4"]
    ran = voxpop(*call, "--delta", "1e-6", "--seed", "1", "-o", "grams")
    for text in (ran.out, voxpop("show", "grams").out):
        assert '"new york" city' in text
        assert 'new "york city"' in text
