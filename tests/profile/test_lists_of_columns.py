"""Tests of profiles with public lists of values for some columns."""

import json
from dataclasses import replace
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pytest

import voxpop as vp
from naive.engine import NaiveEngine
from support.look import corpus_documents
from voxpop.cli import main
from voxpop.engine.contract import check_engine
from voxpop.errors import InputError
from voxpop.mechanisms.profile.mechanism import profiling_of
from voxpop.privacy.gate.rounds import AdaptiveGate, PublicParts
from voxpop.reading.arrow import text_buffers
from voxpop.release.known import KnownColumns
from voxpop.release.profile import contradictions

pytestmark = pytest.mark.usefixtures("fixed_secrets")

BUDGET = vp.Budget(1, 1e-8)
QUIET = vp.ReadOptions(progress=False)
LISTS = {
    "city": [f"city {number}" for number in range(150)] + ["a|b\\", "only"],
    "year": [2020, 1999],
    "note": ["Thank", "zebra", "two words"],
}
CHOSEN = {"user": "who", "columns": ["city", "year"], "text": ["note"]}


def table(users=3000):
    """Return rows with 90 cities. Each city has about 33 users."""
    rows = [(user, f"city {user % 90}", 2020 + user % 3, "Thank you") for user in range(users)]
    return pl.DataFrame(rows, schema=["who", "city", "year", "note"], orient="row")


EXTRA = pl.DataFrame({"who": [10**6] * 2, "city": ["only", "unlisted"], "year": [1999, 2020], "note": ["zebra", "new"]})


@pytest.fixture(scope="module")
def profiles():
    """Return profiles without and with lists."""
    return [vp.profile(table(), **CHOSEN, known=each, budget=BUDGET, options=QUIET, seed=4) for each in (None, LISTS)]


def test_listed_values_need_fewer_users(profiles):
    """More cities are released with a list.

    The plan contains the number of users that listed values need, and the marks of listed values agree with the lists.
    """
    without, with_lists = profiles
    assert 2 * len(without.columns["city"]) < len(with_lists.columns["city"])
    assert without.columns["city"].known is None
    for name, each in with_lists.columns.items():
        listed = {str(value).lower() for value in LISTS[name]}
        assert each.known.tolist() == [str(value).lower() in listed for value in each]
    plan = with_lists.plan.to_dict()
    pairs = zip(plan["users_needed"], plan["known"]["users_needed"], strict=True)
    assert all(known["users"] < unknown["users"] for unknown, known in pairs)
    assert "users, known" in str(with_lists.plan)
    assert "157 values are known from a public list" in str(with_lists.plan)


def test_explanations_and_reports_mark_listed_values(profiles):
    """A listed value needs fewer users than other values, and reports contain the marks."""
    profile, city = profiles[1], profiles[1].columns["city"]
    listed, other = city.explain(city.to_list()[0]), city.explain("nowhere")
    assert "on the public list" in " ".join(listed.reasons)
    assert all(
        known["users_95"] < unknown["users_95"] for known, unknown in zip(listed.needed, other.needed, strict=True)
    )
    for each in (profile, city):
        facts = each.report().html.split('id="facts">')[1].split("</script>")[0]
        assert json.loads(facts)["grams"]["known"] is True
    assert "A known value of one user was released with probability" in profile.report().html


def parts_of(monkeypatch, rows, change=lambda parts, gate: parts):
    """Return the items of the list that the gate receives in a release of rows."""
    seen, original = [], AdaptiveGate.round

    def watched(self, number, listed=None):
        if number:
            return original(self, number, listed)
        changed = PublicParts(change(listed.parts, self), text_buffers)
        seen.append(sorted(item for part in changed.parts for item in part.to_pylist()))
        return original(self, number, changed)

    with monkeypatch.context() as patch:
        patch.setattr(AdaptiveGate, "round", watched)
        profiling = vp.ProfileMechanism.of(rows, **CHOSEN, known=LISTS)
        profiling.plan(BUDGET).release(profiling.read(rows, user="who", options=QUIET), seed=2)
    return seen[0]


