"""Tests that the list of claims is complete. Claims, pages and docstrings name only existing tests and pages."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.pages.trust import LIST, ROOT, Outcome, claims, entry, kept_outcomes, outcome_of, page

NAMED = re.compile(r"tests/[a-z_0-9/]+\.py")


@pytest.mark.parametrize("claim", claims(), ids=lambda claim: claim["claim"][:40])
def test_the_tests_and_the_page_of_every_claim_exist(claim):
    """Each test of a claim is a file, or a function in a file."""
    assert (ROOT / "docs" / claim["page"]).is_file()
    for test in claim["tests"]:
        path, _, name = test.partition("::")
        assert (ROOT / path).exists()
        text = (ROOT / path).read_text() if name else ""
        assert not name or f"def {name.partition('[')[0]}(" in text


@pytest.mark.slow
def test_every_test_of_a_claim_is_collected():
    """Parametrized cases must also exist, because `make trust` runs no test at all if one name is unknown."""
    named = {test for claim in claims() for test in claim["tests"] if "[" in test}
    options = ["--collect-only", "-q", "-m", "", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, *sorted(named)]
    collected = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert named <= set(collected.stdout.splitlines()), collected.stdout[-2000:]


def test_the_list_is_up_to_date_and_has_no_failure():
    """The list agrees with its source and with the outcomes. Run `make trust` after a change to docs/trust.toml."""
    outcomes = kept_outcomes()
    assert LIST.read_text() == page(outcomes)
    assert [claim for claim, outcome in outcomes.items() if outcome.failed or not outcome.passed] == []
    assert all(outcome.date for outcome in outcomes.values())


def test_outcomes_of_tests_are_combined():
    """A failure is reported even if other tests of the claim passed. A claim is NOT RUN if none of its tests ran."""
    outcomes = {"tests/a.py::x[1]": Outcome(passed=1, figures=["7"]), "tests/a.py::xy": Outcome(failed=1)}
    assert str(outcome_of(["tests/a.py::x"], outcomes)) == "1 passed"
    assert str(outcome_of(["tests/a.py"], outcomes)) == "1 passed, 1 FAILED"
    assert str(outcome_of(["tests/b.py"], outcomes)) == "NOT RUN"
    assert "(7)" in entry({"claim": "c", "tests": ["tests/a.py::x"], "page": "p"}, outcomes["tests/a.py::x[1]"])


@pytest.mark.parametrize("folder", ["docs", "src"])
def test_every_test_that_pages_and_code_mention_exists(folder):
    """Test files that pages, docstrings or comments mention exist."""
    for path in [*Path(ROOT / folder).rglob("*.md"), *Path(ROOT / folder).rglob("*.py")]:
        for name in NAMED.findall(path.read_text()):
            assert (ROOT / name).is_file(), f"{path.name} refers to {name}"
