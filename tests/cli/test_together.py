"""`voxpop together`: several data sets about the same people, one budget, one entry of a ledger, a folder for each."""

import polars as pl
import pytest

import voxpop as vp

pytestmark = pytest.mark.usefixtures("fixed_secrets")

SPEND = ["--epsilon", 2, "--delta", "1e-8"]
FILE = """
[words]
source = "posts.parquet"
user = "author"
text = "body"

[places]
source = ["where.parquet"]
user = "who"
items = "place"
"""


@pytest.fixture
def people(tmp_path):
    """Two tables about the same 3,000 people, and a file that names them."""
    pl.DataFrame({"author": range(3000), "body": ["tea with milk", "tea"] * 1500}).write_parquet(
        tmp_path / "posts.parquet"
    )
    pl.DataFrame({"who": range(3000), "place": [7, 8] * 1500}).write_parquet(tmp_path / "where.parquet")
    (tmp_path / "people.toml").write_text(FILE)
    return tmp_path / "people.toml"


def test_each_is_saved_under_its_name(voxpop, people, tmp_path):
    """With types of its own, and with one guarantee for all of them, which the report states."""
    code, out, err = voxpop("together", "people.toml", *SPEND, "-o", "found")
    assert (code, err) == (0, "")
    assert vp.load(tmp_path / "found" / "words").to_list() == ["milk", "tea", "with"]
    places = vp.load(tmp_path / "found" / "places")
    assert places.to_list() == [7, 8]
    assert places.plan.data_sets == ["words", "places"]
    assert "words: Released 3 items." in out
    assert "places: Released 2 items." in out
    assert out.count("(2, 1e-08)-DP") == 1
    assert "It covers all data sets together" in out
    assert f"Saved to {tmp_path / 'found'}. The report is report.html of each folder" in out
    page = (tmp_path / "found" / "places" / "report.html").read_text(encoding="utf-8")
    assert "One guarantee covers words, places together" in page
    assert places.about.title == "places"


def test_show_shows_each(voxpop, people):
    """As it shows other releases, with the names of all data sets."""
    assert voxpop("together", "people.toml", *SPEND, "-o", "found").code == 0
    out = voxpop("show", "found/words").out
    assert "Released 3 items." in out
    assert "for words, places together" in out


def test_as_json(voxpop, people, tmp_path):
    """One object: the guarantee and the plan once, a number and a folder for each."""
    shown = voxpop("together", "people.toml", *SPEND, "-o", "found", "--json").json
    plan = vp.SetUnion().plan_each(["words", "places"], vp.Budget(2, 1e-8))
    assert shown["plan"] == plan.to_dict()
    assert shown["guarantee"] == plan.guarantee.to_dict()
    assert shown["data_sets"] == {
        "words": {"released": 3, "folder": str(tmp_path / "found" / "words")},
        "places": {"released": 2, "folder": str(tmp_path / "found" / "places")},
    }


def test_a_ledger_is_charged_once_and_named_in_every_report(voxpop, people, tmp_path):
    """And too little budget is refused before anything is read."""
    vp.Ledger(tmp_path / "team.json").open("people", vp.Budget(3, 1e-6), create=True)
    call = ["together", "people.toml", *SPEND, "--ledger", "team.json", "--dataset", "people"]
    assert 'Ledger: entry 1 of "people".' in voxpop(*call, "-o", "found").out
    for name in ("words", "places"):
        assert vp.load(tmp_path / "found" / name).about.ledger == 'entry 1 of "people"'
    assert len(vp.Ledger(tmp_path / "team.json").account("people").entries) == 1
    assert "Not enough budget left" in voxpop(*call, "-o", "again").complaint
    assert not (tmp_path / "again").exists()


