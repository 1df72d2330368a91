"""End-to-end tests of `voxpop sequences`."""

import json

import polars as pl
import pytest

import voxpop as vp

pytestmark = pytest.mark.usefixtures("fixed_secrets")

CALL = ["visits.parquet", "--user", "who", "--sequence", "pages"]
BUDGET = ["--epsilon", 4]
LETTERS = ["--alphabet", "a,b,c"]


@pytest.fixture
def visits(tmp_path):
    """Write a table of 900 users with short sequences of letters. The sequence of one user has an unknown symbol."""
    pages = [["a", "b"], ["a"], ["c", "a", "b", "b"]] * 299 + [["a"], ["b"], ["unheard"]]
    pl.DataFrame({"who": range(900), "pages": pages}).write_parquet(tmp_path / "visits.parquet")


def test_the_command_releases_saves_and_draws_sequences(voxpop, visits, tmp_path):
    """The command saves a model with its guarantee and the requested number of readable synthetic sequences."""
    code, out, err = voxpop("sequences", *CALL, *BUDGET, *LETTERS, "--synthesize", 50, "-o", "model")
    assert code == 0
    assert err.startswith("voxpop: fewer than 100 of the events are outside of the alphabet")
    assert err.count("\n") == 1
    model = vp.load(tmp_path / "model", vp.SequenceModel)
    assert model.alphabet == ("a", "b", "c")
    assert f"Released {len(model):,} noisy counts." in out
    assert "(4, 0)-DP, one user added or removed" in out
    assert "unheard" not in out
    drawn = pl.read_parquet(tmp_path / "model" / "synthetic.parquet")
    assert drawn.shape == (50, 2)
    vp.read(drawn, user="user", sequence="sequence")
    assert voxpop("sequences", *CALL, *BUDGET, *LETTERS, "-o", "model", "--overwrite").code == 0
    assert not (tmp_path / "model" / "synthetic.parquet").exists()


def test_json_contains_no_private_data(voxpop, visits, tmp_path):
    """The object contains the executed plan and no number of users."""
    options = ["--max-length", 3, "--max-gram", 2]
    content = voxpop("sequences", *CALL, *BUDGET, *LETTERS, *options, "-o", "model", "--json").json
    mechanism = vp.Sequences(3, 2, ["a", "b", "c"])
    assert content["plan"] == mechanism.plan(vp.Budget(4)).to_dict()
    assert content["statement"] == "(4, 0)-DP, one user added or removed"
    assert content["total"]["adaptive"] == content["guarantee"]
    assert "900" not in json.dumps({**content, "folder": ""})


@pytest.mark.jit
def test_the_alphabet_can_be_a_file_or_a_release(voxpop, visits, tmp_path):
    """A file has one symbol per line. With a released alphabet, the output includes the guarantee of both releases."""
    (tmp_path / "letters.txt").write_text("b\na\nc\n", encoding="utf-8")
    assert voxpop("sequences", *CALL, *BUDGET, "--alphabet", "letters.txt", "-o", "one").code == 0
    assert vp.load(tmp_path / "one", vp.SequenceModel).alphabet == ("a", "b", "c")
    items = ["visits.parquet", "--user", "who", "--items", "pages", "--epsilon", 2, "--delta", "1e-6", "-o", "words"]
    assert voxpop("items", *items).code == 0
    content = voxpop("sequences", *CALL, *BUDGET, "--alphabet", "words", "-o", "two", "--json").json
    assert content["total"]["adaptive"]["epsilon"] == 6
    assert 5 < content["total"]["fixed"]["epsilon"] <= 6
    assert content["total"]["fixed"]["delta"] == 1e-6
    statement = "All results together, if they are from the same users: (6, 1e-06)-DP"
    assert statement in voxpop("sequences", *CALL, *BUDGET, "--alphabet", "words", "-o", "two", "--overwrite").out


