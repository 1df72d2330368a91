"""`voxpop show`: what a saved release or model holds."""

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from voxpop.cli.options import Json, Saved
from voxpop.showing import printable, words_first

if TYPE_CHECKING:
    from voxpop.release.ranking import Ranking
    from voxpop.release.release import Release
    from voxpop.sequences.model import SequenceModel

First = Annotated[int, typer.Option(min=0, help="How many grams to show, from the start.")]


def show(folder: Saved, first: First = 20, json: Json = False) -> None:
    """Show a saved release or model and its guarantee."""
    from voxpop.cli import report
    from voxpop.load_saved import load
    from voxpop.release.release import Release

    saved = load(folder)
    count, rows, lines = _release(saved, first) if isinstance(saved, Release) else _model(saved, first)
    ranking = _ranking(folder) if isinstance(saved, Release) else None
    if json:
        content = {**report.summary(saved, folder), "first": rows}
        typer.echo(report.json_line(content if ranking is None else content | {"top": _top(ranking)}))
        return
    typer.echo(count)
    for line in lines:
        typer.echo(f"  {line}")
    typer.echo(report.promise(saved.guarantee))
    if ranking is not None:
        _show_ranking(ranking, first)
    typer.echo(f"\nPlan\n{report.indented(str(saved.plan))}")


def _release(release: "Release", first: int) -> tuple[str, list[Any], list[str]]:
    from voxpop.cli import report

    grams = words_first(release.each_gram())[:first]
    return report.count(release), [list(gram) for gram in grams], [printable(gram) for gram in grams]


def _ranking(folder: Path) -> "Ranking | None":
    """Return the ranking that was saved beside a release, if there is one."""
    from voxpop.release.additions import RANKINGS
    from voxpop.release.ranking import Ranking

    return Ranking.load(folder) if RANKINGS.is_in(folder) else None


def _top(ranking: "Ranking") -> dict[str, Any]:
    """Return a ranking for machines."""
    from voxpop.cli.report import promised

    return {
        **promised(ranking.guarantee),
        "with_release": promised(ranking.with_release),
        "grams": [list(gram) for gram in ranking.each_gram()],
    }


def _show_ranking(ranking: "Ranking", first: int) -> None:
    """Show the first grams of a ranking, and what it guarantees."""
    from voxpop.cli.top import numbered

    typer.echo(f"\nThe {len(ranking):,} that most users hold, in order")
    for line in islice(numbered(ranking.each_gram()), first):
        typer.echo(line)
    typer.echo(f"{ranking.guarantee}; together with the release: {ranking.with_release}")


def _model(model: "SequenceModel", first: int) -> tuple[str, list[Any], list[str]]:
    """Return the first grams of a model with their noisy counts; a dot marks the end of a sequence."""
    rows = model.to_polars().head(first).select("gram", "ends", "count").to_dicts()
    lines = [f"{row['count']:>12,}  {printable(row['gram'])}{' .' if row['ends'] else ''}" for row in rows]
    noun = f"gram{'' if len(model) == 1 else 's'}"
    return f"A model of {len(model):,} {noun} with noisy counts; a dot is the end of a sequence.", rows, lines
