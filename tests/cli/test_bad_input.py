"""Tests that wrong calls of every command print one line of advice, return the correct exit code and spend nothing."""

import os
import shutil

import polars as pl
import pytest

import voxpop as vp
from support.look import read_engine

COLUMNS = ["--user", "author", "--text", "body"]
BUDGET = ["--epsilon", 1, "--delta", "1e-8"]
EPSILON = ["--epsilon", 1, "--alphabet", "tea,milk"]
RELEASING = {
    "items": [*BUDGET, "--max-items-per-user", 1],  # options that make plans quick to compute
    "ngrams": [*BUDGET, "--max-length", 2, "--max-phrases-per-user", 2],
    "heavy-hitters": [*BUDGET, "--max-length", 2],
    "sequences": EPSILON,
}


@pytest.fixture
def posts(tmp_path):
    """Write valid, empty, truncated and unsuitable tables."""
    frame = pl.DataFrame({"author": range(400), "body": ["Tea, milk!"] * 400, "score": [0.5] * 400})
    frame.write_parquet(tmp_path / "posts.parquet")
    frame.clear().write_parquet(tmp_path / "empty.parquet")
    (tmp_path / "empty.csv").write_text("author,body\n")
    (tmp_path / "torn.parquet").write_bytes((tmp_path / "posts.parquet").read_bytes()[:300])
    (tmp_path / "notes.docx").write_text("x")
    lonely = pl.DataFrame({"author": range(9), "body": [f"word{i}" for i in range(9)]})
    lonely.write_parquet(tmp_path / "lonely.parquet")
    return tmp_path


def call(command, source="posts.parquet", columns=COLUMNS, options=None):
    return [command, source, *columns, *(RELEASING[command] if options is None else options), "-o", "out"]


@pytest.mark.parametrize("command", RELEASING)
@pytest.mark.parametrize(
    ("source", "columns", "words"),
    [
        ("nowhere.parquet", COLUMNS, ["nowhere.parquet", "check the path"]),
        ("torn.parquet", COLUMNS, ["torn.parquet", "not a complete Parquet file"]),
        ("notes.docx", COLUMNS, ["notes.docx", ".parquet"]),
        ("posts.parquet", ["--user", "autor", "--text", "body"], ['"autor"', 'Did you mean "author"?']),
        ("posts.parquet", ["--user", "author", "--text", "bdy"], ['"bdy"', 'Did you mean "body"?']),
        ("posts.parquet", ["--user", "score", "--text", "body"], ["posts.parquet", '"score"', "double"]),
        ("posts.parquet", ["--user", "author", "--text", "score"], ["posts.parquet", "strings", "double"]),
        ("posts.parquet", ["--user", "author", "--tokens", "body"], ["lists", '"body"']),
        ("posts.parquet", ["--text", "body"], ["--user is missing"]),
        (
            "posts.parquet",
            ["--user", "author"],
            ["content column is missing", "--text, --tokens, --items, --sequence"],
        ),
    ],
)
def test_invalid_sources_are_reported(voxpop, posts, command, source, columns, words):
    """The cases are missing, truncated and unsupported files, and missing, misspelt and mistyped columns."""
    complaint = voxpop(*call(command, source, columns)).complaint
    assert all(word in complaint for word in words)
    assert not (posts / "out").exists()


@pytest.mark.parametrize("command", RELEASING)
@pytest.mark.parametrize("epsilon", ["0", "-1", "inf", "nan", "four", "", None])
def test_invalid_epsilons_are_reported(voxpop, posts, command, epsilon):
    """The cases are zero, negative and infinite values, other strings, and no value."""
    others = ["--alphabet", "tea,milk"] if command == "sequences" else ["--delta", "1e-8"]
    given = [] if epsilon is None else ["--epsilon", epsilon]
    assert "epsilon" in voxpop(*call(command, options=[*given, *others])).complaint
    assert not (posts / "out").exists()


@pytest.mark.parametrize("command", ["items", "ngrams", "heavy-hitters"])
@pytest.mark.parametrize("delta", ["0", "1", "2", "-1e-7", "nan", "tiny", None])
def test_invalid_deltas_are_reported(voxpop, posts, command, delta):
    """The cases are zero, values of 1 and more, negative values, other strings, and no value."""
    given = [] if delta is None else ["--delta", delta]
    assert "delta" in voxpop(*call(command, options=["--epsilon", 1, *given])).complaint
    assert not (posts / "out").exists()


