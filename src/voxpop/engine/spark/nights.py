"""The private state of a series on a cluster: users, their pools, and all items, in unencrypted Parquet files.

Users are assigned to a few groups by a keyed hash of their key. The users of a group weigh one after another, and the
weight of an item is the sum over all groups. With one group, the results are identical to the results of the local
`NightlyPools`.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.engine.contract import WORDS_PASS, order_of, sample_of
from voxpop.engine.local.nights import ORDER_OF_NIGHTS, Add, NightlyPools, Removed, States
from voxpop.engine.local.weigh import item_names, weighing_order
from voxpop.engine.spark.frames import (
    AnswerBatches,
    Arrays,
    Holder,
    SparkBatches,
    closure,
    names_of,
    numbered_state,
    on_state,
    received,
    run_with_public,
    spread_rows,
    texts_of,
    word_arrays,
    words_of,
    written,
)
from voxpop.engine.spark.pools import met
from voxpop.engine.spark.session import (
    SETTING,
    answer,
    at_least_two,
    cores,
    ran,
    start_session,
    with_setting,
)
from voxpop.engine.spark.tasks import GROUPS, corpus_of_arrays, joined_arrays, places_of
from voxpop.engine.spark.worker import safely, task
from voxpop.errors import ReleaseError
from voxpop.files.folder import sync
from voxpop.kernels.arrays import Bools, Int64s, Uint64s
from voxpop.kernels.group import gather_slices
from voxpop.privacy.opening import opened
from voxpop.privacy.secret import TEXT
from voxpop.privacy.upcrossing import UNLISTED
from voxpop.reading.arrow import joined, numbers_of, string_array

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from voxpop.engine.spark.corpus import SparkCorpus
    from voxpop.privacy.individual import Charge
    from voxpop.privacy.secret import Source
    from voxpop.privacy.upcrossing import NightDecision, NightReading

USERS = "place int, key bigint, remaining bigint, paid bigint, items array<binary>, nights array<int>"
ITEMS = "word binary, score bigint, decided int, level int, released int"
PLACE = "place/series"
_NIGHT_ROWS_AT_ONCE = 1 << 14


@on_state
def send_users(arrays: Arrays, sent: Arrays, *, mine: int, secret: "Source", places: int) -> AnswerBatches:
    """Send the users of this night to their groups, without released items."""
    corpus = corpus_of_arrays(arrays)
    decided = np.zeros(len(corpus.vocabulary) + 1, np.bool_)
    found = places_of(texts_of(sent), corpus.vocabulary) if sent else np.empty(0, np.int64)
    decided[found[found >= 0]] = True
    tokens, words = np.where(decided[corpus.tokens], -1, corpus.tokens).astype(np.int32), word_arrays(corpus.vocabulary)
    group = secret.draws(PLACE, corpus.user_key, 0)[:, 0] % np.uint64(places)
    sizes = np.diff(corpus.user_start)
    for number, place in enumerate(spread_rows(places).tolist()):
        users = np.flatnonzero(group == number)
        starts = np.append(0, np.cumsum(sizes[users])).astype(np.int64)
        own = np.empty(int(starts[-1]), np.int32)
        gather_slices(tokens, np.asarray(corpus.user_start), users, own)
        kept: Arrays = {"tokens": own, "user_start": starts, "user_key": corpus.user_key[users]}
        yield from written([(place, mine, {**kept, **words})])


def take_users(users: pa.Table, news: pa.Table, *, secret: "Source", night: int, pool: int, whole: int) -> pa.Table:
    """Return the users of a group after the items of this night joined their pools."""
    with safely("take_users"):
        pools, sent = _pools_of(users, secret), list(received(news).values())
        if sent:
            pools.take(
                corpus_of_arrays(joined_arrays(sent)),
                secret,
                night,
                pool,
                whole,
                lambda names: np.zeros(len(names), np.int64),
            )
        return _rows_of(pools, _place(users, news))


@task
def new_items(batches: SparkBatches, *, secret: "Source", past: Callable[[Uint64s], Int64s]) -> AnswerBatches:
    """Return the new items of this night with the noise of all earlier nights."""
    for batch in batches:
        words = batch.column(0)
        yield _items_batch(words, past(item_names(words_of(words), secret)), level=UNLISTED)


@task
def item_states(batches: SparkBatches, *, states: States) -> AnswerBatches:
    """Return the states of undecided items."""
    for batch in batches:
        found = states(*(numbers_of(batch.column(name)).astype(np.int64) for name in ("score", "decided", "level")))
        yield pa.record_batch([batch.column("word"), found.astype(np.int32)], ["word", "state"]).filter(
            pa.array(found > 0)
        )


def pay_users(users: pa.Table, held: pa.Table, *, secret: "Source", charge: "Charge", since: int) -> pa.Table:
    """Return the users of a group after they paid for the night."""
    with safely("pay_users"):
        pools = _pools_of(users, secret)
        pools.pay(charge, _known(pools, held), since)
        return _rows_of(pools, _place(users))


def weigh_users(
    users: pa.Table, held: pa.Table, *, secret: "Source", charge: "Charge", since: int, add: Add
) -> pa.Table:
    """Return the weights of a group. Each user's bound is the user's payment."""
    with safely("weigh_users"):
        pools = _pools_of(users, secret)
        weights = pools.weigh(charge, _known(pools, held), since, add)
        some = np.flatnonzero(weights)
        return pa.table({"word": names_of(pools.words.take(pa.array(some))), "weight": weights[some]})


@task
def read_items(
    batches: SparkBatches, *, secret: "Source", reading: "NightReading", decision: "NightDecision"
) -> AnswerBatches:
    """Add a night's noise to all items, and decide about them."""
    for batch in batches:
        score, decided, level, released, weight = (
            numbers_of(batch.column(name), missing=0).astype(np.int64)
            for name in ("score", "decided", "level", "released", "weight")
        )
        score = opened(reading, weight, item_names(words_of(batch.column("word")), secret), score)
        decided, level = decision(score, decided, level)
        released = np.where(level == UNLISTED, decided, released)
        yield _items_batch(batch.column("word"), score, decided, level, released)


