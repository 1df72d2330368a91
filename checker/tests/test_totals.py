"""Tests that the totals of a folder and the charges of a ledger are proved, but not after a number is changed."""

import json
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import exp, prod
from pathlib import Path

import pytest
from flint import arb
from voxpop_check import prove, schema, totals
from voxpop_check.__main__ import main
from voxpop_check.balls import gauss
from voxpop_check.totals import Release

HERE = Path(__file__).parent / "totals"


@pytest.fixture
def folder(tmp_path):
    return Path(shutil.copytree(HERE, tmp_path / "grams"))


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "team.ledger"
    with closing(sqlite3.connect(path)) as database:
        database.executescript((HERE / "ledger.sql").read_text("utf-8"))
    return path


PROVED = {}


def once(certificate):
    """Prove each certificate only once for all tests, because the proof of rounds takes seconds."""
    key = json.dumps(certificate)
    if key not in PROVED:
        PROVED[key] = prove(certificate)
    return PROVED[key]


@pytest.fixture(autouse=True)
def proved_once(monkeypatch):
    monkeypatch.setattr("voxpop_check.__main__.prove", once)


def release_of(file):
    certificate = json.loads(file.read_text("utf-8"))["certificate"]
    return totals.release_of(schema.certificate(certificate), once(certificate).terms, certificate["claim"])


def changed(file, **values):
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | values))


def run(path, *statements):
    with closing(sqlite3.connect(path)) as database:
        database.executescript(";".join(statements))


def pure(epsilon, delta=0.0):
    return {"epsilon": epsilon, "delta": delta, "neighbours": "one user added or removed", "private": True}


def noisy(epsilon, delta, novel, mu):
    return pure(epsilon, delta) | {"spend": {"novel": novel, "mu": mu}}


def entries(*guarantees):
    fixed = {"times": 1, "reserve": 0, "state": "finished", "mechanism": "items"}
    return [{**fixed, "number": place, "guarantee": each} for place, each in enumerate(guarantees, 1)]


# Folders.


def test_totals_of_a_folder_are_proved(folder, capsys):
    assert main([str(folder)]) == 0
    said = capsys.readouterr().out
    assert "total of a record, fixed in advance: epsilon 2.21332: proved" in said
    assert "total of a record, fixed in advance: epsilon 2.11849: proved" in said
    assert "all 3 together, chosen after results: epsilon 3.5, delta 2.1e-07" in said
    # Voxpop prints 2.31808. Its bound and the bound of the checker differ by less than 1e-5, and both are rounded up.
    assert "all 3 together, fixed in advance: epsilon 2.31809, delta 2.1e-07 proved" in said


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("(2.21332,", "(2.2133,"),
        ("(3, ", "(2.99, "),
        ("(2.21332, 2e-07)", "(2.21332, 1.99e-07)"),
        ("2e-07)-", "1e-07)-"),
    ],
)
def test_a_total_with_a_changed_number_is_not_proved(folder, right, wrong, capsys):
    stated = json.loads((folder / "counts.json").read_text("utf-8"))["total"]
    assert right in stated
    changed(folder / "counts.json", total=stated.replace(right, wrong))
    assert main([str(folder)]) == 1
    assert "fixed in advance: epsilon 2.2133" in capsys.readouterr().out


@pytest.mark.parametrize(("which", "name", "factor"), [(0, "mu", 1.01), (1, "mu", 1.01), (0, "novel", 1.01)])
def test_a_total_is_not_proved_for_releases_with_a_larger_spend(which, name, factor):
    pair = [release_of(HERE / "release.json"), release_of(HERE / "counts.json")]
    assert totals.holds(2.21332, pair)
    pair[which] = replace(pair[which], **{name: getattr(pair[which], name) * factor})
    assert not totals.holds(2.21332, pair)


