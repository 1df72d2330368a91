"""The shape of DPSU's Table 2 on half a million posts: every cell × limits, mean and deviation of 5 runs.

python -m benchmarks.papers.dpsu_table2
"""

import numpy as np

import voxpop as vp
from benchmarks.papers.algorithm8 import released_not_private
from benchmarks.support.common import BUDGET, POLICY_LAPLACE, picture, posts, table

LIMITS = (1, 10, 50, 100, 200)
RUNS = 5
CELLS = {
    "Count Laplace": {"weighting": "count", "noise": "laplace"},
    "Count Gaussian": {"weighting": "count"},
    "Weighted Laplace": {"weighting": "weighted", "noise": "laplace"},
    "Weighted Gaussian": {"weighting": "weighted"},
    "Policy Laplace (l1-descent)": POLICY_LAPLACE,
    "Policy Gaussian l2 (l2-descent)": {"weighting": "l2-descent"},
}
OURS = {
    "Weighted Gaussian, joint": {"weighting": "weighted"},
    "l2-descent, joint": {"weighting": "l2-descent"},
    "Weighted Gaussian, joint, 3 rounds": {"weighting": "weighted", "rounds": 3},
    "l2-descent, joint, 3 rounds": {"weighting": "l2-descent", "rounds": 3},
}
PROTOTYPE = {
    "Weighted Gaussian": (15_026, 17_254, 17_793, 18_044),
    "Policy Gaussian l2 (l2-descent)": (23_576, 29_951, 31_435, 31_961),
}


def main() -> None:
    """Measure, print, write."""
    corpus = posts()
    counts = {
        **{name: _row(corpus, accounting="published", **cell) for name, cell in CELLS.items()},
        "Policy Gaussian l1 (Algorithm 8), NOT PRIVATE": [
            [released_not_private(corpus, BUDGET, limit) for _ in range(RUNS)] for limit in LIMITS
        ],
        **{name: _row(corpus, accounting="joint", **cell) for name, cell in OURS.items()},
    }
    rows = [["limit", *LIMITS]]
    rows += [[name, *(f"{np.mean(c):,.0f} ± {np.std(c):.0f}" for c in row)] for name, row in counts.items()]
    note = f"Words of reddit_posts, epsilon 3, delta e^-10, {RUNS} runs; published accounting above, joint below. "
    note += "Policy Laplace has the paper's alpha, 3; all other policies 5.\n\n"
    note += "Ratio to an independent prototype at limits 10 to 200: "
    note += "; ".join(f"{name} {_ratios(counts[name], wanted)}" for name, wanted in PROTOTYPE.items())
    table("Items released, by weighting, noise and limit", rows, "dpsu_table2", note)
    lines = {name: (LIMITS, [float(np.mean(c)) for c in row]) for name, row in counts.items()}
    picture("dpsu_table2", lines, ("limit", "items released"))


def _row(corpus: vp.Corpus, **cell: object) -> list[list[int]]:
    plans = [vp.SetUnion(limit=limit, **cell).plan(BUDGET) for limit in LIMITS]
    return [[len(plan.release(corpus)) for _ in range(RUNS)] for plan in plans]


def _ratios(row: list[list[int]], wanted: tuple[int, ...]) -> str:
    return ", ".join(f"{np.mean(c) / w:.3f}" for c, w in zip(row[1:], wanted, strict=True))


if __name__ == "__main__":
    main()
