"""Tests of profiles, including chosen columns, released values, costs and saved files."""

import datetime
import json
from math import hypot

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import voxpop as vp
from naive.engine import NaiveEngine
from support.look import corpus_documents
from voxpop.cli import main
from voxpop.engine.contract import check_engine
from voxpop.engine.local.pools import BYTES_OF_ITEM
from voxpop.errors import BudgetError, InputError, InternalError, MemoryLimitError, ReleaseError
from voxpop.mechanisms.counts import plan as counting
from voxpop.mechanisms.counts.mechanism import CountsMechanism
from voxpop.mechanisms.profile import plan as planning
from voxpop.mechanisms.profile.constants import CELL, COVER_UNIT
from voxpop.privacy.certificate import pair_of
from voxpop.privacy.gaussian import delta as gaussian_delta
from voxpop.reading import typed_keys
from voxpop.reading.limited.memory import MemoryLimit

BUDGET = vp.Budget(2, 1e-7)
QUIET = vp.ReadOptions(progress=False)


def orders(users=4000):
    """Return two orders of each user. A quarter of the values of `own` are unique."""
    rng = np.random.default_rng(3)
    city = rng.integers(0, 6, users)
    rows = 2 * users
    return pl.DataFrame(
        {
            "customer": np.repeat(np.arange(users), 2),
            "order_id": np.arange(rows),
            "city": np.repeat(np.array(["Delft", "Lund", "a|b", "Oslo", "Kiel", "Turku"])[city], 2),
            "year": rng.integers(2024, 2027, rows),
            "paid": rng.random(rows) < 0.5,
            "day": [datetime.date(2026, 1, 1 + int(each)) for each in rng.integers(0, 5, rows)],
            "price": rng.random(rows),
            "note": ["Thank you", None] * users,
            "own": [f"own{number}" if number % 4 == 0 else "shared" for number in range(rows)],
        }
    )


@pytest.fixture(scope="module")
def table():
    """Return the orders."""
    return orders()


@pytest.fixture(scope="module")
def profile(table):
    """Return the profile of the orders."""
    joint = [("city", "year"), ("paid", "city", "day")]
    return vp.profile(table, user="customer", text=["note"], joint=joint, budget=BUDGET, options=QUIET, seed=3)


def test_common_values_are_released_with_their_types(profile):
    """All values with many users are released, but no value of a single user."""
    assert profile.columns["city"].to_list() == ["Delft", "Kiel", "Lund", "Oslo", "Turku", "a|b"]
    assert profile.columns["year"].to_list() == [2024, 2025, 2026]
    assert profile.columns["paid"].to_list() == [False, True]
    assert profile.columns["day"].to_list() == [datetime.date(2026, 1, day) for day in range(1, 6)]
    assert profile.columns["note"].to_list() == ["thank", "you"]
    assert profile.columns["own"].to_list() == ["shared"]
    assert profile.columns["note"].token_source == "words"
    assert len(profile.joint["city", "year"]) == 18
    assert ("a|b", 2025) in profile.joint["city", "year"]
    assert profile.joint["paid", "city", "day"].to_list()[0] == (False, "Delft", datetime.date(2026, 1, 1))
    assert len(profile) == sum(map(len, [*profile.columns.values(), *profile.joint.values()]))


def test_columns_can_be_used_as_releases_in_other_software(profile, table):
    """Filters and the replacement by "other" use the types of the columns."""
    kept = vp.exports.filter(profile.joint["city", "year"], table)
    assert kept.height == table.height
    other = vp.exports.with_other(profile.columns["own"], table)
    assert set(other["own"]) == {"shared", "other"}
    assert profile.columns["year"].to_arrow()["year"].type == pa.int64()


