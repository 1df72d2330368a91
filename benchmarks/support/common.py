"""Data sets, which are tokenized once, and a clock."""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

import voxpop as vp
from benchmarks.support.engines import load_engine, read_engine
from voxpop.engine.local.corpus import LocalCorpus

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("VOXPOP_DATA", ROOT.parent / "shared" / "data"))
RESULTS = ROOT / "benchmarks" / "results"
OUT = ROOT / "out"
BUDGET = vp.Budget(epsilon=3, delta=float(np.exp(-10)))


def posts() -> LocalCorpus:
    """Return the posts as words, which are tokenised once."""
    return _kept("reddit", "reddit_posts.parquet", text="text")


def chat() -> LocalCorpus:
    """Return the messages of a chat as words, from few users with many messages each."""
    return _kept("irc", "ubuntu_irc.parquet", text="text")


def clicks() -> LocalCorpus:
    """Return MSNBC, which contains the kinds of pages that visitors saw, in order."""
    return _kept("msnbc", "msnbc.parquet", sequence="sequence")


COLLECTIONS: dict[str, Callable[[], LocalCorpus]] = {"reddit_posts": posts, "ubuntu_irc": chat, "MSNBC": clicks}


def _kept(name: str, file: str, **column: str) -> LocalCorpus:
    folder = OUT / f"{name}.corpus"
    if not folder.exists():
        read_engine(DATA / file, user="user", **column).save(folder)
    return load_engine(folder)


def joined(corpus: LocalCorpus, by: int) -> LocalCorpus:
    """Return the same texts with every `by` users merged into one, so that fewer users have longer texts."""
    first = np.arange(0, corpus.user_key.size, by)
    return replace(
        corpus,
        user_start=np.append(corpus.user_start[first], corpus.user_start[-1]),
        user_key=np.ascontiguousarray(corpus.user_key[first]),
    )


def by_length(release: vp.Release, longest: int) -> NDArray[np.int64]:
    """Return the number of released grams of each length."""
    return np.bincount(release.grams["length"].to_numpy(), minlength=longest + 1)[1:]


def seconds(work: Callable[[], object], runs: int = 3) -> float:
    """Return the median time of several runs."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return median(times)
