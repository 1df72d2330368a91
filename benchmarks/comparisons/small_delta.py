"""Words of the posts at delta 1e-7, the delta of the first page. The delta of the papers, e^-10, is 450 times as large.

    python -m benchmarks.comparisons.small_delta

The algorithms are the strongest of `set_union_field`, with the same definitions and one post as one user.
"""

import numpy as np

import voxpop as vp
from benchmarks.comparisons.set_union_field import BEST, CHOSEN, runs, shown
from benchmarks.support.benchmark import SET_UNION, Benchmark

BENCHMARK = Benchmark(
    __file__, ("small_delta",), SET_UNION, minutes=4, seeds="baselines: number of the run; others: none"
)
BUDGET = vp.Budget(3, 1e-7)
LIMITS = (1, 10, 50, 100, 200, 300, 500)
NAMES = (
    "PipelineDP 0.3.1, weighted Gaussian",
    "Policy Gaussian l2 (l2-descent)",
    "Policy Gaussian l2, Rényi selection",
    "DP-SIPS",
    "MAD2R, Rényi selection",
    CHOSEN,
)


def main() -> None:
    """Measure and write the results."""
    cells = BENCHMARK.cells()
    rows: list[list[object]] = [["words released", *(f"limit {limit}" for limit in LIMITS), BEST]]
    for name in NAMES:
        counts = [runs(cells, name, "", "3, 1e-7", BUDGET, limit)[0::2] for limit in LIMITS]
        rows.append([name, *map(shown, counts), shown(max(counts, key=np.mean))])
    note = "Epsilon 3, delta 1e-7; one post is one user. Mean and deviation of 5 runs; rows without a deviation are "
    note += "one run. The default chooses its limit privately within the same budget, so its columns are the same runs."
    BENCHMARK.table("Words at a small delta", rows, "small_delta", note)


if __name__ == "__main__":
    main()
