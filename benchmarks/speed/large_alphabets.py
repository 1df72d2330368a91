"""Sequences of words, with given or found alphabets of up to 300,000 symbols, and the resulting models.

    python -m benchmarks.speed.large_alphabets

Each row is a separate process with its own peak memory. The benchmark reads exact private numbers, which is permitted
only for research on public data.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import voxpop as vp
from benchmarks.support.benchmark import SEQUENCES, Benchmark
from benchmarks.support.common import posts
from voxpop.engine.local.corpus import LocalCorpus

BENCHMARK = Benchmark(__file__, ("large_alphabets",), SEQUENCES, minutes=5, seeds="1")

BUDGET = vp.Budget(4, 1e-7)
SIZES = (1_000, 10_000, 100_000, 300_000)
FIND = "find"
DRAWN = 10_000


def alphabet_of(corpus: LocalCorpus, size: int) -> list[str]:
    """Return the most frequent words of the posts, and made-up words if there are too few."""
    words = corpus.vocabulary.to_pylist()
    counts = np.bincount(corpus.tokens[corpus.tokens >= 0], minlength=len(words))[: len(words)]
    most = [words[place] for place in np.argsort(-counts, kind="stable")[:size]]
    return most + [f"made-up {number}" for number in range(size - len(most))]


def one(what: str) -> dict[str, object]:
    """Release, sample and save with one alphabet, and return the figures."""
    corpus = posts()
    alphabet = FIND if what == FIND else alphabet_of(corpus, int(what))
    mechanism = vp.Sequences(max_length=20, max_gram=5, alphabet=alphabet)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    begun = time.perf_counter()
    model = mechanism.release(corpus, BUDGET, seed=1)
    released = time.perf_counter() - begun
    begun = time.perf_counter()
    drawn = model.sample(DRAWN, seed=1)
    sampled = time.perf_counter() - begun
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        model.save(f"{folder}/model")
        saved = time.perf_counter() - begun
        size = sum(each.stat().st_size for each in Path(folder, "model").iterdir()) / 2**20
    return {
        "symbols": len(model.alphabet),
        "release, s": f"{released:.1f}",
        f"draw {DRAWN:,}, s": f"{sampled:.1f}",
        "save, s": f"{saved:.1f}",
        "peak, GiB": f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} (corpus {before:.1f})",
        "folder, MiB": f"{size:.1f}",
        "contexts": f"{model.tree.nodes:,}",
        "counts": f"{len(model):,}",
        "mean length drawn": f"{drawn['sequence'].list.len().mean():.1f}",
        "users, estimated": f"{model.n_users:,.0f}",
    }


def main() -> None:
    """Measure each alphabet in a separate process, print and write the results."""
    if len(sys.argv) > 1:
        print(json.dumps(one(sys.argv[1])))
        return
    posts()
    rows: list[list[object]] = []
    for what in (*map(str, SIZES), FIND):
        call = [sys.executable, "-m", "benchmarks.speed.large_alphabets", what]
        found = json.loads(subprocess.run(call, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        rows = rows or [["alphabet", *found]]
        rows.append(["found" if what == FIND else "given", *found.values()])
    note = f"First 20 words of a post of each user of reddit_posts; epsilon {BUDGET.epsilon:g}, delta "
    note += f"{BUDGET.delta:g} if the alphabet is found. "
    note += "Alphabets that are given contain the most common words of the posts, and made-up ones if "
    note += "the posts have fewer. "
    note += "Peak memory includes the corpus, whose own peak while it is loaded is in brackets. "
    BENCHMARK.table("Sequences with large alphabets", rows, "large_alphabets", note)


if __name__ == "__main__":
    main()