def test_the_computed_spend_equals_the_spend_in_the_release():
    for name in ("release", "counts", "top"):
        stated = json.loads((HERE / f"{name}.json").read_text("utf-8"))["guarantee"]["spend"]
        own = release_of(HERE / f"{name}.json")
        assert float(own.mu) == pytest.approx(stated["mu"], rel=1e-8)
        assert float(own.novel) == pytest.approx(stated["novel"], rel=1e-6, abs=1e-18)


def test_a_total_in_another_format_is_rejected(folder, capsys):
    changed(folder / "counts.json", total="less than 3")
    assert main([str(folder)]) == 2
    assert "does not belong to a release and an addition" in capsys.readouterr().out
    (folder / "release.json").unlink()
    assert main([str(folder)]) == 2


# Composition.


def test_the_mu_of_gaussian_releases_is_the_root_of_the_sum_of_squares():
    releases = [Release(1.0, 1e-5, arb(0), arb(0.375)), Release(1.0, 1e-5, arb(0), arb(0.5))]
    exact = gauss(arb(1), arb(0.625))
    assert exact < totals.composed(arb(1), releases)  # the bound includes a margin for finite arithmetic
    assert float(totals.composed(arb(1), releases)) == pytest.approx(float(exact), rel=1e-9)


def test_randomised_responses_compose_as_the_sum_over_all_answers():
    epsilons, deltas, total = (0.5, 0.75, 1.0), (1e-3, 2e-3, 0.0), 1.25
    expected = 0.0
    for signs in product((1, -1), repeat=3):
        loss = sum(s * e for s, e in zip(signs, epsilons, strict=True))
        chance = prod(exp(e * (s > 0)) / (1 + exp(e)) for s, e in zip(signs, epsilons, strict=True))
        expected += chance * max(0.0, 1 - exp(total - loss))
    kept = prod(1 - d for d in deltas)
    releases = [Release(*each) for each in zip(epsilons, deltas, strict=True)]
    assert float(totals.composed(arb(total), releases)) == pytest.approx(1 - kept + kept * expected, rel=1e-12)


def test_many_losses_are_rounded_up():
    epsilons = [1 / (7 + k) for k in range(14)]
    found = totals.losses(epsilons)
    assert len(found) <= totals.MOST_LOSSES
    whole = sum((chance for chance in found.values()), arb(0))
    assert float(whole) == pytest.approx(1)
    mean = sum(float(loss) * float(chance) for loss, chance in found.items())
    exact = sum(e * (exp(e) - 1) / (exp(e) + 1) for e in epsilons)
    assert exact < mean < exact + 0.02


def test_a_release_with_a_loose_spend_is_charged_by_epsilon_and_delta():
    loose = Release(0.1, 1e-9, arb(1e-12), arb(1))
    tight = Release(1.0, 1e-6, arb(1e-7), arb(0.2))
    assert totals.composed(arb(1.1), [loose, tight]) <= totals.composed(arb(1.1), [loose.plain, tight])


def entry_of(budget):
    return {"ledger": {"dataset": "posts", "entry": 1, "label": "", "budget": budget, "ledger": "a"}}


@pytest.mark.parametrize("budget", [{"epsilon": 0.1, "delta": 1e-9}, {"delta": 1e-9, "epsilon": 0.1}])
def test_a_budget_that_does_not_cover_its_releases_is_rejected(folder, budget, capsys):
    """A single release is also rejected, because its report contains the budget of its ledger."""
    total = "(0.1, 1e-09)-DP, one user added or removed; if all budgets were fixed in advance: (0.1, 1e-09)"
    changed(folder / "release.json", metadata=entry_of(budget))
    for name in ("counts.json", "top.json"):
        changed(folder / name, metadata=entry_of(budget), total=total)
    assert main([str(folder)]) == 2
    assert "does not cover" in capsys.readouterr().out
    for name in ("counts.json", "top.json"):
        (folder / name).unlink()
    assert main([str(folder)]) == 2


