"""Tests that the command line on Spark writes the same files as the local engine and prints no private data."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

pytestmark = pytest.mark.slow
CANARY = "xylophonecanary"
PHRASES = ["--epsilon", "4", "--delta", "1e-8", "--max-length", "2", "--seed", "2"]
CALLS = {
    "ngrams": ["--text", "what", *PHRASES],
    "items": ["--text", "what", "--epsilon", "4", "--delta", "1e-8", "--seed", "2"],
    "sequences": ["--text", "what", "--epsilon", "4", "--alphabet", "thank,you,very,much", "--seed", "2"],
}


def run(folder, *arguments):
    command = str(Path(sys.executable).with_name("voxpop"))
    return subprocess.run([command, *arguments], capture_output=True, text=True, cwd=folder, timeout=400)


@pytest.mark.parametrize("verb", CALLS)
def test_commands_save_the_same_release(java, talk, tmp_path, verb):
    """Documents are sorted by content in the table, because Spark sorts them by content."""
    private = pl.DataFrame({"who": [9999], "what": [CANARY]}, schema=talk.schema)
    table, path = pl.concat([talk, private]).sort("who", "what"), str(tmp_path / "talk.parquet")
    table.write_parquet(path)
    saved = {}
    for engine in (
        ["--engine", "local"],
        ["--engine", "spark", "--master", "local[2]", *(["--partitions", "1"] if verb == "items" else [])],
    ):
        out = tmp_path / engine[1]
        done = run(tmp_path, verb, path, "--user", "who", *CALLS[verb], *engine, "--json", "-o", str(out))
        assert done.returncode == 0, done.stderr
        assert CANARY not in done.stdout + done.stderr
        assert json.loads(done.stdout.splitlines()[-1])["released"] > 5
        saved[engine[1]] = {file.name: file.read_bytes() for file in out.iterdir() if file.suffix == ".parquet"}
    assert saved["local"] == saved["spark"]
    assert saved["local"]


def test_a_missing_file_is_reported_in_one_line(java, tmp_path):
    """The exit code is that of a missing source instead of that of an internal error."""
    call = ["items", "nowhere.parquet", "--user", "who", "--items", "what", "--epsilon", "1", "--delta", "1e-6"]
    done = run(tmp_path, *call, "--engine", "spark", "--master", "local[1]", "-o", "out")
    assert done.returncode == 5
    assert "voxpop: Spark cannot read nowhere.parquet" in done.stderr.splitlines()[-1]
