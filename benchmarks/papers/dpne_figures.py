"""DPNE's Figures 1 to 4 on half a million posts, as pictures: the published algorithm beside ours.

python -m benchmarks.papers.dpne_figures
"""

from typing import Any

import numpy as np

import voxpop as vp
from benchmarks.baselines.all_grams import AllGrams, dpsu_all, dpsu_even, dpsu_single
from benchmarks.evaluation import private_ngram_coverage
from benchmarks.support.common import by_length, picture, posts, table
from voxpop.engine.local.corpus import LocalCorpus

LONGEST = 9
BOTH: tuple[tuple[str, Any], ...] = (("published", vp.papers.DPNE), ("ours", vp.NGrams))
LENGTHS = list(range(1, LONGEST + 1))
SWEEPS = {
    "limit": ((10, 30, 100, 300, 1000), "x"),
    "epsilon": ((1, 2, 4, 8), "x"),
    "eta": ((0.001, 0.003, 0.01, 0.03, 0.1), "x"),
    "ratio c": ((0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4), ""),
}
KS = (10, 20, 50, 100, 200, 500, 1000)


def main() -> None:
    """Measure, draw, write."""
    corpus = posts()
    rows: list[list[object]] = [["figure", "setting", "algorithm", *LENGTHS, "total"]]
    for name, (values, log) in SWEEPS.items():
        rows += sweep(corpus, name, values, log)
    rows += pruning_rules(corpus)
    grams = AllGrams.of(corpus, LONGEST)
    rows += against_set_union(grams)
    coverage(grams)
    note = "Epsilon 4, delta 1e-7, T 9, limit 100, eta 0.01 where not varied; one run each."
    table("DPNE's Figures 1 to 4 on reddit_posts", rows, "dpne_figures", note)


def released(corpus: LocalCorpus, mechanism: Any, epsilon: float = 4.0, **fields: object) -> np.ndarray:
    """Return grams released by length."""
    plan = mechanism(**{"max_length": LONGEST, "limit": 100, **fields}).plan(vp.Budget(epsilon, 1e-7))
    return by_length(plan.release(corpus), LONGEST)


def sweep(corpus: LocalCorpus, name: str, values: tuple[float, ...], log: str) -> list[list[object]]:
    """Vary one parameter of both algorithms or of the published one; draw totals and lengths 1 to 5 of the latter."""
    rows, totals, lengths = [], {"published": [], "ours": []}, {}
    for value in values:
        changed = {"ratio": float(value)} if name == "ratio c" else {name: value}
        for label, mechanism in BOTH[: 1 if name == "ratio c" else 2]:
            counts = released(corpus, mechanism, **changed)
            rows.append([name, value, label, *counts, counts.sum()])
            totals[label].append(counts.sum())
            if label == "published":
                for length in range(5):
                    lengths.setdefault(f"published, length {length + 1}", []).append(counts[length])
    lines = {f"{label}, all lengths": (values, line) for label, line in totals.items() if line}
    lines |= {label: (values, line) for label, line in lengths.items()}
    picture(f"dpne_{name.split()[0]}", lines, (name, "phrases released"), log + "y")
    return rows


def pruning_rules(corpus: LocalCorpus) -> list[list[object]]:
    """Compare both-side and single-side pruning (Figure 4, left)."""
    rows, lines = [], {}
    for pruning in ("both", "single"):
        counts = released(corpus, vp.papers.DPNE, pruning=pruning)
        rows.append(["pruning", pruning, "published", *counts, counts.sum()])
        lines[f"published, {pruning}-side"] = (LENGTHS, np.maximum(counts, 1))
    picture("dpne_pruning", lines, ("length", "phrases released"), "y")
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
    picture("dpne_baselines", {k: (LENGTHS, np.maximum(v, 1)) for k, v in counts.items()}, ("length", "released"), "y")
    return [["baselines", "–", name, *row, row.sum()] for name, row in counts.items()]


def coverage(grams: AllGrams) -> None:
    """Draw the share of phrases of at least k users that come out (Figure 4, right)."""
    release = vp.NGrams(max_length=LONGEST, limit=100).release(grams.corpus, vp.Budget(4, 1e-7))
    frame = private_ngram_coverage(grams, release, KS, LONGEST)
    lines = {}
    for length in LENGTHS[:7]:
        part = frame.filter((frame["length"] == length) & frame["covered"].is_not_null())
        lines[f"length {length}"] = (part["k"].to_list(), part["covered"].to_list())
    picture("dpne_coverage", lines, ("users who hold a phrase, at least", "share released by default"), "x")


if __name__ == "__main__":
    main()
