"""What runs on the executors for adaptive rounds; see `voxpop.spark.pools`."""

from collections.abc import Iterator
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.arrays import Bytes, Floats, Int64s, Uint64s
from voxpop.arrow import int64_array, text_buffers
from voxpop.corpus.holdings import item_names
from voxpop.corpus.pool_batches import Batch
from voxpop.corpus.pool_users import PoolUsers
from voxpop.corpus.pools import ITEMS_AT_ONCE
from voxpop.errors import InternalError
from voxpop.spark.frames import Arrays, laid_together, texts_of
from voxpop.spark.messages import Message, as_table, received, spread, written
from voxpop.spark.tasks import MOST_WEIGHT, Answer, Batches, Weighing, corpus_of, places_of, word_rows
from voxpop.spark.worker import safely, task

if TYPE_CHECKING:
    from voxpop.privacy.evidence_step import EvidenceStep
    from voxpop.privacy.secret import Source


OF_ITEMS = ("evidence", "fates")
"""What reducers send to themselves."""
STATE_OF_ITEMS = -1
"""Who passes it on: no place of users."""
UNDECIDED, RELEASED, DROPPED = 0, 1, 2
"""Fates of items."""


@task
def weigh_opening(batches: Batches, *, weighing: Weighing) -> Answer:
    """Weigh the items of a partition, users in the order of all rounds."""
    arrays, _ = laid_together(batches)
    if not arrays:
        return
    corpus = corpus_of(arrays)
    users = PoolUsers.of(corpus, item_names(corpus.vocabulary, weighing.secret)[:, 0], weighing.secret)
    histogram = users.weigh(weighing.shares, weighing.limit, weighing.pass_name)
    ids = np.flatnonzero(histogram)
    yield from word_rows(corpus.vocabulary.take(int64_array(ids)), histogram[ids], weighing)


@task
def draw_pools(
    batches: Batches,
    *,
    size: int,
    pass_name: str,
    secret: "Source",
    places: int,
    reducers: int,
    public: bytes | None = None,
) -> Answer:
    """Give every user of a partition a pool, and tell each reducer which of its items lie in one."""
    held = list(batches)
    arrays, sent = laid_together(held, public)
    if not arrays:
        return
    mine = int(held[0].column("sender")[0].as_py())
    corpus = corpus_of(arrays)
    names = item_names(corpus.vocabulary, secret)
    users = PoolUsers.of(corpus, names[:, 0], secret)
    found = places_of(texts_of(sent["word_data"], sent["word_starts"]), corpus.vocabulary)
    users.undecided[found[found >= 0]] = 0
    users.draw(size, pass_name)
    pooled, bounds = _by_reducer(np.flatnonzero(users.undecided), names, reducers)
    rank = np.full(len(corpus.vocabulary), -1, np.int32)
    rank[pooled] = np.arange(pooled.size, dtype=np.int32)
    batch = users.joined()
    kept: Arrays = {"items": rank[batch.items], "user_start": batch.starts, "user_key": batch.keys}
    kept |= {"user_names": names[pooled, 0], "bounds": bounds}
    yield from written([(int(spread(places)[mine]), mine, kept)])
    yield from written(_registrations(corpus.vocabulary.take(int64_array(pooled)), names[pooled], bounds, mine))


def _by_reducer(ids: Int64s, names: Uint64s, reducers: int) -> tuple[Int64s, Int64s]:
    """Return ids by reducer and name, and where each reducer's begin (one more)."""
    reducer = names[ids, 1] % np.uint64(reducers)
    order = np.lexsort((names[ids, 1], names[ids, 0], reducer))
    return ids[order], np.searchsorted(reducer[order], np.arange(reducers + 1, dtype=np.uint64)).astype(np.int64)


def _registrations(words: pa.LargeStringArray, names: Uint64s, bounds: Int64s, mine: int) -> Iterator[Message]:
    places = spread(bounds.size - 1)
    for reducer, (begin, end) in enumerate(pairwise(bounds.tolist())):
        if end > begin:
            data, starts = text_buffers(words.slice(begin, end - begin))
            texts: Arrays = {"word_data": data[starts[0] : starts[-1]], "word_starts": starts - starts[0]}
            known: Arrays = {"reducer": np.array([reducer]), "names": names[begin:end]}
            yield int(places[reducer]), mine, {**known, **texts}


