"""The privately chosen limit, compared with fixed limits, for short texts, long texts, and small collections.

    python -m benchmarks.comparisons.private_limit

Cells that the same code has measured are cached in `out/cells`.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

import voxpop as vp
from benchmarks.baselines import PrivatePairs, private_released
from benchmarks.comparisons.set_union_limits import BUDGETS
from benchmarks.support.benchmark import SET_UNION, Benchmark
from benchmarks.support.common import chat, joined, posts
from voxpop.engine.local.corpus import LocalCorpus

BENCHMARK = Benchmark(__file__, ("private_limit",), SET_UNION, minutes=12)

LIMITS = (100, 200, 400, 800, 1_600, 3_200, 6_400)
RUNS, FIXED_RUNS = 5, 3
COLLECTIONS: dict[str, Callable[[], LocalCorpus]] = {
    "reddit_posts": posts,
    "ubuntu_irc": chat,
    "5 posts per user": lambda: joined(posts(), 5),
    "25 posts per user": lambda: joined(posts(), 25),
    "100 posts per user": lambda: joined(posts(), 100),
    "400 posts per user": lambda: joined(posts(), 400),
    "5,000 users of 25 posts": lambda: first(joined(posts(), 25), 5_000),
    "500 users of 25 posts": lambda: first(joined(posts(), 25), 500),
    "50 users of 25 posts": lambda: first(joined(posts(), 25), 50),
}


def main() -> None:
    """Measure and write the results."""
    cells = BENCHMARK.cells()
    rows: list[list[object]] = [
        ["collection", "budget", "chosen", *(f"{limit:,}" for limit in LIMITS), "ratio", "missing %"]
    ]
    for name, read in COLLECTIONS.items():
        corpus = read()
        for label, budget in BUDGETS.items():
            fixed = [cells.get([name, label, limit], partial(released, corpus, limit, budget))[0] for limit in LIMITS]
            chosen, missing, least, most = cells.get([name, label, "chosen"], partial(released, corpus, None, budget))
            span = f"{least:,.0f}" if least == most else f"{least:,.0f} to {most:,.0f}"
            words = [f"{number:,.0f}" for number in fixed]
            ratio = f"{chosen / max(fixed):.3f}" if max(fixed) else "–"
            rows.append([name, label, f"{chosen:,.0f} at {span}", *words, ratio, f"{100 * missing:.2f}"])
    note = (
        f"Words of set union by limit; means of {RUNS} releases, of {FIXED_RUNS} for fixed limits. N posts "
        "per user: the "
    )
    note += "texts of reddit_posts with each N users combined into one. The last column divides by the best "
    note += "fixed limit of the "
    note += "row, which is not known in advance. Missing: the share of all pairs of user and word whose word is not "
    note += "released, for the private choice."
    BENCHMARK.table("The private choice of the limit", rows, "private_limit", note)


def released(corpus: LocalCorpus, limit: int | None, budget: vp.Budget) -> list[float]:
    """Return the means of released words and missing mass, and the smallest and largest limit of the releases."""
    plan = vp.Items(limit).plan(budget)
    releases: list[Any] = [plan.release(corpus) for _ in range(RUNS if limit is None else FIXED_RUNS)]
    ran = [each.plan.last.limit for each in releases]
    held = pairs_of(corpus)
    missing = [held.missing_mass(private_released(corpus, each)) for each in releases]
    return [float(np.mean([len(each) for each in releases])), float(np.mean(missing)), min(ran), max(ran)]


@lru_cache(maxsize=1)
def pairs_of(corpus: LocalCorpus) -> PrivatePairs:
    """Return the pairs of user and word."""
    return PrivatePairs.of(corpus)


def first(corpus: LocalCorpus, users: int) -> LocalCorpus:
    """Return the first users of a corpus."""
    end = corpus.user_start[users]
    return replace(
        corpus,
        tokens=corpus.tokens[:end],
        user_start=corpus.user_start[: users + 1],
        user_key=corpus.user_key[:users],
    )


if __name__ == "__main__":
    main()
