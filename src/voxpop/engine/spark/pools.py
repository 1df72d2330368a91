"""Adaptive rounds on a cluster. Users and items remain in their places, and the places exchange messages.

The place of a user is the partition that contains the user. The place of an item is a reducer, which the item's name of
128 bits determines. Places and reducers are set up once, when pools are drawn. In a round, every place of users sends
each reducer the weights of the reducer's undecided items. The reducer keeps the scores and returns the states. A round
needs two shuffles, one with 8 bytes and one with one byte for each item of each place. Places and reducers agree on an
order of items, so the messages of a round contain no names. The tasks of later rounds run only when `released` or
`levels` is called. If all pools fit in one task, that task runs all rounds with the same messages, because starting the
tasks of a round takes longer than their work.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.engine.contract import WORDS_PASS, order_of, part_of, sample_of
from voxpop.engine.local.pools import ORDER_OF_POOLS, Batch, PoolUsers, count_classes
from voxpop.engine.local.weigh import ITEMS_AT_ONCE, distinct_sets, item_names
from voxpop.engine.spark.frames import (
    MESSAGES,
    STATE_SCHEMA,
    AnswerBatches,
    Arrays,
    Holder,
    Message,
    SparkBatches,
    as_table,
    closure,
    names_of,
    numbered_state,
    on_state,
    received,
    run_with_public,
    spread_rows,
    texts_of,
    weight_rows,
    word_arrays,
    words_of,
    written,
)
from voxpop.engine.spark.session import answer, at_least_two
from voxpop.engine.spark.tasks import MOST_SUM, Weighing, corpus_of_arrays, places_of, word_rows
from voxpop.engine.spark.walks import weigh_by
from voxpop.engine.spark.worker import safely, task
from voxpop.errors import InternalError
from voxpop.kernels.arrays import DROPPED, RELEASED, UNDECIDED, Bytes, Floats, Int64s, Uint64s
from voxpop.privacy.opening import Opening, opened
from voxpop.privacy.secret import TEXT
from voxpop.privacy.weightings.capped import CappedDescent
from voxpop.reading.arrow import int64_array, joined, numbers_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from voxpop.engine.contract import Shares
    from voxpop.engine.spark.histogram import SparkHistogram
    from voxpop.privacy.cumulative import ScoreStep
    from voxpop.privacy.secret import Source


OF_ITEMS = ("score", "states", "levels")
"""The messages from reducers to themselves."""
STATE_OF_ITEMS = -1
"""The place that passes on the states of items. It has no users."""


@on_state
def count_sizes(arrays: Arrays, sent: Arrays, *, edges: Sequence[int], secret: "Source") -> AnswerBatches:
    """Count the users of a partition by their number of distinct items."""
    holdings = corpus_of_arrays(arrays).holdings(secret, ORDER_OF_POOLS, ordered=False)
    counts = count_classes(distinct_sets(holdings, None, lambda items, starts, keys: starts), edges)
    yield from weight_rows(np.arange(counts.size), counts)


@on_state
def weigh_first_round(arrays: Arrays, sent: Arrays, *, weighing: Weighing) -> AnswerBatches:
    """Weigh the items of a partition, with users in the order that all rounds share."""
    corpus = corpus_of_arrays(arrays)
    users = PoolUsers.of(corpus, item_names(corpus.vocabulary, weighing.secret)[:, 0], weighing.secret)
    histogram = users.weigh(weighing.shares, weighing.limit, weighing.pass_name)
    ids = np.flatnonzero(histogram)
    yield from word_rows(corpus.vocabulary.take(int64_array(ids)), histogram[ids])


@on_state
def draw_pools(
    arrays: Arrays, sent: Arrays, *, mine: int, size: int, pass_name: str, secret: "Source", places: int, reducers: int
) -> AnswerBatches:
    """Draw a pool for every user of a partition, and send each reducer its items that are in a pool."""
    corpus = corpus_of_arrays(arrays)
    names = item_names(corpus.vocabulary, secret)
    users = PoolUsers.of(corpus, names[:, 0], secret)
    # The texts are the released items, followed by the items of a public list.
    found, released = places_of(texts_of(sent), corpus.vocabulary), int(sent["released"][0])
    opened_here, listed_here = found[:released], found[released:]
    users.states[opened_here[opened_here >= 0]] = RELEASED
    listed = np.zeros(len(corpus.vocabulary), np.uint8)
    listed[listed_here[listed_here >= 0]] = 1
    if sent["listed"][0]:
        users.listed = listed
    users.draw(size, pass_name)
    pooled, bounds = _by_reducer(np.flatnonzero(users.states > DROPPED), names, reducers)
    rank = np.full(len(corpus.vocabulary), -1, np.int32)
    rank[pooled] = np.arange(pooled.size, dtype=np.int32)
    batch = users.joined()
    kept: Arrays = {"items": rank[batch.items], "user_start": batch.starts, "user_key": batch.keys}
    # The array is empty if there is no list, as in `PoolUsers`.
    marks = users.listed[pooled] if users.listed.size else users.listed
    kept |= {"user_names": names[pooled, 0], "bounds": bounds, "user_listed": marks}
    yield from written([(int(spread_rows(places)[mine]), mine, kept)])
    texts = corpus.vocabulary.take(int64_array(pooled))
    yield from written(_registrations(texts, names[pooled], listed[pooled], bounds, mine))


def _by_reducer(ids: Int64s, names: Uint64s, reducers: int) -> tuple[Int64s, Int64s]:
    """Return the ids, sorted by reducer and name, and the start of each reducer's ids, followed by the end."""
    reducer = names[ids, 1] % np.uint64(reducers)
    order = np.lexsort((names[ids, 1], names[ids, 0], reducer))
    return ids[order], np.searchsorted(reducer[order], np.arange(reducers + 1, dtype=np.uint64)).astype(np.int64)


