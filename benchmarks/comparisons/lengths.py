"""Phrases by length at equal privacy, as published, with the best settings, and by default with and without a limit.

python -m benchmarks.comparisons.lengths [reddit_posts] [ubuntu_irc] [MSNBC]
"""

import sys
from typing import Any

import numpy as np

import voxpop as vp
from benchmarks.baselines.all_grams import AllGrams
from benchmarks.evaluation import private_missing_grams, private_spurious_share
from benchmarks.support.benchmark import NGRAMS, Benchmark
from benchmarks.support.common import COLLECTIONS, by_length, seconds

BENCHMARK = Benchmark(
    __file__, ("lengths_reddit_posts", "lengths_ubuntu_irc", "lengths_MSNBC"), NGRAMS, minutes=5, timed=True
)

RUNS = 5
RATIOS = {"reddit_posts": 1.2, "ubuntu_irc": 1.2, "MSNBC": 0.8}
"""The published algorithm's best ratio, found with the private data. For texts it is the best of 1.1 to 1.4. For MSNBC,
the means of 5 runs are 8,391 at 0.7, 8,594 at 0.8, 8,520 at 0.85, 8,300 at 0.9, 7,755 at 1 and 6,228 at 1.2."""
BEST_LIMITS = {"reddit_posts": 500, "ubuntu_irc": 300, "MSNBC": 30}
"""The best limits of the published algorithm with its best ratio. They were chosen among 50, 100, 200 and 500, among
30, 100, 300 and 1,000, and among 5, 10, 30 and 100."""


def main(wanted: list[str]) -> None:
    """Measure, print and write the results.

    Args:
        wanted: The names of collections. An empty list means all collections.
    """
    for name in wanted or list(COLLECTIONS):
        by_lengths(name)


def by_lengths(name: str) -> None:
    """Write the table of one collection."""
    corpus, longest, limit, budget = COLLECTIONS[name](), 9, 100, vp.Budget(4, 1e-7)
    if name == "MSNBC":
        longest, limit, budget = 6, 10, vp.Budget(1, 1e-7)
    cells: dict[str, Any] = {
        "published, equal budgets": vp.papers.DPNE(longest, limit),
        f"published, ratio {RATIOS[name]} (its best)": vp.papers.DPNE(longest, limit, ratio=RATIOS[name]),
        f"the same, limit {BEST_LIMITS[name]} (its best)": vp.papers.DPNE(
            longest, BEST_LIMITS[name], ratio=RATIOS[name]
        ),
        f"default, limit {limit}": vp.NGrams(longest, limit),
        "default": vp.NGrams(longest),
    }
    lengths = [str(length) for length in range(1, longest + 1)]
    rows: list[list[object]] = [["n-grams", *lengths, "total", "to published", "spurious %", "seconds"]]
    masses: list[list[object]] = [["missing mass, percent", *lengths, "total", "", "", ""]]
    truth, base = AllGrams.of(corpus, longest), 0.0
    for label, mechanism in cells.items():
        plan = mechanism.plan(budget)
        found: list[vp.Release] = []
        once = seconds(lambda plan=plan, found=found: found.append(plan.release(corpus)), RUNS)
        counts = np.array([by_length(each, longest) for each in found])
        total = counts.sum(axis=1)
        base = base or float(total.mean())
        spurious = 100 * np.mean([private_spurious_share(truth, each, longest) for each in found])
        shown = [f"{mean:,.0f} ± {spread:.0f}" for mean, spread in zip(counts.mean(0), counts.std(0), strict=True)]
        whole = [f"{total.mean():,.0f} ± {total.std():.0f}", f"{total.mean() / base:.2f}"]
        rows.append([label, *shown, *whole, f"{spurious:.2f}", f"{once:.1f}"])
        print(*rows[-1], flush=True)
        missing = np.mean([private_missing_grams(truth, each, longest) for each in found], axis=0)
        masses.append([label, *(f"{100 * each:.2f}" for each in missing), "", "", ""])
    note = (
        f"Epsilon {budget.epsilon:g}, delta 1e-7, T {longest}, eta 0.01; limit {limit} if a row names none; default "
        f"has 3,000. Mean and deviation of {RUNS} runs by tokens of a phrase. Spurious: the share of released phrases "
        "that no user wrote. Seconds: the median run. Missing mass: the share of all pairs of user and "
        "phrase whose phrase "
        "is not released."
    )
    BENCHMARK.table(f"Phrases of {name} by length", [*rows, *masses], f"lengths_{name}", note)


if __name__ == "__main__":
    main(sys.argv[1:])
