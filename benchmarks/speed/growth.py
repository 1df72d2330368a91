"""N-grams of one billion tokens up to length 9, and one billion pairs within 8 GiB, compared with a fortieth of both.

python -m benchmarks.speed.growth            # 15 GB of disk
python -m benchmarks.speed.growth --small    # only the small sizes
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import voxpop as vp
from benchmarks.datasets.pairs import pairs_file
from benchmarks.datasets.phrases import write_texts
from benchmarks.support.benchmark import NGRAMS, Benchmark
from benchmarks.support.common import OUT
from benchmarks.support.engines import load_engine, read_engine

BENCHMARK = Benchmark(__file__, ("growth", "growth_pairs"), (*NGRAMS, "reading"), minutes=15)

TOKENS = {25_000_000: 30_000, 1_000_000_000: 1_200_000}
"""The number of users by number of tokens."""
PAIRS = (25_000_000, 1_000_000_000)
MEMORY = "8GiB"
BUDGET = vp.Budget(epsilon=4, delta=1e-7)


def main() -> None:
    """Generate missing data, measure each size in a separate process, and write the results."""
    few = 1 if "--small" in sys.argv else None
    head = ["users", "seconds", "microseconds each", "own GiB", "resident GiB", "released"]
    rows: list[list[object]] = [["tokens", *head]]
    for tokens, users in list(TOKENS.items())[:few]:
        folder = OUT / f"texts-{tokens}"
        if not folder.exists():
            write_texts(folder, users=users, tokens=tokens)
        if len(rows) == 1:  # a first run compiles the kernels
            measured("--tokens", str(folder))
        rows.append(measured("--tokens", str(folder)))
    note = (
        "NGrams(max_length=9), the default, at epsilon 4, delta 1e-7, from a saved corpus, on both cores. Both "
        "peaks are those of the process, without and with the pages of mapped files."
    )
    BENCHMARK.table("Growth: n-grams of one billion tokens", rows, "growth", note)
    rows = [["pairs", *head]]
    rows += [measured("--pairs", str(pairs_file(pairs))) for pairs in PAIRS[:few]]
    note = (
        f'Items(), the default, at epsilon 4, delta 1e-7, read from Parquet and released within memory="{MEMORY}". '
        "Peaks as above; the system reclaims pages of mapped work files if memory is short."
    )
    BENCHMARK.table("Growth: set union of one billion pairs", rows, "growth_pairs", note)


def measured(kind: str, path: str) -> list[object]:
    """Return a row, measured in a separate process."""
    call = [sys.executable, "-m", "benchmarks.speed.growth", kind, path]
    line = subprocess.run(call, capture_output=True, text=True, check=True).stdout.split()
    size, users, seconds, released = int(line[0]), int(line[1]), float(line[2]), int(line[5])
    each = f"{1e6 * seconds / size:.3f}"
    peaks = [f"{float(peak):.2f}" for peak in line[3:5]]
    return [f"{size:,}", f"{users:,}", f"{seconds:.1f}", each, *peaks, f"{released:,}"]


def run(kind: str, path: str) -> None:
    """Release from one source, and print the size, users, seconds, both peaks in GiB, and the released number."""
    corpus = load_engine(path) if kind == "--tokens" else None
    start = time.perf_counter()
    with peaks_of_memory() as peaks:
        if corpus is None:
            corpus = read_engine(path, user="user", items="item", options=vp.ReadOptions(memory=MEMORY))
            released = len(vp.Items().plan(BUDGET).release(corpus))
        else:
            released = len(vp.NGrams(max_length=9).plan(BUDGET).release(corpus))
    seconds = time.perf_counter() - start
    print(corpus.tokens.size, corpus.user_start.size - 1, seconds, *peaks, released)


@contextmanager
def peaks_of_memory() -> Iterator[list[float]]:
    """Yield a list that, at the end, contains the peak memory in GiB without and with mapped files."""
    peaks, done = [0.0, 0.0], Event()

    def watch() -> None:
        while not done.wait(0.05):
            status = Path("/proc/self/status").read_text()
            for place, name in enumerate(("RssAnon:", "VmRSS:")):
                peaks[place] = max(peaks[place], int(status.partition(name)[2].split()[0]) / 2**20)

    watcher = Thread(target=watch)
    watcher.start()
    try:
        yield peaks
    finally:
        done.set()
        watcher.join()


if __name__ == "__main__":
    run(*sys.argv[1:]) if sys.argv[1:2] in (["--tokens"], ["--pairs"]) else main()
