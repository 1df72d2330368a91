"""The same release on Apache Spark: every Spark partition holds a small corpus, and only what is released leaves it.

| file | holds |
|---|---|
| `read.py` | a DataFrame of who wrote what as a `SparkCorpus` |
| `corpus.py` | `SparkCorpus`, which answers what `Corpus` answers |
| `closures.py` | settings and keys as they are sent: small, or refused |
| `histogram.py` | weights that stay on the executors, and the decisions sent to them |
| `frames.py` | arrays as rows of a DataFrame, public arrays as a broadcast, answers as arrays |
| `tasks.py`, `worker.py` | what runs on an executor |
| `session.py`, `failures.py` | Java and sessions; errors without private data |
| `weighings.py` | weighings, made ready for the executors |
| `holder.py` | states of partitions, kept for as long as somebody needs them |
| `sequence_tasks.py` | what runs on the executors for sequences; see `voxpop.spark.tasks` |
| `daemon.py` | the process that workers are forked from |
| `machine_code.py` | machine code of kernels that is kept between runs |
| `messages.py` | arrays that tasks send each other through a shuffle |
| `pool_tasks.py` | what runs on the executors for adaptive rounds; see `voxpop.spark.pools` |
| `pools.py` | adaptive rounds on a cluster |
| `length_walk.py` | the walk through lengths on a cluster |
| `round_walk.py` | items on a cluster, round after round |
| `tree_walk.py` | sequences on a cluster |
| `cores.py` | how many tasks a cluster runs at once |
| `groups.py` | users of many partitions in few groups |
| `planning.py` | plans that run as they are written |
| `sources.py` | what a table and a session must be before anything runs |
| `handed_over.py` | a corpus whose rows a query of Spark gives, and which this machine holds |
| `handover.py` | a table whose query runs on this machine alone |
| `scanned.py` | files that a query does nothing but read |
| `written_rows.py` | rows of a query as files, until they are read |

Only DataFrames are used, so Spark Connect works. This is the only part of voxpop that imports pyspark.
"""

from importlib import import_module
from typing import Any

from voxpop.spark.worker import set_up

set_up()  # every task arrives as a function of this package, so this comes before any kernel is imported

__all__ = ["SparkCorpus", "read_spark"]

_HOMES = {"SparkCorpus": "voxpop.spark.corpus", "read_spark": "voxpop.spark.read"}


def __getattr__(name: str) -> Any:
    """Import a name on first use: the daemon that forks workers must import nothing that starts threads."""
    if name not in _HOMES:
        raise AttributeError(f"module 'voxpop.spark' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(import_module(_HOMES[name]), name)
