"""Tests of released text in dbt, which renders SQL as a template, in spreadsheets and in Markdown."""

import csv
import html
import io
import json
import re
import sqlite3
from dataclasses import replace

import jinja2
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voxpop as vp
from voxpop.errors import InputError
from voxpop.reading.arrow import string_array
from voxpop.reading.keys import KeyColumn, Keys
from voxpop.release.result import StoredPlan

HOSTILE = [
    '{{ run_query("drop table users") }}',
    "{% do run_query('x') %}",
    "{# hidden #}",
    "{{{ run_query() }}}",
    "{" * 9,
    "{'{ run_query() }}",
    '{"{ run_query() }}',
    "{\\{ run_query() }}",
    "{\r{ run_query() }}",
    "a\r\nb\rc\n",
    "\r",
    "}} %} #}",
    "{%- set x = 1 -%} {{- x -}}",
    "# run_query()",
    "%{ x }",
    "",
    "13",
]
DIALECTS = ["athena", "bigquery", "clickhouse", "databricks", "duckdb", "fabric", "mysql", "oracle", "postgres"]
DIALECTS += ["redshift", "snowflake", "spark", "sqlite", "starrocks", "teradata", "trino", "tsql"]


def items_of(words, name=None):
    """Return the release of some strings, of words or of a column."""
    items = pa.array(sorted(set(words), key=str.encode), pa.string())
    keys = Keys() if name is None else Keys((KeyColumn(name, "string"),))
    return vp.Release.from_items(items, StoredPlan({}), vp.Guarantee(4, 1e-7), "items", keys)


def rendered(text):
    """Return the output of dbt for a model, and fail if dbt runs code from it."""

    def ran(*_, **__):
        raise AssertionError("released text ran as a program")

    environment = jinja2.Environment(extensions=["jinja2.ext.do"])
    return environment.from_string(text).render(run_query=ran, env_var=ran, log=ran, x="ran", hidden=ran)


@pytest.mark.parametrize("form", ["where", "select"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_rendering_does_not_change_statements(dialect, form):
    """Rendering leaves every statement unchanged.

    For some dialects, the words are rejected before a statement is written.
    """
    pytest.importorskip("sqlglot", reason="sqlglot is not installed: make exports")
    for words in (HOSTILE, *([word] for word in HOSTILE)):
        try:
            text = vp.exports.to_sql(items_of(words), dialect, form, "word")
        except InputError:
            assert dialect not in ("duckdb", "postgres", "bigquery", "snowflake", "spark")
        else:
            assert rendered(text) == text


@given(words=st.sets(st.text("{%#}\r\n'\"\\ a", max_size=8), min_size=1, max_size=6))
@settings(max_examples=80, deadline=None)
def test_databases_find_the_words_in_rendered_statements(words):
    """After rendering, DuckDB and SQLite keep exactly the released words."""
    pytest.importorskip("sqlglot", reason="sqlglot is not installed: make exports")
    every = sorted({*HOSTILE, *words})
    lite = sqlite3.connect(":memory:")
    lite.execute("create table t (word text)")
    lite.executemany("insert into t values (?)", [(each,) for each in every])
    condition = rendered(vp.exports.to_sql(items_of(words), "sqlite", columns="word"))
    assert {word for (word,) in lite.execute(f"select word from t where {condition}")} == words
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: make exports")
    query = rendered(vp.exports.to_sql(items_of(words), "duckdb", "select", "word"))
    assert {word for (word,) in duckdb.sql(query).fetchall()} == words


@pytest.mark.parametrize("name", ["{{ x }}", "a{%b", "{#", "a\rb"])
def test_column_names_that_look_like_templates_are_rejected(name):
    """Such names in arguments and in data are rejected, because a name cannot be written as concatenated strings."""
    pytest.importorskip("sqlglot", reason="sqlglot is not installed: make exports")
    for form in ("where", "select"):
        for release, columns in ((items_of(["tea"]), name), (items_of(["tea"], name), None)):
            with pytest.raises(InputError, match="as a template"):
                vp.exports.to_sql(release, form=form, columns=columns)
        assert "tea" in vp.exports.to_sql(items_of(["tea"], name), form=form, columns="word")


@pytest.mark.parametrize("word", ["{" * 2000, "\r" * 2000])
def test_a_word_of_many_concatenated_parts_is_written(word):
    """A word that needs thousands of concatenated parts is written without a crash."""
    pytest.importorskip("sqlglot", reason="sqlglot is not installed: make exports")
    for dialect in ("duckdb", "bigquery"):
        text = vp.exports.to_sql(items_of([word]), dialect, columns="word")
        assert rendered(text) == text


FORMULAS = ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1", "﹦1", "'=1", "''=1", "-"]
FORMULAS += [" =1+1", "\u00a0=1", "\ufeff=1", "\u200b=1", '"=1', '" =1', "\x01=1", "\n=1"]
CELLS = [*FORMULAS, *(f"x{mark}{each}{mark}y" for each in FORMULAS for mark in ";\t\n\r")]
CELLS += ["tea", "'tis", "'", "", "a;b", ";-)", 'a";"=1', "x;'=1", '5" - 6"', "salt, -pepper"]
INVISIBLE = ' \t\r\n"\u00a0\ufeff\u200b\x01'


def cells_of(text):
    """Yield the cells into which spreadsheets split a file under the settings of different countries."""
    for delimiter in (",", ";", "\t"):
        for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONE):
            if delimiter != "," or quoting == csv.QUOTE_MINIMAL:
                for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting):
                    yield from row
    for line in text.splitlines():
        yield from (cell for part in line.split(";") for cell in part.split("\t"))


