"""Weighings, made ready for the executors."""

from typing import TYPE_CHECKING

from voxpop.corpus.draws import WORDS, order_of, sample_of
from voxpop.privacy.secret import TEXT
from voxpop.spark.frames import Arrays, Task, run_with_public
from voxpop.spark.histogram import SparkHistogram
from voxpop.spark.tasks import Paying, Weighing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from voxpop.corpus.engine import RestrictableDraws, Shares


def restricted_weighing(
    shares: "Shares",
    limit: int,
    secret: "RestrictableDraws",
    pass_name: str,
    *,
    order: str,
    paying: Paying | None = None,
) -> Weighing:
    """Return a weighing with the keys of its own sample and order, and no others."""
    purposes = [sample_of(pass_name), f"{WORDS}{TEXT}"]
    if shares.sequential:
        purposes.append(order_of(order))
    return Weighing(shares, limit, secret.restrict(*purposes), pass_name, paying)


def weigh_by(state: "DataFrame", work: Task, *, words: bool, public: Arrays | None = None) -> SparkHistogram:
    """Run a weighing on every partition, with public arrays where it needs some."""
    schema = f"name {'binary' if words else 'bigint'}, high bigint, low bigint"
    rows = state.mapInArrow(work, schema) if public is None else run_with_public(state, work, public, schema)
    return SparkHistogram(rows, words=words)