def test_counts_and_cover_are_correct_up_to_noise(profile, table):
    """All numbers are within 6 standard errors (for fewer than 60 numbers, false alarm below 1e-7)."""
    exact = dict(table.group_by("city").agg(pl.col("customer").n_unique()).rows())
    found = profile.counts("city")
    assert found["users"].to_pylist() == sorted(found["users"].to_pylist(), reverse=True)
    for city, users, low, high in zip(*found.to_pydict().values(), strict=True):
        assert abs(users - exact[city]) < 6 * profile.error + 1
        assert low < users < high
    joint = profile.counts("city", "year")
    exact = dict(((c, y), n) for c, y, n in table.group_by("city", "year").agg(pl.col("customer").n_unique()).rows())
    for city, year, users in zip(*(joint[name].to_pylist() for name in ("city", "year", "users")), strict=True):
        assert abs(users - exact[city, year]) < 6 * profile.error + 1
    cover = profile.cover["own"]
    assert abs(cover.covered - 3000) < 6 * cover.error
    assert abs(cover.other - 1000) < 6 * cover.error
    assert abs(cover.share - 0.75) < 6 * cover.share_error
    assert profile.cover["note"].users == pytest.approx(4000, abs=9 * cover.error)


def after_release(plan):
    """Return a gate in the state after values are released, so that it can measure their cover."""
    gate, _ = plan.begin(None)
    gate._ran.add("released")
    return gate


def test_the_noise_of_cover_is_the_planned_noise(table):
    """For 8 columns in 25 profiles, the mean square of the noise is within 40 % of the planned variance.

    The probability of a false alarm is below 1e-7.
    """
    profiling = vp.ProfileMechanism({f"c{number}": "int64" for number in range(8)})
    plan = profiling.plan(BUDGET)
    none = profiling.read(
        pl.DataFrame(
            {"u": [0], **{f"c{n}": [None] for n in range(8)}}, schema_overrides={f"c{n}": pl.Int64 for n in range(8)}
        ),
        user="u",
    )
    nothing = pa.array([], pa.large_string())
    sums = [after_release(plan).cover(none._engine, nothing, 8, COVER_UNIT, CELL) for _ in range(25)]
    noise = np.concatenate(sums) * (CELL / COVER_UNIT)
    assert np.mean(np.square(noise)) / plan.cover_sigma**2 == pytest.approx(1, abs=0.4)
    assert abs(np.mean(noise)) < 6 * plan.cover_sigma / 20


def test_a_column_without_released_values_has_cover_zero():
    """The share is 0 or None instead of noise divided by noise."""
    table = pl.DataFrame(
        {"u": range(2000), "address": [f"10.0.0.{n}" if n < 54 else None for n in range(2000)], "level": ["a"] * 2000}
    )
    for _ in range(5):
        found = vp.profile(table, user="u", budget=BUDGET)
        assert not len(found.columns["address"])
        assert found.cover["address"].share in (0.0, None)
        assert found.cover["address"].covered == 0
        assert found.cover["level"].share > 0.9


def test_parents_of_released_joint_values_are_released(table):
    """Even with few users, a joint value is released only together with its single values."""
    few = table.head(700)
    for seed in range(4):
        found = vp.profile(few, user="customer", joint="pairs", budget=vp.Budget(1, 1e-6), options=QUIET, seed=seed)
        for names, release in found.joint.items():
            for values in release:
                assert all(value in found.columns[name] for name, value in zip(names, values, strict=True))


def test_combinations_with_too_many_candidates_are_skipped(table, monkeypatch):
    """City and year have 18 candidates, but the other combination exceeds the limit of 20.

    The report shows that this combination is omitted.
    """
    monkeypatch.setattr(typed_keys, "MOST_CANDIDATES", 20)
    joint = [("city", "year"), ("paid", "city", "day")]
    columns = ["city", "year", "paid", "day"]
    found = vp.profile(table, user="customer", columns=columns, joint=joint, budget=BUDGET, options=QUIET, seed=3)
    assert len(found.joint["city", "year"]) == 18
    assert not found.joint["paid", "city", "day"]
    assert "omitted: more than" in found.report().html


