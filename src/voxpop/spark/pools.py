"""Adaptive rounds on a cluster: users stay in their places, items in theirs, and they write to each other.

A user's place is the partition that holds it, an item's a reducer, found by its name of 128 bits. Both are laid out
once, when pools are drawn. In a round every place of users sends each reducer the weights of its undecided items, and
the reducer, which keeps their evidence, answers what is decided: two shuffles, of 8 bytes and of a bit for each item of
each place. They agree on an order of items, so no item is named again. Nothing runs before `released`.
"""

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from voxpop.corpus.draws import WORDS, order_of, sample_of
from voxpop.corpus.pool_users import ORDER
from voxpop.errors import InternalError
from voxpop.privacy.secret import TEXT
from voxpop.spark.closures import closure
from voxpop.spark.cores import for_meeting
from voxpop.spark.failures import answer
from voxpop.spark.frames import run_with_public
from voxpop.spark.holder import Holder
from voxpop.spark.messages import MESSAGES
from voxpop.spark.pool_tasks import (
    advance_items,
    draw_pools,
    register,
    released_items,
    to_reducers,
    weigh_opening,
    weigh_pools,
)
from voxpop.spark.round_walk import public_words
from voxpop.spark.tasks import Weighing
from voxpop.spark.weighings import weigh_by

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from voxpop.corpus.engine import Decision, EvidenceStep, RestrictableDraws, Shares

MOST_REDUCERS = 1024
"""A round sends a message from every place to every reducer."""
OF_USERS = ("items", "user_start", "user_key", "user_names", "bounds")


class SparkPools:
    """What `Pools` answers: an `opening`, then `draw`, then `advance` for each round, then `released`."""

    def __init__(self, state: "DataFrame", places: int, secret: "RestrictableDraws") -> None:
        """Take the encoded partitions.

        Args:
            state: arrays of users, in so many partitions.
            places: their number.
            secret: of the release; executors get keys alone, those of each task.
        """
        self._state = state
        self._places = places
        self._reducers = min(places, MOST_REDUCERS)
        self._secret = secret
        self._opened: pa.LargeStringArray = pa.array([], pa.large_string())
        self._users: DataFrame | None = None
        self._items: DataFrame | None = None
        self._outcome: DataFrame | None = None
        self._holder = Holder(most=None)

    def opening(self, shares: "Shares", limit: int, decision: "Decision", pass_name: str) -> None:
        """Weigh at most `limit` items of each user; release what passes."""
        restricted = self._secret.restrict(sample_of(pass_name), order_of(ORDER), f"{WORDS}{TEXT}")
        weighing = Weighing(shares, limit, restricted, pass_name)
        histogram = weigh_by(self._state, closure(weigh_opening, weighing=weighing), words=True)
        self._opened = histogram.texts(histogram.chosen(decision))

    def draw(self, size: int, pass_name: str) -> None:
        """Give every user a pool: at most `size` of its undecided items, drawn uniformly without replacement."""
        from pyspark.sql import functions as sql

        restricted = self._secret.restrict(sample_of(pass_name), order_of(ORDER), f"{WORDS}{TEXT}")
        settings: dict[str, Any] = {"places": self._places, "reducers": self._reducers}
        work = closure(draw_pools, size=size, pass_name=pass_name, secret=restricted, **settings)
        numbered = self._state.withColumn("sender", sql.spark_partition_id())
        drawn = self._holder.hold(run_with_public(numbered, work, public_words(self._opened), MESSAGES))
        of_users = sql.col("name").isin(*OF_USERS)
        self._users = self._placed(drawn.filter(of_users), self._places)
        told = drawn.filter(~of_users)
        items = told.repartition(for_meeting(self._reducers), "place").groupBy("place").applyInArrow(register, MESSAGES)
        self._items = self._placed(items, self._reducers)

    def advance(self, shares: "Shares", limit: int, step: "EvidenceStep", pass_name: str) -> None:
        """Run a round: weigh at most `limit` items of each pool, add to the evidence of every item in any pool."""
        from pyspark.sql import functions as sql

        if self._users is None or self._items is None:
            raise InternalError("a round was to run before pools were drawn.")
        weighing = Weighing(shares, limit, self._secret.restrict(sample_of(pass_name)), pass_name)
        # No place is below 0, but a plan that knew this for empty would not lay it out with the users.
        before = self._users.filter(sql.col("place") < 0) if self._outcome is None else self._outcome
        weigh = closure(weigh_pools, weighing=weighing, reducers=self._reducers)
        advance = closure(advance_items, step=step.restricted(), places=self._places)
        weights = _met(self._users, before, weigh, self._places)
        self._outcome = _met(self._items, weights, advance, self._reducers)

    def released(self) -> pa.LargeStringArray:
        """Return what was released, in order of bytes."""
        words = [self._opened]
        if self._items is not None and self._outcome is not None:
            states = self._outcome.mapInArrow(closure(to_reducers, reducers=self._reducers), MESSAGES)
            found = answer(_met(self._items, states, closure(released_items), self._reducers, "name binary"))
            words.append(found.column("name").combine_chunks().cast(pa.large_binary()).cast(pa.large_string()))
        together = pa.concat_arrays(words)
        return together.take(pc.array_sort_indices(together.cast(pa.large_binary())))

    def _placed(self, rows: "DataFrame", count: int) -> "DataFrame":
        """Keep rows where messages to them will arrive, so that these alone are shuffled."""
        return self._holder.hold(rows.repartition(for_meeting(count), "place").sortWithinPartitions("place"))

    def __repr__(self) -> str:
        return "SparkPools(private)"


def _met(there: "DataFrame", news: "DataFrame", work: Any, count: int, schema: str = MESSAGES) -> "DataFrame":
    """Run a task on what lies in each of so many places and the messages to it."""
    arrived = news.repartition(for_meeting(count), "place")
    return there.groupBy("place").cogroup(arrived.groupBy("place")).applyInArrow(work, schema)