def test_the_budget_of_a_ledger_is_the_total(folder, capsys):
    total = "(5, 1e-06)-DP, one user added or removed; if all budgets were fixed in advance: ({}, {})"
    changed(folder / "release.json", metadata=entry_of({"epsilon": 5.0, "delta": 1e-6}))
    for name, fixed in (("counts.json", "2.21332"), ("top.json", "2.11849")):
        same = json.loads((folder / name).read_text("utf-8"))["total"].split(", ")[-1].strip(")")
        changed(folder / name, metadata=entry_of({"epsilon": 5.0, "delta": 1e-6}), total=total.format(fixed, same))
    assert main([str(folder)]) == 0
    changed(folder / "top.json", total=total.format("1", "1e-07"))
    assert main([str(folder)]) == 1


# Ledgers.


def test_a_ledger_is_proved(ledger, capsys):
    before = ledger.read_bytes()
    assert main([str(ledger)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        '"posts", budget epsilon 8, delta 1e-05',
        "    admitted: 1 first, 4 plain: proved",
        '"weekly", budget epsilon 3, delta 1e-06',
        "    admitted: 1 reserve, 1 drawn: proved",
        '"small", budget epsilon 3, delta 1e-06',
        "    admitted: 1 first, 6 plain, 1 gaussian, 4 mixed: proved",
        f"proved: {ledger}",
    ]
    assert ledger.read_bytes() == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE datasets SET epsilon = 2.2 WHERE name = 'weekly'",
        "UPDATE datasets SET delta = 1e-8 WHERE name = 'small'",
        "UPDATE datasets SET epsilon = 2.9 WHERE name = 'posts'",
        "UPDATE entries SET times = 80 WHERE times = 40",
        "UPDATE entries SET reserve = 2 WHERE reserve = 1",
        "UPDATE entries SET state = 'finished' WHERE state = 'reserved'",
        "UPDATE entries SET mechanism = 'another' WHERE reserve = 1",
        "UPDATE entries SET guarantee = json_set(guarantee, '$.spend.mu', 0.01) WHERE reserve = 1",
        "UPDATE entries SET guarantee = json_set(guarantee, '$.epsilon', 1.5) WHERE dataset = 'small' AND number = 4",
    ],
)
def test_a_ledger_with_a_changed_number_is_not_proved(ledger, statement, capsys):
    run(ledger, statement)
    assert main([str(ledger)]) == 1
    assert " by nothing" in capsys.readouterr().out


@pytest.mark.parametrize(
    "statement",
    [
        "PRAGMA user_version = 2",
        "PRAGMA application_id = 1",
        "DELETE FROM entries WHERE dataset = 'small' AND number = 3",
        "DELETE FROM datasets WHERE name = 'small'",
        "DROP TABLE entries",
        "UPDATE entries SET guarantee = json_set(guarantee, '$.delta', -1) WHERE dataset = 'small' AND number = 4",
        "UPDATE entries SET guarantee = json_set(guarantee, '$.private', json('false')) WHERE number = 1",
        "UPDATE entries SET guarantee = json_set(guarantee, '$.spend.apart', 1) WHERE reserve = 1 OR times > 1",
        """UPDATE entries SET guarantee = rtrim(guarantee, '}') || '}, "epsilon": 1e-9}' WHERE guarantee LIKE '%}}'""",
        "UPDATE datasets SET delta = 1 WHERE name = 'small'",
        "UPDATE datasets SET epsilon = 0 WHERE name = 'small'",
    ],
)
def test_a_file_that_is_not_a_valid_ledger_is_rejected(ledger, statement, capsys):
    run(ledger, statement)
    assert main([str(ledger)]) == 2
    assert capsys.readouterr().out.splitlines()[-1].startswith("refused: ")


