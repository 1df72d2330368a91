"""TrieHH's Figures 5 to 9 on real words: discovery by frequency, recall of the top K, unit sizes.

python -m benchmarks.papers.triehh_words

A user is a post (reddit_posts) or a nickname (ubuntu_irc). "published" is the paper's experiment: fixed batches by
Theorem 1, its corollary corrected, without a guarantee; "exact" is voxpop's accounting with several votes, one letter a
round. Recall is of words that fit into ten symbols with their end mark, against the private truth.
"""

import numpy as np

import voxpop as vp
from benchmarks.papers.triehh_common import Panel, Votes, exact_rules, panels
from benchmarks.support.common import DATA, OUT, posts, table
from benchmarks.support.engines import load_engine, read_engine
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.mechanisms.heavy_hitters.protocol import Rules

TOPS = (10, 25, 50, 100, 150, 200, 300, 400, 600)
RUNS = {"reddit_posts": 8, "ubuntu_irc": 60}
PLANS = {
    "published": lambda budget, words, unit: vp.papers.TrieHH(10, words, unit).plan(budget).rules,
    "exact": lambda budget, words, unit: exact_rules(budget, words, unit=unit),
}


def corpora() -> dict[str, LocalCorpus]:
    """Both collections, tokenised once."""
    folder = OUT / "ubuntu.corpus"
    if not folder.exists():
        read_engine(DATA / "ubuntu_irc.parquet", user="user", text="text").save(folder)
    return {"reddit_posts": posts(), "ubuntu_irc": load_engine(folder)}


def runs_of(votes: Votes, label: str, rules: Rules, runs: int) -> np.ndarray:
    """How often each word was found."""
    counts = np.zeros(votes.spelling.sizes.size)
    for _ in range(runs):
        counts[votes.found(rules, fixed=label == "published")] += 1
    return counts / runs


def recall(found: np.ndarray, order: np.ndarray, top: int) -> float:
    """The mean share of the top words that a run found."""
    return float(found[order[:top]].mean())


def by_frequency(found: np.ndarray, frequencies: np.ndarray) -> tuple[list[float], list[float]]:
    """Mean discovery of words of about the same frequency."""
    edges = np.geomspace(1e-5, 0.2, 40)
    place = np.digitize(frequencies, edges)
    used = [each for each in range(1, len(edges)) if np.count_nonzero(place == each)]
    return [float(edges[each - 1]) for each in used], [float(found[place == each].mean()) for each in used]


def main() -> None:
    """Measure, print, write."""
    rows = [["data", "words", "epsilon", "accounting", *(f"top {top}" for top in TOPS), "found"]]
    units = [["data", "epsilon 2, words many", *(f"top {top}" for top in TOPS), "found"]]
    plots = []
    for name, corpus in corpora().items():
        delta = 1 / (100 * corpus.user_key.size)  # public: the size of a published data set
        for words in ("one", "many"):
            votes = Votes.of(corpus, exact_rules(vp.Budget(1, delta), words))
            truth = votes.private_frequencies()
            order = np.argsort(-truth, kind="stable")
            figure = "5" if words == "one" else "7"
            discovery = Panel(f"Figure {figure}: {name}, words {words}", ("frequency", "discovery"), logs="x")
            recalls = Panel(f"Figure {int(figure) + 1}: {name}, words {words}", ("K", "recall of the top K"))
            for epsilon in (1, 2, 4):
                for label, plan in PLANS.items():
                    found = runs_of(votes, label, plan(vp.Budget(epsilon, delta), words, 1), RUNS[name])
                    line = [recall(found, order, top) for top in TOPS]
                    rows.append([name, words, epsilon, label, *(f"{each:.2f}" for each in line), f"{found.sum():.0f}"])
                    recalls.lines[f"epsilon {epsilon}, {label}"] = (TOPS, line)
                    if epsilon < 4:
                        discovery.lines[f"epsilon {epsilon}, {label}"] = by_frequency(found, truth)
            plots += [discovery, recalls]
        plots.append(unit_sizes(name, votes, order, delta, units))
    note = f"Mean of {RUNS['reddit_posts']} runs (reddit_posts) and {RUNS['ubuntu_irc']} (ubuntu_irc), L = 10, "
    note += "delta = 1/(100 n). Published: batches of fixed size, no proved guarantee. "
    note += "Exact: several votes, the default, by units."
    table("Recall of the top K words", rows, "triehh_recall", note)
    table("Recall by unit size, exact and published accounting", units, "triehh_units", note)
    panels("triehh_words", plots)


def unit_sizes(name: str, votes: Votes, order: np.ndarray, delta: float, rows: list[list[object]]) -> Panel:
    """Figure 9: units of 1 to 4 characters at epsilon 2."""
    panel = Panel(f"Figure 9: {name}, words many, epsilon 2", ("K", "recall of the top K"))
    for label, plan in PLANS.items():
        for unit in (1, 2, 3, 4):
            found = runs_of(votes, label, plan(vp.Budget(2, delta), "many", unit), RUNS[name])
            line = [recall(found, order, top) for top in TOPS]
            panel.lines[f"unit {unit}, {label}"] = (TOPS, line)
            rows.append([name, f"unit {unit}, {label}", *(f"{each:.2f}" for each in line), f"{found.sum():.0f}"])
    return panel


if __name__ == "__main__":
    main()
