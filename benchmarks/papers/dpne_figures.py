"""DPNE's Figures 1 to 4 on half a million posts, as pictures: the published algorithm beside ours.

python -m benchmarks.papers.dpne_figures
"""

import numpy as np

import voxpop as vp
from benchmarks.support.common import PUBLISHED_NGRAMS, by_length, picture, posts, table
from voxpop.evaluate import private_ngram_coverage
from voxpop.evaluate.baselines.all_grams import AllGrams, dpsu_all, dpsu_even, dpsu_single

LONGEST = 9
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


def released(corpus: vp.Corpus, epsilon: float = 4.0, **fields: object) -> np.ndarray:
    """Return grams released by length."""
    plan = vp.NGrams(**{"max_length": LONGEST, "limit": 100, **fields}).plan(vp.Budget(epsilon, 1e-7))
    return by_length(plan.release(corpus), LONGEST)


def sweep(corpus: vp.Corpus, name: str, values: tuple[float, ...], log: str) -> list[list[object]]:
    """Vary one parameter for both algorithms; draw totals, and lengths 1 to 5 of the published one."""
    rows, totals, lengths = [], {"published": [], "ours": []}, {}
    for value in values:
        changed = {"budgets": float(value)} if name == "ratio c" else {name: value}
        for label, fields in (("published", PUBLISHED_NGRAMS), ("ours", {})):
            counts = released(corpus, **{**fields, **changed})
            rows.append([name, value, label, *counts, counts.sum()])
            totals[label].append(counts.sum())
            if label == "published":
                for length in range(5):
                    lengths.setdefault(f"published, length {length + 1}", []).append(counts[length])
    lines = {f"{label}, all lengths": (values, line) for label, line in totals.items()}
    lines |= {label: (values, line) for label, line in lengths.items()}
    picture(f"dpne_{name.split()[0]}", lines, (name, "phrases released"), log + "y")
    return rows


def pruning_rules(corpus: vp.Corpus) -> list[list[object]]:
    """Compare both-side and single-side pruning (Figure 4, left)."""
    rows, lines = [], {}
    for label, fields in (("published", PUBLISHED_NGRAMS), ("ours", {})):
        for pruning in ("both", "single"):
            counts = released(corpus, **{**fields, "pruning": pruning})
            rows.append(["pruning", pruning, label, *counts, counts.sum()])
            lines[f"{label}, {pruning}-side"] = (LENGTHS, np.maximum(counts, 1))
    picture("dpne_pruning", lines, ("length", "phrases released"), "y")
    return rows


def against_set_union(grams: AllGrams) -> list[list[object]]:
    """Compare with the three baselines (Figure 1)."""
    corpus, budget = grams.corpus, vp.Budget(4, 1e-7)
    counts = {
        "ours": released(corpus),
        "DPNE": released(corpus, **PUBLISHED_NGRAMS),
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
