"""End-to-end tests of `voxpop items` and `voxpop demo`."""

import datetime
import json
import shutil
import subprocess
import sys
import time

import polars as pl
import pytest

import voxpop as vp
from voxpop.privacy.composition import total_of
from voxpop.privacy.planned import with_record

pytestmark = pytest.mark.usefixtures("fixed_secrets")

BUDGET = ["--epsilon", 4, "--delta", "1e-6"]
CALL = ["posts.parquet", "--user", "author", "--text", "body", *BUDGET]


@pytest.fixture
def posts(tmp_path):
    """Write a table with two words that 500 users share and one word of a single user."""
    frame = pl.DataFrame({"author": range(500), "body": ["Tea, milk!"] * 499 + ["tea milk unheard"]})
    frame.write_parquet(tmp_path / "posts.parquet")
    return tmp_path / "posts.parquet"


def test_the_command_releases_and_saves(voxpop, posts, tmp_path):
    """The shared words are released, printed with their guarantee and saved, but the word of one user is not."""
    code, out, err = voxpop("items", *CALL, "-o", "words")
    assert (code, err) == (0, "")
    assert list(vp.load(tmp_path / "words")) == ["milk", "tea"]
    assert "Released 2 items." in out
    assert "milk, tea" in out
    assert "(4, 1e-06)-DP, one user added or removed" in out
    assert f"Saved to {tmp_path / 'words'}" in out
    assert "unheard" not in out


def test_output_contains_no_private_data(voxpop, posts, tmp_path):
    """Neither the printed object nor the saved record contains the number of users, rows or distinct items."""
    content = voxpop("items", *CALL, "-o", "words", "--json").json
    plan = vp.Items().plan(vp.Budget(4, 1e-6))
    # The release contains the limit that it chose privately, and the rounds of this limit.
    ran = with_record(plan, passes=(*plan.passes, plan.passes[0].entry(content["plan"]["max_items_per_user"])))
    assert content == {
        "released": 2,
        "statement": str(plan.guarantee),
        "guarantee": plan.guarantee.to_dict(),
        "total": total_of([(plan.guarantee, None)]).to_dict(),
        "plan": ran.to_dict(),
        "folder": str(tmp_path / "words"),
    }
    record = json.loads((tmp_path / "words" / "release.json").read_text(encoding="utf-8"))
    assert record["plan"] == content["plan"]


def test_the_executed_plan_contains_the_options(voxpop, posts):
    """The executed plan contains every option of the mechanism."""
    flags = ["--max-items-per-user", 7, "--min-users", 20]
    plan = voxpop("items", *CALL, *flags, "-o", "words", "--json").json["plan"]
    expected = {"max_items_per_user": 7, "min_users": 20}
    assert {name: plan[name] for name in expected} == expected


def test_a_seeded_release_is_reproducible_and_marked(voxpop, posts, tmp_path):
    """The same seed gives the same files. Output and files are marked as not private."""
    first = voxpop("items", *CALL, "--seed", 1, "-o", "one")
    content = voxpop("items", *CALL, "--seed", 1, "-o", "two", "--json").json
    assert "NOT PRIVATE" in first.out
    assert "NOT PRIVATE" in content["statement"]
    for name in ("release.parquet", "release.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_several_files_are_read_as_one_table(voxpop, tmp_path):
    """Several files are read as one table, and a column of lists can contain items or tokens."""
    for number in (0, 1):
        users = range(number * 300, number * 300 + 300)
        frame = pl.DataFrame({"who": users, "what": [["Tea", "milk, oat"]] * 300})
        frame.write_parquet(tmp_path / f"part{number}.parquet")
    for column in ("--items", "--tokens"):
        files, into = ["part0.parquet", "part1.parquet"], ["-o", "out", "--overwrite", "--json"]
        content = voxpop("items", *files, "--user", "who", column, "what", *BUDGET, *into).json
        assert content["released"] == 2
        assert list(vp.load(tmp_path / "out")) == ["Tea", "milk, oat"]


@pytest.mark.parametrize(
    ("tokenizer", "word"), [("whitespace", "Tea,"), ("regex:[a-z]+!", "milk!"), ("characters", "t")]
)
def test_the_tokenizer_option_determines_the_words(voxpop, posts, tmp_path, tokenizer, word):
    """Different tokenisers give different words."""
    assert voxpop("items", *CALL, "--tokenizer", tokenizer, "-o", "words").code == 0
    assert word in vp.load(tmp_path / "words")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["posts.parquet", "--user", "writer", "--text", "body", *BUDGET], ['"writer"', '"author"', '"body"']),
        (["posts.parquet", "--user", "author", "--text", "words", *BUDGET], ['"words"', '"author"', '"body"']),
        (["posts.parquet", "--user", "author", *BUDGET], ["--text, --tokens, --items, --sequence", '"body"']),
        ([*CALL, "--items", "body"], ["only one of", "--text and --items"]),
        (["posts.parquet", "--text", "body", *BUDGET], ["--user is missing", '"author"']),
        ([*CALL, "--tokenizer", "regex:("], ["regex:(", "must be a name or a regular expression"]),
        (["nowhere.parquet", "--user", "author", "--text", "body", *BUDGET], ["nowhere.parquet"]),
        (["posts.parquet", "--user", "author", "--text", "body", "--epsilon", 4], ["--delta is missing", "1e-7"]),
        ([*CALL, "--tokenizer", "syllables"], ["syllables", "words"]),
    ],
)
def test_wrong_calls_give_advice(voxpop, posts, tmp_path, arguments, expected):
    """A wrong call or unsuitable data exits with code 2 and one line of advice, and saves nothing."""
    complaint = voxpop("items", *arguments, "-o", "words").complaint
    assert all(word in complaint for word in expected)
    assert not (tmp_path / "words").exists()