@pytest.mark.jit
def test_an_alphabet_is_found_under_one_guarantee(voxpop, visits, tmp_path):
    """The command charges one budget once.

    The plan, the saved model and the report list the cost of each step and the total.
    """
    find = ["--alphabet", "find", "--epsilon", 8, "--delta", "1e-6"]
    assert voxpop("ledger", "init", "team.ledger", "--dataset", "visits", "--epsilon", 10, "--delta", "1e-5").code == 0
    call = ["--ledger", "team.ledger", "--dataset", "visits", "-o", "model", "--json"]
    content = voxpop("sequences", *CALL, *find, *call).json
    assert content["statement"] == "(8, 1e-06)-DP, one user added or removed"
    assert content["total"]["adaptive"]["epsilon"] == 10  # the budget of the ledger
    assert content["total"]["fixed"] == content["guarantee"]
    assert (content["plan"]["passes"][0]["epsilon"], content["plan"]["epsilon_to_count"]) == (2, 6)
    assert (content["plan"]["epsilon"], content["plan"]["delta"]) == (8, 1e-6)
    assert content["plan"]["alphabet_size"] == 3
    account = voxpop("ledger", "show", "team.ledger", "--json").json["datasets"][0]
    assert account["used"]["plain"]["epsilon"] == 0.8
    assert account["used"]["gaussian"]["square"] > 1
    (entry,) = account["entries"]
    assert (entry["guarantee"]["epsilon"], entry["guarantee"]["delta"], entry["state"]) == (8, 1e-6, "finished")
    model = vp.load(tmp_path / "model", vp.SequenceModel)
    assert model.alphabet == ("a", "b", "c")
    assert model.plan.to_dict() == content["plan"]
    shown = voxpop("show", "model").out
    assert "(8, 1e-06)-DP" in shown
    assert "finding the alphabet: epsilon 2, delta 1e-06" in shown
    page = (tmp_path / "model" / "report.html").read_text(encoding="utf-8")
    assert "3 symbols was found in the same data with epsilon 2 and all of delta" in page
    assert "The alphabet is public" not in page
    asked = voxpop("ask", "model", "starts", "--json").json["answer"]
    assert {row["symbol"] for row in asked} == {"a", "b", "c"}


def test_the_plan_covers_finding_the_alphabet(voxpop):
    """The plan covers the search for the alphabet and the model, without any data."""
    planned = voxpop("plan", "sequences", "--alphabet", "find", "--epsilon", 2, "--delta", "1e-7").out
    assert "(2, 1e-07)-DP" in planned
    assert "finding the alphabet: epsilon 0.5, delta 1e-07" in planned
    assert "counting: epsilon 1.5" in planned


@pytest.mark.jit
def test_a_seeded_model_is_marked_as_not_private(voxpop, visits, tmp_path):
    """The same seed gives the same files. The output and the files are marked as not private."""
    calls = [voxpop("sequences", *CALL, *BUDGET, *LETTERS, "--seed", 1, "--synthesize", 5, "-o", n) for n in ("x", "y")]
    assert all("NOT PRIVATE" in call.out for call in calls)
    for name in ("grams.parquet", "model.json", "synthetic.parquet"):
        assert (tmp_path / "x" / name).read_bytes() == (tmp_path / "y" / name).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([*CALL, *BUDGET], ["alphabet", "public"]),
        ([*CALL, *LETTERS], ["--epsilon is missing"]),
        ([*CALL, *BUDGET, "--alphabet", "find"], ["--delta is missing", "--alphabet find"]),
        ([*CALL, *BUDGET, *LETTERS, "--delta", "1e-6"], ["--delta applies only to --alphabet find"]),
        ([*CALL[:3], *BUDGET, *LETTERS], ["--text, --tokens, --items, --sequence"]),
        ([*CALL, *BUDGET, "--alphabet", "a,a"], ["must be distinct"]),
        (["nowhere.parquet", *CALL[1:], *BUDGET, *LETTERS], ["nowhere.parquet"]),
    ],
)
def test_wrong_calls_give_advice(voxpop, visits, tmp_path, arguments, expected):
    """A wrong call exits with code 2 and one line of advice, and saves nothing."""
    complaint = voxpop("sequences", *arguments, "-o", "model").complaint
    assert all(word in complaint for word in expected)
    assert not (tmp_path / "model").exists()


def test_the_folder_is_checked_before_the_data(voxpop, tmp_path):
    """A folder with other files is rejected before the source is opened."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    complaint = voxpop("sequences", "nowhere.parquet", *CALL[1:], *BUDGET, *LETTERS, "-o", "full").complaint
    assert "not replaced" in complaint


def test_an_event_log_needs_no_column_options(voxpop, tmp_path):
    """Columns with standard names are found in XES files and in tables, with and without a column of persons."""
    events = "".join(
        f'<trace><string key="concept:name" value="c{case}"/><string key="who" value="p{case}"/>'
        f'<event><string key="concept:name" value="a"/><date key="time:timestamp" value="2026-01-0{case % 9 + 1}"/>'
        "</event></trace>"
        for case in range(300)
    )
    (tmp_path / "log.xes").write_text(f"<log>{events}</log>")
    for options in ([], ["--user", "case:who"], ["--other", "rest"]):
        call = voxpop(
            "sequences", "log.xes", *options, "--epsilon", 4, "--alphabet", "a,b", "-o", "model", "--overwrite"
        )
        assert call.code == 0, call.err
        assert ("each case is protected as one user" in call.err) is ("--user" not in options)
    assert vp.load(tmp_path / "model").alphabet == ("a", "b", "rest")
    pl.DataFrame({"person": ["p"], "activity": ["a"], "time": [1]}).write_csv(tmp_path / "log.csv")
    plain = ["--epsilon", 4, "--alphabet", "a,b", "-o", "other"]
    assert voxpop("sequences", "log.csv", *plain).code == 2
    assert voxpop("sequences", "log.csv", "--user", "person", *plain).code == 0
