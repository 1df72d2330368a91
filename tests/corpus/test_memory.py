"""Tests that a memory limit does not change results. Operations that cannot respect the limit are rejected."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools import memory as tenfold

import voxpop as vp
from support.corpora import by_key
from support.look import load_engine, read_engine
from support.three_paths import l2_shares, weights_of
from voxpop.engine.local import weigh as bound
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.errors import InputError, MemoryLimitError
from voxpop.kernels.words import hash_strings
from voxpop.mechanisms.ngrams.candidates import Candidates, Grams
from voxpop.privacy.secret import Secret
from voxpop.reading import wanted
from voxpop.reading.limited import memory
from voxpop.reading.limited import sorter as mapped_positions
from voxpop.reading.limited.memory import MemoryLimit, bytes_of
from voxpop.reading.limited.sorter import HEAD, Sorter

BUDGET = vp.Budget(epsilon=4, delta=1e-5)
TINY, SMALL = 1 << 14, 1 << 18
Reader = Callable[..., LocalCorpus]


def tiny(room: int) -> MemoryLimit:
    """Return a limit that is lower than any limit that a caller can request."""
    return MemoryLimit(room + memory.FIXED_MEMORY, room, Path("/tmp"))


@cache
def without_a_limit(rows: int, users: int) -> LocalCorpus:
    """Return the corpus of the texts of a table, which no test changes."""
    return read_engine(table(rows, users), user="who", text="text")


@pytest.fixture
def within(monkeypatch: pytest.MonkeyPatch) -> Reader:
    """Return a reader with a limit that is so low that all data is written to work files."""

    def reader(source: object, room: int, **columns: object) -> LocalCorpus:
        with monkeypatch.context() as patch:
            patch.setattr(MemoryLimit, "of", staticmethod(lambda *_: tiny(room)))
            patch.setattr(wanted, "_ROWS_AT_ONCE", 64)
            patch.setattr(wanted, "_ITEMS_AT_ONCE", 64)
            return read_engine(source, options=vp.ReadOptions(memory="any"), **columns)

    return reader


@cache
def table(rows: int, users: int, names: bool = True) -> pl.DataFrame:
    """Return rows of users who recur throughout the table. A third of all rows belongs to one user."""
    rng = np.random.default_rng(0)
    who = np.where(rng.random(rows) < 0.33, 0, rng.integers(0, users, rows))
    words = np.minimum(rng.pareto(0.7, (rows, 6)), 1e5).astype(int)
    texts = [" ".join(f"word{w}" for w in row[: 1 + row[0] % 6]) for row in words]
    ids = [f"user {w}" for w in who] if names else who
    return pl.DataFrame({"who": ids, "text": texts, "items": [t.split() for t in texts], "one": [t[:7] for t in texts]})


def contents(release: object) -> object:
    """Return the contents of a release or a model."""
    tree = getattr(release, "tree", None)
    return list(release) if tree is None else (tree.counts.tolist(), tree.parents.tolist())


def same(first: LocalCorpus, second: LocalCorpus) -> bool:
    """Return whether two corpora have the same users, in any order."""
    return by_key(first) == by_key(second) and first.vocabulary.equals(second.vocabulary) and first.kind == second.kind


@pytest.mark.parametrize("names", [True, False], ids=["strings", "numbers"])
@pytest.mark.parametrize(
    "columns",
    [
        {"text": "text"},
        {"text": "text", "tokenizer": vp.Tokenizer(sentences=True)},
        {"text": "text", "tokenizer": "whitespace"},
        {"tokens": "items"},
        {"items": "items"},
        {"items": "one"},
    ],
    ids=lambda columns: "-".join(map(str, columns.values())),
)
def test_a_memory_limit_does_not_change_the_corpus(within, columns, names):
    """With and without a limit, every form of input gives the same users."""
    rows = table(1500, 200, names=names)
    whole = read_engine(rows, user="who", **columns)
    for room in (TINY // 2, SMALL // 2):
        spilled = within(rows, room, user="who", **columns)
        assert isinstance(spilled.tokens, np.memmap)
        assert same(whole, spilled)


@given(st.lists(st.tuples(st.integers(0, 5), st.text("ab é", max_size=12)), min_size=1, max_size=300))
@settings(max_examples=25)
def test_a_memory_limit_does_not_change_the_corpus_of_any_table(rows):
    """The drawn tables contain empty texts, users with one row and users with many rows."""
    frame = pl.DataFrame({"who": [f"u{who}" for who, _ in rows], "text": [text for _, text in rows]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryLimit, "of", staticmethod(lambda *_: tiny(256)))
        patch.setattr(wanted, "_ROWS_AT_ONCE", 7)
        spilled = read_engine(frame, user="who", text="text", options=vp.ReadOptions(memory="any"))
    assert same(read_engine(frame, user="who", text="text"), spilled)


@pytest.mark.parametrize(
    "mechanism",
    [
        vp.Items(max_items_per_user=20),
        vp.papers.SetUnion(20, "weighted", accounting="joint"),
        vp.papers.SetUnion(20, "policy-laplace", 14.0, "joint"),
        vp.NGrams(max_length=4, max_phrases_per_user=50),
        vp.papers.DPNE(max_length=4, max_phrases_per_user=50, pruning="single"),
    ],
    ids=repr,
)
def test_a_memory_limit_does_not_change_the_release(monkeypatch, mechanism):
    """The same secret gives the same release, although each pass runs in pieces of a few hundred positions."""
    corpus = without_a_limit(4000, 600)
    bounded = corpus.within(tiny(1 << 21))
    monkeypatch.setattr(mapped_positions, "_SORTED_AT_ONCE", 333)
    expected = mechanism.release(corpus, BUDGET, seed=5)
    assert len(expected) > 20
    assert mechanism.release(bounded, BUDGET, seed=5) == expected


def test_other_mechanisms_give_the_same_results_or_are_rejected():
    """Heavy hitters and sequences require all data in memory.

    If the data fits, the results agree. Otherwise, an error is raised.
    """
    corpus = without_a_limit(4000, 600)
    hitters, sequences = vp.HeavyHitters(max_length=3), vp.Sequences(alphabet=("word0", "word1", "word2"))
    budget = {hitters: vp.Budget(20, 1e-3), sequences: vp.Budget(1)}
    for mechanism in (hitters, sequences):
        expected = mechanism.release(corpus, budget[mechanism], seed=5)
        again = mechanism.release(corpus.within(tiny(1 << 28)), budget[mechanism], seed=5)
        assert contents(again) == contents(expected)
        with pytest.raises(MemoryLimitError, match=r"of all users do not fit .* About \d+(MiB|GiB) would be enough"):
            mechanism.release(corpus.within(tiny(1000)), budget[mechanism], seed=5)


@pytest.mark.slow
def test_too_many_distinct_tokens_or_phrases_are_rejected():
    """The error occurs before memory runs out, and the message rounds the required memory to a power of two."""
    corpus = read_engine(table(20_000, 600), user="who", text="text")
    with pytest.raises(MemoryLimitError, match=r"distinct tokens do not fit .* 1GiB would be enough"):
        vp.Items().release(corpus.within(tiny(1000)), BUDGET)
    room = 48 * len(corpus.vocabulary) + 1000
    levels = corpus.within(tiny(room)).length_walk()
    levels.keep(np.arange(len(corpus.vocabulary)))
    everything = Candidates.all_valid(Grams.of_tokens(len(corpus.vocabulary)), len(corpus.vocabulary), single=False)
    with pytest.raises(MemoryLimitError, match="distinct phrases"):
        levels.extend(everything)


def test_a_user_with_nearly_all_items_is_read(within):
    """A user with more data than any buffer is read and weighed in parts."""
    rows = pl.DataFrame(
        {
            "who": ["big"] * 2000 + [f"small {number}" for number in range(40)],
            "text": [f"a{i % 97} b c{i}" for i in range(2000)] + ["a1 b"] * 40,
        }
    )
    spilled = within(rows, TINY, user="who", text="text")
    whole = read_engine(rows, user="who", text="text")
    assert same(whole, spilled)
    plan = vp.Items(max_items_per_user=3).plan(vp.Budget(30, 0.5))
    weighing = l2_shares(10_000, 5.0), 10_000, Secret.from_seed(1), "length 1"
    bounded = spilled.within(tiny(1 << 22))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TOKENS_AT_ONCE", "FEW_TOKENS_AT_ONCE"):
            patch.setattr(bound, name, 100)
        parts, weights = plan.release(bounded, seed=1), weights_of(bounded.weigh(*weighing))
    expected = plan.release(whole, seed=1)
    assert weights == weights_of(whole.weigh(*weighing))
    assert len(weights) > 2000
    # The plans are the same object, and a comparison of releases would compute the users that the plans need.
    assert parts.grams.equals(expected.grams)
    assert {"a1", "b"} <= set(parts)


def test_the_order_of_users_with_equal_keys_does_not_depend_on_the_rows(within, monkeypatch):
    """Users can choose ids with the same fixed hash.

    The order of two such users does not depend on other users' rows.
    """
    monkeypatch.setattr("voxpop.reading.users.hash_strings", lambda *texts: hash_strings(*texts) % np.uint64(3))
    rows = table(3000, 40)
    mixed = rows.sample(fraction=1.0, shuffle=True, seed=1)
    bounded = within(rows, TINY, user="who", text="text")
    found = []
    for corpus in (bounded, *(read_engine(each, user="who", text="text") for each in (rows, mixed))):
        parts = zip(corpus.user_key.tolist(), np.split(np.asarray(corpus.tokens), corpus.user_start[1:-1]), strict=True)
        users = [(key, sorted(part.tolist())) for key, part in parts]
        found.append([[held for key, held in users if key == each] for each in range(3)])
    assert found[0] == found[1] == found[2]
    assert sum(map(len, found[0])) == corpus.user_key.size > 3


def test_a_source_is_read_in_the_thread_that_opened_it(within):
    """SQLite requires that the opening thread reads, so this thread fetches rows and another thread groups them."""
    rows = table(3000, 400, names=False).select("who", "text")
    with sqlite3.connect(":memory:") as connection:
        connection.execute("create table posts (who integer, text text)")
        connection.executemany("insert into posts values (?, ?)", rows.rows())
        spilled = within(connection.execute("select * from posts order by rowid"), TINY, user="who", text="text")
    assert isinstance(spilled.tokens, np.memmap)
    # Cursors declare no types, so users are strings.
    assert same(read_engine(rows.with_columns(pl.col("who").cast(pl.String)), user="who", text="text"), spilled)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 4)), max_size=60), st.integers(1, 400))
def test_the_sorter_sorts_like_sorted(records, most):
    """The sorter sorts by both keys and keeps the order of ties at any capacity.

    Some examples contain more records with the same key, or with the same pair of keys, than the capacity allows.
    """
    limit = tiny(1000)
    heads = np.zeros(len(records), HEAD)
    for row, (key, other, size) in enumerate(records):
        heads[row] = (key << 40, other, 7, row, size)
    slices = np.repeat(np.arange(len(records), dtype=np.int32), heads["size"])
    sorting = Sorter(limit, most, heads.nbytes + slices.nbytes)
    ends = np.concatenate([[0], np.cumsum(heads["size"])]).astype(int)
    for first in range(0, len(records), 5):
        last = min(first + 5, len(records))
        sorting.add(heads[first:last], slices[ends[first] : ends[last]])
    blocks = list(sorting.blocks())
    rows = [int(row) for own, _ in blocks for row in own["row"]]
    assert rows == sorted(range(len(records)), key=lambda row: records[row][:2])
    for own, mine in blocks:
        assert mine.tolist() == np.repeat(own["row"], own["size"]).tolist()


@pytest.mark.parametrize("given", ["2 bananas", "-1GiB", "", True, 1.5, "1e3GiB", "GiB"])
def test_invalid_sizes_are_rejected(given):
    """The error message describes the expected format."""
    with pytest.raises(InputError, match="a size such as 2GiB"):
        bytes_of(given)


def test_too_low_limits_and_missing_folders_are_rejected(tmp_path):
    """The cases are a limit below the memory of the libraries, a missing folder, and a lazy table of unknown size."""
    rows = table(10, 3)
    with pytest.raises(InputError, match="at least 896MiB"):
        read_engine(rows, user="who", text="text", options=vp.ReadOptions(memory="100MiB"))
    with pytest.raises(InputError, match="work files cannot be written"):
        read_engine(rows, user="who", text="text", options=vp.ReadOptions(memory="1GiB", work_folder=tmp_path / "none"))
    with pytest.raises(InputError, match="LazyFrame"):
        read_engine(rows.lazy(), user="who", text="text", options=vp.ReadOptions(memory="1GiB"))


def test_nothing_is_left_in_the_work_folder(within, tmp_path):
    """Work files do not have names during use, and nothing remains afterwards."""
    corpus = within(table(3000, 400), TINY, user="who", text="text")
    bounded = corpus.within(MemoryLimit(memory.FIXED_MEMORY + SMALL, SMALL, tmp_path))
    vp.NGrams(max_length=4, max_phrases_per_user=50).release(bounded, BUDGET)
    assert os.listdir(tmp_path) == []


def test_a_spilled_corpus_is_saved(within, tmp_path):
    """The saved corpus can be loaded with a limit."""
    corpus = within(table(3000, 400), TINY, user="who", text="text")
    corpus.save(tmp_path / "c")
    loaded = load_engine(tmp_path / "c", memory="1GiB")
    assert same(corpus, loaded)
    assert loaded.limit is not None


ROOT = Path(__file__).resolve().parent.parent.parent
LIGHT = """
import sys
import polars as pl
import voxpop as vp
rows = pl.DataFrame({"who": [f"user {who}" for who in range(2000)], "text": ["Tea, \\u00fcber cafe\\u0301", ""] * 1000})
rows.write_parquet(sys.argv[1])
corpus = vp.read(sys.argv[1], user="who", text="text", options=vp.ReadOptions(memory="896MiB"))
for mechanism in (vp.Items(10), vp.NGrams(max_length=2), vp.HeavyHitters(alphabet="tokens")):
    mechanism.release(corpus, vp.Budget(20, 1e-3)).save(sys.argv[2], overwrite=True)
    assert len(vp.load(sys.argv[2]).to_polars())
