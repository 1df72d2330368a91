"""The engine on Apache Spark: each Spark partition holds a small corpus, and only released results reach the driver."""

from importlib import import_module
from typing import Any

from voxpop.engine.spark.worker import set_up

set_up()  # every task arrives as a function of this package, so this runs before any kernel is imported

__all__ = ["SparkCorpus", "read_spark"]

_HOMES = {"SparkCorpus": "voxpop.engine.spark.corpus", "read_spark": "voxpop.engine.spark.reading"}


def __getattr__(name: str) -> Any:
    """Import a name on first use, since a worker needs neither."""
    if name not in _HOMES:
        raise AttributeError(f"module 'voxpop.engine.spark' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(_HOMES[name]), name)