def test_a_missing_output_option_is_reported(voxpop, posts):
    """Without `-o`, the command does not run."""
    assert "--output is missing. Name the folder" in voxpop("items", *CALL).complaint
    assert "-o has no value. Folder to save to. See `voxpop items" in voxpop("items", *CALL, "-o").complaint


CONTENTS = "--text, --tokens, --items or --sequence COLUMN"
BOTH, FOLDER = ["--epsilon EPSILON", "--delta DELTA"], "--output DIR"


@pytest.mark.parametrize(
    ("arguments", "missing"),
    [
        (["items"], ["SOURCE (files or folders)", "--user COLUMN", CONTENTS, *BOTH, FOLDER]),
        (["items", "posts.parquet"], ["--user COLUMN", CONTENTS, *BOTH, FOLDER]),
        (["ngrams", "posts.parquet", "--user", "author", "--epsilon", 1], [CONTENTS, "--delta DELTA", FOLDER]),
        (["heavy-hitters", "posts.parquet", "--text", "body", "-o", "x"], ["--user COLUMN", *BOTH]),
        (["sequences", "posts.parquet", "--alphabet", "a,b"], ["--user COLUMN", CONTENTS, "--epsilon EPSILON", FOLDER]),
        (["sequences", "posts.parquet", "--alphabet", "find"], ["--user COLUMN", CONTENTS, *BOTH, FOLDER]),
        (["profile", "posts.parquet"], ["--user COLUMN", *BOTH, FOLDER]),
        (["count", "words", "posts.parquet"], ["--user COLUMN", CONTENTS, *BOTH]),
        (["top", "words", "--user", "author", "--text", "body"], ["SOURCE (files or folders)", *BOTH]),
    ],
)
def test_all_missing_arguments_are_listed_in_one_message(voxpop, posts, arguments, missing):
    """The message also lists the columns of the source, if a source is given."""
    complaint = voxpop(*arguments).complaint
    listed = f"These arguments are missing: {'; '.join(missing)}. See `voxpop {arguments[0]} --help`."
    assert listed in complaint
    assert ('posts.parquet has the columns "author"' in complaint) == ("posts.parquet" in arguments)


def test_an_event_log_needs_no_column_options(voxpop, tmp_path):
    """The columns of an event log have standard names, so only the other arguments are missing."""
    names = {"case:concept:name": ["1"], "concept:name": ["a"], "time:timestamp": ["2026-11-22"]}
    pl.DataFrame(names).write_csv(tmp_path / "log.csv")
    complaint = voxpop("items", "log.csv").complaint
    assert f"missing: {'; '.join([*BOTH, FOLDER])}. See" in complaint


def test_a_misspelt_option_is_named_instead_of_the_missing_one(voxpop, posts):
    complaint = voxpop("items", "posts.parquet", "--usr", "author", "--txt", "body", *BUDGET, "-o", "x").complaint
    assert "Unknown option: --usr. Did you mean --user?" in complaint


