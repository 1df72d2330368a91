"""The tasks of executors. The tasks map Arrow batches to Arrow batches with the kernels of the local engine.

Closures contain settings and the keys for one purpose. Public arrays are sent with closures or with the rows
(`frames.run_with_public`). Every function is a pure function of its arguments, so a second run, or a run on another
machine, returns the same result.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.engine.data import Subset
from voxpop.engine.spark.frames import (
    MESSAGES,
    AnswerBatches,
    Arrays,
    SparkBatches,
    names_of,
    numbered_state,
    on_state,
    pieces,
    received,
    spread_rows,
    texts_of,
    weight_rows,
    word_arrays,
)
from voxpop.engine.spark.worker import set_up, task
from voxpop.errors import InputError
from voxpop.kernels.arrays import Int64s
from voxpop.reading.words import merge_words

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from voxpop.engine.contract import Shares
    from voxpop.engine.local.corpus import LocalCorpus
    from voxpop.engine.local.length_walk import MemoryLengthWalk
    from voxpop.privacy.individual import Charge
    from voxpop.privacy.secret import Source
    from voxpop.reading.typed_keys import TypedKeys

set_up()  # a worker of the daemon may have imported the package before its first task

MOST_SUM = 1 << 61


@dataclass(frozen=True, slots=True)
class Weighing:
    """The settings of one weighing.

    Attributes:
        shares: The weighting, which divides a user's weight.
        limit: The maximum number of items per user.
        secret: The keys of the sample and, for sequential weightings, of the order of users. This argument contains no
            other keys.
        pass_name: The name of this pass in the release.
        paying: The charge of each user, if charges are individual.
    """

    shares: "Shares"
    limit: int
    secret: "Source"
    pass_name: str
    paying: "Paying | None" = None

    @property
    def given(self) -> "tuple[Shares, int, Source, str]":
        """The arguments for `weigh` of the local engine."""
        return self.shares, self.limit, self.secret, self.pass_name


@dataclass(frozen=True, slots=True)
class Paying:
    """A pass that charges every user individually.

    A state contains the remaining budgets at the time of its creation. Later passes are charged again at each use of
    the state. This is possible because the charge of a user is a function of the user's items.

    Attributes:
        charge: The charge for the pass.
        kept: Whether the pass weighed kept grams rather than candidates.
        subset: The index of the subset that this pass weighed; None for all candidates.
    """

    charge: "Charge"
    kept: bool
    subset: int | None = None


def own_versions() -> dict[str, str]:
    """Return the versions of the packages that make words from texts, or "none" for a package that is not installed."""
    found = dict.fromkeys(("voxpop", "icu4py"), "none")
    for name in found:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


@task
def find_kind_of_times(batches: SparkBatches) -> AnswerBatches:
    """Yield the kind of the time in the first row, but not the time itself."""
    from voxpop.reading.events import kind_of_times

    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.array([kind_of_times(batch.column(0))], pa.string())], ["kind"])


@task
def encode(batches: SparkBatches, *, wanted: dict[str, Any], versions: Mapping[str, str]) -> AnswerBatches:
    """Turn the rows of a partition into the arrays of a corpus, as the local engine does.

    Args:
        batches: The users, their contents, and the order of the contents if there is one.
        wanted: The fields of `Request`, which contain the columns and their use.
        versions: The versions of packages on the driver; see `own_versions`.

    Raises:
        InputError: If the versions of this executor differ.
    """
    here = own_versions()
    for name, version in versions.items():
        if version != here[name]:
            raise InputError(
                f"the driver has {name} {version}, an executor {here[name]}. Both must have the same version. Install "
                f"{name} {version} on every executor."
            )
    from voxpop.engine.local.read import in_content_order, read_here
    from voxpop.reading.wanted import Request

    table = Request(**wanted)
    rows = (batch.rename_columns(table.names) for batch in batches)
    first = next((batch for batch in rows if batch.num_rows), None)
    if first is None:
        return
    reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], rows))
    corpus = in_content_order(read_here(reader, table), documents=table.order is None)
    yield from pieces(_arrays_of(corpus))


def _arrays_of(corpus: "LocalCorpus") -> Arrays:
    held: Arrays = {"tokens": corpus.tokens, "user_start": corpus.user_start, "user_key": corpus.user_key}
    return {**held, **word_arrays(corpus.vocabulary)}


def corpus_of_arrays(arrays: Arrays) -> "LocalCorpus":
    """Return the corpus of a partition's users."""
    from voxpop.engine.local.corpus import LocalCorpus

    return LocalCorpus(arrays["tokens"], arrays["user_start"], arrays["user_key"], texts_of(arrays), "tokens")


