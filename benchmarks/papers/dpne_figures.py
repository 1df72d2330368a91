"""DPNE's Figures 1 to 4 on half a million posts, for the published algorithm and Voxpop.

python -m benchmarks.papers.dpne_figures
"""

from typing import Any

import numpy as np

import voxpop as vp
from benchmarks.baselines.all_grams import AllGrams, dpsu_all, dpsu_even, dpsu_single
from benchmarks.support.benchmark import NGRAMS, Benchmark
from benchmarks.support.common import by_length, posts
from voxpop.engine.local.corpus import LocalCorpus

BENCHMARK = Benchmark(__file__, ("dpne_figures",), NGRAMS, minutes=5)

LONGEST = 9
BOTH: tuple[tuple[str, Any], ...] = (("published", vp.papers.DPNE), ("ours", vp.NGrams))
LENGTHS = list(range(1, LONGEST + 1))
SWEEPS = {
    "max_phrases_per_user": (10, 30, 100, 300, 1000),
    "epsilon": (1, 2, 4, 8),
    "max_spurious_share": (0.001, 0.003, 0.01, 0.03, 0.1),
    "ratio c": (0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4),
}


def main() -> None:
    """Measure and write the results."""
    corpus = posts()
    rows: list[list[object]] = [["figure", "setting", "algorithm", *LENGTHS, "total"]]
    for name, values in SWEEPS.items():
        rows += sweep(corpus, name, values)
    rows += pruning_rules(corpus)
    grams = AllGrams.of(corpus, LONGEST)
    rows += against_set_union(grams)
    note = "Epsilon 4, delta 1e-7, T 9, limit 100, eta 0.01 where not varied; one run each."
    BENCHMARK.table("DPNE's Figures 1 to 4 on reddit_posts", rows, "dpne_figures", note)


def released(corpus: LocalCorpus, mechanism: Any, epsilon: float = 4.0, **fields: object) -> np.ndarray:
    """Return the number of released grams by length."""
    plan = mechanism(**{"max_length": LONGEST, "max_phrases_per_user": 100, **fields}).plan(vp.Budget(epsilon, 1e-7))
    return by_length(plan.release(corpus), LONGEST)


def sweep(corpus: LocalCorpus, name: str, values: tuple[float, ...]) -> list[list[object]]:
    """Vary one parameter of both algorithms or only of the published algorithm."""
    rows: list[list[object]] = []
    for value in values:
        changed = {"ratio": float(value)} if name == "ratio c" else {name: value}
        for label, mechanism in BOTH[: 1 if name == "ratio c" else 2]:
            counts = released(corpus, mechanism, **changed)
            rows.append([name, value, label, *counts, counts.sum()])
    return rows


def pruning_rules(corpus: LocalCorpus) -> list[list[object]]:
    """Compare both-side and single-side pruning (Figure 4, left)."""
    rows = []
    for pruning in ("both", "single"):
        counts = released(corpus, vp.papers.DPNE, pruning=pruning)
        rows.append(["pruning", pruning, "published", *counts, counts.sum()])
    return rows


def against_set_union(grams: AllGrams) -> list[list[object]]:
    """Compare with the three baselines (Figure 1)."""
    corpus, budget = grams.corpus, vp.Budget(4, 1e-7)
    counts = {
        "ours": released(corpus, vp.NGrams),
        "DPNE": released(corpus, vp.papers.DPNE),
        "DPSU-all": by_length(dpsu_all(grams, budget, 100), LONGEST),
        "DPSU-even": by_length(dpsu_even(grams, budget, 100), LONGEST),
        "DPSU-single": np.array([len(dpsu_single(grams, budget, length, 100)) for length in LENGTHS]),
    }
    return [["baselines", "–", name, *row, row.sum()] for name, row in counts.items()]


if __name__ == "__main__":
    main()