def test_columns_are_chosen_by_type_and_name():
    """The choice does not depend on values. Floats, identifiers, lists and timestamps are omitted."""
    for rows in (1, 500):
        table = pl.DataFrame(
            {
                "user": range(rows),
                "orderId": range(rows),
                "customerID": range(rows),
                "paid": ["x"] * rows,
                "order_id": ["x"] * rows,
                "price": [1.0] * rows,
                "tags": [["x"]] * rows,
                "at": [datetime.datetime(2026, 1, 1)] * rows,
                "distinct": range(rows),
                "city": ["x"] * rows,
            }
        )
        found = vp.ProfileMechanism.of(table, user="user")
        assert found.columns == {"paid": "string", "distinct": "int64", "city": "string"}
        assert list(found.left_out) == ["orderId", "customerID", "order_id", "price", "tags", "at"]
    given = vp.ProfileMechanism.of(table, user="user", columns=["order_id"])
    assert given.columns == {"order_id": "string"}
    with pytest.raises(InputError, match="not exact"):
        vp.ProfileMechanism.of(table, user="user", columns=["price"])
    with pytest.raises(InputError, match='no column "country"'):
        vp.ProfileMechanism.of(table, user="user", columns=["country"])
    with pytest.raises(InputError, match="no column is left"):
        vp.ProfileMechanism.of(table.select("user", "price"), user="user")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"joint": [("city", "paid")], "columns": ["city"]},
            r'column "paid", which is not part .*\(not chosen\). Name it',
        ),
        ({"joint": [("city", "price")], "counts": False}, r'column "price", which is not part .*\(double\)'),
        ({"joint": [("city", "country")], "columns": ["city"]}, 'no column "country"'),
        (
            {"joint": [("city", "customer")], "columns": ["city"]},
            r'contains "customer"\. Choose from city',
        ),
        ({"joint": [("city", "note")], "columns": ["city"], "text": ["note"]}, '"note", which is a text column'),
        (
            {"joint": [("city", "city")], "columns": ["city"]},
            r'two or more .* \("city", "city"\) contains a column',
        ),
        ({"joint": [("city", "city")]}, r'list different .* \("city", "city"\) contains a column twice'),
        ({"joint": [("city",)], "columns": ["city"]}, r'\("city"\) contains only one column'),
        ({"joint": [()]}, r"\(\) is empty"),
        ({"joint": [("city",), ("city",)]}, r'\("city"\) occurs twice'),
        ({"columns": [], "joint": [("city", "paid")]}, "`columns` is an empty list"),
        ({"columns": []}, "`columns` is an empty list"),
    ],
)
def test_errors_name_the_wrong_entry_and_the_reason(table, given, words):
    with pytest.raises(InputError, match=words):
        vp.profile(table, user="customer", budget=BUDGET, options=QUIET, **given)


def test_all_sources_with_a_schema_declare_the_same_columns(table, tmp_path):
    """The sources are files, tables of several libraries and a dictionary. CSV has strings unless `types=` is given."""
    some = table.select("customer", "city", "year")
    some.write_parquet(tmp_path / "t.parquet")
    some.write_ipc(tmp_path / "t.arrow")
    some.write_csv(tmp_path / "t.csv")
    sources = [some, some.lazy(), some.to_arrow(), some.to_pandas(), tmp_path / "t.parquet", [tmp_path / "t.arrow"]]
    for source in [*sources, some.to_dict()]:
        assert vp.ProfileMechanism.of(source, user="customer").columns == {"city": "string", "year": "int64"}
    assert vp.ProfileMechanism.of(tmp_path / "t.csv", user="customer").columns == {"city": "string", "year": "string"}
    typed = {"year": "int64"}
    assert vp.ProfileMechanism.of(tmp_path / "t.csv", user="customer", types=typed).columns["year"] == "int64"
    found = vp.profile(tmp_path / "t.csv", user="customer", types=typed, budget=BUDGET, options=QUIET)
    assert found.columns["year"].to_list() == [2024, 2025, 2026]
    objects = pd.DataFrame({"customer": [1], "x": pd.Series([7], dtype=object)})
    assert vp.ProfileMechanism.of(objects, user="customer").columns == {"x": "string"}
    with pytest.raises(InputError, match="no schema"):
        vp.ProfileMechanism.of(iter([{"customer": 1}]), user="customer")


