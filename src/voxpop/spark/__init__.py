"""The same release on Apache Spark: every Spark partition holds a small corpus, and only what is released leaves it.

| file | holds |
|---|---|
| `read.py` | a DataFrame of who wrote what as a `SparkCorpus` |
| `corpus.py` | `SparkCorpus`, which answers what `Corpus` answers |
| `remaining.py`, `levels.py`, `counting.py` | the walks through rounds, lengths and trees |
| `histogram.py` | weights that stay on the executors, and the decisions sent to them |
| `frames.py` | arrays as rows of a DataFrame, public arrays as a broadcast, answers as arrays |
| `tasks.py`, `worker.py` | what runs on an executor |
| `session.py`, `failures.py` | Java and sessions; errors without private data |

Only DataFrames are used, so Spark Connect works. This is the only part of voxpop that imports pyspark.
"""

from voxpop.spark.worker import set_up

set_up()  # every task arrives as a function of this package, so this comes before any kernel is imported

from voxpop.spark.corpus import SparkCorpus  # noqa: E402
from voxpop.spark.read import read_spark  # noqa: E402

__all__ = ["SparkCorpus", "read_spark"]
