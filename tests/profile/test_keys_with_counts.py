"""Tests of keys with counts, including entries, numbers, other rows, files, certificates and rejected steps."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import voxpop as vp
from naive.engine import NaiveEngine
from support.look import corpus_documents
from voxpop.cli import main
from voxpop.engine.contract import check_engine
from voxpop.errors import BudgetError, ExhaustedError, InputError, InternalError
from voxpop.mechanisms.profile.plan import assumed_users
from voxpop.mechanisms.profile.releasing import consistent_counts, release_keys
from voxpop.privacy.certificate import check
from voxpop.privacy.parts import released_in_parts
from voxpop.privacy.passes import Certificate, Claim, KeysProof
from voxpop.reading.keys import KeyColumn
from voxpop.reading.typed_keys import TypedKeys

BUDGET = vp.Budget(2, 1e-7)
QUIET = vp.ReadOptions(progress=False)
JOINT = [("city", "year")]


def visits(users=4000, each=1, seed=3):
    """Return `each` rows per user with a city and a year. Every tenth user has one more row with a unique city."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(users), each)
    own = np.arange(0, users, 10)
    city = np.array(["Delft", "Lund", "a|b", "Oslo", "back\\slash"])[rng.integers(0, 5, who.size)]
    table = pl.DataFrame({"who": who, "city": city, "year": 2024 + (who % 3)})
    alone = pl.DataFrame({"who": own, "city": [f"own{each}" for each in own], "year": np.full(own.size, 2024)})
    return pl.concat([table.filter(~pl.col("who").is_in(own)) if each == 1 else table, alone])


