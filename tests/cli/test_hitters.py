"""End-to-end tests of `voxpop heavy-hitters`."""

import polars as pl
import pytest

import voxpop as vp

pytestmark = pytest.mark.usefixtures("fixed_secrets")

BUDGET = ["--epsilon", 1, "--delta", "1e-8"]
CALL = ["posts.parquet", "--user", "author", "--text", "body", *BUDGET]
TOKENS = ["--alphabet", "tokens", "--max-length", 4]  # as many rounds as the default for characters


@pytest.fixture(autouse=True)
def posts(tmp_path):
    """Write a table in which 600 users most often write tea, and one user writes another word."""
    frame = pl.DataFrame({"author": range(601), "body": ["Tea, tea, milk!"] * 600 + ["unheard"]})
    frame.write_parquet(tmp_path / "posts.parquet")


def test_the_command_releases_and_saves(voxpop, tmp_path):
    """The shared word is released, printed with its guarantee and saved, but the word of one user is not."""
    code, out, err = voxpop("heavy-hitters", *CALL, "-o", "words")
    assert (code, err) == (0, "")
    assert list(vp.load(tmp_path / "words")) == ["tea"]
    assert "Released 1 item." in out
    assert "(1, 1e-08)-DP, one user added or removed" in out
    assert "unheard" not in out


def test_the_executed_plan_contains_the_options(voxpop):
    """The executed plan contains every option of the mechanism."""
    options = {
        "max_length": 7,
        "unit": 2,
        "alphabet": "bytes",
    }
    flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", value)]
    content = voxpop("heavy-hitters", *CALL, *flags, "-o", "words", "--json").json
    assert {name: content["plan"][name] for name in options} == options
    assert content["guarantee"]["private"] is True


def test_a_whole_text_is_found_as_one_phrase(voxpop, tmp_path):
    """With `--alphabet tokens`, an entire text is found as one phrase."""
    assert voxpop("heavy-hitters", *CALL, *TOKENS, "-o", "words").code == 0
    assert list(vp.load(tmp_path / "words")) == [("tea", "tea", "milk")]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([*CALL, "--max-length", 1], ["`max_length`", "from 2 to"]),
        ([*CALL, "--unit", 5], ["`unit`", "from 1 to 4"]),
        (["posts.parquet", "--user", "author", "--text", "body", "--epsilon", 4], ["--delta is missing"]),
        ([*CALL[:-1], 0], ["delta above 0"]),
        (["posts.parquet", "--user", "author", "--items", "body", *BUDGET, *TOKENS], ["no order"]),
    ],
)
def test_wrong_calls_give_advice(voxpop, tmp_path, arguments, expected):
    """A wrong call or unsuitable data exits with code 2 and one line of advice, and saves nothing."""
    complaint = voxpop("heavy-hitters", *arguments, "-o", "words").complaint
    assert all(word in complaint for word in expected)
    assert not (tmp_path / "words").exists()
