"""Tasks of the executors: batches of Arrow in, batches of Arrow out, on the kernels of the local engine.

Closures hold settings and the keys of one purpose; public arrays come with them or with the rows
(`frames.run_with_public`). Every function is a pure one of its arguments: run twice, or on another machine, it answers
the same.
"""

from dataclasses import dataclass
from importlib import metadata
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.engine.spark.frames import Answer, Arrays, Batches, on_state, pieces, texts_of, weight_rows, word_arrays
from voxpop.engine.spark.worker import set_up, task
from voxpop.errors import InputError
from voxpop.kernels.arrays import Int64s

if TYPE_CHECKING:
    from voxpop.engine.contract import Charge, Draws, Shares
    from voxpop.engine.data import Subset
    from voxpop.engine.local.corpus import LocalCorpus
    from voxpop.engine.local.length_walk import MemoryLengthWalk
    from voxpop.reading.types import Column

set_up()  # in a worker of the daemon the package was there before there was a task

LOW_BITS = 31
"""Weights of sequential weightings reach 2^61 in each partition, so they are summed in two parts."""
WHOLE = 63
MOST_WEIGHT = 1 << 61
IN_BATCH = "rows of the table, counted within one batch of Spark"
"""Where a value is that does not fit: files of Spark are read in parallel, so rows have no numbers."""


@dataclass(frozen=True, slots=True)
class Weighing:
    """One weighing.

    Attributes:
        shares: how a user's weight is shared.
        limit: most items of one user.
        secret: restricted to the sample and, for sequential weightings, the order of users.
        pass_name: which pass of the release this is.
        paying: the charge of each user, where charges are individual.
    """

    shares: "Shares"
    limit: int
    secret: "Draws"
    pass_name: str
    paying: "Paying | None" = None

    @property
    def low_bits(self) -> int:
        """How weights are split for the sum."""
        return LOW_BITS if self.shares.sequential else WHOLE


@dataclass(frozen=True, slots=True)
class Paying:
    """A pass that charges every user individually.

    A state contains the remaining budgets at the time of its creation. Later passes are charged again at each use: the
    charge of a user is a function of the user's items.

    Attributes:
        charge: of the pass.
        kept: whether it weighed kept grams, rather than candidates.
        subset: which of the subsets that are sent it was about; None for all.
    """

    charge: "Charge"
    kept: bool
    subset: int | None = None


@task
def decode_lines(batches: Batches, *, columns: "list[Column]") -> Answer:
    """Yield columns of JSON lines, decoded by the rule of the local engine."""
    from voxpop.reading.text_files import json_batch

    for batch in batches:
        data = b"\n".join(batch.column(0).cast(pa.binary()).to_pylist())
        if data.strip():
            yield _small_offsets(json_batch(data + b"\n", columns, IN_BATCH, 1))


@task
def declare(batches: Batches, *, columns: "list[Column]") -> Answer:
    """Yield strings as values of the types that the caller declares."""
    from voxpop.reading.types import typed

    for batch in batches:
        arrays = [typed(batch.column(each.name), each, IN_BATCH, 0) for each in columns]
        yield _small_offsets(pa.RecordBatch.from_arrays(arrays, [each.name for each in columns]))


