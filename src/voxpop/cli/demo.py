"""`voxpop demo`: private phrases, and how they go on, from text that every machine has."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from voxpop.cli.options import Json, Overwrite

if TYPE_CHECKING:
    from voxpop.release.release import Release

EPSILON, DELTA, LIMIT, LONGEST = 4.0, 1e-5, 300, 5
SHOWN = 12
PROMPTS = 4
NEXT = 5

Output = Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder to save to.")]

DATA = "the docstrings and comments of Python's own standard library, one module = one user"
SAID = {
    "title": "Phrases of Python's standard library",
    "dataset": DATA,
    "purpose": "A first look at voxpop",
    "operator": "voxpop demo",
}


def demo(output: Output = Path("demo-phrases"), overwrite: Overwrite = False, json: Json = False) -> None:
    """Release phrases from Python's own library, and complete some.

    The data are its docstrings and comments, and one module plays the part of one user.
    """
    from voxpop.cli.report import json_line, summary
    from voxpop.cli.stages import stage
    from voxpop.datasets.stdlib import standard_library
    from voxpop.ngrams.ngrams import NGrams
    from voxpop.privacy.budget import Budget
    from voxpop.release.saving import check_target

    folder = check_target(output, overwrite=overwrite)
    plan = NGrams(max_length=LONGEST, limit=LIMIT).plan(Budget(EPSILON, DELTA))
    if not json:
        typer.echo(f"Data: {DATA}.")
    with stage("Reading"):
        from voxpop.read_table import read

        corpus = read(standard_library(), user="module", text="text", sentences=True)
    with stage("Releasing"):
        release = plan.release(corpus).saying(SAID)
    release.save(folder, overwrite=overwrite)
    if json:
        typer.echo(json_line({"data": DATA, **summary(release, folder)}))
    else:
        _show(release, folder)


def _show(release: "Release", folder: Path) -> None:
    """Print the longest phrases, some completions, the guarantee in a sentence, and where the report is."""
    from voxpop.cli.report import count, indented, promise, saved

    typer.echo(f"{count(release)} The longest:")
    for phrase in longest(release):
        typer.echo(indented(phrase))
    typer.echo("\nWhat comes next, by what was released:")
    for begun in beginnings(release):
        offers = ", ".join(each.token for each in release.complete([*begun], NEXT))
        typer.echo(indented(f"{' '.join(begun)} ... {offers}"))
    typer.echo(promise(release.guarantee, "module"))
    typer.echo(saved(folder))


def longest(release: "Release") -> list[str]:
    """Return the longest released phrases that are no part of another one shown, longest first."""
    from voxpop.showing import printable, words_first

    chosen: list[str] = []
    for gram in sorted(words_first(release.each_gram()), key=len, reverse=True):
        text = printable(gram)
        if len(chosen) < SHOWN and not any(f" {text} " in f" {other} " for other in chosen):
            chosen.append(text)
    return chosen


def beginnings(release: "Release") -> list[tuple[str, ...]]:
    """Return the beginnings of two words that most released phrases of three words share."""
    begun: dict[tuple[str, ...], int] = {}
    for gram in release.each_gram():
        if len(gram) == 3:
            begun[gram[:2]] = begun.get(gram[:2], 0) + 1
    return sorted(begun, key=lambda pair: (-begun[pair], pair))[:PROMPTS]
