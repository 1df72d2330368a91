"""Where a command runs: on this machine, or on Spark."""

from typing import Annotated, Any

import typer

from voxpop.cli.stages import stage
from voxpop.errors import InputError

Engine = Annotated[str, typer.Option(help="local (this machine) or spark.")]
Master = Annotated[
    str | None,
    typer.Option(help="Of Spark: local[*], spark://host:7077, yarn, k8s://..., sc://host:15002.", show_default=False),
]
Partitions = Annotated[
    int | None,
    typer.Option(help="Of Spark: parts that users are placed into, as many as cores by default.", show_default=False),
]
ENGINES = ("local", "spark")


def check_engine(engine: str, master: str | None, partitions: int | None) -> None:
    """Refuse an engine that there is not, and what belongs to another one.

    Raises:
        InputError: naming those that there are.
    """
    if engine not in ENGINES:
        raise InputError(f"--engine must be local or spark, got {engine}.")
    if master is not None and engine != "spark":
        raise InputError("--master is an address of Spark; add --engine spark.")
    if partitions is not None and engine != "spark":
        raise InputError("--partitions are parts of a table on Spark; add --engine spark.")


def read_with(engine: str, master: str | None, source: list[str], columns: dict[str, Any], **reading: Any) -> Any:
    """Return the corpus of a call."""
    from voxpop.read_table import read

    if engine == "local":
        with stage("Reading"):
            return read(source, **columns, **reading)
    with stage("Starting Spark"):
        from voxpop.spark.session import open_frame, start_session

        session = start_session(master or "local[*]")
    with stage("Opening"):
        frame = open_frame(session, source, reading.pop("delimiter", None), reading.pop("encoding", None))
        return read(frame, **columns, **reading)
