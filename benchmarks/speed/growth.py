"""One billion tokens through nine lengths: time per token and resident memory beside a fortieth of them.

python -m benchmarks.speed.growth            # about 10 minutes and 8 GB of disk
python -m benchmarks.speed.growth --small    # the small one alone
"""

import resource
import subprocess
import sys
import time

import voxpop as vp
from benchmarks.datasets.phrases import write_texts
from benchmarks.support.benchmark import NGRAMS, Benchmark
from benchmarks.support.common import OUT
from benchmarks.support.engines import load_engine

BENCHMARK = Benchmark(__file__, ("growth",), NGRAMS, minutes=10)

SIZES = {"25 million": (30_000, 25_000_000), "1 billion": (1_200_000, 1_000_000_000)}
BUDGET = vp.Budget(epsilon=4, delta=1e-7)


def main() -> None:
    """Generate what is missing, measure each size in a process of its own, write."""
    names = ["25 million"] if "--small" in sys.argv else list(SIZES)
    rows: list[list[object]] = [["tokens", "users", "seconds", "microseconds a token", "peak GiB", "released"]]
    for name in names:
        users, tokens = SIZES[name]
        folder = OUT / f"texts-{tokens}"
        if not folder.exists():
            write_texts(folder, users=users, tokens=tokens)
        call = [sys.executable, "-m", "benchmarks.speed.growth", "--run", str(folder)]
        if name == names[0]:  # once for nothing, so that kernels are compiled
            subprocess.run(call, capture_output=True, check=True)
        line = subprocess.run(call, capture_output=True, text=True, check=True).stdout.split()
        positions, seconds, peak, released = int(line[0]), float(line[1]), float(line[2]), line[3]
        each = f"{1e6 * seconds / positions:.3f}"
        rows.append([f"{positions:,}", f"{users:,}", f"{seconds:.1f}", each, f"{peak:.2f}", released])
    note = "NGrams(max_length=9), the default, at epsilon 4, delta 1e-7, from a saved corpus, both cores; whole."
    BENCHMARK.table("Growth: n-grams of one billion tokens", rows, "growth", note)


def run(folder: str) -> None:
    """Release from one corpus, and print positions, seconds, peak GiB and lengths."""
    corpus = load_engine(folder)
    plan = vp.NGrams(max_length=9).plan(BUDGET)
    start = time.perf_counter()
    release = plan.release(corpus)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(corpus.tokens.size, seconds, peak, len(release))


if __name__ == "__main__":
    run(sys.argv[-1]) if "--run" in sys.argv else main()