def mostly_one(users=4000):
    """Return rows of users, of whom 70 percent have one city, 20 percent two cities and 10 percent three to five."""
    cities = np.arange(10)
    held = [1 + (each % 10 >= 7) + (each % 10 == 9) * (1 + each // 10 % 3) for each in range(users)]
    rows = [(who, f"city {city}") for who, n in enumerate(held) for city in np.roll(cities, who // 3)[:n]]
    return pl.DataFrame(rows, schema=["who", "city"], orient="row")


def truth_of(table, *names):
    """Return the exact numbers of users by key, as tuples."""
    return {tuple(row[:-1]): row[-1] for row in table.group_by(names).agg(pl.col("who").n_unique()).rows()}


@pytest.mark.parametrize(("each", "entry"), [(1, 0), (6, 4)], ids=["one key", "rounds"])
def test_keys_are_released_with_types_and_counts(each, entry):
    """All 15 common keys are released with their types and accurate numbers of users.

    No key of only one user is released.
    """
    table = visits(each=each)
    found = vp.profile(table, user="who", joint=JOINT, budget=BUDGET, options=QUIET)
    assert found.plan.chosen == entry
    assert list(found.joint) == JOINT
    assert found.columns == {}
    counts, truth = found.counts("city", "year"), truth_of(table, "city", "year")
    assert counts.column_names == ["city", "year", "users", "low", "high"]
    assert counts["year"].type == pa.int64()
    rows = list(zip(*(counts[name].to_pylist() for name in counts.column_names), strict=True))
    assert {city for city, *_ in rows} == {"Delft", "Lund", "a|b", "Oslo", "back\\slash"}
    assert len(rows) == 15
    for city, year, users, low, high in rows:
        assert abs(users - truth[city, year]) <= 8 * found.error + 1
        assert low < users < high
    cover = found.cover["city x year"]
    own = 400 if each == 1 else 400 / 7
    assert abs(cover.other - own) < 9 * cover.error
    assert abs(cover.covered + cover.other - 4000) < 13 * cover.error


def test_bounds_contain_the_exact_number_as_often_as_planned():
    """In 20 releases with 15 keys each, at least 92 percent of the exact numbers are between `low` and `high`."""
    table = visits()
    keyed = vp.KeyCounts.of(table, user="who", joint=JOINT, max_keys_per_user=1, other_rows=False)
    corpus, truth = keyed.read(table, user="who", options=QUIET), truth_of(table, "city", "year")
    plan, inside = keyed.plan(vp.Budget(0.5, 1e-8)), []
    for _ in range(20):
        rows = plan.release(corpus).counts("city", "year").to_pylist()
        inside += [row["low"] <= truth[row["city"], row["year"]] <= row["high"] for row in rows]
    assert np.mean(inside) > 0.92


def test_several_sets_of_columns_are_released_together():
    """Sets of one or more columns have a common guarantee."""
    table = visits(each=3)
    found = vp.profile(
        table, user="who", joint=[("city", "year"), ("year",)], budget=BUDGET, options=QUIET, other_rows=False, seed=1
    )
    assert found.columns["year"].to_list() == [2024, 2025, 2026]
    assert len(found.joint["city", "year"]) == 15
    assert found.counts("year").column_names == ["year", "users", "low", "high"]
    assert found.cover == {}


def test_corrected_margins_are_at_least_as_large_as_their_cells():
    """If a margin is smaller than its cell, both are replaced by their mean. A cell has one or two margins.

    Other numbers do not change.
    """
    names = (("a", "b"), ("a",), ("b",))
    sets = np.array([0, 0, 0, 1, 1, 2, 2], np.int32)
    items = pa.array(["x|1", "x|2", "y|1", "x", "y", "1", "z|"], pa.large_string())
    users = np.array([50, 10, 30, 40, 70, 60, 5])
    assert consistent_counts(names, sets, items, users).tolist() == [45, 10, 30, 45, 70, 60, 5]
    users = np.array([50, 10, 30, 40, 70, 20, 5])
    found = consistent_counts(names, sets, items, users).tolist()
    assert found[3] >= max(found[0], found[1])
    assert found[4] >= found[2]
    assert found[5] >= max(found[0], found[2])
    assert found[1] == 10
    rng = np.random.default_rng(3)
    for _ in range(50):
        noisy = rng.integers(0, 100, 7)
        after = consistent_counts(names, sets, items, noisy)
        assert after[3] >= max(after[:2])
        assert after[4] >= after[2]
        assert after[5] >= max(after[0], after[2])
        kept = consistent_counts(names, sets, items, after)
        assert kept.tolist() == after.tolist()


def test_a_given_limit_requires_no_choice():
    """With max_keys_per_user=1, one number per key gets the whole epsilon.

    With more than 3 keys per user, rounds run.
    """
    table = visits()
    plan = vp.KeyCounts.of(table, user="who", joint=JOINT, max_keys_per_user=1, other_rows=False).plan(BUDGET)
    assert plan.certificate.proof.edges == ()
    assert plan.menu[0].rate == 2
    assert plan.users_needed(0.5, per_user=1) == 9
    assert plan.users_needed(0.5, per_user=2) == pytest.approx(18, abs=2)
    rounds = vp.KeyCounts.of(table, user="who", joint=JOINT, max_keys_per_user=20).plan(BUDGET)
    assert rounds.menu == ()
    found = rounds.release(rounds.mechanism.read(table, user="who", options=QUIET), seed=1)
    assert len(found) == 15


@pytest.mark.parametrize("limit", [None, 1, 3, 20])
@pytest.mark.parametrize("other_rows", [True, False])
def test_certificates_are_within_the_budget_and_tight(limit, other_rows):
    """Delta is at most that of the budget and close to it, and every entry of the menu uses the whole epsilon."""
    for budget in (BUDGET, vp.Budget(0.5, 1e-8), vp.Budget(8, 1e-6)):
        plan = vp.KeyCounts({"city": "string"}, [("city",)], limit, other_rows).plan(budget)
        proof = plan.certificate.proof
        assert 0.999 * budget.delta < plan.delta_spent <= budget.delta
        spent = proof.choosing + proof.rest
        assert all(spent + each.limit * each.rate == Fraction(budget.epsilon) for each in proof.menu)


def test_repeated_releases_have_a_spend():
    """With `repeated`, rounds run even for one key per user, and 52 releases have an epsilon far below their sum."""
    table = visits()
    keyed = vp.KeyCounts.of(table, user="who", joint=JOINT, repeated=True)
    plan = keyed.plan(vp.Budget(1, 1e-7))
    assert plan.guarantee.spend is not None
    assert plan.to_dict()["together"][1]["epsilon"] < 8
    once = vp.KeyCounts.of(table, user="who", joint=JOINT).plan(vp.Budget(1, 1e-7))
    assert once.to_dict()["together"][1]["epsilon"] == pytest.approx(52, rel=1e-4)
    found = keyed.plan(BUDGET).release(keyed.read(table, user="who", options=QUIET), seed=1)
    assert len(found) == 15
    cover = found.cover["city x year"]
    assert abs(cover.other - 400) < 9 * cover.error
    assert [each["pass"] for each in found.plan.transcript][-2:] == ["counts", "cover"]


@pytest.mark.filterwarnings("ignore:.*is large")
@pytest.mark.parametrize(
    ("delta", "line"), [(0.4, "12 of such releases have no meaningful"), (0.04, "12 have epsilon 7.8 ")]
)
def test_the_plan_omits_totals_with_a_delta_above_one(delta, line):
    """If the deltas of several releases add up to 1 or more, these releases have no meaningful total."""
    plan = vp.KeyCounts({"city": "string"}, [("city",)]).plan(vp.Budget(1, delta))
    (found,) = [each for each in str(plan).splitlines() if "such releases" in each]
    assert line in found
    assert "52" not in found


@cache
def proof_of_keys():
    """Return the numbers in the certificate of a plan for one column."""
    return vp.KeyCounts({"city": "string"}, [("city",)]).plan(BUDGET).certificate.proof


def spends(**changes):
    """Return the delta that the check computes for a certificate with other numbers, or 1 if the check rejects it."""
    try:
        return check(Certificate(Claim(2.0, 1e-7), replace(proof_of_keys(), **changes)))
    except InternalError:
        return 1.0


def test_certificates_with_an_unsafe_number_are_rejected():
    """The unchanged certificate satisfies its claim, but no certificate with a changed number does."""
    proof = proof_of_keys()
    assert isinstance(proof, KeysProof)
    assert spends() <= 1e-7
    (one, two, three), parts = proof.menu, proof.parts
    choice, later = proof.rounds.choice, proof.rounds.later
    faults = {
        "choosing": {"choosing": proof.choosing * 2},
        "free choice": {"choosing": Fraction(0)},
        "no classes": {"edges": ()},
        "classes in any order": {"edges": (3, 2, 4)},
        "rest": {"rest": proof.rest * 2},
        "rate": {"menu": (one, two, replace(three, rate=three.rate * Fraction(101, 100)))},
        "limit": {"menu": (one, two, replace(three, limit=4))},
        "coin": {"menu": (replace(one, coin=one.coin * 1.01), two, three)},
        "end": {"menu": (one, replace(two, end=two.end * 2), three)},
        "reach": {"menu": (replace(one, reach=one.reach - 1), two, three)},
        "entry that is not there": {"chosen": 5},
        "novel": {"rounds": replace(proof.rounds, choice=replace(choice, novel=choice.novel * 1.01))},
        "square": {"rounds": replace(proof.rounds, choice=replace(choice, square=choice.square * 1.01))},
        "counting": {"rounds": replace(proof.rounds, later=replace(later, counting=later.counting * 1.01))},
        "several data sets": {"rounds": replace(proof.rounds, data_sets=("one", "two"))},
        "rate of parts": {"parts": replace(parts, rate=parts.rate * Fraction(101, 100))},
        "threshold of parts": {"parts": replace(parts, threshold=parts.threshold - 1)},
        "no threshold": {"parts": replace(parts, threshold=2)},
        "nothing for users of more keys": {"parts": replace(parts, sizing=2 * parts.rate)},
        "free sizes": {"parts": replace(parts, sizing=Fraction(0))},
        "nothing": {"menu": (), "parts": None, "rounds": None},
    }
    assert {name: spends(**changes) > 1e-7 for name, changes in faults.items()} == dict.fromkeys(faults, True)


def test_rounds_after_a_choice_have_less_budget():
    """Rounds that use the whole budget exceed the budget if they follow a choice."""
    alone = (
        vp.KeyCounts({"city": "string"}, [("city",)], max_keys_per_user=20, other_rows=False)
        .plan(BUDGET)
        .certificate.proof
    )
    assert (
        1e-7
        >= spends(edges=(), choosing=Fraction(0), rest=Fraction(0), menu=(), parts=None, rounds=alone.rounds)
        > 0.99e-7
    )
    chosen = {
        "edges": (2,),
        "choosing": Fraction(3, 50),
        "rest": Fraction(0),
        "menu": (),
        "parts": None,
        "rounds": alone.rounds,
    }
    assert 1.1e-7 < spends(**chosen) < 2e-7


def opened(**how):
    """Return the gate, the engine and the plan for a table with one key per user."""
    table = visits(600)
    plan = vp.KeyCounts.of(table, user="who", joint=JOINT, **how).plan(BUDGET)
    engine = check_engine(plan.mechanism.read(table, user="who", options=QUIET))
    return plan.begin(None)[0], engine, plan


def test_the_gate_rejects_steps_outside_of_the_certificate():
    """The gate rejects steps that run twice, run out of order, or are not covered by the chosen entry."""
    gate, engine, _ = opened()
    with pytest.raises(InternalError):
        gate.choose(0)
    gate.classes(engine)
    with pytest.raises(InternalError):
        gate.classes(engine)
    with pytest.raises(InternalError):
        gate.choose(5)
    gate, engine, _ = opened()
    gate.classes(engine)
    gate.choose(0)
    for call in (lambda: gate.choose(1), gate.rounds, lambda: gate.rest(engine, pa.array([], pa.large_string()), 1, 8)):
        with pytest.raises(InternalError):
            call()
    tokens, _ = gate.numbers(engine)
    with pytest.raises(InternalError):
        gate.numbers(engine)
    with pytest.raises(InternalError):
        gate.rest(engine, tokens, 2, 1 << 24)
    gate, engine, _ = opened(max_keys_per_user=1, other_rows=False)
    with pytest.raises(InternalError):
        gate.classes(engine)
    gate.choose(0)
    tokens, _ = gate.numbers(engine)
    with pytest.raises(InternalError):
        gate.rest(engine, tokens, 1, 1 << 24)
    gate, engine, _ = opened()
    gate.classes(engine)
    gate.choose(4)
    for call in (lambda: gate.numbers(engine), lambda: gate.few(engine)):
        with pytest.raises(InternalError):
            call()


def test_the_gate_of_parts_rejects_other_steps():
    """The steps of parts run once, in order, before the sums of other rows, and only for the entry of parts."""
    gate, engine, _ = opened()
    gate.classes(engine)
    with pytest.raises(InternalError):
        gate.few(engine)
    gate.choose(3)
    with pytest.raises(InternalError):
        gate.numbers(engine)
    with pytest.raises(InternalError):
        gate.rounds()
    tokens, _ = gate.few(engine)
    with pytest.raises(InternalError):
        gate.few(engine)
    with pytest.raises(InternalError):
        gate.more(1)
    gate.sizes(engine, tokens, (2, 3))
    with pytest.raises(InternalError):
        gate.sizes(engine, tokens, (2, 3))
    with pytest.raises(InternalError):
        gate.rest(engine, tokens, 1, 1 << 24)
    with pytest.raises(InternalError):
        gate.more(0)


def test_parts_are_chosen_if_most_users_have_one_key(tmp_path):
    """The counts, the transcript and the saved files agree with the entry of parts.

    Users with three or more keys are counted.
    """
    table = mostly_one()
    found = vp.profile(table, user="who", joint=[("city",)], budget=BUDGET, options=QUIET)
    assert found.plan.chosen == 3
    assert [each["pass"] for each in found.plan.transcript] == ["classes", "few", "sizes", "more", "rest"]
    truth, counts = truth_of(table, "city"), found.counts("city").to_pylist()
    assert len(counts) == 10
    for row in counts:
        assert abs(row["users"] - truth[row["city"],]) <= 8 * found.error + 1
        assert row["low"] < row["users"] < row["high"]
    assert f"standard error {found.error:.3g} users" in str(found.plan)
    found.save(tmp_path / "parts")
    assert vp.load(tmp_path / "parts") == found
    assert main(["verify", str(tmp_path / "parts")]) == 0


def test_the_plan_of_a_release_contains_the_users_needed_for_its_entry():
    """In parts, users with three or more keys do not affect which keys are released, so the number needed is None."""
    plan = vp.KeyCounts({"city": "string"}, [("city",)]).plan(BUDGET)
    found = [
        [plan.ran(each, None, 3 * (each == 3) or None).users_needed(0.9, per_user=n) for n in (1, 2, 3)]
        for each in range(4)
    ]
    assert [plan.users_needed(0.9, per_user=n) for n in (1, 2, 3)] == [found[0][0], found[1][1], found[2][2]]
    assert found[1][0] == found[1][1] == 20
    assert found[2] == [29, 29, 29]
    assert found[3] == [12, 23, None]


def test_the_probability_of_release_in_parts_agrees_with_simulated_noise():
    """The probability agrees with 100,000 draws for users with one and two keys, within 5 standard errors."""
    parts = vp.KeyCounts({"city": "string"}, [("city",)]).plan(BUDGET).parts
    rng, rate = np.random.default_rng(1), float(parts.rate)
    one, two = (np.subtract(*rng.geometric(-np.expm1(-each), (2, 100_000))) for each in (2 * rate, rate))
    for held in (1, 2):
        for users in (3, 9, 11, 20, 25):
            drawn = (2 * one + two + users * 2 // held >= parts.threshold).mean()
            assert released_in_parts(parts, users, held) == pytest.approx(drawn, abs=0.008)
    assert released_in_parts(parts, 1000, 3) == 0.0


def test_users_with_many_keys_are_not_counted_without_a_released_key():
    """In parts, `more` returns no counts if no key reached the threshold."""
    gate, engine, _ = opened()
    gate.classes(engine)
    gate.choose(3)
    gate.few(engine)
    assert gate.sizes(engine, pa.array([], pa.large_string()), (2, 3)).shape == (3,)
    assert gate.more(2).size == 0


def test_bounds_of_parts_contain_the_exact_number_as_often_as_planned():
    """In 20 releases with 10 keys each, at least 92 percent of the exact numbers are between `low` and `high`."""
    table = mostly_one(8000)
    keyed = vp.KeyCounts.of(table, user="who", joint=[("city",)], other_rows=False)
    corpus, truth = keyed.read(table, user="who", options=QUIET), truth_of(table, "city")
    plan, inside = keyed.plan(vp.Budget(1, 1e-8)), []
    for _ in range(20):
        found = plan.release(corpus)
        assert found.plan.chosen == 3
        rows = found.counts("city").to_pylist()
        inside += [row["low"] <= truth[row["city"],] <= row["high"] for row in rows]
    assert np.mean(inside) > 0.92


def test_other_rows_are_not_measured_between_rounds():
    """The proof covers pure releases before and after the rounds, but not between them."""
    gate, engine, _ = opened()
    gate.classes(engine)
    gate.choose(4)
    gate.rounds().open(engine)
    with pytest.raises(InternalError, match="between rounds"):
        gate.rest(engine, pa.array([], pa.large_string()), 1, 1 << 24)


def same_on_all_engines(table, joint, limit):
    """Return the release of the engine in memory, after checking that two other engines return the same release."""
    keyed = vp.KeyCounts.of(table, user="who", joint=joint, max_keys_per_user=limit)
    plan = keyed.plan(vp.Budget(4, 1e-6))
    corpora = [
        keyed.read(table, user="who", options=vp.ReadOptions(memory=memory, progress=False))
        for memory in (None, "3GiB")
    ]
    found = [plan.release(each, seed=3) for each in corpora]
    engine = check_engine(corpora[0])
    users = dict(enumerate(corpus_documents(engine)))
    naive = NaiveEngine(
        {int(key): users[place] for place, key in enumerate(engine.user_key)}, "items", engine.token_source
    )
    found.append(release_keys(plan, naive, 3))
    assert found[0] == found[1] == found[2]
    return found[0]


@pytest.mark.parametrize("each", [1, 2, 6])
@pytest.mark.parametrize("limit", [None, 1, 2])
def test_all_engines_release_the_same_keys(each, limit):
    """The engines run in memory, within a memory limit, and as a reference implementation."""
    assert len(same_on_all_engines(visits(900, each), [("city", "year"), ("city",)], limit)) >= 5


def test_all_engines_release_the_same_keys_in_parts():
    """Users with one, two and more keys have the same results on every engine."""
    found = same_on_all_engines(mostly_one(900), [("city",)], None)
    assert found.plan.chosen == 3
    assert len(found) == 10


def test_saved_keys_are_loaded_and_verified(tmp_path):
    """The loaded release equals the saved one, its certificate is valid, and the report describes keys with counts."""
    for each, name in ((1, "few"), (6, "many")):
        found = vp.profile(visits(each=each), user="who", joint=JOINT, budget=BUDGET, options=QUIET)
        found.save(tmp_path / name)
        again = vp.load(tmp_path / name)
        assert again == found
        assert again.counts("city", "year") == found.counts("city", "year")
        record = json.loads((tmp_path / name / "profile.json").read_text())
        numbers = Certificate.from_dict(record["certificate"])
        assert numbers.proof.chosen == found.plan.chosen
        assert check(numbers) <= 1e-7
        assert main(["verify", str(tmp_path / name)]) == 0
        assert "Keys with counts" in (tmp_path / name / "report.html").read_text()


def test_the_command_line_releases_keys(tmp_path, capsys):
    """`voxpop profile --joint` without columns releases only keys."""
    visits().write_parquet(tmp_path / "visits.parquet")
    given = [str(tmp_path / "visits.parquet"), "--user", "who", "--joint", "city,year"]
    spend = ["--epsilon", "2", "--delta", "1e-7"]
    assert main(["plan", "profile", *given, *spend, "--max-keys-per-user", "1"]) == 0
    assert "one noisy number per key" in capsys.readouterr().out
    assert main(["profile", *given, *spend, "--no-other-rows", "-o", str(tmp_path / "found")]) == 0
    assert "city x year" in capsys.readouterr().out
    assert main(["verify", str(tmp_path / "found")]) == 0


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"joint": ["city"]}, "list of lists"),
        ({"joint": "city"}, "list of lists"),
        ({"joint": [7]}, "list of lists"),
        ({"joint": 7}, "list of lists"),
        ({"joint": [(7,)]}, "names of columns"),
        ({"joint": [(None, "city")]}, "names of columns"),
        ({"columns": [7]}, "names of columns"),
        ({"columns": ["city"], "joint": [("city", 7)]}, "names of columns"),
        ({"columns": ["city"], "text": [7]}, "names of columns"),
        ({"joint": [()]}, "list different columns"),
        ({"joint": [("city", "city")]}, "list different columns"),
        ({"joint": [("town",)]}, "no column"),
        ({"joint": JOINT, "max_keys_per_user": 0}, "`max_keys_per_user` must be a whole number"),
        ({"columns": ["city"], "max_keys_per_user": 1}, "only to keys"),
        ({"other_rows": False}, "only to keys"),
    ],
    ids=str,
)
def test_errors_name_the_wrong_argument(how, said):
    """The cases are wrong types, unknown or repeated columns, and settings that do not apply."""
    with pytest.raises(InputError, match=said):
        vp.profile(visits(20), user="who", budget=BUDGET, options=QUIET, **how)


@pytest.mark.parametrize("alone", [True, False])
def test_two_sets_of_columns_with_the_same_name_are_rejected(alone):
    """In the cover and in the table, sets are named after their columns.

    Therefore, a second set with the same name would replace the first.
    """
    table = pl.DataFrame({"who": [1], "a x b": ["p"], "a": ["q"], "b": ["r"]})
    how = {"joint": [("a x b",), ("a", "b")]} if alone else {"joint": "pairs"}
    with pytest.raises(InputError, match="same name"):
        vp.profile(table, user="who", budget=BUDGET, options=QUIET, **how)


def test_an_exhausted_ledger_names_the_command_for_keys(tmp_path, capsys):
    """The command prints an epsilon for keys with --repeated, and a release with this epsilon is within the budget."""
    account = vp.Ledger(tmp_path / "ledger").open("visits", vp.Budget(3, 1e-6), create=True)
    table, how = visits(300), {"user": "who", "joint": JOINT, "options": QUIET, "ledger": account}
    vp.profile(table, budget=vp.Budget(1, 1e-7), **how)
    with pytest.raises(ExhaustedError, match=r"--for keys --delta 1e-07` prints .* with --repeated"):
        vp.profile(table, budget=vp.Budget(2.9, 1e-7), **how)
    show = ["ledger", "show", str(tmp_path / "ledger"), "--for", "keys", "--delta", "1e-7"]
    assert main(show) == 0
    found = re.search(r"next release of keys with --repeated at .* epsilon ([0-9.]+) fits", capsys.readouterr().out)
    vp.profile(table, budget=vp.Budget(float(found[1]), 1e-7), repeated=True, **how)


@pytest.mark.parametrize("other_rows", [True, False])
@pytest.mark.parametrize("sets", [1, 2, 7])
def test_a_reserve_pays_for_keys_of_any_sets(tmp_path, other_rows, sets):
    """The spend does not depend on the sets of columns, so one reserve pays for all of them."""
    account = vp.Ledger(tmp_path / "ledger").open("visits", vp.Budget(6, 1e-5), create=True)
    reserve = account.reserve(vp.KeyCounts({"key": "string"}, [("key",)], repeated=True).plan(vp.Budget(0.5, 1e-7)), 9)
    columns = {f"column {number}": "string" for number in range(sets)}
    keyed = vp.KeyCounts(columns, [(name,) for name in columns], None, other_rows, True)
    account.charge(keyed.plan(vp.Budget(0.5, 1e-7)).guarantee, "keys")
    assert account.remaining(reserve) == 8


def test_budgets_without_a_threshold_are_rejected():
    """A delta of 0 and a very small epsilon raise an error before any data is read."""
    keyed = vp.KeyCounts({"city": "string"}, [("city",)], max_keys_per_user=1)
    for budget in (vp.Budget(1, 0), vp.Budget(0.001, 1e-8)):
        with pytest.raises(BudgetError):
            keyed.plan(budget)


def test_classes_below_the_noise_are_assumed_to_be_empty():
    """The exceptions are classes that continue a decreasing sequence of classes."""
    assert assumed_users([4000, 30, -20, 9], 20.0) == [4000.0, 0.0, 0.0, 0.0]
    assert assumed_users([2600, 963, 298, 139], 20.0) == [2600.0, 963.0, 298.0, 139.0]
    # The last class is below the noise, but it continues a decreasing tail.
    assert assumed_users([2600, 963, 298, 139], 67.0) == [2600.0, 963.0, 298.0, 139.0]
    # Here, the last classes are too small to continue a tail.
    assert assumed_users([4000, 12_000, 10, 60], 67.0) == [4000.0, 12_000.0, 0.0, 0.0]


def test_sets_are_numbered_from_zero_if_only_keys_are_released():
    """The sets of columns are numbered from zero, and values of single columns are escaped once."""
    keys = TypedKeys((KeyColumn("a", "string"), KeyColumn("b", "int64")), (), (("a", "b"), ("a",)), alone=True)
    tokens = keys.tokens([pa.array(["x|y", "z"]), pa.array([1, None])])
    assert tokens.to_pylist() == [["0|x\\|y|1", "1|x\\|y"], ["1|z"]]
    numbers, items = keys.split(pa.array(["0|x\\|y|1", "1|x\\|y"], pa.large_string()))
    assert numbers.tolist() == [0, 1]
    assert items.to_pylist() == ["x\\|y|1", "x|y"]


def test_two_releases_have_different_noise():
    """The noise depends on the secret, which is different in each release."""
    gate, engine, _ = opened(max_keys_per_user=1, other_rows=False)
    gate.choose(0)
    first = gate.numbers(engine)[1]
    again, _, _ = opened(max_keys_per_user=1, other_rows=False)
    again.choose(0)
    assert first.tolist() != again.numbers(engine)[1].tolist()
