"""Tests of `voxpop explain`, which explains why an item is missing."""

import polars as pl
import pytest

import voxpop as vp


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a table, a release of words with counts, and a release of keys."""
    home = tmp_path_factory.mktemp("explained")
    table = pl.DataFrame({"who": range(2000), "what": ["Get it", "apt"] * 1000, "size": [1, 2] * 1000})
    table.write_parquet(home / "posts.parquet")
    posts = vp.read(table, user="who", text="what")
    words = vp.Items(max_items_per_user=20).release(posts, vp.Budget(4, 1e-8))
    words.save(home / "words")
    words.count(posts, vp.Budget(4, 1e-8), counted_in_full=10).save(home / "words")
    keys = vp.read(table, user="who", items=["what", "size"])
    vp.Items(max_items_per_user=1).release(keys, vp.Budget(4, 1e-8)).save(home / "keys")
    return home


def test_explanations_are_printed_as_text(voxpop, folder):
    """The explanation of each item includes its count if counts were released."""
    code, out, err = voxpop("explain", folder / "words", "Apt", "apt-get")
    assert (code, err) == (0, "")
    assert "Apt: released\n" in out
    assert "Noisy number of users, standard error" in out
    assert "apt-get: not released\n  Read as apt | get" in out
    assert "PRIVATE" not in out


def test_explanations_are_printed_as_json(voxpop, folder):
    """The JSON output contains the explanations with counts, and the guarantee."""
    found = voxpop("explain", folder / "words", "apt", "zsh", "--json").json
    first, second = found["explanations"]
    assert first["released"]
    assert abs(first["count"] - 1000) < 100
    assert not second["released"]
    assert "count" not in second
    assert found["statement"].startswith("(4, 1e-08)-DP")


def test_explanations_of_keys_are_printed(voxpop, folder):
    """Values of several columns are separated by commas and converted to the types of the columns."""
    assert "not released" not in voxpop("explain", folder / "keys", "apt,2").out
    assert "not released" in voxpop("explain", folder / "keys", "apt,3").out
    assert "not a value of the columns" in voxpop("explain", folder / "keys", "apt,two").out


def test_explanations_with_private_data_are_marked(voxpop, folder):
    """If the data is given, the output also contains a rounded number of users, which is marked as private."""
    table = ["--data", folder / "posts.parquet", "--user", "who", "--text", "what"]
    out = voxpop("explain", folder / "words", "apt", *table).out
    assert "PRIVATE" in out
    assert "about 1,000" in out
    assert "who have it: 1,000." in voxpop("explain", folder / "words", "apt", *table, "--exact").out
    assert "Add --data FILE" in voxpop("explain", folder / "words", "apt", "--user", "who").complaint
