"""`voxpop audit`: measure what releases of a mechanism reveal about one user."""

import sys
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from voxpop.cli.options import Json
from voxpop.cli.releasing import print_json

if TYPE_CHECKING:
    from voxpop.testing.auditing import Finding


def audit(
    mechanism: Annotated[str, Parameter(name="MECHANISM", help="items, ngrams, hitters, sequences, top or all.")],
    /,
    *,
    trials: Annotated[
        int, Parameter(help="Trials of each side; ten times as many give slightly tighter bounds.")
    ] = 100_000,
    error: Annotated[float, Parameter(help="Probability that a bound is wrong.")] = 1e-9,
    json: Json = False,
) -> int:
    """Measure what releases reveal about one user; reads no data.

    Runs the real release path on small synthetic collections, with and without one user, and prints lower bounds of
    epsilon and delta. The claim is epsilon 1 and delta 0.02 (delta 0 for sequences). The exit code is 1 if a claim is
    refuted, or if the release does not follow the plan.

    Example: `voxpop audit all --trials 2000000`
    """
    from voxpop.privacy.budget import check_choice
    from voxpop.testing.auditing import AUDITED
    from voxpop.testing.auditing import audit as run

    check_choice("MECHANISM", mechanism, (*AUDITED, "all"))
    failed = 0
    for name in AUDITED if mechanism == "all" else [mechanism]:
        finding = run(name, trials, error)
        failed += not finding.passed
        print_json(finding.to_dict()) if json else print(line(finding))
    if failed:
        sys.stderr.write(f"{failed} of the cases above FAILED. Report this output and the version of voxpop.\n")
    return int(failed > 0)


def line(finding: "Finding") -> str:
    """Return a finding as text of two lines."""
    verdict = "ok" if finding.passed else "REFUTED" if finding.refuted else "NOT AS PLANNED"
    return (
        f"{finding.mechanism}; {finding.name}\n"
        f"    {verdict}: epsilon >= {finding.epsilon_shown:.3f} of {finding.epsilon:g} "
        f"(at most {finding.epsilon_exact:.3f} here), "
        f"delta >= {finding.delta_shown:.4f} of {finding.delta:g} (at most {finding.delta_exact:.4f}); "
        f"{finding.counts.trials:,} trials, error {finding.error:g}"
    )
