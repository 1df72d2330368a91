"""Run every audit case with `PYTHONPATH=tests python -m audits`. The exit code is 1 if a case fails."""

import argparse
import sys

from audits.all_cases import CASES
from voxpop.cli.app import line
from voxpop.testing.auditing import examine


def main() -> int:
    """Run the cases of one mechanism or of all mechanisms, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m audits", description=__doc__)
    parser.add_argument("mechanism", nargs="?", default="all", choices=[*CASES, "all"])
    parser.add_argument("--trials", type=int, default=100_000, help="trials with and without the user in each case")
    parser.add_argument("--error", type=float, default=1e-9, help="probability that a bound is wrong")
    given = parser.parse_args()
    failed = 0
    for name in CASES if given.mechanism == "all" else [given.mechanism]:
        for case in CASES[name]():
            finding = examine(case, given.trials, given.error)
            failed += not finding.passed
            print(line(finding), flush=True)
    print(f"{failed} cases failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