@pytest.mark.parametrize("command", RELEASING)
def test_unwritable_folders_are_reported(voxpop, posts, command, monkeypatch):
    """The cases are a file, a folder below a file, the current folder, and a folder without write permission.

    The error occurs before any data is read.
    """
    (posts / "file").write_text("")
    for folder, word in (
        ("file", "is a file"),
        ("file/deeper", "is a file"),
        (".", "working directory"),
    ):
        arguments = call(command, "nowhere.parquet")[:-1]
        assert word in voxpop(*arguments, folder).complaint
    monkeypatch.setattr("tempfile.mkdtemp", lambda **_: (_ for _ in ()).throw(PermissionError(13, "denied")))
    assert "you may not write" in voxpop(*call(command, "nowhere.parquet")).complaint


@pytest.mark.parametrize(
    ("command", "number"), [("items", "epsilon 2: "), ("ngrams", "epsilon 4: "), ("heavy-hitters", "epsilon 1: ")]
)
def test_data_without_shared_items_gives_an_empty_release(voxpop, posts, command, number):
    """If nine users have different words, the call succeeds and releases nothing.

    The printed numbers of required users depend only on the plan.
    """
    code, out, err = voxpop(*call(command, "lonely.parquet"))
    assert (code, err) == (0, "")
    assert "Released 0 items." in out
    assert "No item had enough users" in out
    assert number in out
    assert "word" not in out
    other = posts / "lonely.parquet"
    pl.read_parquet(other).head(3).write_parquet(other)
    assert voxpop(*call(command, "lonely.parquet"), "--overwrite").out == out


def test_the_summaries_of_no_rows_and_of_nine_users_are_equal(voxpop, posts):
    """Two tables without released items give the same output."""
    few, *empty = (
        voxpop(*call("items", source), "--overwrite") for source in ("lonely.parquet", "empty.parquet", "empty.csv")
    )
    assert few.code == 0
    assert empty == [few, few]


def test_users_needed_equal_the_numbers_of_the_plan(voxpop, posts):
    """The printed numbers of users needed are those of the plan."""
    out = voxpop(*call("items", "lonely.parquet")).out
    for epsilon in (1, 2, 4):
        users = vp.Items(1).plan(vp.Budget(epsilon, 1e-8)).users_needed(0.9, per_user=10)
        assert f"epsilon {epsilon}: {users:,} users" in out


def test_an_alphabet_that_is_not_a_file_is_reported(voxpop, posts):
    """A misspelt file name is an error and not a symbol."""
    complaint = voxpop(*call("sequences", options=["--epsilon", 1, "--alphabet", "symbls.txt"])).complaint
    assert "no such file" in complaint


@pytest.mark.parametrize(
    "name",
    [
        "voxpop.engine.local.read.build_corpus",
        "voxpop.privacy.gate.rounds.score_step",
        "voxpop.release.saving.replace_folder",
    ],
)
def test_ctrl_c_ends_the_run_without_files(voxpop, posts, name, monkeypatch):
    """An interrupt while reading, releasing or saving causes one line of output, exit code 130 and no partial files.

    See also `test_a_real_ctrl_c_ends_the_command`.
    """

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(name, stop)
    assert voxpop(*call("items")) == (130, "", "voxpop: stopped.\n")
    assert not [each for each in os.listdir(posts) if each.startswith((".", "out"))]


@pytest.fixture(scope="module")
def saved_words(tmp_path_factory):
    """Save a release once for the module."""
    folder = tmp_path_factory.mktemp("saved") / "words"
    corpus = read_engine(pl.DataFrame({"author": range(400), "body": ["Tea, milk!"] * 400}), user="author", text="body")
    vp.Items().release(corpus, vp.Budget(2, 1e-8)).save(folder)
    return folder


