"""`voxpop demo`: a private vocabulary from text that every machine has."""

from pathlib import Path
from typing import Annotated

import typer

from voxpop.cli.options import Json

EPSILON, DELTA, LIMIT = 4.0, 1e-5, 300

Output = Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Folder to save to.")]

DATA = "the docstrings and comments of Python's own standard library, one module = one user"


def demo(output: Output = Path("demo-vocabulary"), json: Json = False) -> None:
    """Release a vocabulary from Python's own library.

    The data are its docstrings and comments, and one module plays the part of one user.
    """
    from voxpop.cli.report import report
    from voxpop.cli.stages import stage
    from voxpop.datasets.stdlib import standard_library
    from voxpop.privacy.budget import Budget
    from voxpop.release.saving import check_target
    from voxpop.union.set_union import SetUnion

    folder = check_target(output)
    plan = SetUnion(limit=LIMIT).plan(Budget(EPSILON, DELTA))
    if not json:
        typer.echo(f"Data: {DATA}.")
    with stage("Reading"):
        from voxpop.corpus.reading.read import read

        corpus = read(standard_library(), user="module", text="text")
    with stage("Releasing"):
        release = plan.release(corpus)
    release.save(folder)
    report(release, folder, as_json=json, user="module", data=DATA)