def _registrations(
    words: pa.LargeStringArray, names: Uint64s, listed: Bytes, bounds: Int64s, mine: int
) -> Iterator[Message]:
    places = spread_rows(bounds.size - 1)
    for reducer, (begin, end) in enumerate(pairwise(bounds.tolist())):
        if end > begin:
            known: Arrays = {"reducer": np.array([reducer]), "names": names[begin:end], "listed": listed[begin:end]}
            yield int(places[reducer]), mine, {**known, **word_arrays(words.slice(begin, end - begin))}


def register(rows: pa.Table) -> pa.Table:
    """Return the items of one reducer, and the places that have each item, in the order of the places' messages."""
    with safely("register"):
        sent = received(rows)
        names = np.concatenate([each["names"].reshape(-1, 2) for each in sent.values()])
        texts = pa.concat_arrays([texts_of(each) for each in sent.values()])
        listed = np.concatenate([each["listed"] for each in sent.values()])
        order = np.lexsort((names[:, 1], names[:, 0]))
        ordered = names[order]
        first = np.ones(order.size, np.bool_)
        first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
        held = np.empty(order.size, np.int32)
        held[order] = np.cumsum(first) - 1
        sizes = np.array([each["names"].size // 2 for each in sent.values()], np.int64)
        items: Arrays = {
            "names": ordered[first],
            "listed": listed[order[first]],
            **word_arrays(texts.take(int64_array(order[first]))),
            "senders": np.array(list(sent), np.int64),
            "held_starts": np.concatenate([[0], np.cumsum(sizes)]),
            "held": held,
        }
        place = rows.column("place")[0].as_py()
        reducer = int(next(iter(sent.values()))["reducer"][0])
        return as_table([(place, reducer, items)])


def weigh_pools(
    pools: pa.Table, news: pa.Table, *, shares: CappedDescent, secret: "Source", pass_name: str, reducers: int
) -> pa.Table:
    """Return the weights of a round for each reducer's undecided items, in the order of the items.

    A reducer's states are passed on in the same table, so that a round computes one table from the previous table,
    which is used only once.
    """
    with safely("weigh_pools"):
        places, sent = spread_rows(reducers), received(news)
        states = [
            (int(places[reducer]), STATE_OF_ITEMS, {name: each[name] for name in OF_ITEMS})
            for reducer, each in sent.items()
            if "score" in each
        ]
        held = received(pools).items()
        weights = (_weights(arrays, mine, sent, places, shares, secret, pass_name) for mine, arrays in held)
        return as_table(chain(states, chain.from_iterable(weights)))


def _weights(
    arrays: Arrays,
    mine: int,
    sent: dict[int, Arrays],
    places: Int64s,
    shares: CappedDescent,
    secret: "Source",
    pass_name: str,
) -> Iterator[Message]:
    bounds = arrays["bounds"]
    parts = [slice(*bounds[number : number + 2]) for number in range(places.size)]
    keys = arrays["user_key"]
    # The states reflect all rounds so far, and the pools have not changed since they were drawn.
    batch = Batch(arrays["items"], arrays["user_start"], keys, np.zeros(keys.size, np.int64))
    users = PoolUsers.at(batch, arrays["user_names"], secret)
    users.listed = arrays["user_listed"]
    for reducer, each in sent.items():
        if "held" in each:
            users.states[parts[reducer]] = each["held"]
    histogram = users.weigh_pools(shares, pass_name)
    for place, part in zip(places.tolist(), parts, strict=True):
        undecided = users.states[part] > DROPPED
        if undecided.any():
            yield place, mine, {"weights": histogram[part][undecided]}


def advance_items(items: pa.Table, news: pa.Table, *, step: "ScoreStep", places: int) -> pa.Table:
    """Return the score and the states of a reducer's items after a round, and send the states to the users' places."""
    with safely("advance_items"):
        ((mine, arrays),) = received(items).items()
        sent = received(news)
        states, score, levels = _state(sent.pop(STATE_OF_ITEMS, {}), arrays["names"].size // 2)
        weights = _summed(arrays, states, sent)
        names = arrays["names"].reshape(-1, 2)
        ids = np.flatnonzero(states > DROPPED)
        unknown, listed = ids[arrays["listed"][ids] == 0], ids[arrays["listed"][ids] != 0]
        for begin in range(0, unknown.size, ITEMS_AT_ONCE):
            some = unknown[begin : begin + ITEMS_AT_ONCE]
            score[some], states[some] = opened(step, weights[some], names[some], score[some])
        for begin in range(0, listed.size, ITEMS_AT_ONCE):
            some = listed[begin : begin + ITEMS_AT_ONCE]
            levelled: Any = step.known
            score[some], states[some], reached = opened(levelled, weights[some], names[some], score[some])
            levels[some] = np.maximum(levels[some], reached)
        return as_table(_outcomes(mine, arrays, states, score, levels, places))


def _state(sent: Arrays, size: int) -> tuple[Bytes, Floats, Bytes]:
    """Return the states, scores and levels of items. Before the first round, all items are undecided."""
    score = np.zeros(size)
    if not sent:
        return np.full(size, UNDECIDED, np.uint8), score, np.zeros(size, np.uint8)
    score[sent["states"] > DROPPED] = sent["score"]
    return sent["states"].copy(), score, sent["levels"].copy()


def _summed(arrays: Arrays, states: Bytes, sent: dict[int, Arrays]) -> Int64s:
    """Add up the weights from all places, clipped at a bound above which results do not change.

    The sum is 0 for items that no user drew.

    The part of each place is at most 2^61. The sum so far is also at most 2^61, because it can be clipped after each
    addition: min(min(a + b, c) + d, c) = min(a + b + d, c).
    """
    weights = np.zeros(states.size, np.int64)
    starts = arrays["held_starts"]
    for number, sender in enumerate(arrays["senders"].tolist()):
        held = arrays["held"][starts[number] : starts[number + 1]]
        held = held[states[held] > DROPPED]
        theirs: Any = sent.get(sender, {}).get("weights", np.empty(0, np.int64))
        if theirs.size != held.size:
            raise InternalError("a partition's weights do not fit its undecided items")
        weights[held] = np.minimum(weights[held] + theirs, MOST_SUM)
    return weights


def _outcomes(mine: int, arrays: Arrays, states: Bytes, score: Floats, levels: Bytes, places: int) -> Iterator[Message]:
    numbers, starts = spread_rows(places), arrays["held_starts"]
    yield int(numbers[mine]), mine, {"score": score[states > DROPPED], "states": states, "levels": levels}
    for number, sender in enumerate(arrays["senders"].tolist()):
        yield int(numbers[sender]), mine, {"held": states[arrays["held"][starts[number] : starts[number + 1]]]}


def released_of_reducer(items: pa.Table, news: pa.Table) -> pa.Table:
    """Return the bytes of a reducer's released items (with level 0) and of its listed items with their levels."""
    with safely("released_items"):
        names, numbers = [pa.array([], pa.binary())], [np.empty(0, np.int32)]
        for reducer, arrays in received(items).items():
            sent = received(news)[reducer]
            mine = (sent["levels"] > 0) | ((sent["states"] == RELEASED) & (arrays["listed"] == 0))
            names.append(names_of(texts_of(arrays).filter(pa.array(mine))))
            numbers.append(sent["levels"][mine].astype(np.int32))
        return pa.table({"name": pa.concat_arrays(names), "level": pa.array(np.concatenate(numbers))})


@task
def run_rounds(batches: SparkBatches, *, rounds: "Sequence[_PoolRound]", places: int, reducers: int) -> AnswerBatches:
    """Run all rounds on all pools in one task, and yield the bytes of the released items."""
    rows = pa.Table.from_batches(batches, STATE_SCHEMA)
    of_users = pc.is_in(rows["name"], pa.array(OF_USERS))
    users, news = _by_place(rows.filter(of_users)), STATE_SCHEMA.empty_table()
    items = {place: register(each) for place, each in _by_place(rows.filter(pc.invert(of_users))).items()}
    for shares, step, secret, pass_name in rounds:
        given: dict[str, Any] = {"shares": shares, "secret": secret, "pass_name": pass_name, "reducers": reducers}
        weights = _met_here(users, news, weigh_pools, **given)
        news = _met_here(items, weights, advance_items, step=step, places=places)
    states = news.filter(pc.is_in(news["name"], pa.array(OF_ITEMS)))
    for each in items.values():
        yield from released_of_reducer(each, states).to_batches()


def _by_place(rows: pa.Table) -> dict[int, pa.Table]:
    return {place: rows.filter(pc.equal(rows["place"], place)) for place in pc.unique(rows["place"]).to_pylist()}


def _met_here(there: dict[int, pa.Table], news: pa.Table, work: Callable[..., pa.Table], **settings: Any) -> pa.Table:
    sent, nothing = _by_place(news), STATE_SCHEMA.empty_table()
    places = {**there, **sent}
    found = [work(there.get(place, nothing), sent.get(place, nothing), **settings) for place in places]
    return pa.concat_tables(found) if found else nothing


_PoolRound = tuple[CappedDescent, "ScoreStep", "Source", str]
"""The weighting, the step, the source of the draws, and the name of the pass."""
MOST_REDUCERS = 1024
"""The maximum number of reducers. It is limited because every place sends a message to every reducer in each round."""
MOST_TOGETHER = 1 << 28
"""The maximum number of bytes of pools in one task. The task needs about three times as much memory."""
MOST_MESSAGES = 1 << 16
"""The maximum number of messages per round in one task. Beyond this number, one task per place is faster."""
OF_USERS = ("items", "user_start", "user_key", "user_names", "bounds", "user_listed")


class SparkPools:
    """The counterpart of `Pools` on a cluster, with the same order of calls."""

    def __init__(self, state: "DataFrame", places: int, secret: "Source") -> None:
        """Store the encoded partitions.

        Args:
            state: The arrays of users, in `places` partitions.
            places: The number of partitions.
            secret: The secret of the release. Executors get only the keys of each task.
        """
        self._state = state
        self._places = places
        self._reducers = min(places, MOST_REDUCERS)
        self._secret = secret
        self._opened: pa.LargeStringArray = pa.array([], pa.large_string())
        self._listed: list[pa.LargeStringArray] | None = None
        self._found: tuple[pa.LargeStringArray, Bytes] | None = None
        self._drawn: DataFrame | None = None
        self._rounds: list[_PoolRound] = []
        self._holder = Holder(most=None)

    def sizes(self, edges: Sequence[int]) -> "SparkHistogram":
        """Count the users by their number of distinct items, before the first round."""
        count = closure(count_sizes, edges=tuple(edges), secret=self._secret.restrict())
        return weigh_by(self._state, count, {}, words=False)

    def first_round(self, shares: "Shares", limit: int, decision: Opening, pass_name: str) -> None:
        """Weigh at most `limit` items of each user, and release the items that pass."""
        weighing = Weighing(shares, limit, self._restricted(pass_name), pass_name)
        histogram = weigh_by(self._state, closure(weigh_first_round, weighing=weighing), {}, words=True)
        self._opened = histogram.texts(histogram.chosen(decision))

    def recognise(self, listed: Iterable[pa.LargeStringArray]) -> None:
        """Set a public list, before pools are drawn. Every executor gets the whole list."""
        self._listed = list(listed)

    def draw(self, size: int, pass_name: str) -> None:
        """Draw a pool of at most `size` undecided items for every user, uniformly and without replacement."""
        public = word_arrays(pa.concat_arrays([self._opened, *(self._listed or [])]))
        public |= {"released": np.array([len(self._opened)]), "listed": np.array([self._listed is not None])}
        settings: dict[str, Any] = {"places": self._places, "reducers": self._reducers, "size": size}
        work = closure(draw_pools, pass_name=pass_name, secret=self._restricted(pass_name), **settings)
        self._drawn = self._holder.hold(run_with_public(numbered_state(self._state), work, public))

    def advance(self, shares: CappedDescent, step: "ScoreStep", pass_name: str) -> None:
        """Run a round, which weighs items of each pool and adds to the score of every item that is in a pool."""
        if self._drawn is None:
            raise InternalError("a round would run before pools were drawn")
        secret = self._secret.restrict(sample_of(pass_name), part_of(pass_name))
        self._rounds.append((shares, step.restricted(), secret, pass_name))

    def released(self) -> pa.LargeStringArray:
        """Return the released items, in the order of their bytes."""
        words, levels = self._outcome()
        together = pa.concat_arrays([self._opened, words.filter(pa.array(levels == 0))])
        return together.take(pc.array_sort_indices(together.cast(pa.large_binary())))

    def levels(self) -> tuple[pa.LargeStringArray, Bytes]:
        """Return the listed items in pools that have reached a level, in any order, and their levels."""
        words, levels = self._outcome()
        return words.filter(pa.array(levels > 0)), levels[levels > 0]

    def _outcome(self) -> tuple[pa.LargeStringArray, Bytes]:
        """Run all rounds once."""
        if self._found is None:
            self._found = pa.array([], pa.large_string()), np.empty(0, np.uint8)
            if self._drawn is not None and self._rounds:
                ran = self._together(self._drawn) if self._fits(self._drawn) else self._apart(self._drawn)
                # Only listed items have levels above 0.
                found = answer(ran.select("name") if self._listed is None else ran)
                words = words_of(joined(found.column("name")))
                levels = np.zeros(len(words), np.uint8)
                if self._listed is not None:
                    levels = numbers_of(joined(found.column("level"))).astype(np.uint8)
                self._found = words, levels
        return self._found

    def _fits(self, drawn: "DataFrame") -> bool:
        """Return whether all pools fit in one task.

        The driver receives only the answer, but not the size of the pools.
        """
        from pyspark.sql import functions as sql

        if self._places * self._reducers > MOST_MESSAGES:
            return False
        size = sql.coalesce(sql.sum(sql.length("data")), sql.lit(0))
        return bool(answer(drawn.agg((size <= MOST_TOGETHER).alias("fits")))["fits"][0].as_py())

    def _together(self, drawn: "DataFrame") -> "DataFrame":
        settings: dict[str, Any] = {"rounds": self._rounds, "places": self._places, "reducers": self._reducers}
        return drawn.repartition(1).mapInArrow(closure(run_rounds, **settings), "name binary, level int")

    def _apart(self, drawn: "DataFrame") -> "DataFrame":
        from pyspark.sql import functions as sql

        of_users = sql.col("name").isin(*OF_USERS)
        users = self._placed(drawn.filter(of_users), self._places)
        told = drawn.filter(~of_users).repartition(at_least_two(self._reducers), "place")
        items = self._placed(told.groupBy("place").applyInArrow(register, MESSAGES), self._reducers)
        # This table is empty, because no place is below 0. If Spark could infer this, it would not partition the table
        # together with the users.
        outcome = users.filter(sql.col("place") < 0)
        for shares, step, secret, pass_name in self._rounds:
            given: dict[str, Any] = {"shares": shares, "secret": secret, "pass_name": pass_name}
            weigh = closure(weigh_pools, **given, reducers=self._reducers)
            weights = met(users, outcome, weigh, self._places)
            outcome = met(items, weights, closure(advance_items, step=step, places=self._places), self._reducers)
        homes = sql.array(*map(sql.lit, spread_rows(self._reducers).tolist()))
        states = outcome.filter(sql.col("name").isin(*OF_ITEMS))
        states = states.withColumn("place", homes[sql.col("sender")].cast("int"))
        return met(items, states, closure(released_of_reducer), self._reducers, "name binary, level int")

    def _restricted(self, pass_name: str) -> "Source":
        return self._secret.restrict(sample_of(pass_name), order_of(ORDER_OF_POOLS), f"{WORDS_PASS}{TEXT}")

    def _placed(self, rows: "DataFrame", count: int) -> "DataFrame":
        """Keep rows in the partitions that receive their messages, so only messages are shuffled."""
        return self._holder.hold(rows.repartition(at_least_two(count), "place").sortWithinPartitions("place"))


def met(there: "DataFrame", news: "DataFrame", work: Any, count: int, schema: str = MESSAGES) -> "DataFrame":
    """Run a task on the content of each place and on the messages to this place."""
    arrived = news.repartition(at_least_two(count), "place")
    return there.groupBy("place").cogroup(arrived.groupBy("place")).applyInArrow(work, schema)