def held_only(parts, gate):
    """Return a deliberately broken list, which contains only values with users."""
    held = set(gate._pools._vocabulary.to_pylist())
    return [part.filter(pa.array([each in held for each in part.to_pylist()], pa.bool_())) for part in parts]


def test_neighbours_use_the_same_list(monkeypatch):
    """The lists are the same with and without the extra user, even for values that only this user has.

    In the broken variant, they differ.
    """
    rows = table(600), pl.concat([table(600), EXTRA])
    one, two = (parts_of(monkeypatch, each) for each in rows)
    expected = [f"0|city {number}" for number in range(150)] + ["0|a\\|b\\\\", "0|only"]
    assert one == two == sorted([*expected, "1|1999", "1|2020", "2|thank", "2|zebra"])
    one, two = (parts_of(monkeypatch, each, held_only) for each in rows)
    assert one != two


def test_every_engine_releases_the_same_profile():
    """The engines in memory and within a memory limit and the reference engine agree, even on joint values."""
    rows = table(900)
    profiling = vp.ProfileMechanism.of(rows, **CHOSEN, joint=[("city", "year")], known=LISTS)
    plan = profiling.plan(vp.Budget(3, 1e-6))
    corpus = check_engine(profiling.read(rows, user="who", options=QUIET))
    limited = profiling.read(rows, user="who", options=vp.ReadOptions(memory="3GiB"))
    users = {int(key): held for key, held in zip(corpus.user_key, corpus_documents(corpus), strict=True)}
    naive = NaiveEngine(users, token_source=corpus.token_source)
    found = [plan.release(each, seed=5) for each in (corpus, naive, limited)]
    assert found[0] == found[1] == found[2]
    assert found[0].columns["city"].known.any()


def test_loaded_profiles_have_the_saved_marks(profiles, tmp_path):
    """A loaded profile equals the saved one, but a plan from saved settings runs only if the lists are given again."""
    profiles[1].save(tmp_path / "profile")
    again = vp.load(tmp_path / "profile", vp.Profile)
    assert again == profiles[1]
    assert again.columns["note"].known.tolist() == profiles[1].columns["note"].known.tolist()
    assert main(["verify", str(tmp_path / "profile")]) == 0
    saved = again.plan.to_dict()["known"]
    profiling = vp.ProfileMechanism.of(table(), **CHOSEN, known=saved)
    assert profiling.plan(BUDGET) == vp.ProfileMechanism.of(table(), **CHOSEN, known=LISTS).plan(BUDGET)
    with pytest.raises(InputError, match="Give the lists again"):
        profiling.plan(BUDGET).release(profiling.read(table(), user="who", options=QUIET))


@pytest.mark.parametrize("column", ["city", "year", "note"])
def test_verification_detects_other_marks(profiles, column):
    """Verification rejects a column with more marks than listed values, and a table without marks."""
    plan, table = profiles[1].plan, profiles[1].table
    assert contradictions(profiles[1], plan) == []
    number = table["set"].to_numpy() == profiles[1].keys.names[column]
    items = pa.array([str(5000 + row) for row in range(200)], pa.large_string())
    marked = pa.table({"set": pa.array([profiles[1].keys.names[column]] * 200, pa.int32()), "item": items})
    marked = marked.append_column("known", pa.array([True] * 200)).append_column("users", pa.array([9] * 200))
    others = table.filter(pa.array(~number))
    forged = replace(profiles[1], table=pa.concat_tables([others, marked.select(table.column_names)]))
    assert "the mark of a value on a list" in contradictions(forged, plan)
    assert contradictions(replace(profiles[1], table=table.drop_columns(["known"])), plan) == ["the set of columns"]
    assert contradictions(profiles[1], profiles[0].plan) == ["the set of columns"]


