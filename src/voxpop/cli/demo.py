"""`voxpop demo`: private phrases of the docstrings and comments of Python's standard library."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from voxpop.cli.options import Json, Overwrite
from voxpop.cli.output import count, guarantee_text, indented, print_json, saved, summary
from voxpop.cli.releasing import stage

if TYPE_CHECKING:
    from voxpop.release.release import Release

EPSILON, DELTA, LIMIT, LONGEST = 4.0, 1e-5, 300, 5
SHOWN = 12
PROMPTS = 4
NEXT = 5
DATA = "the docstrings and comments of Python's standard library, one module = one user"
METADATA = {
    "title": "Phrases of Python's standard library",
    "dataset": DATA,
    "purpose": "A first look at voxpop",
    "operator": "voxpop demo",
}


def demo(
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], help="Folder to save to.")] = Path("demo-phrases"),
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Release phrases of Python's standard library, and complete some of them.

    The data are docstrings and comments. Each module is one user.
    """
    import voxpop as vp
    from voxpop.cli.standard_library import standard_library
    from voxpop.release.saving import check_target

    folder = check_target(output, overwrite=overwrite)
    plan = vp.NGrams(max_length=LONGEST, limit=LIMIT).plan(vp.Budget(EPSILON, DELTA))
    if not json:
        print(f"Data: {DATA}.")
    with stage("Reading"):
        data = vp.read(standard_library(), user="module", text="text", tokenizer=vp.Tokenizer("words", sentences=True))
    with stage("Releasing"):
        release = plan.release(data).with_metadata(**METADATA)
    release.save(folder, overwrite=overwrite)
    if json:
        print_json({"data": DATA, **summary(release, folder)})
        return
    print(f"{count(release)} The longest:", *map(indented, longest(release)), sep="\n")
    print("\nThe next words, predicted from the released phrases:")
    for begun in beginnings(release):
        offers = ", ".join(each.token for each in release.complete([*begun], NEXT))
        print(indented(f"{' '.join(begun)} ... {offers}"))
    print(guarantee_text(release.guarantee, "module"))
    print(saved(folder))


def longest(release: "Release") -> list[str]:
    """Return the longest released phrases, none of which is a part of another, longest first."""
    from voxpop.privacy.showing import printable, words_first

    chosen: list[str] = []
    for gram in sorted(words_first(release.each_gram()), key=len, reverse=True):
        text = printable(gram)
        if len(chosen) < SHOWN and not any(f" {text} " in f" {other} " for other in chosen):
            chosen.append(text)
    return chosen


def beginnings(release: "Release") -> list[tuple[str, ...]]:
    """Return the two-word beginnings that most released phrases of three words share."""
    begun: dict[tuple[str, ...], int] = {}
    for gram in release.each_gram():
        if len(gram) == 3:
            begun[gram[:2]] = begun.get(gram[:2], 0) + 1
    return sorted(begun, key=lambda pair: (-begun[pair], pair))[:PROMPTS]