def test_no_cell_of_a_csv_file_is_a_formula(tmp_path):
    """Whether a spreadsheet splits at commas, semicolons or tabs, no cell begins like a formula. Texts can be restored.

    There are two columns of text, because a spreadsheet with another separator ignores the quotes of later columns.
    """
    from voxpop.exports.files import unguarded

    cells = string_array(sorted(set(CELLS), key=str.encode))
    keys = Keys((KeyColumn("=name", "string"), KeyColumn("other", "string")))
    items = sorted(keys.spell([cells, cells]).to_pylist(), key=str.encode)
    release = vp.Release.from_items(string_array(items), StoredPlan({}), vp.Guarantee(4, 1e-7), "items", keys)
    vp.exports.write(release, tmp_path / "keys.csv")
    text = (tmp_path / "keys.csv").read_bytes().decode()
    for cell in cells_of(text):
        assert not re.match(r"['=+\-@＝﹦]", cell.lstrip(INVISIBLE)) or cell.lstrip(INVISIBLE)[0] == "'", cell
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows[0] == ["'=name", "other"]
    assert {unguarded(row[0]) for row in rows[1:]} == {unguarded(row[1]) for row in rows[1:]} == set(CELLS)
    read = pl.read_csv(tmp_path / "keys.csv", infer_schema=False)
    assert {unguarded(cell) for cell in read["other"]} == set(CELLS)


@given(cell=st.text("=+-@'\";\t\n\r ,a\u200b\ufeff＝", max_size=9), other=st.text("='; \"", max_size=5))
@settings(max_examples=300, deadline=None)
def test_guarded_cells_differ_and_can_be_restored(cell, other):
    """The original string can be restored from a cell, so two strings never become the same cell."""
    from voxpop.exports.files import guarded_cell, unguarded

    assert unguarded(guarded_cell(cell)) == cell
    assert (guarded_cell(cell) == guarded_cell(other)) == (cell == other)


@pytest.mark.parametrize("token", ["\x1b[2J", "a\x07", "a\nb", "\x9b2J", "\x00"])
def test_a_text_file_has_no_control_characters(tmp_path, token):
    """Printing the file in a terminal cannot run a command. JSON contains escapes instead of control characters."""
    with pytest.raises(InputError, match="control characters"):
        vp.exports.write(items_of([token]), tmp_path / "words.txt")
    vp.exports.write(items_of([token]), tmp_path / "words.json")
    assert token in json.loads((tmp_path / "words.json").read_text())["grams"][0]


@pytest.mark.parametrize(
    "title",
    [
        "<script>alert(1)</script>",
        "[x](javascript:alert(1))",
        "![x](http://a/b)",
        "# a",
        "`a` *b* _c_",
        "a | b",
        "&lt;",
        "<a@b.c>",
    ],
)
def test_markdown_and_yaml_show_statements_as_text(tmp_path, title):
    """Statements of the operator and forged plans do not become markup in the documents."""
    from markdown_it import MarkdownIt

    plan = StoredPlan({"mechanism": title})
    release = replace(items_of(["tea"]), plan=plan).with_metadata(
        title=title, dataset=title, purpose=title, operator=title
    )
    page = MarkdownIt().enable("table").render(vp.exports.checklist(release))
    shown = re.sub(r"<[^>]*>", "", page)
    assert html.unescape(shown).count(title) >= 5
    for tag in ("<script", "<a ", "<img", 'javascript:alert(1)"'):
        assert tag not in page
    record = vp.exports.registry_record(release)
    assert json.dumps(title, ensure_ascii=False) in record
