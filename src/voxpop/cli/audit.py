"""`voxpop audit`: what releases of a mechanism show of one user, measured."""

from typing import TYPE_CHECKING, Annotated

import typer

from voxpop.arguments import check_choice
from voxpop.cli.options import Json

if TYPE_CHECKING:
    from voxpop.testing.audit import Finding

Mechanism = Annotated[
    str, typer.Argument(metavar="MECHANISM", help="items, ngrams, hitters, sequences, top, memory or all.")
]
Trials = Annotated[int, typer.Option(help="Trials of each side of each case; ten times as many show a little more.")]
Error = Annotated[float, typer.Option(help="Chance that a bound of a case is wrong.")]
Sensitivity = Annotated[
    int, typer.Option("--sensitivity", metavar="PAIRS", help="Also search so many neighbouring pairs, such as 1000000.")
]


def audit(
    mechanism: Mechanism,
    trials: Trials = 100_000,
    error: Error = 1e-9,
    sensitivity: Sensitivity = 0,
    json: Json = False,
) -> None:
    """Measure what releases show of one user; reads no data.

    Runs the real release path on tiny made-up collections, with and without one user, and prints the least epsilon and
    delta that could show as much, with the stated chance of error: never more than the claim, which is epsilon 1 and
    delta 0.02 here. Ends with exit code 1 if a claim is refuted, or if what runs is not what the plan says.

    voxpop audit items

    voxpop audit all --trials 10000000 --sensitivity 10000000
    """
    from voxpop.cli.report import json_line
    from voxpop.testing.audit import MECHANISMS
    from voxpop.testing.audit import audit as run
    from voxpop.testing.search import search_all

    check_choice("MECHANISM", mechanism, (*MECHANISMS, "all"))

    failed = 0
    for name in MECHANISMS if mechanism == "all" else [mechanism]:
        for finding in run(name, trials, error):
            failed += not finding.passed
            typer.echo(json_line(finding.to_dict()) if json else _line(finding))
    if sensitivity:
        from voxpop.testing.broad_search import TOLERANCE

        farthest = search_all(sensitivity, seed=0, say=(lambda line: None) if json else typer.echo)
        failed += farthest > 1.0 + TOLERANCE
        if json:
            typer.echo(json_line({"pairs": sensitivity, "farthest": farthest}))
    if failed:
        typer.echo(f"{failed} of the above FAILED: please report it, with the version and this output.", err=True)
        raise typer.Exit(1)


def _line(finding: "Finding") -> str:
    verdict = "ok" if finding.passed else "REFUTED" if finding.refuted else "NOT AS PLANNED"
    return (
        f"{finding.mechanism}; {finding.name}\n"
        f"    {verdict}: epsilon >= {finding.epsilon_shown:.3f} of {finding.epsilon:g} "
        f"(at most {finding.epsilon_exact:.3f} here), "
        f"delta >= {finding.delta_shown:.4f} of {finding.delta:g} (at most {finding.delta_exact:.4f}); "
        f"{finding.counts.trials:,} trials, error {finding.error:g}"
    )