def _items_batch(words: pa.Array, score: Int64s, decided: Any = 0, level: Any = 0, released: Any = 0) -> pa.RecordBatch:
    """Return the rows of some items. A single number applies to every row."""
    small = (np.broadcast_to(each, score.shape).astype(np.int32) for each in (decided, level, released))
    return pa.record_batch([words, score, *small], ["word", "score", "decided", "level", "released"])


def _place(*tables: pa.Table) -> int:
    return int(next(table.column("place")[0].as_py() for table in tables if table.num_rows))


def _known(pools: NightlyPools, held: pa.Table) -> States:
    """Return the states of a group's items. Decided items are missing, because they were not sent."""
    states = np.zeros(len(pools.words), np.uint8)
    if held.num_rows:
        found = places_of(words_of(held.column("word").combine_chunks()), pools.words)
        states[found] = numbers_of(held.column("state").combine_chunks())
    return lambda scores, decided, levels: states


def _pools_of(rows: pa.Table, secret: "Source") -> NightlyPools:
    """Return the users of a group in weighing order. Scores are stored with the items."""
    pools = NightlyPools.empty()
    if not rows.num_rows:  # in this case Spark returns a table without columns
        return pools
    keys, left, paid = (
        numbers_of(rows.column(name).combine_chunks()).astype(np.int64) for name in ("key", "remaining", "paid")
    )
    words = pa.concat_arrays([words_of(chunk.flatten()) for chunk in rows.column("items").chunks])
    nights = np.concatenate([numbers_of(chunk.flatten()) for chunk in rows.column("nights").chunks])
    sizes = numbers_of(pc.list_value_length(rows.column("items")).combine_chunks()).astype(np.int64)
    encoded, order = words.dictionary_encode(), weighing_order(keys.view(np.uint64), secret, ORDER_OF_NIGHTS)
    starts = np.append(0, np.cumsum(sizes)).astype(np.int64)
    pools.items, pools.nights = np.empty(len(words), np.int32), np.empty(len(words), np.int32)
    gather_slices(numbers_of(encoded.indices).astype(np.int32), starts, order, pools.items)
    gather_slices(nights.astype(np.int32), starts, order, pools.nights)
    pools.starts = np.append(0, np.cumsum(sizes[order])).astype(np.int64)
    pools.keys, pools.left, pools.paid = keys.view(np.uint64)[order], left[order], paid[order]
    pools.words = encoded.dictionary
    pools.scores = pools.decided = pools.levels = pools.released = np.zeros(len(pools.words), np.int64)
    return pools


