"""Plans that run as they are written, by settings that hold for a while."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ADAPTIVE = "spark.sql.adaptive.enabled"
_LOCK = Lock()
_DEPTH: dict[tuple[int, str], tuple[int, str]] = {}


@contextmanager
def with_setting(session: "SparkSession", name: str, value: str) -> Iterator[None]:
    """Set a session's setting for a while; its own holds again afterwards, for several threads too."""
    key = id(session), name
    with _LOCK:
        depth, before = _DEPTH.get(key, (0, ""))
        if not depth:
            before = str(session.conf.get(name))
            session.conf.set(name, value)
        _DEPTH[key] = depth + 1, before
    try:
        yield
    finally:
        with _LOCK:
            depth, before = _DEPTH[key]
            _DEPTH[key] = depth - 1, before
            if depth == 1:
                del _DEPTH[key]
                session.conf.set(name, before)


def as_written(session: "SparkSession") -> AbstractContextManager[None]:
    """Plan without adaptive execution, which runs every shuffle as a job of its own to look at its sizes first.

    How many tasks there are is known beforehand here, so it could only cost.
    """
    return with_setting(session, ADAPTIVE, "false")
