"""Tests that the recipes for other libraries in `docs/coming-from.md` run on the files that the page writes."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import voxpop as vp

PAGE = Path(__file__).resolve().parents[2] / "docs" / "coming-from.md"
SUMS = PAGE.parent / "guides" / "orders-sums.md"
BLOCKS = {
    title.strip(): blocks
    for title, *rest in (part.split("\n", 1) for part in re.split(r"^##+ ", PAGE.read_text(), flags=re.MULTILINE))
    if (blocks := re.findall(r"```python\n(.*?)```", "".join(rest), re.DOTALL))
}
LIBRARIES = ("OpenDP", "PipelineDP", "Tumult Analytics")
COUNTRIES = ["BR", "DE", "JP", "KE"]
pytestmark = pytest.mark.slow  # These tests are slow, because they start other processes.


@pytest.fixture
def namespace(tmp_path, monkeypatch):
    """Run the first block of the page, which writes the files, and return its names."""
    monkeypatch.chdir(tmp_path)
    names = {}
    (first,) = (blocks[0] for title, blocks in BLOCKS.items() if title.startswith("Recipes"))
    exec(compile(first, "first", "exec"), names)
    return names


def run(code):
    """Run a recipe with the first suitable interpreter among the current one and those that VOXPOP_RECIPES lists."""
    reasons = []
    for each in (sys.executable, *filter(None, os.environ.get("VOXPOP_RECIPES", "").split(os.pathsep))):
        environment = {**os.environ, "PYSPARK_PYTHON": each}
        call = [each, "-W", "ignore", "-c", code]
        ran = subprocess.run(call, env=environment, capture_output=True, text=True, check=False)
        if ran.returncode == 0:
            return ast.literal_eval(ran.stdout.strip().splitlines()[-1])
        reasons.append(ran.stderr.strip().splitlines()[-1])
        if "ModuleNotFoundError" not in ran.stderr and "Installed python polars version" not in ran.stderr:
            pytest.fail(ran.stderr)
    pytest.skip(f"no Python has the library: name one in VOXPOP_RECIPES ({reasons[-1]})")


@pytest.mark.parametrize("title", LIBRARIES)
@pytest.mark.usefixtures("namespace")
def test_a_recipe_counts_by_released_keys(title):
    """The library returns only the released keys, with counts near the true counts."""
    (code,) = BLOCKS[title]
    found = run(code)
    assert [country for country, _ in found] == COUNTRIES
    assert all(abs(count - 2000) < 150 for _, count in found)


def test_the_recipe_for_revenue_releases_keys_and_sums(tmp_path, monkeypatch):
    """The recipe on the page on revenue releases keys, and OpenDP returns a sum near the true sum for each key."""
    monkeypatch.chdir(tmp_path)
    keys, sums = re.findall(r"```python\n(.*?)```", SUMS.read_text(), re.DOTALL)
    names = {}
    exec(compile(keys, "keys", "exec"), names)
    found = dict(run(sums))
    assert list(found) == sorted(names["keys"])
    true = names["table"].group_by("product").agg(revenue=pl.col("amount").sum())
    assert all(abs(found[row["product"]] - row["revenue"]) < 1e6 for row in true.to_dicts() if row["product"] in found)


def test_recipes_of_databases_run(namespace, capsys):
    """DuckDB keeps the rows of released keys, and the condition for BigQuery lists them."""
    pytest.importorskip("duckdb", reason="duckdb is not installed: make exports")
    pytest.importorskip("sqlglot", reason="sqlglot is not installed: make exports")
    duckdb, bigquery = BLOCKS["DuckDB and other databases"]
    exec(compile(duckdb, "duckdb", "exec"), {})
    assert ast.literal_eval(capsys.readouterr().out) == [(country, 2000) for country in COUNTRIES]
    exec(compile(bigquery, "bigquery", "exec"), {**namespace, "vp": vp})
    assert capsys.readouterr().out == "select * from sales where `country` IN ('BR', 'DE', 'JP', 'KE')\n"
