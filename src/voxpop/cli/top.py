"""`voxpop top`: the released grams that most users hold, in order."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from voxpop.cli.bundles import Charge, Columns, Place, Spend, Where, bundled
from voxpop.cli.options import Json, Saved
from voxpop.cli.releasing import released

if TYPE_CHECKING:
    from voxpop.counts.top_plan import TopPlan
    from voxpop.privacy.budget import Budget
    from voxpop.release.ranking import Ranking

__all__ = ["Options", "Spend", "top"]

Places = Annotated[int, typer.Option("--k", help="How many grams to name.")]


@dataclass(frozen=True)
class Options:
    """The grams that are ranked, and how many of them are named."""

    folder: Saved
    k: Places = 10

    def planned(self, budget: "Budget") -> "TopPlan":
        """Return the plan; the grams are those of a saved release."""
        from voxpop.counts.top import Top
        from voxpop.release.loading import load_release

        return Top(self.k).plan(budget, load_release(self.folder))


@bundled
def top(
    options: Options, where: Where, columns: Columns, spend: Spend, charge: Charge, place: Place, json: Json = False
) -> None:
    """Name, with noise, the grams of a saved release that most users hold, in order.

    The order needs a budget of its own, on top of what the release has spent. Nothing is saved.

    voxpop top words posts.parquet --user author --text body --k 20 --epsilon 1 --delta 1e-8
    """
    budget = spend.budget
    _, ranking = released(lambda: None, lambda: options.planned(budget), where, columns, charge, place, "Ranking")
    _report(ranking, as_json=json)


def _report(ranking: "Ranking", *, as_json: bool) -> None:
    from voxpop.cli.report import json_line, promise, promised
    from voxpop.showing import printable

    grams = [list(gram) for gram in ranking.each_gram()]
    if as_json:
        content = {
            **promised(ranking.guarantee),
            "with_release": promised(ranking.with_release),
            "plan": ranking.plan.to_dict(),
            "grams": grams,
        }
        typer.echo(json_line(content))
        return
    for place, gram in enumerate(grams, start=1):
        typer.echo(f"{place:>6,}  {printable(gram)}")
    typer.echo(promise(ranking.guarantee))
    typer.echo(f"\nTogether with the release itself, if from the same users: {ranking.with_release}")
