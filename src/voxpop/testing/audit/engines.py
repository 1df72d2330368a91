"""Where a collection of an audit is read and weighed: in memory, within a memory limit, or on Spark."""

from collections.abc import Callable
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from voxpop.corpus.corpus import Corpus
from voxpop.corpus.limited.memory import FIXED, MemoryLimit

Engine = Callable[[Corpus], Any]
"""From a collection to what holds it: an engine of the contract, `voxpop.corpus.engine.Engine`."""
ROOM: Final = 16 << 20
"""Bytes that an audit within a limit has: so few that users are put in order piece by piece, in work files."""

PLACES: Final = 2
"""Into how many parts an audit on Spark places users."""


class Session(Protocol):
    """What an audit asks of a session of Spark."""

    def createDataFrame(self, data: pa.Table) -> Any:  # noqa: N802
        """Return a table as a DataFrame."""


def in_memory(corpus: Corpus) -> Corpus:
    """Return the collection as it is."""
    return corpus


def within_limit(corpus: Corpus) -> Corpus:
    """Return the collection, to be ordered, weighed and numbered by work files."""
    return corpus.within(MemoryLimit(FIXED + ROOM, ROOM, Path(gettempdir())))


def on_spark(session: Session) -> Engine:
    """Return the engine that reads a collection anew on Spark, from a table of its users.

    Args:
        session: classic or Connect.
    """
    from voxpop.read_table import read

    def engine(corpus: Corpus) -> Any:
        column: dict[str, Any] = {"items" if corpus.kind == "items" else "tokens": "what"}
        return read(session.createDataFrame(table_of(corpus)), user="who", partitions=PLACES, **column)

    return engine


def table_of(corpus: Corpus) -> pa.Table:
    """Return a corpus of one document a user as a table: `who`, a number, and `what`, a list of strings."""
    kept = corpus.tokens >= 0
    starts = np.concatenate([[0], np.cumsum(kept)])[corpus.user_start]
    words = corpus.vocabulary.cast(pa.string()).take(pa.array(corpus.tokens[kept]))
    lists = pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), words)
    return pa.table({"who": corpus.user_key.astype(np.int64), "what": lists})