def register(rows: pa.Table) -> pa.Table:
    """Return the items of one reducer, and who holds each, in the order in which the holders name them."""
    with safely("register"):
        sent = received(rows)
        names = np.concatenate([each["names"].reshape(-1, 2) for each in sent.values()])
        texts = pa.concat_arrays([texts_of(each["word_data"], each["word_starts"]) for each in sent.values()])
        order = np.lexsort((names[:, 1], names[:, 0]))
        ordered = names[order]
        first = np.ones(order.size, np.bool_)
        first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
        held = np.empty(order.size, np.int32)
        held[order] = np.cumsum(first) - 1
        data, starts = text_buffers(texts.take(int64_array(order[first])))
        sizes = np.array([each["names"].size // 2 for each in sent.values()], np.int64)
        items: Arrays = {
            "names": ordered[first],
            "word_data": data[starts[0] : starts[-1]],
            "word_starts": starts - starts[0],
            "senders": np.array(list(sent), np.int64),
            "held_starts": np.concatenate([[0], np.cumsum(sizes)]),
            "held": held,
        }
        place = rows.column("place")[0].as_py()
        reducer = int(next(iter(sent.values()))["reducer"][0])
        return as_table([(place, reducer, items)])


def weigh_pools(pools: pa.Table, news: pa.Table, *, weighing: Weighing, reducers: int) -> pa.Table:
    """Return the weights of a round, to each reducer those of its undecided items, in their order.

    What reducers sent to themselves is passed on: so a round makes one table of the one before, which none uses twice.
    """
    with safely("weigh_pools"):
        places, sent = spread(reducers), received(news)
        states = [
            (int(places[reducer]), STATE_OF_ITEMS, {name: each[name] for name in OF_ITEMS})
            for reducer, each in sent.items()
            if "fates" in each
        ]
        weights = (_weights(arrays, mine, sent, weighing, places) for mine, arrays in received(pools).items())
        return as_table(chain(states, chain.from_iterable(weights)))


def _weights(
    arrays: Arrays, mine: int, sent: dict[int, Arrays], weighing: Weighing, places: Int64s
) -> Iterator[Message]:
    bounds = arrays["bounds"]
    parts = [slice(*bounds[number : number + 2]) for number in range(places.size)]
    batch = Batch(arrays["items"], arrays["user_start"], arrays["user_key"])
    users = PoolUsers.at(batch, arrays["user_names"], weighing.secret)
    for reducer, each in sent.items():
        if "decided" in each:
            part = parts[reducer]
            users.undecided[part] = 1 - np.unpackbits(each["decided"], count=part.stop - part.start)
    histogram = users.weigh(weighing.shares, weighing.limit, weighing.pass_name)
    for place, part in zip(places.tolist(), parts, strict=True):
        undecided = users.undecided[part] > 0
        if undecided.any():
            yield place, mine, {"weights": histogram[part][undecided]}


def advance_items(items: pa.Table, news: pa.Table, *, step: "EvidenceStep", places: int) -> pa.Table:
    """Return the evidence and the fates of a reducer's items after a round, and tell holders what is decided."""
    with safely("advance_items"):
        ((mine, arrays),) = received(items).items()
        sent = received(news)
        fates, evidence = _state(sent.pop(STATE_OF_ITEMS, {}), arrays["names"].size // 2)
        weights = _summed(arrays, fates, sent)
        names = arrays["names"].reshape(-1, 2)
        ids = np.flatnonzero(fates == UNDECIDED)
        for begin in range(0, ids.size, ITEMS_AT_ONCE):
            some = ids[begin : begin + ITEMS_AT_ONCE]
            evidence[some], released, dropped = step(weights[some], names[some], evidence[some])
            fates[some[dropped]] = DROPPED
            fates[some[released]] = RELEASED
        return as_table(_outcomes(mine, arrays, fates, evidence, places))


def _state(sent: Arrays, size: int) -> tuple[Bytes, Floats]:
    """Return fates and evidence of items; before the first round none of either."""
    evidence = np.zeros(size)
    if not sent:
        return np.full(size, UNDECIDED, np.uint8), evidence
    evidence[sent["fates"] == UNDECIDED] = sent["evidence"]
    return sent["fates"], evidence


def _summed(arrays: Arrays, fates: Bytes, sent: dict[int, Arrays]) -> Int64s:
    """Add up what all holders sent, cut off where nothing depends on it any more; 0 for what nobody drew.

    Each holder's part is at most 2^61, and so is the sum so far: min(min(a + b, c) + d, c) = min(a + b + d, c).
    """
    weights = np.zeros(fates.size, np.int64)
    starts = arrays["held_starts"]
    for number, sender in enumerate(arrays["senders"].tolist()):
        held = arrays["held"][starts[number] : starts[number + 1]]
        held = held[fates[held] == UNDECIDED]
        theirs: Any = sent.get(sender, {}).get("weights", np.empty(0, np.int64))
        if theirs.size != held.size:
            raise InternalError("a partition's weights do not fit its undecided items.")
        weights[held] = np.minimum(weights[held] + theirs, MOST_WEIGHT)
    return weights


def _outcomes(mine: int, arrays: Arrays, fates: Bytes, evidence: Floats, places: int) -> Iterator[Message]:
    numbers, starts = spread(places), arrays["held_starts"]
    yield int(numbers[mine]), mine, {"evidence": evidence[fates == UNDECIDED], "fates": fates}
    for number, sender in enumerate(arrays["senders"].tolist()):
        decided = fates[arrays["held"][starts[number] : starts[number + 1]]] != UNDECIDED
        yield int(numbers[sender]), mine, {"decided": np.packbits(decided)}


@task
def to_reducers(batches: Batches, *, reducers: int) -> Answer:
    """Send what reducers sent to themselves to them."""
    places = spread(reducers)
    for batch in batches:
        mine = batch.filter(pc.is_in(batch.column("name"), pa.array(OF_ITEMS)))
        place = pa.array(places[np.asarray(mine.column("sender"))], pa.int32())
        yield mine.set_column(0, "place", place)


def released_items(items: pa.Table, news: pa.Table) -> pa.Table:
    """Return the bytes of a reducer's released items."""
    with safely("released_items"):
        found = [
            texts_of(arrays["word_data"], arrays["word_starts"]).filter(
                pa.array(received(news)[reducer]["fates"] == RELEASED)
            )
            for reducer, arrays in received(items).items()
        ]
        names = [each.cast(pa.large_binary()).cast(pa.binary()) for each in found]
        return pa.table({"name": pa.chunked_array(names, pa.binary())})