def test_listed_strings_are_converted_to_the_type_of_the_column():
    """For example, a price of "1.50" becomes the item 1.5."""
    rows = pl.DataFrame({"who": range(100), "price": [Decimal("1.50")] * 100, "paid": [True] * 100})
    lists = {"price": ["1.50", "1.5", "2"], "paid": ["True", "false"]}
    known = vp.ProfileMechanism.of(rows, user="who", columns=["price", "paid"], known=lists).known_columns
    keys = vp.ProfileMechanism.of(rows, user="who", columns=["price", "paid"]).keys
    found = sorted(item for part in known.parts(keys, "words") for item in part.to_pylist())
    assert found == sorted(
        f"{keys.names[name]}|{each}"
        for name, each in [("price", "1.5"), ("price", "2"), ("paid", "true"), ("paid", "false")]
    )
    with pytest.raises(InputError, match="values that do not have the column type"):
        vp.ProfileMechanism.of(rows, user="who", columns=["price"], known={"price": ["much"]})


def test_columns_can_have_the_names_of_fields_of_a_saved_list():
    """Lists by column are distinguished from the lists of a saved plan."""
    rows = pl.DataFrame({"who": range(10), "fingerprint": ["a"] * 10, "size": ["b"] * 10, "columns": ["c"] * 10})
    known = {name: ["a", "b"] for name in ("fingerprint", "size", "columns")}
    assert vp.ProfileMechanism.of(rows, user="who", known=known).known_columns.size == 6


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"town": ["Delft"]}, "not a column of the profile. Choose from city, year, note"),
        ({"year": ["last"]}, "values that do not have the column type"),
        ({"city": [2020]}, None),
        (["Delft"], "a dictionary from columns to lists"),
        ({}, "a dictionary from columns to lists"),
        ({"city": pl.DataFrame({"a": ["x"], "b": ["y"]})}, 'column "city" is not usable: .known. has 2 columns'),
        ({"city": []}, 'column "city" is not usable: .known. must contain at least one item'),
    ],
)
def test_lists_that_do_not_fit_are_rejected(known, message):
    """Values must have the type of their column, except that numbers for a column of strings become strings."""
    if message is None:
        assert vp.ProfileMechanism.of(table(10), **CHOSEN, known=known).known_columns.size == 1
        return
    with pytest.raises(InputError, match=message):
        vp.ProfileMechanism.of(table(10), **CHOSEN, known=known)


def test_keys_with_counts_do_not_accept_a_list():
    """The error message names the release that accepts a list."""
    with pytest.raises(InputError, match=r"vp\.Items"):
        profiling_of(table(10), user="who", joint=[("city",)], known={"city": ["Delft"]})


def test_fingerprints_depend_on_columns_and_lists():
    """Another column or another list has a different fingerprint."""
    keys = vp.ProfileMechanism.of(table(10), user="who", columns=["city", "note"]).keys
    given = {"city": ["a"]}, {"note": ["a"]}, {"city": ["b"]}, {"city": ["a"], "note": ["a"]}
    assert len({KnownColumns.of(each, keys).fingerprint for each in given}) == 4
    assert replace(KnownColumns.of(given[0], keys)).listed.size == 1


def test_the_command_accepts_one_list_per_column(tmp_path, capsys):
    """`voxpop profile --known` may be repeated. Other forms are rejected."""
    table().write_parquet(tmp_path / "rows.parquet")
    (tmp_path / "cities.txt").write_text("\n".join(LISTS["city"]))
    where = [str(tmp_path / "rows.parquet"), "--user", "who", "--columns", "city,year"]
    spend = ["--epsilon", "1", "--delta", "1e-8", "-o", str(tmp_path / "profile")]
    known = ["--known", f"city={tmp_path / 'cities.txt'}"]
    assert main(["profile", *where, *spend, "--known", "cities.txt"]) == 2
    assert "--known must be COLUMN=FILE" in capsys.readouterr().err
    assert main(["profile", *where, *spend, *known, *known]) == 2
    assert "Give each column only once" in capsys.readouterr().err
    assert main(["profile", *where, *spend, *known]) == 0
    assert "152 values are known" in capsys.readouterr().err
    assert vp.load(tmp_path / "profile").columns["city"].known.any()
