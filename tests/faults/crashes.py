"""The work of the processes that `test_crashes.py` kills.

The command `python -m faults.crashes` is not useful on its own.
"""

import itertools
import os
import signal
import sys
from pathlib import Path

import pyarrow as pa

import voxpop as vp
import voxpop.engine.read
import voxpop.mechanisms.ngrams.mechanism
import voxpop.mechanisms.ngrams.releasing  # These imports are here so that a forked process imports nothing.
from support.look import read_engine
from voxpop.reading.limited import memory
from voxpop.release.result import StoredPlan

RELEASES = {name: [f"{name} {number}" for number in range(2000)] for name in ("old", "new")}


def rows_of(name: str) -> pa.Table:
    """Return one of two tables.

    The result is a pyarrow table, because polars starts threads, which a fork would lose.
    """
    return pa.table({"who": list(range(3000)), "text": [f"{name} b{number % 700} c" for number in range(3000)]})


def release_of(name: str) -> vp.Release:
    """Return one of two releases."""
    return vp.Release.from_items(pa.array(sorted(RELEASES[name])), StoredPlan({"sigma": 1.2}), vp.Guarantee(4, 1e-7))


def corpus_of(name: str) -> vp.Corpus:
    """Return one of two corpora."""
    return read_engine(rows_of(name), user="who", text="text")


def save_releases(folder: Path, ready: Path) -> None:
    """Save the two releases in turn, until the process is killed."""
    kept = [release_of(name) for name in RELEASES]
    ready.touch()
    for release in itertools.cycle(kept):
        release.save(folder, overwrite=True)


def save_corpora(folder: Path, ready: Path) -> None:
    """Save the two corpora in turn, until the process is killed."""
    kept = [corpus_of(name) for name in RELEASES]
    ready.touch()
    for corpus in itertools.cycle(kept):
        corpus.save(folder)


def spill(folder: Path, ready: Path) -> None:
    """Until the process is killed, read and release with so little memory that all data is written to work files."""
    limit = memory.MemoryLimit(memory.FIXED_MEMORY + (1 << 18), 1 << 18, folder)
    memory.MemoryLimit.of = staticmethod(lambda *_: limit)  # type: ignore[method-assign]
    plan = vp.NGrams(max_length=3, max_phrases_per_user=5).plan(vp.Budget(4, 1e-5))
    while True:
        corpus = read_engine(rows_of("old"), user="who", text="text", options=vp.ReadOptions(memory="any"))
        ready.touch()
        plan.release(corpus)


def crowd(folder: Path, ready: Path) -> None:
    """Save one release ten times, while other processes do the same."""
    ready.touch()
    release = release_of("old" if os.getpid() % 2 else "new")
    for _ in range(10):
        release.save(folder, overwrite=True)


def serve() -> None:
    """Fork a process for each line "work folder ready" of standard input, and print its process id.

    All modules are imported before the fork, so a process starts its work within milliseconds.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # With this setting, killed processes leave no zombies.
    print("ready", flush=True)
    works = {each.__name__: each for each in (save_releases, save_corpora, spill, crowd)}
    for line in sys.stdin:
        work, folder, ready = line.rstrip("\n").split("\t")
        child = os.fork()
        if child == 0:
            try:
                works[work](Path(folder), Path(ready))
            finally:
                os._exit(0)
        print(child, flush=True)


if __name__ == "__main__":
    serve()
