"""Users of many partitions in few groups: for weightings in which what one moves depends on whom it meets.

A partition that weighs by itself cannot see what others have given, and the more of them there are, the more is given
in vain. So users are read in as many partitions as there are cores, and weigh in at most `GROUPS`.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.arrow import numbers_of, text_buffers
from voxpop.spark.frames import STATE, Arrays, laid_together, pieces, texts_of
from voxpop.spark.messages import spread
from voxpop.spark.worker import task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from voxpop.spark.tasks import Answer, Batches

GROUPS = 2
"""Two lose 2.7 of 100 phrases, four 6.4 (docs/guides/spark.md); with one, one core would weigh and hold everybody."""


def in_groups(state: "DataFrame", places: int) -> "DataFrame":
    """Return the encoded users of so many partitions in groups: a partition's group follows from its number alone."""
    from pyspark.sql import functions as sql

    if places <= GROUPS:
        return state
    homes = sql.array(*(sql.lit(number) for number in spread(GROUPS).tolist()))
    numbered = state.withColumn("sender", sql.spark_partition_id())
    sent = numbered.withColumn("place", homes[sql.col("sender") % GROUPS].cast("int"))
    arrived = sent.repartition(GROUPS, "place").sortWithinPartitions("sender", "piece")
    return arrived.drop("place").mapInArrow(gather, STATE)


@task
def gather(batches: "Batches") -> "Answer":
    """Lay the corpora of several partitions together, in the order of their numbers."""
    parts = list(_each(batches))
    if parts:
        yield from pieces(joined(parts))


def _each(batches: "Batches") -> Iterator[Arrays]:
    """Yield the arrays of one partition after the other, whose rows come together."""
    held: list[pa.RecordBatch] = []
    number: Any = None
    for batch in batches:
        senders = np.asarray(batch.column("sender"))
        edges = [0, *(np.flatnonzero(np.diff(senders)) + 1).tolist(), senders.size]
        for begin, end in pairwise(edges):
            if end > begin:
                if held and senders[begin] != number:
                    yield laid_together(held)[0]
                    held = []
                number = senders[begin]
                held.append(batch.slice(begin, end - begin))
    if held:
        yield laid_together(held)[0]


def joined(parts: list[Arrays]) -> Arrays:
    """Return the arrays of the users of all parts, with one vocabulary."""
    texts = [texts_of(part["word_data"], part["word_starts"]) for part in parts]
    vocabulary = pc.unique(pa.chunked_array(texts, pa.large_string()))
    tokens, starts, before = [], [np.zeros(1, np.int64)], 0
    for part, words in zip(parts, texts, strict=True):
        ranks = numbers_of(pc.index_in(words, value_set=vocabulary), missing=-1).astype(np.int32)
        tokens.append(np.append(ranks, np.int32(-1))[part["tokens"]])  # -1, the end of a document, takes the last
        starts.append(part["user_start"][1:] + before)
        before += part["tokens"].size
    data, word_starts = text_buffers(vocabulary)
    users: Arrays = {"tokens": np.concatenate(tokens), "user_start": np.concatenate(starts)}
    users["user_key"] = np.concatenate([part["user_key"] for part in parts])
    return {**users, "word_data": data[word_starts[0] : word_starts[-1]], "word_starts": word_starts - word_starts[0]}
