"""DPSU's Figure 12, which varies alpha, the distance of the cutoff from the threshold.

python -m benchmarks.papers.dpsu_figure12
"""

from functools import partial

import voxpop as vp
from benchmarks.papers.algorithm8 import released_not_private
from benchmarks.support.benchmark import SET_UNION, Benchmark
from benchmarks.support.common import BUDGET, posts

BENCHMARK = Benchmark(__file__, ("dpsu_figure12",), SET_UNION, minutes=1)

ALPHAS = (0, 0.5, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
POLICIES = {
    "Policy Laplace (l1-descent)": partial(vp.papers.SetUnion, weighting="policy-laplace"),
    "Policy Gaussian l2 (l2-descent)": partial(vp.papers.SetUnion, weighting="policy-gaussian"),
}


def main() -> None:
    """Measure, print and write the results."""
    corpus = posts()
    found = {
        name: [len(algorithm(alpha=a).release(corpus, BUDGET)) for a in ALPHAS] for name, algorithm in POLICIES.items()
    }
    found["Policy Gaussian l1 (Algorithm 8), NOT PRIVATE"] = [
        released_not_private(corpus, BUDGET, 100, alpha) for alpha in ALPHAS
    ]
    rows = [["alpha", *ALPHAS], *([name, *(f"{count:,}" for count in counts)] for name, counts in found.items())]
    BENCHMARK.table(
        "Items released, by alpha", rows, "dpsu_figure12", "reddit_posts, epsilon 3, delta e^-10, limit 100."
    )


if __name__ == "__main__":
    main()