model = vp.Sequences(alphabet=("tea", "über")).release(corpus, vp.Budget(4))
model.save(sys.argv[3])
assert len(vp.load(sys.argv[3], vp.SequenceModel).sample(9, seed=1)) == 9
print([name for name in ("pandas", "scipy.stats", "rich") if name in sys.modules])
"""


@pytest.mark.slow
@pytest.mark.jit
def test_no_heavy_package_is_imported(tmp_path):
    """The script covers all steps from reading to loading.

    If pandas is installed, `pa.array` imports it, and pandas uses a tenth of the minimum limit.
    """
    call = [sys.executable, "-c", LIGHT, *(tmp_path / name for name in ("a.parquet", "r", "m"))]
    done = subprocess.run(call, capture_output=True, check=True)
    assert done.stdout == b"[]\n"


# `ru_maxrss` would include the memory of the parent process.
RUN = """
import sys
import voxpop as vp
from tools.memory import megabytes_of
corpus = vp.read(sys.argv[1], user="who", text="text", options=vp.ReadOptions(memory="896MiB"))
vp.NGrams(max_length=4).release(corpus, vp.Budget(0.5, 1e-7))
print(megabytes_of("VmHWM"))
"""


@pytest.mark.slow
def test_resident_memory_remains_within_the_limit(tmp_path, record_property):
    """N-grams are released from a quarter of a gigabyte of text at the minimum limit, with compilation of the kernels.

    Words have fifteen letters, as in `tools/memory.py`. With shorter words, the same number of bytes would contain more
    distinct tokens than this limit permits.
    """
    from support.memory_input import write_posts

    write_posts(tmp_path / "posts.parquet", 1 << 28, 15)
    call = [sys.executable, "-c", RUN, tmp_path / "posts.parquet"]
    done = subprocess.run(call, capture_output=True, check=True, cwd=ROOT, env=os.environ | {"VOXPOP_JIT_CACHE": "0"})
    record_property("figure", f"peak {int(done.stdout)} MiB of 896")
    assert int(done.stdout) <= 896


@pytest.mark.slow
@pytest.mark.skipif("VOXPOP_TENFOLD" not in os.environ, reason="15 minutes and 25 GB of disk: run `make trust`")
def test_a_file_ten_times_the_memory_limit_is_read(record_property):
    """The test runs the stages that `make memory` measures, which are reading, set union, words and pairs."""
    times, peak = tenfold.measured()
    record_property("figure", f"peak {peak} MiB of {tenfold.BOUND >> 20}, input {times:.1f} times as large")
    assert times >= 10
    assert peak << 20 <= tenfold.BOUND


@pytest.mark.parametrize(
    ("container", "limit"),
    [("max", 16 << 29), ("8589934592", 8 << 29), ("1000", memory.LEAST_MEMORY), (None, 16 << 29)],
)
def test_the_default_limit_is_half_of_the_memory(monkeypatch, tmp_path, container, limit):
    """The default is half of the memory of the machine or of a smaller container, and at least the minimum limit."""
    sizes = {"SC_PHYS_PAGES": 1 << 22, "SC_PAGE_SIZE": 1 << 12}
    monkeypatch.setattr(memory.os, "sysconf", sizes.get)
    monkeypatch.setattr(memory, "CONTAINER", tmp_path / "memory.max")
    if container is not None:
        (tmp_path / "memory.max").write_text(container + "\n")
    assert memory.usual_limit() == limit
