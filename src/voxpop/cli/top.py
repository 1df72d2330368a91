"""`voxpop top`: the released grams that most users hold, in order."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voxpop.cli.bundles import Question, Spend, bundled
from voxpop.cli.options import Json, Overwrite, Saved
from voxpop.cli.releasing import release_addition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from voxpop.counts.top_plan import TopPlan
    from voxpop.privacy.budget import Budget
    from voxpop.release.ranking import Ranking

__all__ = ["Options", "Spend", "top"]

Save = Annotated[bool, typer.Option("--save/--no-save", help="Save the ranking beside the release.")]
Places = Annotated[int, typer.Option("--k", help="How many grams to name.")]


@dataclass(frozen=True)
class Options:
    """The grams that are ranked, and how many of them are named."""

    folder: Saved
    k: Places = 10

    def planned(self, budget: "Budget") -> "TopPlan":
        """Return the plan; the grams are those of a saved release."""
        from voxpop.counts.top import Top
        from voxpop.release.stored_release import load_release

        return Top(self.k).plan(budget, load_release(self.folder))


@bundled
def top(
    options: Options,
    question: Question,
    save: Save = True,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Name, with noise, the grams of a saved release that most users hold, in order.

    The order needs a budget of its own, on top of what the release has spent.

    voxpop top words posts.parquet --user author --text body --k 20 --epsilon 1 --delta 1e-8
    """
    from voxpop.release.additions import RANKINGS

    folder, ranking = release_addition(RANKINGS, options, question, "Ranking", save=save, overwrite=overwrite)
    _report(ranking, folder, as_json=json)


def _report(ranking: "Ranking", folder: Path | None, *, as_json: bool) -> None:
    from voxpop.cli.report import json_line, promise, promised

    grams = [list(gram) for gram in ranking.each_gram()]
    if as_json:
        content = {
            **promised(ranking.guarantee),
            "with_release": promised(ranking.with_release),
            "plan": ranking.plan.to_dict(),
            "folder": None if folder is None else str(folder.resolve()),
            "grams": grams,
        }
        typer.echo(json_line(content))
        return
    for line in numbered(grams):
        typer.echo(line)
    typer.echo(promise(ranking.guarantee))
    typer.echo(f"\nTogether with the release itself, if from the same users: {ranking.with_release}")
    if folder is not None:
        typer.echo(f"\nSaved to {folder}")


def numbered(grams: "Iterable[Sequence[str]]") -> "Iterator[str]":
    """Return grams in their order, one line each."""
    from voxpop.showing import printable

    return (f"{place:>6,}  {printable(gram)}" for place, gram in enumerate(grams, start=1))