@pytest.fixture
def words(posts, saved_words):
    """Copy the saved release into the folder of the tables."""
    return shutil.copytree(saved_words, posts / "words")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["count", "nowhere", "posts.parquet", *COLUMNS, *BUDGET], "nowhere does not exist"),
        (["count", "words", "nowhere.parquet", *COLUMNS, *BUDGET], "nowhere.parquet"),
        (["count", "words", "posts.parquet", *COLUMNS, "--epsilon", 1, "--delta", 0], "delta"),
        (["count", "words", "posts.parquet", *COLUMNS, "--epsilon", 0, "--delta", "1e-8"], "epsilon"),
        (["count", "words", "posts.parquet", *COLUMNS], "missing: --epsilon EPSILON; --delta DELTA. See"),
        (["count", "words", "posts.parquet", *COLUMNS, "--delta", "1e-8"], "--epsilon is missing"),
        (["count", "words", "posts.parquet", *COLUMNS, *BUDGET, "--counted-in-full", "x"], "--counted-in-full"),
        (["count", "words", "posts.parquet", *COLUMNS, *BUDGET, "--counted-in-full", "0"], "`counted_in_full`"),
        (["count", "words", "posts.parquet", *COLUMNS, *BUDGET, "--ledger", "team.ledger"], "--dataset"),
        (["count", "words", "posts.parquet", *COLUMNS, *BUDGET, "--dataset", "posts"], "--ledger"),
        (["top", "words", "posts.parquet", *COLUMNS, *BUDGET, "--dataset", "posts"], "--ledger"),
        (["count", "words"], "missing: SOURCE (files or folders); --user COLUMN; --text"),
        (["ledger", "show", "team.ledger"], "does not exist"),
        (["ledger", "init", "team.ledger", *BUDGET], "--dataset is missing"),
        (["ledger", "init", "team.ledger", "--dataset", "posts"], "--epsilon is missing"),
        (["ledger", "init", "no/team.ledger", "--dataset", "posts", *BUDGET], "not a folder"),
        (["ledger", "show"], "FILE"),
        (["ledger", "sow"], "sow"),
        (
            ["items", "posts.parquet", *COLUMNS, *BUDGET, "-o", "x", "--ledger", "team.ledger", "--dataset", "p"],
            "does not exist",
        ),
        (
            ["items", "posts.parquet", *COLUMNS, *BUDGET, "-o", "x", "--ledger", "t", "--dataset", "p", "--seed", 1],
            "--seed",
        ),
        (["show", "posts.parquet"], "contains no release: it is a file"),
        (["export", "posts.parquet", "-o", "x.txt"], "contains no release: it is a file"),
    ],
)
def test_invalid_calls_with_saved_releases_or_ledgers_are_reported(voxpop, words, arguments, expected):
    """The cases are missing files, missing or invalid options, and ledgers that were not created."""
    assert expected in voxpop(*arguments).complaint


def test_counts_are_released_from_the_shell(voxpop, words):
    """Counts are printed with their error, saved in the folder of the release, and charged to the ledger."""
    assert voxpop("ledger", "init", "team.ledger", "--dataset", "posts", "--epsilon", 3, "--delta", "1e-6").code == 0
    paid = ["--ledger", "team.ledger", "--dataset", "posts"]
    content = voxpop("count", "words", "posts.parquet", *COLUMNS, *BUDGET, *paid, "--json").json
    assert content["counted"] == 2
    assert {tuple(row["gram"]) for row in content["first"]} == {("tea",), ("milk",)}
    assert vp.load(words, vp.Counts).error == content["error"]
    assert "standard error" in voxpop("count", "words", "posts.parquet", *COLUMNS, *BUDGET, *paid, "--no-save").out
    (dataset,) = voxpop("ledger", "show", "team.ledger", "--json").json["datasets"]
    assert [entry["mechanism"] for entry in dataset["entries"]] == ["counts", "counts"]
    assert "budget used, by three methods of composition" in voxpop("ledger", "show", "team.ledger").out


def test_a_full_ledger_raises_an_error_before_data_is_read(voxpop, posts):
    """The ledger is checked before the source is opened."""
    voxpop("ledger", "init", "team.ledger", "--dataset", "posts", "--epsilon", 0.5, "--delta", "1e-6")
    for command in RELEASING:
        paid = ["--ledger", "team.ledger", "--dataset", "posts"]
        assert "Not enough budget left" in voxpop(*call(command, "nowhere.parquet"), *paid).complaint


@pytest.mark.parametrize("budget", [4, (4, 1e-7), None, "4", {"epsilon": 4}])
def test_values_that_are_not_budgets_are_rejected(posts, budget):
    """In Python, every mechanism raises an error that names the required type."""
    for mechanism in (vp.Items(), vp.NGrams(), vp.HeavyHitters(), vp.Sequences(alphabet=["a"])):
        with pytest.raises(vp.errors.InputError, match=r"`budget` must be a voxpop\.Budget"):
            mechanism.plan(budget)


@pytest.mark.parametrize("corpus", ["posts.parquet", pl.DataFrame({"author": [1]}), None])
def test_invalid_corpora_are_rejected(posts, corpus):
    """In Python, the error explains that a path or a table must be read first."""
    budget = vp.Budget(1, 1e-8)
    quick = (
        vp.Items(1),
        vp.papers.SetUnion(2, "policy-gaussian", 5.0, "joint"),
        vp.papers.DPNE(2, 2),
        vp.HeavyHitters(max_length=2),
    )
    for mechanism in (*quick, vp.Sequences(alphabet=["a"])):
        with pytest.raises(vp.errors.InputError, match=r"Read it first: voxpop\.read"):
            mechanism.release(corpus, budget)
