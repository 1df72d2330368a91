"""Tests that seeded releases of generated data have the digests in `seeded.json`.

Refactoring must not change these digests.

`VOXPOP_REWRITE_SEEDED=1 pytest tests/test_seeded.py` rewrites the digests. Rewrite digests only in a commit that
changes a mechanism, and name the mechanism and the reason in the commit message.
"""

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import numba
import numpy as np
import polars as pl
import pytest

import voxpop as vp
from voxpop.reading import wanted
from voxpop.reading.limited import memory
from voxpop.reading.limited.memory import MemoryLimit

pytestmark = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="Plans have other cutpoints while kernels run as Python (conftest.py)."
)
STORED = Path(__file__).with_name("seeded.json")
USERS, TEXTS, SEED = 1500, 4, 7
THREE, FOUR, ONE = vp.Budget(3, math.exp(-8)), vp.Budget(4, 1e-5), vp.Budget(1, 1e-5)
QUIET = vp.ReadOptions(progress=False)
PAGES = tuple("abcdefgh")
LISTED = [*(f"w{word}" for word in range(0, 900, 2)), "nobody"]
"""A public list that contains items of many users, items of few users, and an item without users."""


def drawn(rows: int, columns: int, most: int, start: int) -> np.ndarray:
    """Return integers from 0 to `most` - 1, computed from the middle bits of products with an odd number.

    Small numbers are more frequent.
    """
    numbers = (np.arange(start, start + rows * columns, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ (numbers >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    uniform = (numbers >> np.uint64(40)).astype(np.float64) / 2.0**24
    return (most * uniform**3).astype(np.int64).reshape(rows, columns)


@cache
def table(start: int = 0) -> pl.DataFrame:
    """Return four rows per user, each with a text and a page. The rows of a user are not adjacent."""
    rows = USERS * TEXTS
    texts = [" ".join(f"w{word}" for word in words) for words in drawn(rows, 7, 900, start)]
    pages = [PAGES[page] for page in drawn(rows, 1, len(PAGES), start + 10**6)[:, 0]]
    user = np.arange(rows) * 7 % USERS
    return pl.DataFrame({"user": user, "text": texts, "page": pages, "time": np.arange(rows)})


@cache
def read_once(options: vp.ReadOptions, start: int = 0, **columns: str) -> vp.Corpus:
    """Return a corpus of the table. Releases do not change a corpus, so they share it."""
    return vp.read(table(start), user="user", options=options, **columns)


def text(start: int = 0) -> vp.Corpus:
    """Return a corpus of the texts."""
    return read_once(QUIET, start, text="text")


def visits() -> vp.Corpus:
    """Return a corpus of the pages of users."""
    return read_once(QUIET, sequence="page", order="time")


def pages() -> vp.Corpus:
    """Return a corpus of the pages as texts."""
    return read_once(QUIET, text="page")


def digest(lines: Iterable[object]) -> list[object]:
    """Return the number of lines and a digest of the sorted lines."""
    kept = sorted(map(str, lines))
    return [len(kept), hashlib.sha256("\n".join(kept).encode()).hexdigest()[:16]]


def released(mechanism: object, corpus: vp.Corpus, budget: vp.Budget) -> list[object]:
    """Return the digest of a release."""
    return digest(mechanism.release(corpus, budget, seed=SEED).to_list())


def released_often(mechanism: object, corpus: vp.Corpus, budget: vp.Budget, releases: int = 5) -> list[object]:
    """Return the digest of several releases. In some of these releases, many items are very close to thresholds."""
    plan = mechanism.plan(budget)
    seeds = range(SEED, SEED + releases)
    return digest(f"{seed}: {item}" for seed in seeds for item in plan.release(corpus, seed=seed).to_list())


def each() -> list[object]:
    """Return the digest of the releases of two data sets."""
    both = vp.Items().release_each({"first": text(), "second": text(10**7)}, THREE, seed=SEED)
    return digest(f"{name}: {item}" for name, release in both.items() for item in release.to_list())


def further() -> list[object]:
    """Return the digest of the counts and the ranking of released words."""
    union = vp.Items(max_items_per_user=100).release(text(), THREE, seed=SEED)
    counts, top = union.count(text(), ONE, seed=SEED), union.top(text(), ONE, k=20, seed=SEED)
    rows = [(list(gram), len(gram), users) for gram, users in counts.each_gram()]
    return digest([*rows, *((list(gram), len(gram), place) for place, gram in enumerate(top.each_gram(), start=1))])


def model() -> list[object]:
    """Return the digest of sequences drawn from a model."""
    sequences = vp.Sequences(max_length=6, alphabet=list(PAGES)).release(visits(), vp.Budget(1.0), seed=SEED)
    return digest(sequences.sample(500, seed=1)["sequence"].to_list())


def gram_counts() -> list[object]:
    """Return the digest of variable-length n-grams."""
    return digest(
        vp.papers.VariableLengthNGrams(alphabet=list(PAGES)).release(visits(), ONE, seed=SEED).to_polars().rows()
    )


def profile() -> list[object]:
    """Return the digest of the profile of all columns."""
    rows = table().with_columns(size=pl.col("text").str.len_chars())
    result = vp.profile(rows, user="user", budget=FOUR, text=["text"], options=QUIET, seed=SEED)
    return digest(result.to_polars().rows())


def keys(limit: int | None) -> list[object]:
    """Return the digest of the keys of a column."""
    how = {"joint": [("page",)], "max_keys_per_user": limit, "budget": FOUR, "options": QUIET, "seed": SEED}
    return digest(vp.profile(table(), user="user", **how).to_polars().rows())


def keys_of_few() -> list[object]:
    """Return the digest of keys if most users have one or two keys, so that the plan has parts."""
    user, more = np.arange(USERS), np.arange(USERS)[::20]
    parts = ((user, 1, 5), (user[::3], 1, 9), (more, 9, 77))
    rows = pl.concat(
        pl.DataFrame({"user": np.repeat(who, each), "key": drawn(who.size, each, 40, start).ravel()})
        for who, each, start in parts
    )
    found = vp.profile(rows, user="user", joint=[("key",)], budget=FOUR, options=QUIET, seed=SEED)
    assert found.plan.chosen == found.plan.place_of_parts
    return digest(found.to_polars().rows())


def repeated_keys() -> list[object]:
    """Return the digest of the keys of two sets of columns, for repeated releases."""
    rows = table().with_columns(size=pl.col("text").str.len_chars() // 4).drop("text", "time")
    how = {"joint": [("page", "size"), ("page",)], "budget": FOUR, "options": QUIET, "seed": SEED}
    return digest(vp.profile(rows, user="user", repeated=True, **how).to_polars().rows())


def found_alphabet() -> list[object]:
    """Return the digest of sequences from a model that also finds its alphabet."""
    found = vp.Sequences(max_length=6, alphabet="find").release(visits(), ONE, seed=SEED)
    return digest(found.sample(500, seed=1)["sequence"].to_list())


def nights(folder: Path, known: list[str] | None = None) -> list[object]:
    """Return the digest of three nights."""
    series = vp.Items(known=known).series(folder / "series", FOUR, nights=3, seed=SEED)
    for night in range(3):
        series.run(text(night * 10**7))
    rows = series.released.to_pylist()
    return digest({"gram": [row["word"]], "length": 1, "night": row["night"]} for row in rows)


UNIONS = {
    "items": (vp.Items(), THREE),
    "set union, limit 10": (vp.Items(max_items_per_user=10), THREE),
    "set union, limit 300": (vp.Items(max_items_per_user=300), THREE),
    "set union, min_users": (vp.Items(max_items_per_user=100, min_users=30), THREE),
    "policy gaussian": (vp.papers.SetUnion(20, "policy-gaussian", 5.0, "joint"), THREE),
    "policy laplace": (vp.papers.SetUnion(20, "policy-laplace", 14.0, "joint"), THREE),
    "weighted": (vp.papers.SetUnion(20, "weighted", accounting="joint"), THREE),
    "count": (vp.papers.OptimalSelection(), THREE),
    "DPSU": (vp.papers.SetUnion(weighting="policy-gaussian"), THREE),
    "DPNE": (vp.papers.DPNE(max_length=3), FOUR),
    "n-grams": (vp.NGrams(max_length=3), FOUR),
    "n-grams, limit 20": (vp.NGrams(max_length=3, max_phrases_per_user=20), FOUR),
    "heavy hitters": (vp.HeavyHitters(max_length=4), FOUR),
    "TrieHH": (vp.papers.TrieHH(), FOUR),
}
RELEASES: dict[str, Callable[[Path], list[object]]] = {
    **{name: lambda _, given=given: released(given[0], text(), given[1]) for name, given in UNIONS.items()},
    **{
        f"{name}, often": lambda _, given=given: released_often(given[0], text(), given[1])
        for name, given in UNIONS.items()
    },
    "TrieHH of pages, often": lambda _: released_often(vp.papers.TrieHH(max_length=2), pages(), FOUR, releases=50),
    "items, public list": lambda _: released_often(vp.Items(known=LISTED), text(), THREE),
    "n-grams, public list": lambda _: released(vp.NGrams(max_length=3, known=LISTED), text(), FOUR),
    "n-grams of pages": lambda _: released(vp.NGrams(max_length=3, max_phrases_per_user=10), visits(), ONE),
    "two data sets": lambda _: each(),
    "counts and ranking": lambda _: further(),
    "sequences": lambda _: model(),
    "variable-length n-grams": lambda _: gram_counts(),
    "profile": lambda _: profile(),
    "keys": lambda _: keys(None),
    "keys, limit 2": lambda _: keys(2),
    "keys of few": lambda _: keys_of_few(),
    "keys, repeated": lambda _: repeated_keys(),
    "sequences, alphabet found": lambda _: found_alphabet(),
    "nights": nights,
    "nights, public list": lambda folder: nights(folder, LISTED),
}
WITHIN = ("set union, limit 10", "policy gaussian", "n-grams, limit 20", "counts and ranking", "items, public list")
"""Releases that must not change if all data is in work files."""


def compare(name: str, found: list[object]) -> None:
    """Compare a digest with the stored digest, or store it on request."""
    if os.environ.get("VOXPOP_REWRITE_SEEDED"):
        stored = json.loads(STORED.read_text()) if STORED.exists() else {}
        lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in {**stored, name: found}.items()]
        STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    assert found == json.loads(STORED.read_text())[name]
    assert found[0] > 0


@pytest.mark.parametrize("name", RELEASES)
def test_seeded_releases_do_not_change(name, tmp_path):
    compare(name, RELEASES[name](tmp_path))


@pytest.mark.parametrize("name", WITHIN)
def test_seeded_releases_are_the_same_with_work_files(name, tmp_path, monkeypatch):
    room, files = 1 << 18, []
    make = memory.WorkFile.__init__
    monkeypatch.setattr(memory.WorkFile, "__init__", lambda self, *given: files.append(1) or make(self, *given))
    monkeypatch.setattr(f"{__name__}.read_once", read_once.__wrapped__)
    monkeypatch.setattr(f"{__name__}.QUIET", vp.ReadOptions(progress=False, memory="any"))
    monkeypatch.setattr(
        MemoryLimit, "of", staticmethod(lambda *_: MemoryLimit(room + memory.FIXED_MEMORY, room, tmp_path))
    )
    monkeypatch.setattr(wanted, "_ROWS_AT_ONCE", 512)
    monkeypatch.setattr(wanted, "_ITEMS_AT_ONCE", 512)
    assert RELEASES[name](tmp_path) == json.loads(STORED.read_text())[name]
    assert files


def test_every_release_has_a_stored_digest():
    assert json.loads(STORED.read_text()).keys() == RELEASES.keys()
