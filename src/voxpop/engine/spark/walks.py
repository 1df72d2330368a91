"""The walks on a cluster. Each partition has a separate walk, and public sets are broadcast between lengths."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from voxpop.engine.contract import ALL_LENGTHS, WORDS_PASS, no_order, order_of, sample_of
from voxpop.engine.local.tree_walk import MemoryTreeWalk
from voxpop.engine.spark.frames import (
    AnswerBatches,
    Arrays,
    Holder,
    SparkTask,
    closure,
    on_state,
    pieces,
    run_with_public,
    texts_of,
    word_arrays,
)
from voxpop.engine.spark.histogram import SparkHistogram
from voxpop.engine.spark.session import answer, at_least_two, cores
from voxpop.engine.spark.tasks import (
    Paying,
    Since,
    Weighing,
    corpus_of_arrays,
    keep_next,
    keep_words,
    weigh_deferred,
    weigh_grams,
    weigh_items,
)
from voxpop.engine.spark.worker import safely
from voxpop.errors import InternalError
from voxpop.kernels.arrays import Int32s, Int64s
from voxpop.privacy.secret import TEXT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from voxpop.engine.contract import CountKind, Shares
    from voxpop.engine.data import CandidateArrays, Subset
    from voxpop.privacy.individual import Charge
    from voxpop.privacy.path_budget import ContextNoise
    from voxpop.privacy.secret import Source


def restricted_weighing(
    shares: "Shares",
    limit: int,
    secret: "Source",
    pass_name: str,
    *,
    order: str,
    paying: Paying | None = None,
) -> Weighing:
    """Return a weighing that contains no keys except those of its sample, of the names of words, and of its order."""
    purposes = [sample_of(pass_name), f"{WORDS_PASS}{TEXT}"]
    if shares.sequential:
        purposes.append(order_of(order))
    return Weighing(shares, limit, secret.restrict(*purposes), pass_name, paying)


def weigh_by(state: "DataFrame", work: SparkTask, public: Arrays, *, words: bool) -> SparkHistogram:
    """Run a weighing on every partition, with public arrays."""
    schema = f"name {'binary' if words else 'bigint'}, high bigint, low bigint"
    return SparkHistogram(run_with_public(state, work, public, schema), words=words)


def weighed_items(
    state: "DataFrame", shares: "Shares", limit: int, secret: "Source", pass_name: str, order: str
) -> SparkHistogram:
    """Distribute the weight of every user in all partitions among at most `limit` distinct items."""
    weighing = restricted_weighing(shares, limit, secret, pass_name, order=order)
    return weigh_by(state, closure(weigh_items, weighing=weighing, order=order), {}, words=True)


class SparkLengthWalk:
    """The counterpart of `MemoryLengthWalk` on a cluster.

    The state of a length is a DataFrame of arrays. This DataFrame is computed from the state of the previous length and
    from public sets. Executors cache the state while the next length needs it. Lost blocks are recomputed from the
    previous length or from the source.
    """

    def __init__(self, state: "DataFrame", in_groups: "Callable[[], DataFrame]", *, ordered: bool) -> None:
        """Start a walk with the tokens of all partitions.

        Args:
            state: The encoded partitions.
            in_groups: A function that returns the same users in a few groups; see
                `voxpop.engine.spark.tasks.in_groups`.
            ordered: Whether tokens have an order.
        """
        self._state = state
        self._in_groups = in_groups
        self._ordered = ordered
        self._length = 1
        self._size: int | None = None
        self._candidates: CandidateArrays | None = None
        self._words: SparkHistogram | None = None
        self._order: Source | None = None
        self._holder = Holder()
        self._paid: list[Paying] = []
        self._subsets: list[Subset] = []
        self._deferred_size = 0

    @property
    def length(self) -> int:
        """The length of the grams that `weigh` weighs."""
        return self._length

    def weigh(
        self,
        shares: "Shares",
        limit: int,
        secret: "Source",
        pass_name: str,
        charge: "Charge | None" = None,
        among: "Subset | None" = None,
    ) -> SparkHistogram:
        """Distribute the weight of every user among at most `limit` distinct grams of this length."""
        given = shares, limit, secret, pass_name
        if self._size is None:
            if charge is not None or among is not None:
                raise InternalError("a pass was charged before words were kept")
            if shares.sequential:
                self._in_order(secret)
            self._words = weighed_items(self._state, *given, ALL_LENGTHS)
            return self._words
        if shares.sequential and self._order is None:
            raise InternalError("a walk that began without an order of users cannot have one at a later length")
        since, paying = self._since(self._size), self._paying(charge, among)
        weighing = restricted_weighing(*given, order=ALL_LENGTHS, paying=paying)
        work = closure(weigh_grams, weighing=weighing, since=since)
        return weigh_by(self._state, work, self._public(), words=False)

    def _in_order(self, secret: "Source") -> None:
        """Put the users into a few groups, and weigh them in a secret order from now on."""
        self._state = self._in_groups()
        self._order = secret.restrict(order_of(ALL_LENGTHS))

    def weigh_deferred(
        self, shares: "Shares", limit: int, secret: "Source", pass_name: str, charge: "Charge"
    ) -> SparkHistogram:
        """Distribute the weight of every user among at most `limit` of all deferred candidates."""
        if self._size is None or self._candidates is not None:
            raise InternalError("deferred candidates were weighed in the middle of a length")
        since = self._since(self._size)
        self._paying(charge, None)
        weighing = restricted_weighing(shares, limit, secret, pass_name, order=ALL_LENGTHS)
        work = closure(weigh_deferred, weighing=weighing, charge=charge, since=since)
        return weigh_by(self._state, work, {}, words=False)

    def _since(self, size: int) -> Since:
        """Return the settings that a task needs in addition to the state."""
        between = self._candidates is not None
        single = self._candidates is not None and self._candidates.single
        return Since(self._length - between, size, single, self._deferred_size, tuple(self._paid))

    def _paying(self, charge: "Charge | None", among: "Subset | None") -> Paying | None:
        """Record that users pay for a pass."""
        if charge is None:
            if among is not None:
                raise InternalError("some candidates were weighed without a charge")
            return None
        number = None if among is None else len(self._subsets)
        self._subsets += [] if among is None else [among]
        paying = Paying(charge, self._candidates is None, number)
        self._paid.append(paying)
        return paying

    def keep(self, names: Int64s, deferred: Int64s | None = None) -> None:
        """Keep only the released grams."""
        if self._size is None or self._candidates is None:
            if self._words is None:
                raise InternalError("words were kept before they were weighed")
            self.keep_words(self._words.texts(names))
            return
        public = {**self._public(), "names": names}
        if deferred is not None and deferred.size:
            public["deferred"] = deferred
        self._go_on(closure(keep_next, since=self._since(self._size)), public, names.size)
        self._deferred_size += 0 if deferred is None else deferred.size

    def keep_words(self, words: pa.LargeStringArray, order: "Source | None" = None) -> None:
        """Keep only these distinct tokens, which are in the order of their bytes.

        It is possible that no user has some of these tokens.
        """
        if order is not None:
            self._in_order(order)
        self._go_on(closure(keep_words, order=self._order), word_arrays(words), len(words))

    def _go_on(self, work: SparkTask, public: Arrays, size: int) -> None:
        """Compute the state for this number of kept grams."""
        self._state = self._holder.hold(run_with_public(self._state, work, public))
        self._size, self._candidates, self._words = size, None, None
        self._paid, self._subsets = [], []

    def extend(self, candidates: "CandidateArrays") -> None:
        """Continue with the next length and its candidates."""
        if not self._ordered:
            raise no_order()
        if self._size is None:
            raise InternalError("a walk continued from length 1 before the grams of length 1 were kept")
        self._candidates = candidates
        self._length += 1

    def _public(self) -> Arrays:
        if self._candidates is None:
            return {}
        public: Arrays = {"need": self._candidates.need, "estimates": self._candidates.estimates}
        for number, each in enumerate(self._subsets):
            public |= {f"need/{number}": each.rule.need, f"estimates/{number}": each.rule.estimates}
            if each.further is not None:
                public[f"further/{number}"] = each.further
        return public


# The code below is the walk along a tree of contexts. Each partition counts its own steps, and noise is added on the
# executors that have the sums.


@on_state
def cut_sequences_of(
    arrays: Arrays, sent: Arrays, *, max_length: int, secret: "Source", other: str | None
) -> AnswerBatches:
    """Cut one sequence for each user of a partition."""
    alphabet = tuple(texts_of(sent).to_pylist())
    yield from _rows_of(corpus_of_arrays(arrays).tree_walk(alphabet, max_length, secret, other))


@on_state
def count_steps_of(
    arrays: Arrays, sent: Arrays, *, alphabet: int, block: int, counted: str, given: tuple[Int64s, ...]
) -> AnswerBatches:
    """Return the counts of `TreeWalk.released` and, for each count, the block of its node."""
    keys, counts = getattr(_counting_of(arrays, alphabet), f"count_{counted}")(*given)
    columns = [pa.array(keys // block), pa.array(keys), pa.array(counts)]
    yield pa.RecordBatch.from_arrays(columns, ["block", "name", "weight"])


@on_state
def first_steps_of(arrays: Arrays, sent: Arrays, *, steps: int, alphabet: int) -> AnswerBatches:
    """Count only the first steps of each sequence."""
    counting = _counting_of(arrays, alphabet)
    counting.count_first(steps)
    yield from _rows_of(counting)


@on_state
def lengthen_steps_of(arrays: Arrays, sent: Arrays, *, depth: int, alphabet: int) -> AnswerBatches:
    """Move each step to a longer context."""
    counting = _counting_of(arrays, alphabet)
    counting.lengthen(depth, sent["keys"], sent["longer"], sent["others"])
    if (counting.places >= 0).any():
        yield from _rows_of(counting)


def noisy_counts(counts: pa.Table, nodes: pa.Table, *, noise: "ContextNoise") -> pa.Table:
    """Return the noisy counts of one block of nodes. The noise is added to the sums of all partitions."""
    with safely("noisy_counts"):
        nodes = nodes.sort_by("row")
        first = int(nodes["row"][0].as_py())
        mine = noise.of_nodes(first, np.asarray(nodes["shares"]).astype(np.int64))
        keys, places = np.unique(np.asarray(counts["name"]).astype(np.int64), return_inverse=True)
        sums = np.zeros(keys.size, np.int64)
        np.add.at(sums, places, np.asarray(counts["weight"]).astype(np.int64))
        noisy = mine(keys - first * noise.width, sums)
        rows, symbols = (each.ravel() for each in np.indices(noisy.shape))
        columns = {"row": rows + first, "symbol": symbols.astype(np.int32), "count": noisy.ravel()}
        return pa.table({name: pa.array(column) for name, column in columns.items()})


def _rows_of(counting: MemoryTreeWalk) -> Iterator[pa.RecordBatch]:
    arrays: Arrays = {"symbols": counting.symbols, "places": counting.places}
    return pieces(arrays)


def _counting_of(arrays: Arrays, alphabet: int) -> MemoryTreeWalk:
    return MemoryTreeWalk(arrays["symbols"], alphabet, 0, arrays["places"])


NODES_AT_ONCE = 1 << 10
"""The number of nodes in one block. One executor adds the noise for the children of the nodes in a block."""


class SparkTreeWalk:
    """The counterpart of `MemoryTreeWalk` on a cluster."""

    def __init__(
        self,
        state: "DataFrame",
        alphabet: tuple[str, ...],
        max_length: int,
        secret: "Source",
        other: str | None = None,
    ) -> None:
        """Cut one sequence per user."""
        self._holder = Holder()
        self._alphabet = len(alphabet)
        public = word_arrays(pa.array(alphabet, pa.large_string()))
        mine = secret.restrict("sequences/sample")
        work = closure(cut_sequences_of, max_length=max_length, secret=mine, other=other)
        self._state = self._holder.hold(run_with_public(state, work, public))

    def released(self, counted: "CountKind", noise: "ContextNoise", *given: Int64s) -> Int64s:
        """Count, add noise on the executors, and return the noisy counts.

        Nodes are assigned to executors in blocks. One executor receives the counts of a block and the public numbers of
        its nodes.
        """
        width = noise.width
        work = {"alphabet": self._alphabet, "block": width * NODES_AT_ONCE, "counted": counted, "given": given}
        counts_of = closure(count_steps_of, **work)
        counts = self._state.mapInArrow(counts_of, "block bigint, name bigint, weight bigint")
        bare, tasks = noise.restricted(), at_least_two(cores(self._state.sparkSession))
        rows = np.arange(noise.shares.size)
        public = {"block": rows // NODES_AT_ONCE, "row": rows, "shares": noise.shares}
        nodes = self._state.sparkSession.createDataFrame(pa.table({name: pa.array(public[name]) for name in public}))
        both = (each.repartition(tasks, "block").groupBy("block") for each in (counts, nodes))
        add = closure(noisy_counts, noise=bare)
        found = answer(next(both).cogroup(next(both)).applyInArrow(add, "row bigint, symbol int, count bigint"))
        counts = np.zeros((noise.shares.size, width), np.int64)
        counts[np.asarray(found["row"]), np.asarray(found["symbol"])] = np.asarray(found["count"])
        return counts

    def count_first(self, steps: int) -> None:
        """Count only the first steps of each sequence; see `TreeWalk.count_first`."""
        work = closure(first_steps_of, steps=steps, alphabet=self._alphabet)
        self._state = self._holder.hold(run_with_public(self._state, work, {}))

    def lengthen(self, depth: int, keys: Int64s, longer: Int32s, others: Int32s) -> None:
        """Move each step to a longer context; see `TreeWalk.lengthen`."""
        work = closure(lengthen_steps_of, depth=depth, alphabet=self._alphabet)
        sent: Arrays = {"keys": keys, "longer": longer, "others": others}
        self._state = self._holder.hold(run_with_public(self._state, work, sent))
