"""Phrases by limit, with the defaults, for many users with short texts, few with long texts, and joined users.

    python -m benchmarks.comparisons.limits

Cells that the same code has measured are cached in `out/cells`.
"""

import time
from collections.abc import Callable

import numpy as np

import voxpop as vp
from benchmarks.support.benchmark import NGRAMS, Benchmark
from benchmarks.support.common import by_length, chat, joined, posts
from voxpop.engine.local.corpus import LocalCorpus

BENCHMARK = Benchmark(__file__, ("limits",), NGRAMS, minutes=5)

LONGEST, BUDGET, RUNS = 9, vp.Budget(4, 1e-7), {"ubuntu_irc": 3, "100 posts per user": 4}
"""The number of runs, which is 1 for all other collections."""
LIMITS = (10, 30, 100, 300, 1_000, 3_000, 10_000, 100_000)
COLLECTIONS: dict[str, Callable[[], LocalCorpus]] = {
    "ubuntu_irc": chat,
    "reddit_posts": posts,
    "25 posts per user": lambda: joined(posts(), 25),
    "100 posts per user": lambda: joined(posts(), 100),
}


def main() -> None:
    """Measure and write the results."""
    cells = BENCHMARK.cells()
    vp.NGrams(LONGEST).plan(BUDGET).release(chat())  # compiles the kernels
    found: dict[str, dict[int, list[float]]] = {}
    for name, corpus in COLLECTIONS.items():
        read = corpus()
        for limit in LIMITS:
            runs = RUNS.get(name, 1)
            cell = cells.get([name, limit], lambda read=read, limit=limit, runs=runs: measured(read, limit, runs))
            found.setdefault(name, {})[limit] = cell
    write(found)


def write(found: dict[str, dict[int, list[float]]]) -> None:
    """Write one row for each collection and limit."""
    lengths = [str(length) for length in range(1, LONGEST + 1)]
    rows: list[list[object]] = [["collection", "limit", *lengths, "total", "to the best", "processor seconds"]]
    for name, row in found.items():
        best = max(sum(cell[:LONGEST]) for cell in row.values())
        for limit, cell in row.items():
            counts, (spread, seconds), total = cell[:LONGEST], cell[LONGEST:], sum(cell[:LONGEST])
            shown = f"{total:,.0f} ± {spread:.0f}" if spread else f"{total:,.0f}"
            by_limit = [f"{limit:,}", *(f"{each:,.0f}" for each in counts), shown, f"{total / best:.3f}"]
            rows.append([name, *by_limit, f"{seconds:.1f}"])
    note = f"Epsilon {BUDGET.epsilon:g}, delta 1e-7, T {LONGEST}, the defaults; phrases by tokens. Rows with a "
    note += "deviation are means of 3 releases (ubuntu_irc) or 4; other rows are one release. N posts per user: "
    note += "the texts "
    note += "of reddit_posts, with each N users combined into one. Processor seconds of a release, on a busy machine."
    BENCHMARK.table("Phrases by limit", rows, "limits", note)


def measured(corpus: LocalCorpus, limit: int, runs: int) -> list[float]:
    """Return the mean numbers of phrases by length, the deviation of their sum, and the median processor seconds."""
    plan = vp.NGrams(LONGEST, limit).plan(BUDGET)
    counts, seconds = [], []
    for _ in range(runs):
        start = time.process_time()
        counts.append(by_length(plan.release(corpus), LONGEST))
        seconds.append(time.process_time() - start)
    return [*np.mean(counts, axis=0), float(np.std(np.sum(counts, axis=1))), float(np.median(seconds))]


if __name__ == "__main__":
    main()
