"""Tests that the dbt example project runs on DuckDB with the commands of its page."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "dbt"
DBT = os.environ.get("VOXPOP_DBT") or shutil.which("dbt")
pytestmark = pytest.mark.skipif(DBT is None, reason="dbt is not installed: make dbt")


def test_the_example_keeps_only_released_keys(tmp_path):
    """After the commands, a shop with one customer is missing from one table and is "other" in the second table."""
    pytest.importorskip("sqlglot", reason="sqlglot is not installed: make exports")
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: make exports")
    project = tmp_path / "project"
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns("target", "logs", "keys", "*.duckdb", "seeds"))
    program = "import sys; from voxpop.cli import main; sys.exit(main(sys.argv[1:]))"
    commands = {"python": [sys.executable], "voxpop": [sys.executable, "-c", program], "dbt": [DBT]}
    environment = os.environ | {"VOXPOP_DUCKDB": str(tmp_path / "t.duckdb"), "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    lines = (project / "README.md").read_text().split("```sh\n")[1].split("```")[0].splitlines()
    assert lines[2:] == [line for line in lines if line.startswith(("python make", "voxpop ", "dbt "))]
    for line in lines[2:]:
        name, *arguments = line.split()
        ran = subprocess.run(
            [*commands[name], *arguments], cwd=project, env=environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        kept = connection.sql("select * from sales_of_released_shops order by shop").fetchall()
        assert kept == [(f"shop {number}", 500) for number in range(4)]
        every = connection.sql("select * from sales_with_other order by shop").fetchall()
        assert every == [("other", 1), *kept]
