"""End-to-end tests of `voxpop ngrams` and of plans for phrases."""

import polars as pl
import pytest

import voxpop as vp

BUDGET = ["--epsilon", 4, "--delta", "1e-6"]
CALL = ["posts.parquet", "--user", "author", "--text", "body", *BUDGET, "-o", "phrases"]
PHRASES = ["--max-length", 3, "--max-phrases-per-user", 20]


@pytest.fixture
def posts(tmp_path):
    """Write a table with a phrase that 500 users share and a phrase that a single user wrote."""
    texts = ["See you soon. Thank you!"] * 499 + ["nobody else wrote this"]
    pl.DataFrame({"author": range(500), "body": texts}).write_parquet(tmp_path / "posts.parquet")


@pytest.mark.usefixtures("posts")
def test_the_command_releases_and_saves_phrases(voxpop, tmp_path):
    """Shared phrases are released with all their parts, printed with their guarantee, and saved."""
    code, out, _ = voxpop("ngrams", *CALL, *PHRASES, "--seed", 1)
    assert code == 0
    release = vp.load(tmp_path / "phrases")
    assert ("see", "you", "soon") in release
    assert ("soon", "thank") in release
    assert "grams of up to 3 tokens" in out
    assert "(4, 1e-06)-DP, one user added or removed" in out
    assert "nobody" not in out


@pytest.mark.usefixtures("posts")
def test_phrases_end_at_the_end_of_a_sentence(voxpop, tmp_path):
    """With --sentences, no phrase continues from one sentence into the next."""
    assert voxpop("ngrams", *CALL, "--max-length", 2, "--sentences", "--seed", 1).code == 0
    release = vp.load(tmp_path / "phrases")
    assert ("soon", "thank") not in release
    assert ("thank", "you") in release


@pytest.mark.usefixtures("posts")
def test_phrases_are_shown(voxpop):
    """The saved plan contains the values used at each length."""
    voxpop("ngrams", *CALL, "--max-length", 2, "--seed", 1)
    out = voxpop("show", "phrases").out
    assert "see you" in out
    assert "What ran" in out


def test_plans_of_phrases_are_printed(voxpop):
    """The plan requires no data and has one row for each length, as text and as JSON."""
    out = voxpop("plan", "ngrams", *PHRASES, *BUDGET).out
    assert "Phrases of 1 to 3 tokens" in out
    assert "users for 50 %" in out
    out = voxpop("plan", "ngrams", *PHRASES, *BUDGET, "--length-weights", "0,1,5").out
    assert "a phrase is worth 0, 1, 5 by length" in out
    content = voxpop("plan", "ngrams", *PHRASES, *BUDGET, "--json").json
    assert [row["length"] for row in content["plan"]["passes"] if row["pass"] in ("words", "vote")] == [1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--max-phrases-per-user", "many"], "--max-phrases-per-user"),
        (["--length-weights", "1,2"], "`length_weights` must be"),
        (["--max-spurious-share", "2"], "`max_spurious_share`"),
    ],
)
@pytest.mark.usefixtures("posts")
def test_wrong_calls_are_rejected_before_reading(voxpop, arguments, words):
    """The one-line error names the requirement."""
    assert words in voxpop("ngrams", *CALL, *arguments).complaint