@on_state
def weigh_items(arrays: Arrays, sent: Arrays, *, weighing: Weighing, order: str) -> AnswerBatches:
    """Weigh the items of a partition, or the words at the first length of a walk."""
    histogram = corpus_of_arrays(arrays).weigh(*weighing.given, order)
    yield from word_rows(histogram._words, histogram._weights)


@on_state
def choose_keys(arrays: Arrays, sent: Arrays, *, keys: "TypedKeys") -> AnswerBatches:
    """Keep the single keys of a partition's users or, if a list was sent, their joint keys of listed values."""
    yield from pieces(_arrays_of(corpus_of_arrays(arrays).only(keys, texts_of(sent) if sent else None)))


@on_state
def keep_users(arrays: Arrays, sent: Arrays, *, items: int) -> AnswerBatches:
    """Keep the users of a partition with more than a given number of distinct items."""
    yield from pieces(_arrays_of(corpus_of_arrays(arrays).with_more(items)))


@on_state
def weigh_rows(arrays: Arrays, sent: Arrays, *, columns: int, unit: int) -> AnswerBatches:
    """Add up, by column, the shares of the users' keys that are on the list that was sent, and of all other keys."""
    histogram = corpus_of_arrays(arrays).row_shares(texts_of(sent), columns, unit)
    yield from weight_rows(histogram._ids, histogram._weights)


def word_rows(words: Any, weights: Int64s) -> AnswerBatches:
    """Yield (name, high, low), with the bytes of words as names."""
    return weight_rows(names_of(words), weights)


@on_state
def keep_words(arrays: Arrays, sent: Arrays, *, order: "Source | None") -> AnswerBatches:
    """Remove every unreleased word, and sort users in the order of weighing if there is one."""
    levels = corpus_of_arrays(arrays).length_walk()
    levels.keep_words(texts_of(sent), order)
    yield from _kept_rows(levels, single=False)


def places_of(wanted: pa.Array, vocabulary: pa.Array) -> Int64s:
    """Return the position of each given word in the vocabulary, or -1."""
    found = pc.index_in(wanted, value_set=vocabulary).fill_null(-1)
    return np.asarray(found).astype(np.int64)


def _kept_rows(levels: "MemoryLengthWalk", *, single: bool) -> AnswerBatches:
    """Yield the remaining state of a partition, if any of its users still has grams or deferred candidates."""
    state = levels.state(single=single)
    if state["user_key"].size:
        yield from pieces(state)


class _Candidates(NamedTuple):
    """The candidates, in the form in which they were sent."""

    need: Int64s
    estimates: Int64s
    single: bool


@dataclass(frozen=True, slots=True)
class Since:
    """The settings of the walk that a task needs in addition to the state.

    Attributes:
        length: The length of the grams that the state keeps.
        size: The number of grams that the state keeps.
        single: Whether partners of candidates are tokens.
        deferred_size: The number of deferred candidates of shorter lengths.
        paid: The passes since the state was computed, in order. Passes over kept grams are first.
    """

    length: int
    size: int
    single: bool = False
    deferred_size: int = 0
    paid: tuple[Paying, ...] = ()


def _subset(public: Arrays, paying: Paying | None) -> "Subset | None":
    if paying is None or paying.subset is None:
        return None
    mine = {name: public.get(f"{name}/{paying.subset}") for name in ("need", "estimates", "further")}
    return Subset(_Candidates(mine["need"], mine["estimates"], single=False), mine["further"])  # type: ignore[arg-type]


