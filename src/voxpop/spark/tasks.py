"""What runs on the executors: batches of Arrow in, batches of Arrow out, on the kernels of the local engine.

Closures hold settings and the keys of one purpose; public arrays come with them or beside the rows
(`frames.run_with_public`). Every function is a pure one of its arguments: run twice, or on another machine, it answers
the same.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.arrays import Int64s
from voxpop.errors import InputError
from voxpop.spark.frames import Arrays, laid_together, pieces, texts_of, weight_rows, with_public
from voxpop.spark.worker import set_up, task
from voxpop.version import installed_version

if TYPE_CHECKING:
    from voxpop.corpus.corpus import Corpus
    from voxpop.corpus.draws import Draws
    from voxpop.corpus.engine import Decision, LevelRule, Noise, Price, Shares
    from voxpop.corpus.length_walk import MemoryLengthWalk
    from voxpop.corpus.subset import Subset
    from voxpop.privacy.secret import Source

set_up()  # in a worker of the daemon the package was there before there was a task

Batches = Iterable[pa.RecordBatch]
Answer = Iterator[pa.RecordBatch]

LOW_BITS = 31
"""Weights of sequential weightings reach 2^61 in each partition, so they are summed in two parts."""
WHOLE = 63
MOST_WEIGHT = 1 << 61


@dataclass(frozen=True, slots=True)
class Weighing:
    """One weighing.

    Attributes:
        shares: how a user's weight is shared.
        limit: most items of one user.
        secret: restricted to the sample and, for sequential weightings, the order of users.
        pass_name: which pass of the release this is.
        paying: what users pay for it, where they pay for themselves.
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
    """A pass for which every user pays by itself.

    A state says what users had left when it was made. Passes since then are paid again, each time that somebody needs
    to know: what a user pays is a function of what it holds.

    Attributes:
        price: of the pass.
        kept: whether it weighed kept grams, rather than candidates.
        subset: which of the subsets that are sent it was about; None for all.
    """

    price: "Price"
    kept: bool
    subset: int | None = None


@task
def encode(batches: Batches, *, wanted: dict[str, Any], version: str) -> Answer:
    """Turn the rows of a partition into the arrays of a corpus, as the local engine does.

    Args:
        batches: users, contents, and their order where there is one.
        wanted: the fields of `Wanted`: the columns, and what becomes of them.
        version: of voxpop on the driver.

    Raises:
        InputError: where it is another one here.
    """
    if version != installed_version():
        raise InputError(
            f"the driver has voxpop {version}, an executor {installed_version()}. Install the same on both."
        )
    from voxpop.corpus.reading.content_order import in_content_order
    from voxpop.corpus.reading.read import read_here
    from voxpop.corpus.reading.wanted import Wanted

    table = Wanted(**wanted)
    rows = (batch.rename_columns(table.names) for batch in batches)
    first = next((batch for batch in rows if batch.num_rows), None)
    if first is None:
        return
    reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], rows))
    corpus = in_content_order(read_here(reader, table, progress=False), documents=table.order is None)
    yield from pieces(_arrays_of(corpus))


def _arrays_of(corpus: "Corpus") -> Arrays:
    from voxpop.arrow import text_buffers

    data, starts = text_buffers(corpus.vocabulary)
    held = {"tokens": corpus.tokens, "user_start": corpus.user_start, "user_key": corpus.user_key}
    return {**held, "word_data": data[starts[0] : starts[-1]], "word_starts": starts - starts[0]}


def corpus_of(arrays: Arrays) -> "Corpus":
    """Return the corpus of a partition's users."""
    from voxpop.corpus.corpus import Corpus

    vocabulary = texts_of(arrays["word_data"], arrays["word_starts"])
    return Corpus(arrays["tokens"], arrays["user_start"], arrays["user_key"], vocabulary, "tokens")


@task
def weigh_remaining(batches: Batches, *, weighing: Weighing, public: bytes | None = None) -> Answer:
    """Weigh the words of a partition, those left out that earlier rounds released."""
    arrays, sent = laid_together(batches, public)
    if not arrays:
        return
    corpus = corpus_of(arrays)
    left = np.ones(len(corpus.vocabulary), np.uint8)
    if sent:
        found = places_of(texts_of(sent["word_data"], sent["word_starts"]), corpus.vocabulary)
        left[found[found >= 0]] = 0
    histogram = corpus.weigh(weighing.shares, weighing.limit, left, weighing.secret, weighing.pass_name)
    yield from word_rows(histogram.words, histogram.weights, weighing)


