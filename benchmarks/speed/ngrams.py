"""Speed of n-grams, compared with counts by polars without privacy, and of whole processes on MSNBC.

python -m benchmarks.speed.ngrams
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import polars as pl

import voxpop as vp
from benchmarks.support.benchmark import NGRAMS, Benchmark
from benchmarks.support.common import DATA, posts, seconds
from voxpop.engine.local.corpus import LocalCorpus

BENCHMARK = Benchmark(__file__, ("speed_ngrams",), (*NGRAMS, "reading", "release"), minutes=1)

TURNS = 5
MSNBC = str(DATA / "msnbc.parquet")
COMMAND = [str(Path(sys.executable).with_name("voxpop")), "ngrams", MSNBC, "--user", "user", "--sequence", "sequence"]
COMMAND += ["--epsilon", "1", "--delta", "1e-7", "--max-length", "6", "--max-phrases-per-user", "10", "-o"]
PUBLISHED_CODE = """
import sys
import voxpop as vp
data = vp.read(sys.argv[1], user="user", sequence="sequence")
vp.papers.DPNE(max_length=6, max_phrases_per_user=10).release(data, vp.Budget(1, 1e-7)).save(sys.argv[2])
"""
PUBLISHED = [sys.executable, "-c", PUBLISHED_CODE, MSNBC]


def main() -> None:
    """Measure, print and write the results."""
    corpus = posts()
    plan = vp.NGrams(max_length=9, max_phrases_per_user=100).plan(vp.Budget(4, 1e-7))
    plan.release(corpus)
    frame = token_frame(corpus)
    ours, theirs = [], []
    for _ in range(3):  # in turns, since the machine is shared
        ours.append(seconds(lambda: plan.release(corpus), runs=1))
        theirs.append(seconds(lambda: [distinct_pairs(frame, length) for length in (1, 2, 3)], runs=1))
    rows: list[list[object]] = [["what", "seconds", "ratio"]]
    rows.append(["polars: distinct (user, gram) pairs, lengths 1 to 3, no privacy", f"{median(theirs):.2f}", "1"])
    ratio = median(a / b for a, b in zip(ours, theirs, strict=True))
    rows.append(["ours: nine lengths, guided, private", f"{median(ours):.2f}", f"{ratio:.3f}"])
    for label, call in (("default", COMMAND), ("published settings", PUBLISHED)):
        whole = median(process(call) for _ in range(TURNS))
        rows.append([f"MSNBC, whole process, {label}: start, read, T 6, save", f"{whole:.2f}", "-"])
    note = f"reddit_posts after encoding, both in one process and in turns; MSNBC: median of {TURNS} processes."
    BENCHMARK.table("Speed of n-grams", rows, "speed_ngrams", note)


def token_frame(corpus: LocalCorpus) -> pl.DataFrame:
    """Return the user and the token of every position, with -1 after each document."""
    owner = np.repeat(np.arange(corpus.user_key.size, dtype=np.int32), np.diff(corpus.user_start))
    return pl.DataFrame({"user": owner, "token": np.asarray(corpus.tokens)})


def distinct_pairs(frame: pl.DataFrame, length: int) -> int:
    """Count distinct (user, gram) pairs with polars, by `unique` on shifted columns without ends of documents."""
    shifted = [pl.col("token").shift(-place).alias(f"t{place}") for place in range(length)]
    names = [f"t{place}" for place in range(length)]
    inside = pl.all_horizontal(pl.col(name) >= 0 for name in names)
    return frame.lazy().select("user", *shifted).filter(inside).unique().select(pl.len()).collect().item()


def process(call: list[str]) -> float:
    """Time a release from MSNBC, from the start of the interpreter to the saved release."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        subprocess.run([*call, str(Path(folder, "out"))], check=True, capture_output=True)
        return time.perf_counter() - start


if __name__ == "__main__":
    main()