def _small_offsets(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return strings and lists as Spark takes them, with offsets of 32 bits."""

    def small(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_large_list(kind):
            return pa.list_(small(kind.value_type))
        return pa.string() if pa.types.is_large_string(kind) else kind

    return batch.cast(pa.schema([(each.name, small(each.type)) for each in batch.schema]))


@task
def encode(batches: Batches, *, wanted: dict[str, Any], version: str) -> Answer:
    """Turn the rows of a partition into the arrays of a corpus, as the local engine does.

    Args:
        batches: users, contents, and their order where there is one.
        wanted: the fields of `Wanted`: the columns and their use.
        version: of voxpop on the driver.

    Raises:
        InputError: where it is another one here.
    """
    if version != metadata.version("voxpop"):
        raise InputError(
            f"the driver has voxpop {version}, an executor {metadata.version('voxpop')}. Install the same on both."
        )
    from voxpop.engine.local.content_order import in_content_order
    from voxpop.engine.local.read import read_here
    from voxpop.reading.wanted import ReadOptions, Wanted

    table = Wanted(**wanted)
    rows = (batch.rename_columns(table.names) for batch in batches)
    first = next((batch for batch in rows if batch.num_rows), None)
    if first is None:
        return
    reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], rows))
    corpus = in_content_order(read_here(reader, table, ReadOptions(progress=False)), documents=table.order is None)
    yield from pieces(_arrays_of(corpus))


def _arrays_of(corpus: "LocalCorpus") -> Arrays:
    held: Arrays = {"tokens": corpus.tokens, "user_start": corpus.user_start, "user_key": corpus.user_key}
    return {**held, **word_arrays(corpus.vocabulary)}


def corpus_of(arrays: Arrays) -> "LocalCorpus":
    """Return the corpus of a partition's users."""
    from voxpop.engine.local.corpus import LocalCorpus

    return LocalCorpus(arrays["tokens"], arrays["user_start"], arrays["user_key"], texts_of(arrays), "tokens")


@on_state
def weigh_remaining(arrays: Arrays, sent: Arrays, *, weighing: Weighing) -> Answer:
    """Weigh the words of a partition, those left out that earlier rounds released."""
    corpus = corpus_of(arrays)
    left = np.ones(len(corpus.vocabulary), np.uint8)
    if sent:
        found = places_of(texts_of(sent), corpus.vocabulary)
        left[found[found >= 0]] = 0
    histogram = corpus.weigh(weighing.shares, weighing.limit, left, weighing.secret, weighing.pass_name)
    yield from word_rows(histogram.words, histogram.weights, weighing)


@on_state
def weigh_words(arrays: Arrays, sent: Arrays, *, weighing: Weighing) -> Answer:
    """Weigh the words of a partition, as the first length of a walk."""
    histogram = (
        corpus_of(arrays).length_walk().weigh(weighing.shares, weighing.limit, weighing.secret, weighing.pass_name)
    )
    yield from word_rows(histogram.words, histogram.weights, weighing)


def word_rows(words: Any, weights: Int64s, weighing: Weighing) -> Answer:
    """Yield (name, high, low) of words by their bytes."""
    return weight_rows(words.cast(pa.large_binary()).cast(pa.binary()), weights, weighing.low_bits)


@on_state
def keep_words(arrays: Arrays, sent: Arrays, *, order: "Draws | None") -> Answer:
    """Drop every unreleased word, and arrange users in the order of weighing, if there is one."""
    corpus = corpus_of(arrays)
    levels = corpus.length_walk()
    if order is not None:
        levels.put_in_order(order)
    levels.keep(places_of(texts_of(sent), corpus.vocabulary))
    yield from _kept_rows(levels, single=False)


def places_of(wanted: pa.Array, vocabulary: pa.Array) -> Int64s:
    """Return where each wanted word is in the vocabulary, or -1."""
    found = pc.index_in(wanted, value_set=vocabulary).fill_null(-1)
    return np.asarray(found).astype(np.int64)


def _kept_rows(levels: "MemoryLengthWalk", *, single: bool) -> Answer:
    """Yield the rest of a partition, without users who hold nothing any more."""
    ids, first, user_start, user_key, users = levels.compact(single=single)
    if user_key.size:
        arrays: Arrays = {"ids": ids, "user_start": user_start, "user_key": user_key}
        left, deferred, deferred_start = levels.past(users)
        if left is not None:
            arrays |= {"left": left, "deferred": deferred, "deferred_start": deferred_start}
        if single:
            arrays["first"] = first
        yield from pieces(arrays)


def _levels_of(arrays: Arrays, length: int, size: int, deferred_size: int) -> "MemoryLengthWalk":
    from voxpop.engine.local.deferred import DeferredCandidates
    from voxpop.engine.local.length_walk import MemoryLengthWalk

    users = arrays["user_start"], arrays["user_key"]
    levels = MemoryLengthWalk.at(length, arrays["ids"], arrays.get("first"), *users, size)
    if "left" not in arrays:
        return levels
    return levels.with_past(
        arrays["left"], DeferredCandidates.of(arrays["deferred"], arrays["deferred_start"], deferred_size)
    )


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Candidates as they were sent."""

    need: Int64s
    estimates: Int64s
    single: bool


@dataclass(frozen=True, slots=True)
class Since:
    """The settings of the walk that a task needs in addition to the state.

    Attributes:
        length: of the grams that are kept in the state.
        single: whether partners of candidates are tokens.
        deferred_size: number of deferred candidates of shorter lengths.
        paid: passes since the state was made, in order.
    """

    length: int
    single: bool
    deferred_size: int = 0
    paid: tuple[Paying, ...] = ()


def _subset(public: Arrays, paying: Paying | None) -> "Subset | None":
    from voxpop.engine.data import Subset

    if paying is None or paying.subset is None:
        return None
    mine = {name: public.get(f"{name}/{paying.subset}") for name in ("need", "estimates", "further")}
    return Subset(_Candidates(mine["need"], mine["estimates"], single=False), mine["further"])  # type: ignore[arg-type]


def _kept(arrays: Arrays, since: Since, size: int) -> "MemoryLengthWalk":
    """Return the walk at the kept grams, after charging for them."""
    levels = _levels_of(arrays, since.length, size, since.deferred_size)
    for paying in since.paid:
        if paying.kept:
            levels.pay(paying.charge)
    return levels


def _extended(arrays: Arrays, public: Arrays, since: Since) -> "MemoryLengthWalk":
    """Return the walk at the next candidates, after charging for earlier passes."""
    levels = _kept(arrays, since, public["need"].size)
    levels.extend(_Candidates(public["need"], public["estimates"], since.single))
    for paying in since.paid:
        if not paying.kept:
            levels.pay(paying.charge, _subset(public, paying))
    return levels


@on_state
def weigh_next(arrays: Arrays, sent: Arrays, *, weighing: Weighing, since: Since) -> Answer:
    """Weigh the candidates one longer than the grams that a partition holds."""
    yield from _weighed(_extended(arrays, sent, since), weighing, _subset(sent, weighing.paying))


@on_state
def keep_next(arrays: Arrays, sent: Arrays, *, since: Since) -> Answer:
    """Go on to the released grams one longer."""
    levels = _extended(arrays, sent, since)
    levels.keep(sent["names"], sent.get("deferred"))
    yield from _kept_rows(levels, single=since.single)


@on_state
def weigh_kept(arrays: Arrays, sent: Arrays, *, weighing: Weighing, since: Since, size: int) -> Answer:
    """Weigh the released grams by their ranks."""
    yield from _weighed(_kept(arrays, since, size), weighing, None)


@on_state
def weigh_deferred(arrays: Arrays, sent: Arrays, *, weighing: Weighing, since: Since, size: int) -> Answer:
    """Weigh the candidates that were deferred, by their numbers."""
    if weighing.paying is None:
        return
    levels = _kept(arrays, since, size)
    given = weighing.shares, weighing.limit, weighing.secret, weighing.pass_name
    histogram = levels.weigh_deferred(*given, weighing.paying.charge)
    yield from weight_rows(histogram.ids, histogram.weights, weighing.low_bits)


def _weighed(levels: "MemoryLengthWalk", weighing: Weighing, among: "Subset | None") -> Answer:
    given = weighing.shares, weighing.limit, weighing.secret, weighing.pass_name
    charge = None if weighing.paying is None else weighing.paying.charge
    histogram = levels.weigh(*given, charge, among)
    yield from weight_rows(histogram.ids, histogram.weights, weighing.low_bits)