def test_the_folder_is_checked_before_the_data(voxpop, tmp_path):
    """The command rejects an unsuitable output folder before it opens the source and spends the budget."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    complaint = voxpop("items", "nowhere.parquet", *CALL[1:], "-o", "full").complaint
    assert "full contains files and is not a release" in complaint


def test_invalid_utf8_is_a_user_error(voxpop, tmp_path):
    """Bytes that are not UTF-8 cause exit code 2 and a message that quotes no data."""
    (tmp_path / "posts.csv").write_bytes(b"author,body\n1,secret \xff word\n")
    complaint = voxpop("items", "posts.csv", *CALL[1:], "-o", "words").complaint
    assert "posts.csv" in complaint
    assert "secret" not in complaint


@pytest.mark.slow  # the next test runs the demo in the process of the test
@pytest.mark.jit
def test_the_demo_releases_phrases(tmp_path):
    """The demo releases and completes phrases of the standard library.

    The test allows three times the usual 20 seconds.
    """
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from voxpop.cli import main; sys.exit(main(['demo']))"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - begun
    print(f"voxpop demo: {seconds:.1f} s")
    assert (done.returncode, done.stderr) == (0, "")
    assert seconds < 60
    release = vp.load(tmp_path / "demo-phrases")
    assert len(release) > 50
    assert ("the",) in release
    assert max(map(len, release)) >= 3
    assert "each module is one user" in done.stdout
    assert "The first run on a machine compiles" in done.stdout
    assert f"Released {len(release):,} grams" in done.stdout
    assert "all rows of one module" in done.stdout
    assert f"Saved to {tmp_path / 'demo-phrases'}" in done.stdout
    assert "standard library" in (tmp_path / "demo-phrases" / "report.html").read_text()
    shown = done.stdout.split("The longest:\n")[1].split("\n\n")[0].splitlines()
    assert {tuple(line.split()) for line in shown} <= {*release}
    assert max(map(len, release)) == len(shown[0].split())
    for line in done.stdout.split("predicted from the released phrases:\n")[1].split("\n\n")[0].splitlines():
        begun, _, offers = line.strip().partition(" ... ")
        assert [each.token for each in release.complete([*begun.split()], 5)] == offers.split(", ")


@pytest.mark.jit
def test_the_demo_prints_json(voxpop, tmp_path):
    """`demo --json -o` prints one object and saves to the given folder."""
    content = voxpop("demo", "--json", "-o", "here").json
    assert content["released"] == len(vp.load(tmp_path / "here"))
    assert content["data"].endswith("each module is one user")
    assert content["guarantee"]["private"] is True


SAID = ["--title", "Words", "--dataset", "Posts", "--purpose", "keyboard", "--operator", "Ann"]


def test_the_report_contains_the_texts_of_the_operator(voxpop, posts, tmp_path):
    """The report contains the given texts and the date, and the output states that no ledger was charged."""
    out = voxpop("items", *CALL, "-o", "words", *SAID).out
    assert "No ledger was charged" in out
    about = vp.load(tmp_path / "words").metadata
    assert (about.title, about.dataset, about.purpose, about.operator) == ("Words", "Posts", "keyboard", "Ann")
    assert about.date == datetime.date.today().isoformat()
    assert "title" in voxpop("items", *CALL, "-o", "other", "--title", "x" * 501).complaint


def test_the_charged_ledger_entry_is_reported(voxpop, posts, tmp_path):
    """The output and the saved metadata contain the entry and the budget of the ledger."""
    voxpop("ledger", "init", "team.ledger", "--dataset", "Posts", "--epsilon", 8, "--delta", "1e-5")
    out = voxpop("items", *CALL, "-o", "words", "--ledger", "team.ledger", "--dataset", "Posts").out
    assert 'Ledger: entry 1 of "Posts", budget (8, 1e-05).' in out
    assert str(vp.load(tmp_path / "words").metadata.ledger) == 'entry 1 of "Posts", budget (8, 1e-05)'


def test_large_epsilon_and_delta_cause_warnings(voxpop, posts):
    """Epsilon 40 and delta 0.01 each cause a warning."""
    numbers = ["--epsilon", 40, "--delta", 0.01]
    out = voxpop("items", *CALL[: CALL.index("--epsilon")], *numbers, "--max-items-per-user", 1, "-o", "words").out
    assert "Caution: Epsilon 40 " in out
    assert "Caution: Delta 0.01 " in out


def test_the_delimiter_and_encoding_options_are_used(voxpop, tmp_path):
    """Explicit options override detection, and the name "tab" denotes a tab."""
    for name, mark in (("tab", "\t"), ("~", "~")):
        rows = [f"who{mark}body", *(f"{number}{mark}café" for number in range(600))]
        (tmp_path / "posts.csv").write_bytes("\n".join(rows).encode("cp1252"))
        call = ["items", "posts.csv", "--user", "who", "--text", "body", *BUDGET, "--delimiter", name]
        assert "one of the first 100 rows " in voxpop(*call, "-o", "words").complaint
        assert "row 1 " in voxpop(*call, "--exact", "-o", "words").complaint
        assert voxpop(*call, "--encoding", "cp1252", "-o", "good").code == 0
        assert list(vp.load(tmp_path / "good")) == ["café"]
        shutil.rmtree(tmp_path / "good")
