"""The corpus on a cluster."""

from typing import TYPE_CHECKING, NoReturn

import numpy as np
import pyarrow as pa

from voxpop.engine.spark.frames import (
    MESSAGES,
    Answer,
    Arrays,
    Batches,
    Holder,
    closure,
    numbered,
    pieces,
    received,
    run_with_public,
    spread,
    texts_of,
    word_arrays,
)
from voxpop.engine.spark.pools import SparkPools
from voxpop.engine.spark.tasks import choose_keys, weigh_rows
from voxpop.engine.spark.walks import SparkLengthWalk, SparkTreeWalk, weigh_by, weighed_items
from voxpop.engine.spark.worker import task
from voxpop.errors import InputError
from voxpop.reading.keys import Keys
from voxpop.reading.words import merge_words

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from voxpop.engine.contract import Engine, RestrictableDraws, Shares
    from voxpop.engine.spark.histogram import SparkHistogram
    from voxpop.reading.typed_keys import TypedKeys


# Users of many partitions in few groups: for weightings in which a user's contribution depends on other users.
#
# A partition that weighs separately cannot see contributions of others, and more partitions waste more weight. So users
# are read in as many partitions as there are cores, and weigh in at most `GROUPS`.

GROUPS = 2
"""Two lose 2.7 of 100 phrases, four 6.4 (docs/guides/spark.md); with one, one core would weigh and hold all users."""


def in_groups(state: "DataFrame", places: int) -> "DataFrame":
    """Return the encoded users of the partitions in groups: a partition's group depends only on its number."""
    from pyspark.sql import functions as sql

    if places <= GROUPS:
        return state
    homes = sql.array(*(sql.lit(number) for number in spread(GROUPS).tolist()))
    sent = numbered(state).withColumn("place", homes[sql.col("sender") % GROUPS].cast("int"))
    arrived = sent.repartition(GROUPS, "place")
    return arrived.mapInArrow(gather, MESSAGES)


@task
def gather(batches: Batches) -> Answer:
    """Yield the state of a group: the corpora of several partitions, in the order of their numbers."""
    held = list(batches)
    parts = list(received(pa.Table.from_batches(held)).values()) if held else []
    if parts:
        yield from pieces(joined(parts))


def joined(parts: list[Arrays]) -> Arrays:
    """Return the arrays of the users of all parts, with one vocabulary."""
    texts = [texts_of(part) for part in parts]
    vocabulary, names = merge_words(texts, [np.ones(len(each), np.bool_) for each in texts])
    # -1, the end of a document, takes the last name.
    tokens = [np.append(own, np.int32(-1))[part["tokens"]] for part, own in zip(parts, names, strict=True)]
    sizes = np.concatenate([np.diff(part["user_start"]) for part in parts])
    users: Arrays = {"tokens": np.concatenate(tokens), "user_start": np.concatenate([[0], np.cumsum(sizes)])}
    users["user_key"] = np.concatenate([part["user_key"] for part in parts])
    return {**users, **word_arrays(vocabulary)}


class SparkCorpus:
    """The users' data, encoded, spread over executors: private, and it never comes to the driver.

    A user lives in one Spark partition, which holds the arrays of a `Corpus` of its users. Set union, n-grams and
    sequences take it as they take a `Corpus`.

    Attributes:
        kind: "text", "tokens", "items" or "sequence".
        reading: how its tokens were made, as in `Corpus`.
        keys: the columns that items came from, as in `Corpus`.
        families: the families of the ids of users, as in `LocalCorpus`.
    """

    def __init__(
        self, state: "DataFrame", places: int, kind: str, reading: str, keys: Keys, families: tuple[str, ...]
    ) -> None:
        """Take the encoded partitions and their number; see `voxpop.engine.spark.frames`."""
        self._places = places
        self.kind = kind
        self.reading = reading
        self.keys = keys
        self.families = families
        self._holder = Holder()
        self._groups: DataFrame | None = None
        self._state = self._holder.hold(state, theirs=True)

    def weigh(self, shares: "Shares", limit: int, secret: "RestrictableDraws", pass_name: str) -> "SparkHistogram":
        """Let every user share its weight over at most `limit` distinct items."""
        state = self._in_groups() if shares.sequential else self._state
        return weighed_items(state, shares, limit, secret, pass_name, pass_name)

    def pools(self, secret: "RestrictableDraws") -> SparkPools:
        """Return every user's distinct items, to be released in adaptive rounds."""
        return SparkPools(self._state, self._places, secret)

    def length_walk(self) -> SparkLengthWalk:
        """Return the walk from words to longer and longer grams."""
        return SparkLengthWalk(self._state, self._in_groups, ordered=self.kind != "items")

    def tree_walk(
        self, alphabet: tuple[str, ...], max_length: int, secret: "RestrictableDraws", other: str | None = None
    ) -> SparkTreeWalk:
        """Return every user's one sequence, to be counted."""
        return SparkTreeWalk(self._state, alphabet, max_length, secret, other)

    def only(self, keys: "TypedKeys", listed: pa.LargeStringArray | None) -> "SparkCorpus":
        """Return the same users with their single keys, or with the joint keys of listed values."""
        public = {} if listed is None else word_arrays(listed)
        state = run_with_public(self._state, closure(choose_keys, keys=keys), public)
        return SparkCorpus(state, self._places, "items", self.reading, self.keys, self.families)

    def row_shares(self, listed: pa.LargeStringArray, columns: int, unit: int) -> "SparkHistogram":
        """Add up the shares of each user's typed keys that are on a public list, row by row."""
        work = closure(weigh_rows, columns=columns, unit=unit)
        return weigh_by(self._state, work, word_arrays(listed), words=False)

    def _in_groups(self) -> "DataFrame":
        """Return the same users in few groups, for order-dependent weightings."""
        if self._groups is None:
            self._groups = self._holder.hold(in_groups(self._state, self._places))
        return self._groups

    def gathered(self) -> NoReturn:
        """Refuse: users stay on their executors.

        Raises:
            InputError: always.
        """
        raise InputError(
            "a corpus on Spark has no arrays of all users: they stay on their executors. Set union, n-grams, counts "
            "and sequences run on it; for heavy hitters, comparisons and baselines read a table on this machine."
        )


if TYPE_CHECKING:
    _contract: type[Engine] = SparkCorpus