@pytest.mark.parametrize(
    ("guarantee", "most"),
    [
        (pure(0.1), 30),  # in decimal arithmetic, 30 times 0.1 is exactly 3
        (pure(0.01, 2e-8), 25),  # half of delta is reserved for revealing outcomes
        (noisy(1.0, 1e-6, 0.0, 0.1), None),
        (noisy(0.5, 1e-7, 1e-8, 0.1), None),
    ],
)
def test_each_part_of_the_budget_limits_the_number_of_releases(guarantee, most):
    def admitted(count):
        return "" not in totals.replay((3.0, 1e-6), entries(*[guarantee] * count))

    fits = next(count for count in range(1, 200) if not admitted(count + 1))
    assert most is None or fits == most
    if "spend" in guarantee:
        # The Gaussian corner uses a twelfth of delta, and revealing outcomes use half of it.
        mu, hit = guarantee["spend"]["mu"], float(totals.charged(guarantee).hit)
        within = [gauss(arb(3), arb(mu * n**0.5)) <= arb(1e-6) / 12 and n * hit <= 5e-7 for n in (fits, fits + 1)]
        assert within == [True, False]


def test_a_budget_without_delta_accepts_only_pure_releases():
    assert totals.replay((3.0, 0.0), entries(*[pure(1.0)] * 3)) == {"first": 1, "plain": 2}
    assert totals.replay((3.0, 0.0), entries(*[pure(1.0)] * 4)) == {"first": 1, "plain": 2, "": 1}
    assert totals.replay((3.0, 0.0), entries(pure(1.0), noisy(0.1, 1e-9, 0.0, 0.01))) == {"first": 1, "": 1}


def test_a_reserve_pays_for_exactly_the_charged_number_of_releases():
    listed = entries(*[pure(0.5)] * 4)
    listed[0] |= {"times": 2, "state": "reserved"}
    for each in listed[1:]:
        each["reserve"] = 1
    assert totals.replay((3.0, 1e-6), listed[:3]) == {"reserve": 1, "drawn": 2}
    assert totals.replay((3.0, 1e-6), listed) == {"reserve": 1, "drawn": 2, "": 1}
    assert totals.written(0.1) == Fraction(1, 10)


def test_a_name_that_occurs_twice_is_rejected(folder, capsys):
    """A repeated name in JSON is rejected, because parsers disagree about which of the two values they use."""
    file = next(iter(sorted(folder.glob("*.json"))))
    text = file.read_text("utf-8")
    assert main([str(file)]) == 0
    file.write_text(text.replace('"claim"', '"claim": {"epsilon": 0.1, "delta": 0.0}, "claim"', 1))
    assert main([str(file)]) == 2
    assert "twice" in capsys.readouterr().out


def test_a_release_with_a_seed_or_other_neighbours_is_not_private(folder, capsys):
    file = next(iter(sorted(folder.glob("*.json"))))
    guarantee = json.loads(file.read_text("utf-8"))["guarantee"]
    assert main([str(file)]) == 0
    assert "NOT PRIVATE" not in capsys.readouterr().out
    for private in (False, None, "true"):
        changed(file, guarantee=guarantee | {"private": private})
        main([str(file)])
        assert "NOT PRIVATE: made with a seed" in capsys.readouterr().out
    changed(file, guarantee=guarantee | {"neighbours": "one event added or removed"})
    assert main([str(file)]) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"statement": "(0.01, 0)-DP, one user added or removed"},
        {"statement": "(1, 1e-07)-DP, one event changed"},
        {"certificate": None},
        {"certificate": {"format": "another certificate"}},
        {"certificate": None, "other": {"guarantee": {"epsilon": 1.0}}},
    ],
)
def test_a_statement_or_guarantee_that_no_certificate_proves_is_rejected(folder, change):
    """Texts must contain the proved guarantee, and a file with an unknown certificate is rejected, not ignored."""
    changed(folder / "counts.json", **change)
    assert main([str(folder)]) == 2


@pytest.mark.parametrize(("old", "new"), [(r"$", ". Truly (0.01, 0)-DP."), ("^", "(0.01, 0)-DP. "), ("user", "event")])
def test_a_changed_total_is_rejected(folder, old, new):
    file = folder / "top.json"
    total = json.loads(file.read_text("utf-8"))["total"]
    changed(file, total=re.sub(old, new, total, count=1))
    assert main([str(folder)]) != 0
