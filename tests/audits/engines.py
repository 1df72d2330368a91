"""Engines that read the collection of an audit and weigh its items in memory, within a memory limit, or on Spark."""

from pathlib import Path
from tempfile import gettempdir
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from voxpop.engine.local.corpus import LocalCorpus
from voxpop.reading.limited.memory import FIXED_MEMORY, MemoryLimit
from voxpop.testing.collections import EngineOf, in_memory

__all__ = ["EngineOf", "in_memory", "on_spark", "table_of", "watched_on_spark", "within_limit"]

ROOM: Final = 16 << 20
"""The memory limit of an audit in bytes. It is so small that users are sorted in pieces in work files."""

PLACES: Final = 2
"""The number of partitions of the users in an audit on Spark."""


class Session(Protocol):
    """The interface of a Spark session, with only the method that an audit needs."""

    def createDataFrame(self, data: pa.Table) -> Any:  # noqa: N802
        """Return a table as a DataFrame."""


def within_limit(corpus: LocalCorpus) -> LocalCorpus:
    """Return the collection in an engine that orders, weighs and numbers it in work files."""
    return corpus.within(MemoryLimit(FIXED_MEMORY + ROOM, ROOM, Path(gettempdir())))


def on_spark(session: Session) -> EngineOf:
    """Return the engine that reads a collection on Spark, from a table of its users.

    Args:
        session: The Spark session, classic or Connect.
    """
    from voxpop.engine.contract import check_engine
    from voxpop.engine.read import read
    from voxpop.reading.wanted import ReadOptions

    def engine(corpus: LocalCorpus) -> Any:
        column: dict[str, Any] = {"items" if corpus.kind == "items" else "tokens": "what"}
        frame = session.createDataFrame(table_of(corpus))
        return check_engine(read(frame, user="who", options=ReadOptions(partitions=PLACES), **column))

    return engine


def watched_on_spark(session: Session) -> EngineOf:
    """Return the engine on Spark that collects the weights of each pass for the case, like the engine in memory."""
    engine = on_spark(session)
    return lambda corpus: Watchable(engine(corpus))


class Watchable:
    """A corpus on Spark, or its walk through lengths, with weights that a case can read."""

    def __init__(self, watched: Any) -> None:
        self._watched = watched

    def __getattr__(self, name: str) -> Any:
        return getattr(self._watched, name)

    def length_walk(self) -> "Watchable":
        """Begin the walk through lengths."""
        return Watchable(self._watched.length_walk())

    def weigh(self, *given: Any) -> "Weighed":
        """Compute the weights on the executors."""
        return Weighed(self._watched.weigh(*given))

    def weigh_deferred(self, *given: Any) -> "Weighed":
        """Compute the weights of deferred candidates on the executors."""
        return Weighed(self._watched.weigh_deferred(*given))


class Weighed:
    """Weights on the executors, which also make the decisions. A case may read the sums, but a release may not."""

    def __init__(self, histogram: Any) -> None:
        from voxpop.engine.spark.histogram import _summed, _weights_of
        from voxpop.engine.spark.session import answer

        self._histogram = histogram
        rows = answer(_summed(histogram._weights)).combine_chunks()
        names = np.asarray(rows.column("name"))
        order = np.argsort(names)
        self._ids = names[order] if names.dtype != object else np.arange(names.size)
        self._weights = _weights_of(rows)[order]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._histogram, name)


def table_of(corpus: LocalCorpus) -> pa.Table:
    """Return a corpus with one document per user as a table of `who` (number) and `what` (list of strings)."""
    kept = corpus.tokens >= 0
    starts = np.concatenate([[0], np.cumsum(kept)])[corpus.user_start]
    words = corpus.vocabulary.cast(pa.string()).take(pa.array(corpus.tokens[kept]))
    lists = pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), words)
    return pa.table({"who": corpus.user_key.astype(np.int64), "what": lists})
