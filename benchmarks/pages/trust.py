"""Write docs/trust.md: every claim of docs/trust.toml, the tests behind it, and the figure they last gave.

`python -m benchmarks.pages.trust` runs all the tests that are named, those of Spark in the environment of `make spark`;
`--junit FILE ...` reads the reports of runs instead.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = {
    "usual": [sys.executable, "-n", "2", "--dist", "worksteal"],
    "spark": [str(ROOT / ".venv-spark" / "bin" / "python")],
}
"""Python, and options of pytest."""
REGISTRY, PAGE = ROOT / "docs" / "trust.toml", ROOT / "docs" / "trust.md"
HEAD = """# Trust

Every claim, the tests behind it, and the figure they last gave. `make trust` runs the tests and writes this page; the
claims are in `docs/trust.toml`. What nothing here covers is in [sharp edges](sharp-edges.md).

| claim | tests | last run | figure |
|---|---|---|---|
"""


@dataclass
class Outcome:
    """What the tests of one claim gave."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    figures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        if not self.passed + self.failed + self.skipped:
            return "NOT RUN"
        counts = {"passed": self.passed, "FAILED": self.failed, "skipped": self.skipped}
        return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def claims() -> list[dict]:
    """Return the registry."""
    return tomllib.loads(REGISTRY.read_text())["claim"]


def main() -> int:
    """Run or read, write the page, and fail if a claim's tests did."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages.trust", description=__doc__)
    parser.add_argument("--junit", type=Path, nargs="*", help="reports of runs of pytest that included the tests")
    reports = parser.parse_args().junit
    with tempfile.TemporaryDirectory() as folder:
        outcomes = read(reports or [run(kind, Path(folder)) for kind in ENVIRONMENTS])
    rows = [(claim, outcome_of(claim["tests"], outcomes)) for claim in claims()]
    PAGE.write_text(HEAD + "".join(row(claim, outcome) for claim, outcome in rows))
    return int(any(outcome.failed or not outcome.passed for _, outcome in rows))


def run(kind: str, folder: Path) -> Path:
    """Run the tests that are named and belong to an environment; return the report."""
    named = sorted({test for claim in claims() for test in claim["tests"]})
    tests = [test for test in named if test.startswith("tests/spark") == (kind == "spark")]
    report = folder / f"{kind}.xml"
    options = ["-q", "-m", "not browser", "-o", "junit_family=xunit1", f"--junitxml={report}", *ENVIRONMENTS[kind][1:]]
    subprocess.run([ENVIRONMENTS[kind][0], "-m", "pytest", *options, *tests], cwd=ROOT)
    return report


def read(reports: list[Path]) -> dict[str, Outcome]:
    """Return the outcome of every test of the reports, by its name as pytest takes it."""
    found = {}
    for case in (case for report in reports for case in ElementTree.parse(report).iter("testcase")):
        outcome = Outcome()
        failed = case.find("failure") is not None or case.find("error") is not None
        skipped = case.find("skipped") is not None
        outcome.failed, outcome.skipped, outcome.passed = int(failed), int(skipped), int(not failed and not skipped)
        outcome.figures = [each.get("value", "") for each in case.iter("property") if each.get("name") == "figure"]
        found[f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"] = outcome
    return found


def outcome_of(tests: list[str], outcomes: dict[str, Outcome]) -> Outcome:
    """Add up the outcomes of the tests that a claim names."""
    total = Outcome()
    for name, outcome in outcomes.items():
        if any(name == test or name.startswith((f"{test}::", f"{test}[", f"{test}/")) for test in tests):
            total.passed += outcome.passed
            total.failed += outcome.failed
            total.skipped += outcome.skipped
            total.figures += outcome.figures
    return total


def row(claim: dict, outcome: Outcome) -> str:
    """Return one row of the table."""
    tests = "<br>".join(f"`{shortened(test)}`" for test in claim["tests"])
    figures = "<br>".join(figure.replace("|", "\\|") for figure in outcome.figures) or "-"
    return f"| {claim['claim']} ([page]({claim['page']})) | {tests} | {outcome} | {figures} |\n"


def shortened(test: str) -> str:
    """Leave out the folder that all tests are in."""
    return re.sub(r"^tests/", "", test)


if __name__ == "__main__":
    sys.exit(main())
