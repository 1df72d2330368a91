"""The command `block`, which saves a release without public words."""

from pathlib import Path
from textwrap import fill
from typing import Annotated

from cyclopts import Parameter

from voxpop.cli import options as given
from voxpop.cli import releasing
from voxpop.errors import InputError
from voxpop.privacy.budget import all_printable
from voxpop.release.saving import RELEASE


def block(
    folder: given.ResultFolder,
    /,
    *,
    output: given.Output,
    words: Annotated[
        Path | None,
        Parameter(name="--list", help="UTF-8 file with one public word per line, such as names of persons."),
    ] = None,
    names: Annotated[
        list[str] | None,
        Parameter(help="Locale of Faker's lists of names, such as en_US. Repeat the option. Needs the package faker."),
    ] = None,
    keep: Annotated[
        Path | None,
        Parameter(help="UTF-8 file with one word per line. These words remain even if a list contains them."),
    ] = None,
    mentions: Annotated[bool, Parameter(help='Also remove words that contain "@".')] = False,
    first: given.First = 20,
    overwrite: given.Overwrite = False,
) -> None:
    """Save a release without the items that contain public words, such as personal names. This costs no budget.

    Example: `voxpop block words --names en_US --list nicknames.txt -o clean`
    """
    if words is None and not names and not mentions:
        raise InputError("There is nothing to remove. Add --list FILE, --names LOCALE or --mentions.")
    release = RELEASE.load(folder)
    clean = release.without(words or (), names=names or (), keep=keep or (), mentions=mentions)
    clean.save(output, overwrite=overwrite)
    kept = set(clean.each_gram())
    gone = [gram for gram in release.each_gram() if gram not in kept]
    releasing.say(f"Removed {releasing.plural(len(gone), 'gram')} of {len(release):,}.")
    if gone and first:
        shown = f"{', '.join(all_printable(gone[:first]))}{', ...' if len(gone) > first else ''}"
        releasing.say(releasing.indented(fill(shown, releasing.WIDTH)))
    releasing.say(releasing.saved(output, clean))
