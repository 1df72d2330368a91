"""Items with and without a public list, for words of large and small collections and for keys of one item per user.

    python -m benchmarks.comparisons.known_items

The list is the English words of `wordfreq` ("large"). Cells that the same code has measured are cached in `out/cells`.
"""

from collections.abc import Callable
from functools import cache, partial
from time import perf_counter

import numpy as np
import polars as pl

import voxpop as vp
from benchmarks.comparisons.private_limit import first
from benchmarks.support.benchmark import SET_UNION, Benchmark
from benchmarks.support.common import BUDGET, chat, joined, posts
from benchmarks.support.engines import read_engine
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.release.known import KnownItems

BENCHMARK = Benchmark(__file__, ("known_items",), (*SET_UNION, "release/known"), minutes=16)

RUNS = 3
BUDGETS = {"3, e^-10": BUDGET, "1, 1e-7": vp.Budget(1, 1e-7), "0.5, 1e-8": vp.Budget(0.5, 1e-8)}
KEYS = 2_000
"""Keys of a synthetic catalogue, of which about one third has users."""


def keys() -> LocalCorpus:
    """Return 100,000 users with one key each, by Zipf's law over 600 keys of a catalogue of 2,000 keys."""
    rng = np.random.default_rng(1)
    weights = 1 / np.arange(1, 601) ** 1.2
    drawn = rng.choice(600, 100_000, p=weights / weights.sum())
    table = pl.DataFrame({"user": np.arange(drawn.size), "key": [f"key {each}" for each in drawn.tolist()]})
    return read_engine(table, user="user", items="key")


@cache
def words() -> KnownItems:
    """Return the English words of a frozen package of word lists."""
    from wordfreq import iter_wordlist

    return KnownItems.of(list(iter_wordlist("en", "large")))


def catalogue() -> KnownItems:
    """Return the keys of the synthetic catalogue."""
    return KnownItems.of([f"key {number}" for number in range(KEYS)])


@cache
def persons(by: int) -> LocalCorpus:
    """Return the posts with every `by` users merged into one."""
    return joined(posts(), by)


COLLECTIONS: dict[str, tuple[Callable[[], LocalCorpus], int | None, Callable[[], KnownItems]]] = {
    "keys, one per user": (keys, 1, catalogue),
    "200 persons of 25": (lambda: first(persons(25), 200), None, words),
    "500 persons of 25": (lambda: first(persons(25), 500), None, words),
    "2,000 persons of 25": (lambda: first(persons(25), 2_000), None, words),
    "ubuntu_irc": (chat, 300, words),
    "persons of 100": (lambda: persons(100), None, words),
    "persons of 25": (lambda: persons(25), None, words),
    "reddit_posts": (posts, 100, words),
}


def main() -> None:
    """Measure and write the results."""
    cells = BENCHMARK.cells()
    head = ["collection", "budget", "without", "with", "ratio", "unknown", "nobody %", "time"]
    rows: list[list[object]] = [head]
    for name, (read, limit, listed) in COLLECTIONS.items():
        for label, budget in BUDGETS.items():
            measure = partial(measured, read, limit, listed, budget)
            without, together, unknown, before, nobody, time = cells.get([name, label], measure)
            ratio = f"{together / without:.2f}" if without else "–"
            kept = f"{unknown / before:.3f}" if before >= 50 else "–"
            rows.append(
                [name, label, f"{without:,.0f}", f"{together:,.0f}", ratio, kept, f"{100 * nobody:.2f}", f"{time:.2f}"]
            )
            print(rows[-1], flush=True)
    note = (
        f"Released items without a list and with one; means of {RUNS} releases. Unknown: the ratio of released items "
        "that are not on the list, if there are at least 50. Nobody: the mean share of released items without users, "
        "at most 1 % in expectation. Time: with a list relative to without, plans included."
    )
    BENCHMARK.table("Public lists", rows, "known_items", note)


def measured(
    read: Callable[[], LocalCorpus],
    limit: int | None,
    listed: Callable[[], KnownItems],
    budget: vp.Budget,
) -> list[float]:
    """Return mean numbers of released items, without and with a list, the spurious share, and the ratio of times."""
    corpus, known = read(), listed()
    parts = known.parts(corpus.kind, corpus.token_source, corpus.keys)
    public, held = {item for part in parts for item in part.to_pylist()}, set(corpus.vocabulary.to_pylist())
    times, releases = [], []
    for mechanism in (vp.Items(limit), vp.Items(limit, known=known)):
        begun = perf_counter()
        plan = mechanism.plan(budget)
        releases.append([set(plan.release(corpus).to_list()) for _ in range(RUNS)])
        times.append(perf_counter() - begun)
    without, together = releases
    return [
        float(np.mean([len(each) for each in without])),
        float(np.mean([len(each) for each in together])),
        float(np.mean([len(each - public) for each in together])),
        float(np.mean([len(each - public) for each in without])),
        float(np.mean([len(each - held) / max(1, len(each)) for each in together])),
        times[1] / times[0],
    ]


if __name__ == "__main__":
    main()
