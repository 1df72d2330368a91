"""Write benchmarks/trust.md, with each claim of docs/trust.toml, its check, and the last outcome of its tests.

`python -m benchmarks.pages.trust` runs all tests that the claims name, with the Spark tests in the environment of `make
spark`. `--junit FILE ...` reads reports of pytest instead. Outcomes are stored in docs/trust-outcomes.json. A claim
keeps its last outcome, with its date, until its tests run again.
"""

import argparse
import datetime
import json
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
"""The Python interpreter, and options of pytest."""
REGISTRY = ROOT / "docs" / "trust.toml"
OUTCOMES = ROOT / "docs" / "trust-outcomes.json"
LIST = ROOT / "benchmarks" / "trust.md"
HEAD = """# Every claim, and the outcome of its tests

Each claim links to its explanation. [The registry](../docs/trust.toml) names its tests; `make trust` runs them at full
length and writes this list. The last runs were from {first} to {last}, and all tests passed unless a claim states
otherwise.
[Trust](../docs/trust.md) has the ten claims that matter most.
"""


@dataclass
class Outcome:
    """The outcome of the tests of one claim."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    figures: list[str] = field(default_factory=list)
    date: str = ""

    def __str__(self) -> str:
        if not self.passed + self.failed + self.skipped:
            return "NOT RUN"
        counts = {"passed": self.passed, "FAILED": self.failed, "skipped": self.skipped}
        return ", ".join(f"{count} {word}" for word, count in counts.items() if count)

    def __add__(self, other: "Outcome") -> "Outcome":
        counts = (getattr(self, name) + getattr(other, name) for name in ("passed", "failed", "skipped"))
        return Outcome(*counts, self.figures + other.figures, max(self.date, other.date))


def claims() -> list[dict]:
    """Return the claims."""
    return tomllib.loads(REGISTRY.read_text())["claim"]


def main() -> int:
    """Run the tests or read reports, write the list, and return 1 if a test failed or a claim has no passed test."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages.trust", description=__doc__)
    parser.add_argument("--junit", type=Path, nargs="*", help="reports of runs of pytest that included the tests")
    reports = parser.parse_args().junit
    kept = kept_outcomes()
    with tempfile.TemporaryDirectory() as folder:
        found = read(reports or [run(kind, Path(folder)) for kind in ENVIRONMENTS])
    for claim in claims():
        outcome = outcome_of(claim["tests"], found)
        if str(outcome) != "NOT RUN":
            kept[claim["claim"]] = outcome
    write(kept)
    return int(any(kept[claim["claim"]].failed or not kept[claim["claim"]].passed for claim in claims()))


def kept_outcomes() -> dict[str, Outcome]:
    """Return the last outcome of each claim."""
    content = json.loads(OUTCOMES.read_text()) if OUTCOMES.exists() else {}
    return {claim["claim"]: Outcome(**content.get(claim["claim"], {})) for claim in claims()}


def write(outcomes: dict[str, Outcome]) -> None:
    """Write the outcomes and the list."""
    OUTCOMES.write_text(json.dumps({name: vars(each) for name, each in outcomes.items()}, indent=1) + "\n")
    LIST.write_text(page(outcomes))


def page(outcomes: dict[str, Outcome]) -> str:
    """Return the list of all claims."""
    dates = sorted(outcome.date for outcome in outcomes.values() if outcome.date) or ["never"]
    parts = [HEAD.format(first=dates[0], last=dates[-1])]
    topic = ""
    for claim in claims():
        if claim["topic"] != topic:
            topic = claim["topic"]
            parts.append(f"\n## {topic}\n\n")
        parts.append(entry(claim, outcomes[claim["claim"]]))
    return "".join(parts)


def run(kind: str, folder: Path) -> Path:
    """Run the named tests of an environment, and return the report."""
    named = sorted({test for claim in claims() for test in claim["tests"]})
    tests = [test for test in named if test.startswith("tests/spark") == (kind == "spark")]
    report = folder / f"{kind}.xml"
    options = ["-q", "-m", "not browser", "-o", "junit_family=xunit1", f"--junitxml={report}", *ENVIRONMENTS[kind][1:]]
    subprocess.run([ENVIRONMENTS[kind][0], "-m", "pytest", *options, *tests], cwd=ROOT)
    return report


def read(reports: list[Path]) -> dict[str, Outcome]:
    """Return the outcome of each test of the reports, by its name in pytest."""
    found = {}
    today = datetime.date.today().isoformat()
    for case in (case for report in reports for case in ElementTree.parse(report).iter("testcase")):
        failed = case.find("failure") is not None or case.find("error") is not None
        skipped = case.find("skipped") is not None
        figures = [each.get("value", "") for each in case.iter("property") if each.get("name") == "figure"]
        outcome = Outcome(int(not failed and not skipped), int(failed), int(skipped), figures, today)
        found[f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}"] = outcome
    return found


def outcome_of(tests: list[str], outcomes: dict[str, Outcome]) -> Outcome:
    """Add up the outcomes of the tests that a claim names."""
    total = Outcome()
    for name, outcome in outcomes.items():
        if any(name == test or name.startswith((f"{test}::", f"{test}[", f"{test}/")) for test in tests):
            total += outcome
    return total


def entry(claim: dict, outcome: Outcome) -> str:
    """Return the line of one claim, with figures, and with the outcome if not all tests passed."""
    notes = [] if outcome.passed and not outcome.failed + outcome.skipped else [str(outcome)]
    notes += dict.fromkeys(outcome.figures)
    text = f" ({'; '.join(notes)})" if notes else ""
    return f"- [{claim['claim']}](../docs/{claim['page']}){text}\n"


if __name__ == "__main__":
    sys.exit(main())
