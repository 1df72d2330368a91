"""Phrases by length at equal privacy: as published, with one budget for all users, and with one for each of them.

python -m benchmarks.comparisons.lengths [reddit_posts] [ubuntu_irc] [MSNBC]
"""

import sys

import numpy as np

import voxpop as vp
from benchmarks.comparisons.utility import COLLECTIONS, RATIOS
from benchmarks.support.common import PUBLISHED_NGRAMS, by_length, seconds, table
from voxpop.evaluate import private_spurious_share
from voxpop.evaluate.baselines.all_grams import AllGrams

RUNS = 5


def main(wanted: list[str]) -> None:
    """Measure, print, write.

    Args:
        wanted: names of collections; none means all.
    """
    for name in wanted or list(COLLECTIONS):
        by_lengths(name)


def by_lengths(name: str) -> None:
    """Write the table of one collection."""
    corpus, longest, limit, budget = COLLECTIONS[name](), 9, 100, vp.Budget(4, 1e-7)
    if name == "MSNBC":
        longest, limit, budget = 6, 10, vp.Budget(1, 1e-7)
    cells: dict[str, dict[str, object]] = {
        "published, equal budgets": PUBLISHED_NGRAMS,
        f"published, ratio {RATIOS[name]} (its best)": {**PUBLISHED_NGRAMS, "budgets": RATIOS[name]},
        'spending="shared"': {"spending": "shared"},
        'spending="individual"': {"spending": "individual"},
    }
    lengths = [str(length) for length in range(1, longest + 1)]
    rows: list[list[object]] = [["n-grams", *lengths, "total", "to published", "spurious %", "seconds"]]
    truth, base = AllGrams.of(corpus, longest), 0.0
    for label, fields in cells.items():
        plan = vp.NGrams(max_length=longest, limit=limit, **fields).plan(budget)
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
    note = (
        f"Epsilon {budget.epsilon:g}, delta 1e-7, T {longest}, limit {limit}, eta 0.01; mean and deviation of {RUNS} "
    )
    note += (
        "runs by tokens of a phrase. Spurious: share of what is released that nobody holds. Seconds: the median run."
    )
    table(f"Phrases of {name} by length", rows, f"lengths_{name}", note)


if __name__ == "__main__":
    main(sys.argv[1:])
