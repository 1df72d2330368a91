"""Plans that run as they are written."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ADAPTIVE = "spark.sql.adaptive.enabled"
_LOCK = Lock()
_DEPTH: dict[int, tuple[int, str]] = {}


@contextmanager
def as_written(session: "SparkSession") -> Iterator[None]:
    """Plan without adaptive execution, which runs every shuffle as a job of its own to look at its sizes first.

    How many tasks there are is known beforehand here, so it could only cost. The session's own setting holds again
    afterwards, for several threads too.
    """
    key = id(session)
    with _LOCK:
        depth, before = _DEPTH.get(key, (0, ""))
        if not depth:
            before = str(session.conf.get(ADAPTIVE, "true"))
            session.conf.set(ADAPTIVE, "false")
        _DEPTH[key] = depth + 1, before
    try:
        yield
    finally:
        with _LOCK:
            depth, before = _DEPTH[key]
            _DEPTH[key] = depth - 1, before
            if depth == 1:
                del _DEPTH[key]
                session.conf.set(ADAPTIVE, before)