@task
def weigh_words(batches: Batches, *, weighing: Weighing) -> Answer:
    """Weigh the words of a partition, as the first length of a walk."""
    arrays, _ = laid_together(batches)
    if not arrays:
        return
    histogram = (
        corpus_of(arrays).length_walk().weigh(weighing.shares, weighing.limit, weighing.secret, weighing.pass_name)
    )
    yield from word_rows(histogram.words, histogram.weights, weighing)


def word_rows(words: Any, weights: Int64s, weighing: Weighing) -> Answer:
    """Yield (name, high, low) of words by their bytes."""
    return weight_rows(words.cast(pa.large_binary()).cast(pa.binary()), weights, weighing.low_bits)


@task
def keep_words(batches: Batches, *, order: "Draws | None", public: bytes | None = None) -> Answer:
    """Forget every word that was not released, and lay users out in the order in which they weigh, if in any."""
    arrays, sent = laid_together(batches, public)
    if not arrays:
        return
    corpus = corpus_of(arrays)
    levels = corpus.length_walk()
    if order is not None:
        levels.put_in_order(order)
    levels.keep(places_of(texts_of(sent["word_data"], sent["word_starts"]), corpus.vocabulary))
    yield from _kept_rows(levels, single=False)


def places_of(wanted: pa.Array, vocabulary: pa.Array) -> Int64s:
    """Return where each wanted word is in the vocabulary, or -1."""
    found = pc.index_in(wanted, value_set=vocabulary).fill_null(-1)
    return np.asarray(found).astype(np.int64)


def _kept_rows(levels: "MemoryLengthWalk", *, single: bool) -> Answer:
    """Yield what is left of a partition, users who hold nothing any more left out."""
    ids, first, user_start, user_key, users = levels.compact(single=single)
    if user_key.size:
        arrays: Arrays = {"ids": ids, "user_start": user_start, "user_key": user_key}
        left, aside, aside_start = levels.past(users)
        if left is not None:
            arrays |= {"left": left, "aside": aside, "aside_start": aside_start}
        if single:
            arrays["first"] = first
        yield from pieces(arrays)


