"""Where a collection of an audit is read and weighed: in memory, within a memory limit, or on Spark."""

from pathlib import Path
from tempfile import gettempdir
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from voxpop.engine.local.corpus import LocalCorpus
from voxpop.reading.limited.memory import FIXED, MemoryLimit
from voxpop.testing.sensitivity import Engine, in_memory

__all__ = ["Engine", "in_memory", "on_spark", "table_of", "watched_on_spark", "within_limit"]

ROOM: Final = 16 << 20
"""Bytes that an audit within a limit has: so few that users are put in order piece by piece, in work files."""

PLACES: Final = 2
"""Into how many parts an audit on Spark places users."""


class Session(Protocol):
    """What an audit asks of a session of Spark."""

    def createDataFrame(self, data: pa.Table) -> Any:  # noqa: N802
        """Return a table as a DataFrame."""


def within_limit(corpus: LocalCorpus) -> LocalCorpus:
    """Return the collection, to be ordered, weighed and numbered by work files."""
    return corpus.within(MemoryLimit(FIXED + ROOM, ROOM, Path(gettempdir())))


def on_spark(session: Session) -> Engine:
    """Return the engine that reads a collection anew on Spark, from a table of its users.

    Args:
        session: classic or Connect.
    """
    from voxpop.engine.contract import check_engine
    from voxpop.engine.read import read
    from voxpop.reading.wanted import ReadOptions

    def engine(corpus: LocalCorpus) -> Any:
        column: dict[str, Any] = {"items" if corpus.kind == "items" else "tokens": "what"}
        frame = session.createDataFrame(table_of(corpus))
        return check_engine(read(frame, user="who", options=ReadOptions(partitions=PLACES), **column))

    return engine


def watched_on_spark(session: Session) -> Engine:
    """Return the engine on Spark, whose weights of each pass are also collected for the case, as in memory."""
    engine = on_spark(session)
    return lambda corpus: Watchable(engine(corpus))


class Watchable:
    """A corpus on Spark, or its walk through lengths, whose weighings can be looked at by a case."""

    def __init__(self, watched: Any) -> None:
        self._watched = watched

    def __getattr__(self, name: str) -> Any:
        return getattr(self._watched, name)

    def length_walk(self) -> "Watchable":
        """Begin the walk through lengths."""
        return Watchable(self._watched.length_walk())

    def weigh(self, *given: Any) -> "Weighed":
        """Weigh on the executors."""
        return Weighed(self._watched.weigh(*given))

    def weigh_deferred(self, *given: Any) -> "Weighed":
        """Weigh deferred candidates on the executors."""
        return Weighed(self._watched.weigh_deferred(*given))


class Weighed:
    """Weights on executors: decisions are made there, and a case may see the sums, which no release may."""

    def __init__(self, histogram: Any) -> None:
        from voxpop.engine.spark.histogram import _summed, _weights_of
        from voxpop.engine.spark.session import answer

        self._histogram = histogram
        rows = answer(_summed(histogram._weights)).combine_chunks()
        names = np.asarray(rows.column("name"))
        order = np.argsort(names)
        self.ids = names[order] if names.dtype != object else np.arange(names.size)
        self.weights = _weights_of(rows)[order]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._histogram, name)


def table_of(corpus: LocalCorpus) -> pa.Table:
    """Return a corpus of one document a user as a table: `who`, a number, and `what`, a list of strings."""
    kept = corpus.tokens >= 0
    starts = np.concatenate([[0], np.cumsum(kept)])[corpus.user_start]
    words = corpus.vocabulary.cast(pa.string()).take(pa.array(corpus.tokens[kept]))
    lists = pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), words)
    return pa.table({"who": corpus.user_key.astype(np.int64), "what": lists})
