"""Phrases of few and many users, with a fixed share for words, with the default share, and with a public list.

    python -m benchmarks.comparisons.known_phrases

The list is the English words of `wordfreq` ("large"). Cells that the same code has measured are cached in `out/cells`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import voxpop as vp
from benchmarks.comparisons.known_items import persons, words
from benchmarks.comparisons.private_limit import first
from benchmarks.support.benchmark import NGRAMS, Benchmark
from benchmarks.support.common import by_length, chat, posts
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.mechanisms.ngrams import constants as tuned

BENCHMARK = Benchmark(__file__, ("known_phrases",), (*NGRAMS, "release/known"), minutes=8)

RUNS, FEW, LONGEST = 3, 1, 5
"""The number of releases of each cell, which is `FEW` for the large collections."""
BUDGETS = {"4, 1e-7": vp.Budget(4, 1e-7), "1, 1e-7": vp.Budget(1, 1e-7)}
COLLECTIONS: dict[str, tuple[Callable[[], LocalCorpus], int]] = {
    "200 users of a chat": (lambda: first(chat(), 200), RUNS),
    "500 users of a chat": (lambda: first(chat(), 500), RUNS),
    "2,000 users of a chat": (lambda: first(chat(), 2_000), RUNS),
    "500 persons of 25": (lambda: first(persons(25), 500), RUNS),
    "ubuntu_irc": (chat, FEW),
    "reddit_posts": (posts, FEW),
}


def main() -> None:
    """Measure and write the results."""
    cells = BENCHMARK.cells()
    rows: list[list[object]] = [["collection", "budget", "release", "share of words", "words", "phrases", "total"]]
    for name, (read, runs) in COLLECTIONS.items():
        for label, budget in BUDGETS.items():
            for kind in ("a tenth for words", "default", "with a list"):
                share, released, longer = cells.get([name, label, kind], partial(measured, read, budget, kind, runs))
                numbers = [f"{released:,.0f}", f"{longer:,.0f}", f"{released + longer:,.0f}"]
                rows.append([name, label, kind, f"{share:.2f}", *numbers])
                print(*rows[-1], flush=True)
    note = (
        f"Words and longer phrases of up to {LONGEST} words; means of {RUNS} releases, and {FEW} of ubuntu_irc and "
        "reddit_posts. A tenth for words: the share of many users, whatever their number."
    )
    BENCHMARK.table("Phrases of few users and with a public list", rows, "known_phrases", note)


def measured(read: Callable[[], LocalCorpus], budget: vp.Budget, kind: str, runs: int) -> list[float]:
    """Return the share of words, and the mean numbers of released words and of longer phrases."""
    corpus, usual = read(), tuned.WORDS_OF_FEW
    try:
        if kind == "a tenth for words":
            tuned.WORDS_OF_FEW = ((0, 0.1), (1, 0.1), (2, 0.1))  # type: ignore[misc]
        plan = vp.NGrams(LONGEST, known=words() if kind == "with a list" else None).plan(budget)
    finally:
        tuned.WORDS_OF_FEW = usual  # type: ignore[misc]
    releases: list[Any] = [plan.release(corpus) for _ in range(runs)]
    counts = np.mean([by_length(each, LONGEST) for each in releases], axis=0)
    return [float(releases[0].plan.words.share), float(counts[0]), float(counts[1:].sum())]


if __name__ == "__main__":
    main()