def _walk(arrays: Arrays, public: Arrays, since: Since) -> "MemoryLengthWalk":
    """Return the walk with the kept grams, or with the candidates that were sent, after charging for earlier passes."""
    from voxpop.engine.local.length_walk import MemoryLengthWalk

    levels = MemoryLengthWalk.of_state(arrays, since.length, since.size, since.deferred_size)
    for paying in since.paid:
        if paying.kept:
            levels.pay(paying.charge)
    if "need" in public:
        levels.extend(_Candidates(public["need"], public["estimates"], since.single))
        for paying in since.paid:
            if not paying.kept:
                levels.pay(paying.charge, _subset(public, paying))
    return levels


@on_state
def keep_next(arrays: Arrays, sent: Arrays, *, since: Since) -> AnswerBatches:
    """Continue with the released grams of the next length."""
    levels = _walk(arrays, sent, since)
    levels.keep(sent["names"], sent.get("deferred"))
    yield from _kept_rows(levels, single=since.single)


@on_state
def weigh_grams(arrays: Arrays, sent: Arrays, *, weighing: Weighing, since: Since) -> AnswerBatches:
    """Weigh the candidates that were sent. If there are no such candidates, weigh kept grams by their ranks."""
    charge = None if weighing.paying is None else weighing.paying.charge
    among = _subset(sent, weighing.paying)
    histogram = _walk(arrays, sent, since).weigh(*weighing.given, charge, among)
    yield from weight_rows(histogram._ids, histogram._weights)


@on_state
def weigh_deferred(
    arrays: Arrays, sent: Arrays, *, weighing: Weighing, charge: "Charge", since: Since
) -> AnswerBatches:
    """Weigh the deferred candidates, by their numbers."""
    histogram = _walk(arrays, sent, since).weigh_deferred(*weighing.given, charge)
    yield from weight_rows(histogram._ids, histogram._weights)


# For weightings that depend on the order of users, many partitions are joined into a few groups.
#
# A partition that weighs separately does not account for the contributions of other partitions, so more partitions
# waste more weight. Therefore users are read in as many partitions as there are cores, but they are weighed in at most
# `GROUPS` groups.

GROUPS = 2
"""Two groups lose 2 of 100 phrases, and four groups lose 5 (`spark_groups_default.md`). With one group, one core would
store and weigh all users.
"""


def in_groups(state: "DataFrame", places: int) -> "DataFrame":
    """Return the encoded users in groups. The group of a partition depends only on the partition id."""
    from pyspark.sql import functions as sql

    if places <= GROUPS:
        return state
    homes = sql.array(*(sql.lit(number) for number in spread_rows(GROUPS).tolist()))
    sent = numbered_state(state).withColumn("place", homes[sql.col("sender") % GROUPS].cast("int"))
    arrived = sent.repartition(GROUPS, "place")
    return arrived.mapInArrow(gather, MESSAGES)


@task
def gather(batches: SparkBatches) -> AnswerBatches:
    """Yield the state of a group. The state joins the corpora of several partitions in the order of their numbers."""
    held = list(batches)
    parts = list(received(pa.Table.from_batches(held)).values()) if held else []
    if parts:
        yield from pieces(joined_arrays(parts))


def joined_arrays(parts: list[Arrays]) -> Arrays:
    """Return the arrays of the users of all parts, with a common vocabulary."""
    texts = [texts_of(part) for part in parts]
    vocabulary, names = merge_words(texts, [np.ones(len(each), np.bool_) for each in texts])
    # The end of a document, -1, selects the last name.
    tokens = [np.append(own, np.int32(-1))[part["tokens"]] for part, own in zip(parts, names, strict=True)]
    sizes = np.concatenate([np.diff(part["user_start"]) for part in parts])
    users: Arrays = {"tokens": np.concatenate(tokens), "user_start": np.concatenate([[0], np.cumsum(sizes)])}
    users["user_key"] = np.concatenate([part["user_key"] for part in parts])
    return {**users, **word_arrays(vocabulary)}
