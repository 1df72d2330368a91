"""Phrases of text: the published algorithm at equal budgets and at its best ratio, against ours, in one run.

python -m benchmarks.papers.dpne_text
"""

from typing import Any

import numpy as np

import voxpop as vp
from benchmarks.baselines.all_grams import AllGrams
from benchmarks.evaluation import private_spurious_share
from benchmarks.support.common import by_length, chat, joined, posts, table
from voxpop.engine.local.corpus import LocalCorpus

LONGEST, RATIOS = 9, (1.1, 1.2, 1.3, 1.4)
BUDGET = vp.Budget(epsilon=4, delta=1e-7)
PUBLISHED = "published, policy Gaussian"


def main() -> None:
    """Measure, print, write."""
    for name, corpus, limit, runs in (
        ("reddit_posts", posts(), 100, 3),
        ("reddit_posts, 25 posts a user", joined(posts(), 25), 300, 3),
        ("ubuntu_irc", chat(), 100, 5),
    ):
        compare(name, corpus, limit, runs)


def compare(name: str, corpus: LocalCorpus, limit: int, runs: int) -> None:
    """Write the table of one collection."""
    rows: list[list[object]] = [["", *range(1, LONGEST + 1), "total", "to equal", "to best ratio", "spurious %"]]
    equal = _runs(corpus, vp.papers.DPNE(LONGEST, limit), runs)
    by_ratio = {ratio: _runs(corpus, vp.papers.DPNE(LONGEST, limit, ratio=ratio), 1) for ratio in RATIOS}
    best = max(by_ratio, key=lambda ratio: len(by_ratio[ratio][0]))
    found = {"published, equal": equal, f"published, ratio {best} (its best)": by_ratio[best]}
    found[PUBLISHED] = _runs(corpus, vp.papers.DPNE(LONGEST, limit, weighting="policy-gaussian"), runs)
    found["NGrams"] = _runs(corpus, vp.NGrams(LONGEST, limit), runs)
    means = {k: np.mean([by_length(each, LONGEST) for each in v], axis=0) for k, v in found.items()}
    truth = AllGrams.of(corpus, LONGEST)
    for label, row in means.items():
        ratios = [f"{row.sum() / means[first].sum():.3f}" for first in list(found)[:2]]
        spurious = private_spurious_share(truth, found[label][-1], LONGEST)
        rows.append([label, *(f"{c:,.0f}" for c in row), f"{row.sum():,.0f}", *ratios, f"{100 * spurious:.2f}"])
    note = (
        f"Epsilon 4, delta 1e-7, T 9, limit {limit}, eta 0.01; means of {runs} runs (ratios other than the best: 1). "
    )
    note += f"Ratios tried: {', '.join(map(str, RATIOS))}. Spurious: share of grams that nobody holds, last run."
    stem = "dpne_text_" + name.split(",")[0] + ("_joined" if "," in name else "")
    table(f"Phrases of {name}", rows, stem, note)


def _runs(corpus: LocalCorpus, mechanism: Any, runs: int) -> list[vp.Release]:
    plan = mechanism.plan(BUDGET)
    return [plan.release(corpus) for _ in range(runs)]


if __name__ == "__main__":
    main()
