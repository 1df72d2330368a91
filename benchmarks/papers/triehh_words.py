"""TrieHH's Figure 9 on real words, which shows the recall of the K most frequent words by the size of units.

python -m benchmarks.papers.triehh_words

A user is a post (reddit_posts) or a nickname (ubuntu_irc). "published" is the paper's experiment, with fixed batches by
Theorem 1 and its corrected corollary, and without a guarantee. "exact" is Voxpop's accounting with several votes.
Recall covers the words that fit into ten symbols with their end mark, and is computed from exact private numbers.
"""

import numpy as np

import voxpop as vp
from benchmarks.papers.triehh_common import Votes, exact_rules
from benchmarks.support.benchmark import HITTERS, Benchmark
from benchmarks.support.common import chat, posts
from voxpop.mechanisms.heavy_hitters.protocol import Rules

BENCHMARK = Benchmark(__file__, ("triehh_units",), HITTERS, minutes=4)

TOPS = (10, 25, 50, 100, 150, 200, 300, 400, 600)
RUNS = {"reddit_posts": 8, "ubuntu_irc": 60}
PLANS = {
    "published": lambda budget, words, unit: vp.papers.TrieHH(10, words, unit).plan(budget).rules,
    "exact": lambda budget, words, unit: exact_rules(budget, words, unit=unit),
}


def runs_of(votes: Votes, label: str, rules: Rules, runs: int) -> np.ndarray:
    """Return the share of runs that found each word."""
    counts = np.zeros(votes.spelling.sizes.size)
    for _ in range(runs):
        counts[votes.found(rules, fixed=label == "published")] += 1
    return counts / runs


def recall(found: np.ndarray, order: np.ndarray, top: int) -> float:
    """Return the mean share of the top words that a run found."""
    return float(found[order[:top]].mean())


def main() -> None:
    """Measure, print and write the results."""
    units: list[list[object]] = [["data", "epsilon 2, words many", *(f"top {top}" for top in TOPS), "found"]]
    for name, corpus in {"reddit_posts": posts(), "ubuntu_irc": chat()}.items():
        budget = vp.Budget(2, 1 / (100 * corpus.user_key.size))  # public: the size of a published data set
        votes = Votes.of(corpus, exact_rules(budget, "many"))
        order = np.argsort(-votes.private_frequencies(), kind="stable")
        for label, plan in PLANS.items():
            for unit in (1, 2, 3, 4):
                found = runs_of(votes, label, plan(budget, "many", unit), RUNS[name])
                line = [f"{recall(found, order, top):.2f}" for top in TOPS]
                units.append([name, f"unit {unit}, {label}", *line, f"{found.sum():.0f}"])
    note = f"Mean of {RUNS['reddit_posts']} runs (reddit_posts) and {RUNS['ubuntu_irc']} (ubuntu_irc), L = 10, "
    note += "delta = 1/(100 n). Published: batches of fixed size, no proved guarantee. "
    note += "Exact: several votes, the default, by units."
    BENCHMARK.table("Recall by unit size, exact and published accounting", units, "triehh_units", note)


if __name__ == "__main__":
    main()
