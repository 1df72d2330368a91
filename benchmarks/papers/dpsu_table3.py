"""DPSU's Table 3, which compares releases with the words of at least k users.

    python -m benchmarks.papers.dpsu_table3

The benchmark reads exact private numbers, which is permitted only for research on public data.
"""

import voxpop as vp
from benchmarks.evaluation import private_coverage
from benchmarks.support.benchmark import SET_UNION, Benchmark
from benchmarks.support.common import BUDGET, posts

BENCHMARK = Benchmark(__file__, ("dpsu_table3",), SET_UNION, minutes=1)

KS = (5, 10, 15, 18, 20, 25)
MECHANISMS = {
    "Policy Laplace": vp.papers.SetUnion(weighting="policy-laplace"),
    "Policy Gaussian l2": vp.papers.SetUnion(weighting="policy-gaussian"),
    "Policy Gaussian l2, joint accounting": vp.papers.SetUnion(100, "policy-gaussian", 5.0, "joint"),
}


def main() -> None:
    """Measure, print and write the results."""
    corpus = posts()
    found = {name: private_coverage(corpus, m.release(corpus, BUDGET), KS) for name, m in MECHANISMS.items()}
    held = next(iter(found.values()))["held"]
    rows = [["k", "words of k users", *(f"{name}: size ratio (named)" for name in found)]]
    for i, k in enumerate(KS):
        cells = [f"{each['size_ratio'][i]:.1%} ({each['covered'][i]:.1%})" for each in found.values()]
        rows.append([k, f"{held[i]:,}", *cells])
    note = "reddit_posts, epsilon 3, delta e^-10, limit 100. Size ratio as in the paper; named: the share of those "
    note += "words that is released."
    BENCHMARK.table("Coverage of k-anonymity", rows, "dpsu_table3", note)


if __name__ == "__main__":
    main()