def _levels_of(arrays: Arrays, length: int, size: int, aside_size: int) -> "MemoryLengthWalk":
    from voxpop.corpus.length_walk import MemoryLengthWalk
    from voxpop.corpus.near_misses import NearMisses

    users = arrays["user_start"], arrays["user_key"]
    levels = MemoryLengthWalk.at(length, arrays["ids"], arrays.get("first"), *users, size)
    if "left" not in arrays:
        return levels
    return levels.with_past(arrays["left"], NearMisses.of(arrays["aside"], arrays["aside_start"], aside_size))


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Candidates as they were sent."""

    need: Int64s
    estimates: Int64s
    single: bool


@dataclass(frozen=True, slots=True)
class Since:
    """What a task needs to know of the walk beside the state.

    Attributes:
        length: of the grams that are kept in the state.
        single: whether partners of candidates are tokens.
        aside_size: how many candidates of shorter lengths were set aside.
        paid: passes since the state was made, in order.
    """

    length: int
    single: bool
    aside_size: int = 0
    paid: tuple[Paying, ...] = ()


def _subset(public: Arrays, paying: Paying | None) -> "Subset | None":
    from voxpop.corpus.subset import Subset

    if paying is None or paying.subset is None:
        return None
    mine = {name: public.get(f"{name}/{paying.subset}") for name in ("need", "estimates", "further")}
    return Subset(_Candidates(mine["need"], mine["estimates"], single=False), mine["further"])  # type: ignore[arg-type]


def _kept(arrays: Arrays, since: Since, size: int) -> "MemoryLengthWalk":
    """Return the walk at the kept grams, and what they cost paid."""
    levels = _levels_of(arrays, since.length, size, since.aside_size)
    for paying in since.paid:
        if paying.kept:
            levels.pay(paying.price)
    return levels


def _extended(arrays: Arrays, public: Arrays, since: Since) -> "MemoryLengthWalk":
    """Return the walk at the next candidates, and what came before paid."""
    levels = _kept(arrays, since, public["need"].size)
    levels.extend(_Candidates(public["need"], public["estimates"], since.single))
    for paying in since.paid:
        if not paying.kept:
            levels.pay(paying.price, _subset(public, paying))
    return levels


@task
def weigh_next(batches: Batches, *, weighing: Weighing, since: Since, public: bytes | None = None) -> Answer:
    """Weigh the candidates one longer than the grams that a partition holds."""
    arrays, sent = laid_together(batches, public)
    if arrays:
        yield from _weighed(_extended(arrays, sent, since), weighing, _subset(sent, weighing.paying))


@task
def keep_next(batches: Batches, *, since: Since, public: bytes | None = None) -> Answer:
    """Go on to the released grams one longer."""
    arrays, sent = laid_together(batches, public)
    if not arrays:
        return
    levels = _extended(arrays, sent, since)
    levels.keep(sent["names"], sent.get("aside"))
    yield from _kept_rows(levels, single=since.single)


@task
def weigh_kept(batches: Batches, *, weighing: Weighing, since: Since, size: int) -> Answer:
    """Weigh the released grams by their ranks."""
    arrays, _ = laid_together(batches)
    if arrays:
        yield from _weighed(_kept(arrays, since, size), weighing, None)


@task
def weigh_aside(batches: Batches, *, weighing: Weighing, since: Since, size: int) -> Answer:
    """Weigh the candidates that were set aside, by their numbers."""
    arrays, _ = laid_together(batches)
    if not arrays or weighing.paying is None:
        return
    levels = _kept(arrays, since, size)
    given = weighing.shares, weighing.limit, weighing.secret, weighing.pass_name
    histogram = levels.weigh_aside(*given, weighing.paying.price)
    yield from weight_rows(histogram.ids, histogram.weights, weighing.low_bits)


def _weighed(levels: "MemoryLengthWalk", weighing: Weighing, among: "Subset | None") -> Answer:
    given = weighing.shares, weighing.limit, weighing.secret, weighing.pass_name
    price = None if weighing.paying is None else weighing.paying.price
    histogram = levels.weigh(*given, price, among)
    yield from weight_rows(histogram.ids, histogram.weights, weighing.low_bits)


@task
def decide(batches: Batches, *, coins: "Decision", words: bool) -> Answer:
    """Yield the names that pass by their coin."""
    for batch in batches:
        yield _passed(batch, coins, words=words)


@task
def decide_by_table(
    batches: Batches,
    *,
    least: int,
    turn: int,
    secret: "Source",
    purpose: str,
    words: bool,
    public: bytes | None = None,
) -> Answer:
    """Yield the names that pass by their coin, where the chances are a public table."""
    from voxpop.privacy.decide import TableRule
    from voxpop.privacy.decisions import ReleaseDecisions
    from voxpop.privacy.release_table import ReleaseTable

    for batch, sent in with_public(batches, public):
        rule = TableRule(ReleaseTable(least, sent["tails"], turn))
        yield _passed(batch, ReleaseDecisions(rule, secret, purpose), words=words)


def _passed(batch: pa.RecordBatch, coins: "Decision", *, words: bool) -> pa.RecordBatch:
    names, weights = batch.column("name"), _weights_of(batch)
    ids, texts = (np.empty(0, np.int64), _texts(names)) if words else (np.asarray(names), None)
    return pa.RecordBatch.from_arrays([names.filter(pa.array(coins(weights, ids, texts)))], ["name"])


@task
def level(batches: Batches, *, levels: "LevelRule", words: bool) -> Answer:
    """Yield the names of a level above 0: by their own noise where they have weight; without weight, as simulated."""
    for batch in batches:
        names, weights = batch.column("name"), _weights_of(batch)
        held, reached = weights > 0, np.array(batch.column("spurious"))
        mine = names.filter(pa.array(held))
        if words:
            reached[held] = levels(weights[held], np.empty(0, np.int64), _texts(mine))
        else:
            reached[held] = levels(weights[held], np.asarray(mine), None)
        kept = pa.array(reached > 0)
        yield pa.RecordBatch.from_arrays([names.filter(kept), pa.array(reached).filter(kept)], ["name", "level"])


def _texts(names: pa.Array) -> Any:
    from voxpop.arrow import text_buffers

    return text_buffers(names.cast(pa.large_binary()).cast(pa.large_string()))


@task
def add_noise(batches: Batches, *, noise: "Noise") -> Answer:
    """Yield noisy weights in whole cells."""
    for batch in batches:
        names = np.asarray(batch.column("name"))
        cells = noise(_weights_of(batch), names)
        yield pa.RecordBatch.from_arrays([pa.array(names), pa.array(cells)], ["name", "cells"])


def _weights_of(batch: pa.RecordBatch) -> Int64s:
    """Return summed weights, cut off where nothing depends on them any more: min(x, c) brings no two sums apart."""
    high, low = (np.asarray(batch.column(name)) for name in ("high", "low"))
    high = high + (low >> LOW_BITS)
    whole = (high << LOW_BITS) | (low & ((1 << LOW_BITS) - 1))
    return np.where(high >= MOST_WEIGHT >> LOW_BITS, MOST_WEIGHT, whole)