def test_the_plan_is_printed_before_anything_runs(table, capsys):
    """The printed plan lists the chosen and the omitted columns."""
    vp.profile(table, user="customer", budget=BUDGET)
    printed = capsys.readouterr().err
    assert "city (string), year (int64)" in printed
    assert "order_id (an identifier by its name), price (double)" in printed


def test_the_total_cost_of_all_parts_is_the_budget(monkeypatch):
    """The cost is computed from the numbers of rounds, counts and cover. More than 97 percent of delta is used."""
    for counts, joint in ((True, ()), (False, ()), (True, [("a", "b")]), (False, [("a", "b")])):
        plan = vp.ProfileMechanism({"a": "string", "b": "string", "c": "int64"}, joint=joint, counts=counts).plan(
            BUDGET
        )
        novel, mu = pair_of(plan.certificate.proof)
        cover = 3 / plan.cover_sigma**2 if counts else 0.0
        assert (plan.joining > 0) == bool(joint)
        whole = novel + gaussian_delta(2, hypot(mu, (plan.joining + plan.counting + cover) ** 0.5)) + plan.slack
        assert whole <= plan.delta_spent * (1 + 1e-6) <= 1e-7 * (1 + 1e-6)
        assert plan.delta_spent > 0.97e-7
        release = vp.Release.from_items(pa.array(["0|a"]), plan, plan.guarantee)
        if counts:
            planned = CountsMechanism().plan_within(plan.counting, BUDGET, release)
            square = max(max(1, *each.limits) / each.sigma**2 for each in planned.proof.menu)
            assert square + (planned.proof.classes_sigma and planned.proof.classes_sigma**-2) <= plan.counting
            with monkeypatch.context() as patch:
                patch.setattr(counting, "sqrt", lambda value: 1.1 * value**0.5)
                with pytest.raises(InternalError, match="less noise than was charged"):
                    CountsMechanism().plan_within(plan.counting, BUDGET, release)


@pytest.mark.parametrize("broken", ["later_square", "COVER"])
def test_plans_that_exceed_the_budget_are_rejected(monkeypatch, broken):
    """In the broken variants, cover has a third of its noise, or the parts after the rounds have twice their mu^2."""
    if broken == "COVER":
        real = planning.sqrt
        monkeypatch.setattr(planning, "sqrt", lambda value: real(value) / 3)
    else:
        real_square = planning.later_square
        monkeypatch.setattr(planning, "later_square", lambda *given: 2 * real_square(*given))
    with pytest.raises(InternalError, match="exceed the budget"):
        vp.ProfileMechanism({"a": "string"}).plan(BUDGET)


def test_budgets_that_are_too_small_are_rejected():
    """The error contains the smallest possible delta."""
    with pytest.raises(BudgetError, match="needs a delta of at least"):
        vp.ProfileMechanism({"a": "string"}).plan(vp.Budget(1, 1e-30))


def test_data_that_was_not_read_for_the_profile_is_rejected(table):
    """The data contains items, or keys of other columns."""
    plan = vp.ProfileMechanism({"city": "string"}).plan(BUDGET)
    other = vp.ProfileMechanism({"own": "string"}).read(table, user="customer")
    for data in (vp.read(table, user="customer", items="own"), other):
        with pytest.raises(InputError, match="read for this profile"):
            plan.release(data)