def _rows_of(pools: NightlyPools, place: int) -> pa.Table:
    # There is at least one batch, because it provides the schema even without users.
    parts = [*(range(0, pools.keys.size, _NIGHT_ROWS_AT_ONCE) or [0]), pools.keys.size]
    return pa.Table.from_batches([_batch(pools, first, stop, place) for first, stop in pairwise(parts)])


def _batch(pools: NightlyPools, first: int, stop: int, place: int) -> pa.RecordBatch:
    begin, end = pools.starts[first], pools.starts[stop]
    starts = pa.array((pools.starts[first : stop + 1] - begin).astype(np.int32))
    columns = {
        "place": np.full(stop - first, place, np.int32),
        "key": pools.keys[first:stop].view(np.int64),
        "remaining": pools.left[first:stop],
        "paid": pools.paid[first:stop],
        "items": pa.ListArray.from_arrays(starts, names_of(pools.words.take(pa.array(pools.items[begin:end])))),
        "nights": pa.ListArray.from_arrays(starts, pa.array(pools.nights[begin:end])),
    }
    return pa.record_batch([pa.array(each) for each in columns.values()], list(columns))


class SparkNights:
    """The state of `NightlyPools` on executors. Only released items reach the driver."""

    def __init__(
        self, folder: Path | None, places: int, secret: "Source", session: "SparkSession | None" = None
    ) -> None:
        """Set the folder of the state, which is None before the first night."""
        self.folder, self.places, self._secret, self._session = folder, places, secret, session
        self._frames: tuple[DataFrame, DataFrame] | None = None
        self._holder = Holder(most=None)

    @staticmethod
    def empty(corpus: "SparkCorpus", secret: "Source") -> "SparkNights":
        """Return the state before the first night."""
        return SparkNights(None, min(GROUPS, corpus._places), secret, corpus._state.sparkSession)

    @property
    def _both(self) -> "tuple[DataFrame, DataFrame]":
        """Return the users and the items."""
        if self._frames is None:
            from pyspark.sql import SparkSession

            # Use the session of the rows. If there are no rows, for example to complete an interrupted night, use the
            # active session or a local one.
            self._session = self._session or SparkSession.getActiveSession() or start_session("local[*]")
            if self.folder is None:
                self._frames = tuple(self._session.createDataFrame([], kind) for kind in (USERS, ITEMS))
            else:
                self._frames = tuple(
                    self._session.read.schema(kind).parquet(f"file://{self.folder / name}")
                    for name, kind in (("users", USERS), ("items", ITEMS))
                )
        return self._frames

    def recognise(self, listed: Iterable[pa.LargeStringArray]) -> None:
        """Replace the items with the items of a public list; see `NightlyPools.recognise`."""
        words = joined(pa.chunked_array(listed, pa.large_string()))
        users, items = self._both
        rows = _items_batch(names_of(words), np.zeros(len(words), np.int64))
        self._frames = users, items.sparkSession.createDataFrame(pa.Table.from_batches([rows]), ITEMS)

    def take(
        self,
        corpus: "SparkCorpus",
        secret: "Source",
        night: int,
        pool: int,
        whole: int,
        past: Callable[[Uint64s], Int64s],
    ) -> None:
        """Add new items to the pools, with the noise of all earlier nights."""
        from pyspark.sql import functions as sql

        self._session = corpus._state.sparkSession
        users, items = self._both
        send = closure(send_users, secret=secret.restrict(PLACE), places=self.places)
        sent = run_with_public(numbered_state(corpus._state), send, word_arrays(self._decided()))
        take = closure(take_users, secret=_of_users(secret), night=night, pool=pool, whole=whole)
        with self._by_cores():
            users = self._holder.hold(met(users, sent, take, self.places, USERS))
            words = users.select(sql.explode("items").alias("word")).distinct().join(items, "word", "left_anti")
            new = words.mapInArrow(closure(new_items, secret=secret.restrict(f"{WORDS_PASS}{TEXT}"), past=past), ITEMS)
            self._frames = users, self._holder.hold(items.union(new))

    def pay(self, charge: "Charge", states: States, since: int) -> None:
        """Charge every user with an active item for the night."""
        users, items = self._both
        pay = closure(pay_users, secret=_of_users(self._secret), charge=charge, since=since)
        self._frames = met(users, self._held(states), pay, self.places, USERS), items

    def weigh(self, charge: "Charge", states: States, since: int, add: Add) -> "DataFrame":
        """Return the private weights of items by group, which remain on executors."""
        weigh = closure(weigh_users, secret=_of_users(self._secret), charge=charge, since=since, add=add)
        return met(self._both[0], self._held(states), weigh, self.places, "word binary, weight bigint")

    def read(
        self,
        reading: "NightReading",
        weights: "DataFrame | None",
        secret: "Source",
        decision: "NightDecision",
    ) -> None:
        """Add a night's noisy weights to all scores, and decide about all items, even if no user has them."""
        from pyspark.sql import functions as sql

        users, items = self._both
        if weights is None:
            weighed = items.withColumn("weight", sql.lit(0).cast("bigint"))
        else:
            weighed = items.join(weights.groupBy("word").agg(sql.sum("weight").alias("weight")), "word", "left")
        settings: dict[str, Any] = {"reading": reading.restricted(), "decision": decision}
        work = closure(read_items, secret=secret.restrict(f"{WORDS_PASS}{TEXT}"), **settings)
        self._frames = users, weighed.mapInArrow(work, ITEMS)

    def reached(self, levels: int) -> tuple[int, Int64s]:
        """Return the number of released unlisted items, and the number of listed items at each level from 0 on."""
        from pyspark.sql import functions as sql

        users, items = self._both
        with self._by_cores():
            # The next decision reads the same items again.
            self._frames = users, self._holder.hold(items)
            decided = sql.sum((sql.col("decided") > 0).cast("bigint"))
            found = answer(
                self._frames[1].groupBy("level").agg(sql.count("*").alias("items"), decided.alias("decided"))
            )
        level, number, out = (found.column(name).to_numpy().astype(np.int64) for name in ("level", "items", "decided"))
        counts = np.zeros(levels + 1, np.int64)
        counts[level[level >= 0]] = number[level >= 0]
        return int(out[level == UNLISTED].sum()), counts

    def settle(self, frozen: int, lowest: int, night: int) -> None:
        """Freeze listed items at or above the level `frozen`, and release listed items at or above `lowest`."""
        from pyspark.sql import functions as sql

        users, items = self._both
        for name, level in (("decided", frozen), ("released", lowest)):
            first = (sql.col(name) == 0) & (sql.col("level") >= level)
            items = items.withColumn(name, sql.when(first, sql.lit(night).cast("int")).otherwise(sql.col(name)))
        self._frames = users, items

    def out(self, after: int) -> tuple[pa.LargeStringArray, Int64s, Bools]:
        """Return the items released after a night, the nights of their release, and whether they are listed.

        The items are in the order of the files.
        """
        from pyarrow import dataset

        if self.folder is None:
            return string_array([]), np.empty(0, np.int64), np.empty(0, np.bool_)
        rows = dataset.dataset(self.folder / "items", format="parquet").to_table(
            columns=["word", "released", "level"], filter=pc.field("released") > after
        )
        words = pa.concat_arrays([string_array([]), *(words_of(chunk) for chunk in rows.column("word").chunks)])
        nights, levels = (rows.column(name).to_numpy().astype(np.int64) for name in ("released", "level"))
        return words, nights, levels != UNLISTED

    def _decided(self) -> pa.LargeStringArray:
        """Return the decided items.

        The files lack items decided on nights that were skipped since the files were written.
        """
        found = answer(self._both[1].filter("decided > 0").select("word"))
        return pa.concat_arrays([string_array([]), *(words_of(chunk) for chunk in found.column("word").chunks)])

    def remove(self, key: int) -> Removed | None:
        """Remove the pool and the budget of a user. Return None if the user has neither."""
        from pyspark.sql import functions as sql

        users, items = self._both
        mine = sql.col("key") == sql.lit(int(np.uint64(key).astype(np.int64)))
        kinds = dict(each.rsplit(" ", 1) for each in USERS.split(", "))
        nothing = {"remaining": sql.lit(0), "paid": sql.lit(0), "items": sql.array(), "nights": sql.array()}
        changed = {
            name: sql.when(mine, value.cast(kinds[name])).otherwise(sql.col(name)) for name, value in nothing.items()
        }
        sizes = sql.size("items").alias("items"), sql.size(sql.array_distinct("nights")).alias("nights")
        some = (sql.col("remaining") > 0) | (sql.size("items") > 0)
        found = answer(users.filter(mine & some).select(*sizes)).to_pylist()
        if not found:
            return None
        self._frames = users.withColumns(changed), items
        return Removed(**found[0])

    def write(self, folder: Path) -> None:
        """Write the state to a new folder, and continue from it.

        Raises:
            ReleaseError: If this machine cannot read the files of the executors.
        """
        from pyarrow import dataset

        for name, frame in zip(("users", "items"), self._both, strict=True):
            with self._by_cores():
                held = Holder().hold(frame)
                writer = held.write.partitionBy("place") if name == "users" else held.write
                ran(held.sparkSession, writer.parquet, f"file://{folder / name}")
                told = answer(held.groupBy().count()).column(0)[0].as_py()
            found = sorted(folder.joinpath(name).rglob("*.parquet"))
            if dataset.dataset(found, format="parquet").count_rows() != told if found else told:
                raise ReleaseError(
                    f"{folder.parent} does not contain the files of the executors. The folder of a series on Spark "
                    "must be one that this machine and all executors reach under the same path."
                )
            for path in found:
                sync(path)
        self.folder, self._frames, self._holder = folder, None, Holder(most=None)

    def _held(self, states: States) -> "DataFrame":
        """Return the group, word and state of every unreleased item of a pool."""
        from pyspark.sql import functions as sql

        users, items = self._both
        known = items.mapInArrow(closure(item_states, states=states), "word binary, state int")
        # Use an alias, because Spark cannot distinguish columns of a frame from columns of a frame derived from it.
        pairs = users.select(sql.col("place").alias("place"), sql.explode("items").alias("word")).distinct()
        return pairs.join(known, "word")

    def _by_cores(self) -> AbstractContextManager[None]:
        """Plan shuffles of words with as many tasks as run in parallel, instead of 200 tasks."""
        return with_setting(self._session, SETTING, str(at_least_two(cores(self._session))))


def _of_users(secret: "Source") -> "Source":
    return secret.restrict(sample_of(ORDER_OF_NIGHTS), order_of(ORDER_OF_NIGHTS), f"{WORDS_PASS}{TEXT}")
