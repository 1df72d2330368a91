"""Weighings, made ready for the executors."""

from typing import TYPE_CHECKING, Any

from voxpop.errors import InputError
from voxpop.spark.frames import Arrays, Task, run_with_public
from voxpop.spark.histogram import SparkHistogram
from voxpop.spark.tasks import Ballot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from voxpop.corpus.engine import Lender, Shares

MOST_CLOSURE = 1 << 19
"""Spark writes closures above 2^20 bytes to disk, and keys must not be written."""


def lent_ballot(shares: "Shares", limit: int, secret: "Lender", occasion: str, *, order: str) -> Ballot:
    """Return a weighing with the keys of its own sample and order, and no others.

    Raises:
        InputError: where the weighting is too large to be sent without being written to disk.
    """
    purposes = [f"sample/{occasion}", "words/text"]
    if shares.sequential:
        purposes.append(f"order/{order}")
    ballot = Ballot(shares, limit, secret.lend(*purposes), occasion)
    check_small(ballot)
    return ballot


def check_small(closure: object) -> None:
    """Refuse what Spark would write to disk.

    Raises:
        InputError: where it is too large.
    """
    from pyspark import cloudpickle

    dumps: Any = cloudpickle.dumps
    if len(dumps(closure)) > MOST_CLOSURE:
        raise InputError(
            "the weighting takes more than half a megabyte to send to executors, and Spark would write it to disk "
            "together with the keys of the noise. Make it smaller: let it compute its tables when they are needed."
        )


def weigh_by(state: "DataFrame", work: Task, *, words: bool, public: Arrays | None = None) -> SparkHistogram:
    """Run a weighing on every partition, with public arrays where it needs some."""
    schema = f"name {'binary' if words else 'bigint'}, high bigint, low bigint"
    rows = state.mapInArrow(work, schema) if public is None else run_with_public(state, work, public, schema)
    return SparkHistogram(rows, words=words)
