"""`voxpop count`: about how many users hold each released gram."""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voxpop.cli.bundles import Question, Spend, bundled
from voxpop.cli.options import Json, Overwrite, Saved, numbers_of
from voxpop.cli.releasing import release_addition

if TYPE_CHECKING:
    from voxpop.counts.plan import CountsPlan
    from voxpop.privacy.budget import Budget
    from voxpop.release.tally import Tally

__all__ = ["Options", "Spend", "count"]

FullFor = Annotated[
    str,
    typer.Option(
        "--limit", help="Grams for which a user counts in full: a number (halved from length to length), or a list."
    ),
]
Save = Annotated[bool, typer.Option("--save/--no-save", help="Save the counts beside the release.")]
First = Annotated[int, typer.Option(min=0, help="How many grams to show, most users first.")]


@dataclass(frozen=True)
class Options:
    """The grams that are counted, and the fields of counts."""

    folder: Saved
    limit: FullFor = "100"

    def planned(self, budget: "Budget") -> "CountsPlan":
        """Return the plan; the grams are those of a saved release."""
        from voxpop.counts.counts import Counts
        from voxpop.release.stored_release import load_release

        limits = numbers_of("--limit", self.limit, int)
        return Counts(limits[0] if len(limits) == 1 else limits).plan(budget, load_release(self.folder))


@bundled
def count(
    options: Options,
    question: Question,
    first: First = 20,
    save: Save = True,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Count, with noise, how many users hold each gram of a saved release.

    Counts need a budget of their own, on top of what the release has spent.

    voxpop count words posts.parquet --user author --text body --epsilon 1 --delta 1e-8
    """
    from voxpop.release.additions import TALLIES

    folder, tally = release_addition(TALLIES, options, question, "Counting", save=save, overwrite=overwrite)
    _report(tally, folder, first, as_json=json)


def _report(tally: "Tally", folder: Path | None, first: int, *, as_json: bool) -> None:
    from voxpop.cli.report import json_line, promise, promised
    from voxpop.showing import printable

    rows = [(list(gram), users) for gram, users in islice(tally.each_gram(), first)]
    if as_json:
        content = {
            "counted": len(tally),
            "error": tally.error,
            **promised(tally.guarantee),
            "with_release": promised(tally.with_release),
            "plan": tally.plan.to_dict(),
            "folder": None if folder is None else str(folder.resolve()),
            "first": [{"gram": gram, "users": users} for gram, users in rows],
        }
        typer.echo(json_line(content))
        return
    typer.echo(f"Counted {len(tally):,} gram{'' if len(tally) == 1 else 's'}, standard error {tally.error:.3g} users.")
    for gram, users in rows:
        typer.echo(f"  {users:>12,}  {printable(gram)}")
    typer.echo(promise(tally.guarantee))
    typer.echo(f"\nTogether with the release itself, if from the same users: {tally.with_release}")
    if folder is not None:
        typer.echo(f"\nSaved to {folder}")
