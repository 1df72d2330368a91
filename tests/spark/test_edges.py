"""Tests of tables with skewed, empty, unusual and invalid data."""

import gc
import socket
import threading
import time
import weakref

import numpy as np
import polars as pl
import pytest
from framed import framed

import voxpop as vp
from searches.sensitivity import Written
from support.look import read_engine
from voxpop.engine.spark.frames import Holder
from voxpop.errors import ColumnError, InputError, SourceError
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting

BUDGET = vp.Budget(epsilon=4, delta=1e-8)
ODD = ["\0", "a\0", "\u200b", "🦊🦊", "é", "e\u0301", " ", "\n", "'quoted'", "ab" * 8, "x" * 15, "x" * 16, "ß" * 700]


ROADS = pytest.mark.parametrize("partitions", [3, None], ids=["spread", "handed over"])


def same(read_both, mechanism, table, partitions=3, **columns):
    """Return the local release after checking that the release on Spark is the same."""
    local, spread = read_both(table, partitions, **columns)
    one, other = (mechanism.release(corpus, BUDGET, seed=3) for corpus in (local, spread))
    assert one.grams.equals(other.grams)
    return one


@ROADS
def test_a_user_with_a_million_rows_of_one_token_is_read(read_both, partitions):
    """One user has five very long texts, and all other users have the same text."""
    rng = np.random.default_rng(1)
    long = " ".join(f"w{number}" for number in rng.integers(0, 5000, 1_000_000))
    users = [*([7] * 5), *range(100, 600)]
    texts = [*(long[part * len(long) // 5 :][: len(long) // 5] for part in range(5))]
    texts += ["everywhere at once"] * 500
    ngrams, table = vp.papers.DPNE(max_length=2, max_phrases_per_user=50), pl.DataFrame({"who": users, "what": texts})
    release = same(read_both, ngrams, table, partitions)
    assert ("everywhere", "at") in release
    assert len(release) == 5


def test_more_partitions_than_users_and_empty_rows_are_accepted(read_both):
    """The table has empty partitions, null and empty texts, and users without any words."""
    table = pl.DataFrame({"who": [*range(200), *range(200)], "what": (["good day", None, ""] * 134)[:400]})
    assert len(same(read_both, vp.papers.DPNE(max_length=2, max_phrases_per_user=3), table, 37)) == 3


@ROADS
def test_a_table_without_items_is_read(read_both, partitions):
    """The release is empty."""
    table = pl.DataFrame({"who": [1, 2], "what": [None, None]}, schema={"who": pl.Int64, "what": pl.String})
    assert len(same(read_both, vp.papers.DPNE(max_length=3), table, partitions)) == 0
    assert len(same(read_both, vp.papers.SetUnion(100, "weighted", accounting="joint"), table, partitions)) == 0


@ROADS
def test_a_table_without_rows_gives_an_empty_release(read_both, partitions):
    """The release is empty, because an error would distinguish this table from a table of one user."""
    table = pl.DataFrame(schema={"who": pl.Int64, "what": pl.String})
    assert len(same(read_both, vp.papers.DPNE(max_length=2), table, partitions)) == 0
    assert len(same(read_both, vp.Items(), table, partitions)) == 0


@ROADS
def test_unusual_characters_and_strings_of_a_megabyte_are_read(read_both, partitions):
    """Some items contain zero bytes, emoji or combining marks, and some are about as long as an AES block.

    Nulls in lists are omitted.
    """
    huge = "h" * 2**20
    lists = [[*ODD, None, huge if number < 40 else "short"] for number in range(300)]
    table = pl.DataFrame({"who": np.arange(300), "what": lists})
    release = same(read_both, vp.papers.SetUnion(20, "weighted", accounting="joint"), table, partitions, items="what")
    assert set(release) == {*ODD, huge, "short"}
    phrases = same(read_both, vp.papers.DPNE(max_length=2, max_phrases_per_user=20), table, partitions, tokens="what")
    assert ("\0", "a\0") in phrases


@ROADS
def test_columns_with_dots_and_quotes_in_their_names_are_read(read_both, partitions):
    """Otherwise, Spark would interpret dots as fields and quotes as delimiters."""
    table = pl.DataFrame({"the.user`s": range(500), "a.b": [["x", "y"]] * 500})
    local, spread = read_both(table, partitions, user="the.user`s", sequence="a.b")
    ngrams = vp.papers.DPNE(max_length=2, max_phrases_per_user=2)
    one, other = (ngrams.release(corpus, BUDGET, seed=1) for corpus in (local, spread))
    assert one.grams.equals(other.grams)
    assert ("x", "y") in other


@ROADS
def test_a_row_without_a_user_is_rejected(spark, partitions):
    """As for local tables, the error contains the name of the column but no value."""
    frame = framed(spark, pl.DataFrame({"who": [1, None], "what": ["tea", "private milk"]}))
    with pytest.raises(SourceError, match='column "who" is empty') as caught:
        vp.papers.SetUnion(100, "weighted", accounting="joint").release(
            read_engine(frame, user="who", text="what", options=vp.ReadOptions(partitions=partitions)), BUDGET
        )
    assert "milk" not in str(caught.value)


def test_wrong_columns_are_rejected_before_a_query_runs(spark):
    """Wrong options for columns and tokenizers are also rejected."""
    frame = framed(spark, pl.DataFrame({"who": [1.5], "what": ["tea"]}))
    with pytest.raises(ColumnError, match=r'no column "whom"\. .*Did you mean "who"'):
        read_engine(frame, user="whom", text="what")
    with pytest.raises(ColumnError, match="another type with equality, got double"):
        read_engine(frame, user="who", text="what")
    with pytest.raises(InputError, match="exactly one"):
        read_engine(frame, user="what")
    with pytest.raises(InputError, match="tokenizer"):
        read_engine(frame, user="who", text="what", tokenizer="wurds")
    with pytest.raises(InputError, match="sentences"):
        read_engine(frame, user="who", tokens="what", tokenizer=vp.Tokenizer(sentences=True))


def test_unsupported_operations_are_rejected_on_spark(spark):
    """The cases are heavy hitters, phrases of items, and sequences of items."""
    table = framed(spark, pl.DataFrame({"who": [1], "what": ["tea"]}))
    items = read_engine(table, user="who", items="what", options=vp.ReadOptions(partitions=2))
    with pytest.raises(InputError, match="heavy hitters"):
        vp.HeavyHitters(max_length=3).release(items, vp.Budget(1, 1e-6))
    with pytest.raises(InputError, match="need an order"):
        vp.NGrams().release(items, BUDGET)
    with pytest.raises(InputError, match="sequence="):
        vp.Sequences(alphabet=["tea"]).release(items, vp.Budget(1))
    with pytest.raises(AttributeError):
        items.nothing  # noqa: B018


class Heavy(Written):
    """A weighting with a megabyte of data."""

    def __init__(self):
        self.ballast = np.random.default_rng(1).bytes(2**20)


def test_a_weighting_that_is_too_large_to_send_is_rejected(spark):
    """Spark would write such a weighting to disk together with the keys."""
    table = framed(spark, pl.DataFrame({"who": [1], "what": ["tea"]}))
    corpus = read_engine(table, user="who", text="what", options=vp.ReadOptions(partitions=2))
    with pytest.raises(InputError, match="half a megabyte"):
        corpus.weigh(CalibratedRule(Heavy(), RuleSetting(4, 2, 40, 2**41)), 4, Secret.from_seed(1), "x")


def test_workers_use_the_kernel_cache_and_one_thread_per_task(spark):
    """Workers set the cache and the number of threads before they import numba and polars.

    The cache of numba itself does not support concurrent writers.
    """

    def look(batches):
        from voxpop.engine.spark.worker import task

        @task
        def report(rows):
            import os

            import pyarrow as pa

            from voxpop.engine.local import weigh as bound
            from voxpop.kernels.group import rename
            from voxpop.kernels.pairs import number_pairs

            for _ in rows:
                pass
            found = [os.environ["VOXPOP_JIT_CACHE"], str(bound.THREADS), str(pa.cpu_count())]
            found += [type(kernel._cache).__name__ for kernel in (rename, number_pairs)]
            yield pa.RecordBatch.from_pydict({"found": [" ".join(found)]})

        yield from report(batches)

    answer = spark.range(1).mapInArrow(look, "found string").toArrow()["found"].to_pylist()
    assert set(answer) == {"0 1 1 OverloadFiles OverloadFiles"}


def wait_until_let_go(state, seconds=60):
    """Wait until a state is no longer persisted after its owner is deleted."""
    end = time.monotonic() + seconds
    while state.storageLevel.useMemory:
        assert time.monotonic() < end, "the state is still kept"
        time.sleep(0.05)


def test_unused_states_are_released(spark, read_both, talk):
    """No state remains persisted after the corpus and the release are deleted."""
    _, spread = read_both(talk)
    state = spread._state
    vp.papers.DPNE(max_length=2, max_phrases_per_user=3).release(spread, BUDGET, seed=1)
    assert state.storageLevel.useMemory
    del spread
    gc.collect()
    wait_until_let_go(state)


def test_an_owner_can_be_collected_during_a_java_call(spark, monkeypatch, caplog):
    """Garbage collection can run during any Java call, and must not break the connection of its thread."""
    state = spark.range(3)

    def readinto(stream, buffer, there=socket.SocketIO.readinto):
        if threading.current_thread() is threading.main_thread():
            gc.collect()
        return there(stream, buffer)

    gc.disable()  # Wait until Java answers.
    try:
        holder = Holder()
        holder.hold(state)
        gone = weakref.ref(holder)
        holder.itself = holder
        del holder
        monkeypatch.setattr(socket.SocketIO, "readinto", readinto)
        assert gone() is not None
        assert spark.range(5).count() == 5
        assert gone() is None
    finally:
        gc.enable()
        monkeypatch.undo()
    assert not caplog.records  # py4j reports a broken connection and retries, usually successfully.
    wait_until_let_go(state)
