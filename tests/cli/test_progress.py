"""Tests of the progress bar that long commands show on a terminal. The bar has one step per round or length."""

import io
import sys

import polars as pl
import pytest

from voxpop.cli import main
from voxpop.files import progress


class Terminal(io.StringIO):
    """A standard error stream whose `isatty` returns True."""

    def isatty(self):
        return True


CALLS = {
    "heavy-hitters": (["--items", "what", "--max-length", "2", "--delta", "1e-8"], "rounds"),
    "sequences": (["--sequence", "list", "--alphabet", "sun,moon", "--max-length", "4"], "lengths"),
    "ngrams": (["--text", "what", "--max-length", "2", "--max-phrases-per-user", "2", "--delta", "1e-8"], "lengths"),
}


@pytest.mark.parametrize("command", CALLS)
@pytest.mark.parametrize("terminal", [True, False])
def test_a_command_shows_its_progress(command, terminal, tmp_path, monkeypatch):
    """After a delay, a terminal shows a bar with its unit. A file receives no output."""
    words = ["sun", "moon"] * 1500
    table = pl.DataFrame({"who": range(3000), "what": words, "list": [[word] for word in words]})
    table.write_parquet(tmp_path / "said.parquet")
    arguments, unit = CALLS[command]
    stderr = Terminal() if terminal else io.StringIO()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(sys, "stderr", stderr)
    assert main([command, "said.parquet", "--user", "who", *arguments, "--epsilon", "1", "-o", "out"]) == 0
    shown = stderr.getvalue()
    assert ("releasing" in shown and f" {unit}" in shown) == terminal
    assert terminal or shown == ""