def test_the_engine_of_plain_dicts_gives_the_same_result(table):
    """The engine contract is sufficient even for cover, and a memory limit does not change the profile."""
    some = table.head(600)
    profiling = vp.ProfileMechanism.of(some, user="customer", text=["note"], joint=[("city", "year")])
    corpus = check_engine(profiling.read(some, user="customer"))
    users = {int(key): rows for key, rows in zip(corpus.user_key, corpus_documents(corpus), strict=True)}
    plan = profiling.plan(vp.Budget(4, 1e-6))
    limited = profiling.read(some, user="customer", options=vp.ReadOptions(memory="3GiB"))
    found = [
        plan.release(data, seed=5) for data in (corpus, NaiveEngine(users, token_source=corpus.token_source), limited)
    ]
    assert found[0] == found[1] == found[2]
    assert len(found[0]) > 20


def test_a_result_is_saved_and_loaded(profile, table, tmp_path):
    """A loaded profile equals the saved profile and has the same report. A changed file is rejected."""
    profile.with_metadata(title="Orders").save(tmp_path / "profile")
    again = vp.load(tmp_path / "profile", vp.Profile)
    assert again == profile
    assert again.columns["day"].to_list() == profile.columns["day"].to_list()
    page = profile.report().html
    assert "city × year" in page
    assert "Cover is the mean share" in page
    assert "<title>NOT PRIVATE: Orders" in again.report().html
    with pytest.raises(ReleaseError, match="already contains a profile"):
        vp.profile(table, user="customer", budget=BUDGET, options=QUIET).save(tmp_path / "profile")
    path = tmp_path / "profile" / "profile.json"
    written = path.read_text()
    for name, wrong in (("columns", [{"name": "city", "type": "int64"}]), ("cover", {"city": {"covered": "many"}})):
        path.write_text(json.dumps({**json.loads(written), name: wrong}))
        with pytest.raises(ReleaseError, match="was changed after it was saved"):
            vp.load(tmp_path / "profile")


def test_columns_with_unusual_names_are_read():
    """The user column is nested, one column has the name of the counts, and one name contains special characters."""
    rows = [{"id": number} for number in range(2000)]
    table = pl.DataFrame({"who": rows, "users": [1, 2] * 1000, 'a|"': ["x"] * 2000})
    found = vp.profile(table, user="who.id", budget=BUDGET, joint="pairs", options=QUIET, seed=1)
    assert found.counts("users").column_names == ["users", "noisy_users", "low", "high"]
    assert len(found.joint["users", 'a|"']) == 2


def test_a_profile_without_counts_has_neither_counts_nor_cover(table):
    """The table contains only columns and values, and a request for counts raises an error."""
    found = vp.profile(table, user="customer", budget=BUDGET, counts=False, options=QUIET, seed=1)
    assert found.cover == {}
    assert found.to_arrow().column_names == ["column", "value"]
    with pytest.raises(InputError, match="has no counts"):
        found.counts("city")
    assert {users for *_, users in found} == {None}
    with pytest.raises(InputError, match="no such column"):
        found.counts("country")


def test_a_ledger_is_charged_once(table, tmp_path):
    """One entry covers the whole profile, and a second profile exceeds the budget."""
    account = vp.Ledger(tmp_path / "ledger.json").open("orders", vp.Budget(3, 1e-6), create=True)
    found = vp.profile(table, user="customer", budget=BUDGET, options=QUIET, ledger=account)
    assert [entry.mechanism for entry in account.entries] == ["profile"]
    assert found.metadata.ledger
    with pytest.raises(BudgetError):
        vp.profile(table, user="customer", budget=vp.Budget(3, 9e-7), options=QUIET, ledger=account)