def test_the_plan_reads_nothing(voxpop, people, tmp_path):
    """Neither tables nor folders; options of adaptive rounds reach it."""
    for name in ("posts.parquet", "where.parquet"):
        (tmp_path / name).unlink()
    call = ["--limit", 7, "--min-users", 40]
    out = voxpop("together", "people.toml", *SPEND, *call, "-o", "found", "--plan").out
    union = vp.SetUnion(limit=7, min_users=40)
    assert out == f"{union.plan_each(['words', 'places'], vp.Budget(2, 1e-8))}\n"
    assert not (tmp_path / "found").exists()


def test_a_promise_is_compared_with_a_plan_for_as_many_data_sets():
    """What items need without it is of all data sets, too."""
    both = vp.SetUnion(min_users=30).plan_each(["one", "two"], vp.Budget(2, 1e-8)).to_dict()
    plain = vp.SetUnion().plan_each(["one", "two"], vp.Budget(2, 1e-8)).to_dict()
    assert both["users_needed_without_promise"] == plain["users_needed"]


def test_a_seed_repeats_and_is_marked(voxpop, people, tmp_path):
    """In every folder."""
    for folder in ("one", "two"):
        assert "NOT PRIVATE" in voxpop("together", "people.toml", *SPEND, "-o", folder, "--seed", 3).out
    for name in ("words", "places"):
        files = [(tmp_path / folder / name / "release.parquet").read_bytes() for folder in ("one", "two")]
        assert files[0] == files[1]


def test_what_is_there_is_not_replaced_unasked(voxpop, people, tmp_path):
    """Before anything is read or spent; one folder of several is enough."""
    assert voxpop("together", "people.toml", *SPEND, "-o", "found").code == 0
    (tmp_path / "posts.parquet").unlink()
    assert "already holds" in voxpop("together", "people.toml", *SPEND, "-o", "found").complaint


def test_where_nothing_comes_out_the_plan_of_all_says_what_it_takes(voxpop, people, tmp_path):
    """Numbers of users for the noise of two data sets, not of one."""
    pl.DataFrame({"who": range(3000), "place": range(3000)}).write_parquet(tmp_path / "where.parquet")
    out = voxpop("together", "people.toml", *SPEND, "-o", "found").out
    users = vp.SetUnion().plan_each(["words", "places"], vp.Budget(4, 1e-8)).users_needed(0.9, per_user=10)
    assert f"epsilon 4: {users} users" in out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "contains no data set"),
        ("[words", "is not valid TOML"),
        ("[words]\nuser = 'author'", "must be a table with a source"),
        ("words = 3", "must be a table with a source"),
        ('["a/b"]\nsource = "posts.parquet"', "must consist of letters"),
        ('[words]\nsource = "posts.parquet"\nusers = "author"', "has the unknown key users"),
        ("[words]\nsource = 3", "a path, or a list of paths"),
        ("[words]\nsource = []", "a path, or a list of paths"),
        ('[words]\nsource = "posts.parquet"\nuser = "author"', "column of contents is missing"),
        ('[words]\nsource = "nowhere.parquet"\nuser = "author"\ntext = "body"', "nowhere.parquet"),
        ('[words]\nsource = "posts.parquet"\nuser = "nobody"\ntext = "body"', '"author"'),
    ],
)
def test_wrong_files_say_what_to_do(voxpop, people, tmp_path, text, said):
    """One line, and nothing saved."""
    people.write_text(text)
    assert said in voxpop("together", "people.toml", *SPEND, "-o", "found").complaint
    assert not (tmp_path / "found").exists()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["nowhere.toml", *SPEND], "nowhere.toml"),
        (["people.toml", "--epsilon", 2], "--delta"),
        (["people.toml", *SPEND, "--min-users", 0], "`min_users`"),
        (["people.toml", *SPEND, "--ledger", "team.json"], "--dataset"),
        (["people.toml", *SPEND, "--partitions", 3], "--engine spark"),
    ],
)
def test_wrong_calls_say_what_to_do(voxpop, people, wrong, said):
    """One line on standard error."""
    assert said in voxpop("together", *wrong, "-o", "found").complaint
