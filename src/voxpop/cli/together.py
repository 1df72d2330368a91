"""`voxpop together`: the items of several data sets about the same people, under one budget."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxpop.cli.bundles import Charge, Place, Result, Spend, bundled
from voxpop.cli.options import AtLeast, Beta, Limit, Pool

if TYPE_CHECKING:
    from voxpop.privacy.budget import Budget
    from voxpop.release.release import Release
    from voxpop.union.adaptive.plan import AdaptivePlan

DataSets = Annotated[
    Path, typer.Argument(metavar="FILE", help="TOML with a table for each data set.", show_default=False)
]
PlanOnly = Annotated[bool, typer.Option("--plan", help="Show the plan and stop: reads and spends nothing.")]


@dataclass(frozen=True)
class Options:
    """The fields of adaptive rounds."""

    limit: Limit = None
    pool: Pool = None
    at_least: AtLeast = None
    beta: Beta = None

    def planned(self, budget: "Budget", names: list[str]) -> "AdaptivePlan":
        """Return the plan of data sets by these names."""
        from voxpop.union.set_union import SetUnion

        fields: dict[str, Any] = vars(self)
        plan: Any = SetUnion(**fields).plan(budget, names)
        return plan  # type: ignore[no-any-return]


@bundled
def together(
    file: DataSets,
    options: Options,
    spend: Spend,
    charge: Charge,
    place: Place,
    result: Result,
    plan_only: PlanOnly = False,
) -> None:
    """Release the items of several data sets about the same people, under one budget.

    FILE has a table for each: its name, a source, a column of users and one of text, tokens, items or sequences. Each
    is saved to a folder of its name in DIR, and the guarantee covers all that one user holds in any of them.

    voxpop together people.toml --epsilon 2 --delta 1e-8 -o found
    """
    from voxpop.cli.data_sets import data_sets_of, read_all
    from voxpop.cli.engines import check_engine
    from voxpop.cli.releasing import charged
    from voxpop.cli.report import json_line, promised
    from voxpop.release.saving import check_target

    check_engine(place.engine, place.master, place.partitions)
    result.check_said(charge.dataset)
    sources = data_sets_of(file)
    plan = options.planned(spend.budget, list(sources))
    if plan_only:
        numbers = {**promised(plan.guarantee), "plan": plan.to_dict()}
        typer.echo(json_line(numbers) if result.json else str(plan))
        return
    folders = {name: result.output / name for name in sources}

    def check() -> None:
        for folder in folders.values():
            check_target(folder, overwrite=result.overwrite)

    _, released = charged(check, lambda: plan, lambda: read_all(sources, place), charge, "Releasing", reported=True)
    for name, each in released.items():
        said = result.said(charge.dataset)
        released[name] = each.saying({**said, "title": f"{said['title']}: {name}" if "title" in said else name})
        released[name].save(folders[name], overwrite=result.overwrite)
    _report(released, folders, as_json=result.json)


def _report(released: "dict[str, Release]", folders: dict[str, Path], *, as_json: bool) -> None:
    """Print what was released from each data set, and what all of it guarantees."""
    from voxpop.cli import report

    first = next(iter(released.values()))
    if as_json:
        found = {name: report.found(each, folders[name]) for name, each in released.items()}
        content = {**report.promised(first.guarantee), "plan": first.plan.to_dict(), "data_sets": found}
        typer.echo(report.json_line(content))
        return
    for name, each in released.items():
        typer.echo(f"{name}: {report.listed(each)}\n")
    typer.echo(report.promise(first.guarantee).lstrip("\n"))
    typer.echo("  It covers all data sets together: everything that one user holds in any of them.")
    typer.echo(
        report.saved(next(iter(folders.values())).parent.resolve(), first.about, "report.html in each folder there")
    )