def test_errors_that_do_not_depend_on_noise_precede_the_charge(table, tmp_path):
    """The cases are data that was not read for the profile, and a memory limit that is too small for the joint keys."""
    account = vp.Ledger(tmp_path / "ledger.json").open("orders", vp.Budget(3, 1e-6), create=True)
    profiling = vp.ProfileMechanism.of(table, user="customer", joint="pairs")
    plan, corpus = profiling.plan(BUDGET), check_engine(profiling.read(table, user="customer"))
    # The limit is enough for all single keys, but not for the possible joint keys.
    room = BYTES_OF_ITEM * len(corpus.vocabulary) - 1
    small = corpus.within(MemoryLimit(1 << 30, room, tmp_path))
    for data, error in ((vp.read(table, user="customer", items="own"), InputError), (small, MemoryLimitError)):
        with pytest.raises(error):
            plan.release(data, ledger=account)
    assert not account.entries
    assert plan.release(corpus, ledger=account).metadata.ledger
    assert len(account.entries) == 1


def test_hundreds_of_columns_are_profiled(tmp_path):
    """A profile of 300 columns is released within a memory limit."""
    columns = {f"c{number}": [number % 3, number % 5] * 1500 for number in range(300)}
    table = pl.DataFrame({"u": range(3000), **columns})
    limited = vp.ReadOptions(memory="3GiB", progress=False)
    found = vp.profile(table, user="u", budget=vp.Budget(4, 1e-6), options=limited, seed=1)
    assert len(found.columns) == 300
    assert len(found) > 400
    with pytest.raises(InputError, match="at most 10,000"):
        vp.ProfileMechanism.of(table, user="u", joint="pairs")


def test_the_command_line_gives_the_same_result(table, tmp_path, capsys, monkeypatch):
    """The commands plan, profile, show, verify and export give the same result as the library."""
    monkeypatch.chdir(tmp_path)
    table.write_parquet("orders.parquet")
    chosen = ["orders.parquet", "--user", "customer", "--text", "note", "--joint", "city,year"]
    budget = ["--epsilon", "2", "--delta", "1e-7"]
    assert main(["plan", "profile", *chosen, *budget]) == 0
    assert "joint: city x year" in capsys.readouterr().out
    assert main(["profile", *chosen, *budget, "-o", "found"]) == 0
    out = capsys.readouterr()
    assert "18  city x year" in out.out
    assert "Profile of 6 columns" in out.err
    assert main(["show", "found", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["released"] == len(vp.load("found"))
    assert main(["show", "found"]) == 0
    assert main(["verify", "found"]) == 0
    assert main(["export", "found", "-o", "seed.csv"]) == 0
    seed = pl.read_csv("seed.csv")
    assert seed.columns == ["column", "value", "users", "low", "high"]
    assert seed.filter(pl.col("column") == "city x year").height == 18
    assert "a\\|b|2025" in seed["value"].to_list()
    assert (seed["low"] < seed["users"]).all()
    for general in ("registry", "checklist"):
        assert main(["export", "found", "-o", general, "--format", general]) == 0
    assert main(["export", "found", "-o", "seed.txt"]) == 2
    assert main(["profile", *chosen, *budget, "--no-counts", "--json", "-o", "more"]) == 0
    assert main(["show", "more"]) == 0
    capsys.readouterr()
    for wrong in (["--items", "city"], ["--html"]):
        assert main(["profile", *chosen, *budget, *wrong, "-o", "other"]) == 2
        assert "does not apply to a profile" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("covered", "other", "released", "shown"),
    [
        (9.0, 45.0, 0, "0 %"),
        (9.0, 45.0, 2, None),
        (900.0, 100.0, 5, "90.0 % ± 1.8"),
        (3.0, 4.0, 5, None),
    ],
)
def test_no_percentage_is_shown_if_the_noise_is_too_large(covered, other, released, shown):
    """Without a released value, nothing is covered, regardless of the noise."""
    from voxpop.release.profile import ColumnCover

    assert ColumnCover(covered, other, 10.0).shown(released) == shown
