"""DPSU's Table 2 on half a million posts, with all cells and limits, and the mean and deviation of 5 runs.

python -m benchmarks.papers.dpsu_table2
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import voxpop as vp
from benchmarks.papers.algorithm8 import released_not_private
from benchmarks.support.benchmark import SET_UNION, Benchmark
from benchmarks.support.common import BUDGET, posts
from voxpop.engine.local.corpus import LocalCorpus

BENCHMARK = Benchmark(__file__, ("dpsu_table2",), SET_UNION, minutes=5)

LIMITS = (1, 10, 50, 100, 200)
RUNS = 5
CELLS: dict[str, Callable[[int], Any]] = {
    "Count Laplace": partial(vp.papers.SetUnion, weighting="count-laplace"),
    "Count Gaussian": partial(vp.papers.SetUnion, weighting="count"),
    "Weighted Laplace": partial(vp.papers.SetUnion, weighting="weighted-laplace"),
    "Weighted Gaussian": partial(vp.papers.SetUnion, weighting="weighted"),
    "Policy Laplace (l1-descent)": partial(vp.papers.SetUnion, weighting="policy-laplace"),
    "Policy Gaussian l2 (l2-descent)": partial(vp.papers.SetUnion, weighting="policy-gaussian"),
}
OURS: dict[str, Callable[[int], Any]] = {
    "Weighted Gaussian, joint": lambda limit: vp.papers.SetUnion(limit, "weighted", accounting="joint"),
    "Policy Gaussian l2, joint, alpha 5": lambda limit: vp.papers.SetUnion(limit, "policy-gaussian", 5.0, "joint"),
    "default": vp.Items,
}
PROTOTYPE = {
    "Weighted Gaussian": (15_026, 17_254, 17_793, 18_044),
    "Policy Gaussian l2 (l2-descent)": (23_576, 29_951, 31_435, 31_961),
}


def main() -> None:
    """Measure, print and write the results."""
    corpus = posts()
    counts = {
        **{name: _row(corpus, algorithm) for name, algorithm in CELLS.items()},
        "Policy Gaussian l1 (Algorithm 8), NOT PRIVATE": [
            [released_not_private(corpus, BUDGET, limit) for _ in range(RUNS)] for limit in LIMITS
        ],
        **{name: _row(corpus, algorithm) for name, algorithm in OURS.items()},
    }
    rows = [["limit", *LIMITS]]
    rows += [[name, *(f"{np.mean(c):,.0f} ± {np.std(c):.0f}" for c in row)] for name, row in counts.items()]
    note = f"Words of reddit_posts, epsilon 3, delta e^-10, {RUNS} runs; the paper's accounting and alpha (3; "
    note += "Algorithm 8: 5) above, ours below.\n\n"
    note += "Ratio to an independent prototype at limits 10 to 200: "
    note += "; ".join(f"{name} {_ratios(counts[name], wanted)}" for name, wanted in PROTOTYPE.items())
    BENCHMARK.table("Items released, by weighting, noise and limit", rows, "dpsu_table2", note)


def _row(corpus: LocalCorpus, algorithm: Callable[[int], Any]) -> list[list[int]]:
    plans = [algorithm(limit).plan(BUDGET) for limit in LIMITS]
    return [[len(plan.release(corpus)) for _ in range(RUNS)] for plan in plans]


def _ratios(row: list[list[int]], wanted: tuple[int, ...]) -> str:
    return ", ".join(f"{np.mean(c) / w:.3f}" for c, w in zip(row[1:], wanted, strict=True))


if __name__ == "__main__":
    main()
