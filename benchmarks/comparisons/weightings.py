"""The default of `Items` compared with every classic weighting, task by task.

    python -m benchmarks.comparisons.weightings

Cells are mean numbers of released items. Classic weightings are the weightings of DPSU (`vp.papers.SetUnion`) with the
joint accounting, and `vp.papers.OptimalSelection` at one item per user. The best of them, over weightings and (unless
the task gives a limit) over limits, is chosen afterwards. The three best of `TRIED` runs run again, and the best of
these is in the table.

- *one release*: a release with the whole budget.
- *limit*: a release with a given `max_items_per_user`.
- *min_users*: a release with a bound for items of few users.
- *releases*: one of 12 or 52 equal releases, each with the largest epsilon that one account allows.
- *keys*: tables with one to three keys per user. They are also released by `vp.KeyCounts`, with counts.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from scipy.optimize import brentq

import voxpop as vp
from benchmarks.comparisons.keys import ACCOUNT, Pairs, chat, distinct, pages, sampled
from benchmarks.support.benchmark import SET_UNION, Benchmark
from benchmarks.support.common import DATA
from voxpop.papers.dpsu import PAPER_ALPHA
from voxpop.privacy.composition import compose
from voxpop.privacy.weightings.builtin import WEIGHTINGS

BENCHMARK = Benchmark(
    __file__,
    ("weightings",),
    (*SET_UNION, "mechanisms/profile", "mechanisms/counts", "papers/dpsu", "papers/optimal_selection"),
    minutes=12,
)
BUDGETS = (vp.Budget(3, 1e-6), vp.Budget(1, 1e-7))
LIMITS = (1, 2, 3, 10, 100)
TRIED, RUNS, BEST = 2, 12, 3
CLOSE = 0.99
"""A default with at least this share of the items of the best classic weighting counts as equally good, because of the
deviation of the means."""
QUIET = vp.ReadOptions(progress=False)
Plan = Any


def words(file: str, users: int | None = None) -> Pairs:
    """Return the distinct words of the first users of a file of texts."""
    rows = pl.read_parquet(DATA / file).select(
        "user", word=pl.col("text").str.to_lowercase().str.extract_all(r"[\w']+")
    )
    if users is not None:
        kept = rows["user"].unique(maintain_order=True).sample(users, seed=23)
        rows = rows.filter(pl.col("user").is_in(kept.implode()))
    rows = rows.explode("word").drop_nulls().unique().sort("user", "word")
    return distinct(*(rows[name].rank("dense").to_numpy() for name in rows.columns))


def first_words(users: int) -> Pairs:
    """Return the first word of this number of posts."""
    rows = pl.read_parquet(DATA / "reddit_posts.parquet").head(users)
    rows = rows.select("user", word=pl.col("text").str.to_lowercase().str.extract(r"([\w']+)")).drop_nulls()
    return distinct(*(rows[name].rank("dense").to_numpy() for name in rows.columns))


def few(most: int) -> Pairs:
    """Return the pages of the first visitors of a site, up to this number per user."""
    return sampled(pages(50_000), most, np.random.default_rng(19))


TABLES: dict[str, Callable[[], Pairs]] = {
    "posts, 50,000 users": partial(words, "reddit_posts.parquet", 50_000),
    "chat, 16,993 users": partial(words, "ubuntu_irc.parquet"),
    "posts, 500 users": partial(words, "reddit_posts.parquet", 500),
    "chat, 500 users": partial(words, "ubuntu_irc.parquet", 500),
    "pages, 500 users": partial(pages, 500),
}
KEYS: dict[str, tuple[int, Callable[[], Pairs]]] = {
    "posts, first word, 500 users": (1, partial(first_words, 500)),
    "posts, first word, 50,000 users": (1, partial(first_words, 50_000)),
    "chat, 1 first word": (1, partial(chat, 1)),
    "chat, at most 2 first words": (2, partial(chat, 2)),
    "chat, at most 3 first words": (3, partial(chat, 3)),
    "pages, at most 2": (2, partial(few, 2)),
}


def classics(limits: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    """Return the classic weightings with their names."""
    for limit in limits:
        for name, rule in WEIGHTINGS.items():
            alpha = PAPER_ALPHA if rule.alpha is None else rule.alpha
            yield f"{name} at {limit}", vp.papers.SetUnion(limit, name, alpha, "joint")
        if limit == 1:
            yield "optimal selection", vp.papers.OptimalSelection()


def repeated(mechanism: Any, releases: int) -> vp.Budget:
    """Return the largest budget at which an account admits this number of releases."""
    delta = ACCOUNT.delta / releases

    def exceeds(epsilon: float) -> float:
        each = mechanism.plan(vp.Budget(epsilon, delta)).guarantee
        return compose([each] * releases).epsilon - ACCOUNT.epsilon

    low = ACCOUNT.epsilon / releases
    return vp.Budget(max(low, float(brentq(exceeds, low, ACCOUNT.epsilon, xtol=1e-3)) - 1e-3), delta)


def released(plan: Plan, corpus: Any, runs: int) -> list[float]:
    """Return the numbers of items of several releases."""
    return [float(len(plan.release(corpus))) for _ in range(runs)]


def best_classic(
    cells: Any, place: list[str], planned: Callable[[Any], Plan], limits: tuple[int, ...], corpus: Any
) -> Any:
    """Return the name and the mean number of items of the best classic weighting."""
    plans: dict[str, Plan] = {}

    def measure(mechanism: Any, name: str, runs: int) -> list[float]:
        plans[name] = plans[name] if name in plans else planned(mechanism)
        return released(plans[name], corpus, runs)

    def mean(name: str, mechanism: Any, runs: int) -> float:
        return float(np.mean(cells.get([*place, name, f"{runs} runs"], partial(measure, mechanism, name, runs))))

    tried = {name: (mean(name, mechanism, TRIED), mechanism) for name, mechanism in classics(limits)}
    best = sorted(tried, key=lambda name: -tried[name][0])[:BEST]
    found = {name: mean(name, tried[name][1], RUNS) for name in best}
    name = max(found, key=lambda each: found[each])
    return name, found[name]


Task = tuple[str, Any, Callable[[Any], Plan], tuple[int, ...]]
"""A task, with its name, the default, the function that plans a mechanism, and the limits of classic weightings."""


def tasks(budget: vp.Budget) -> Iterator[Task]:
    """Return the tasks of one budget."""
    label = f"({budget.epsilon:g}, {budget.delta:g})"
    yield f"one release, {label}", vp.Items(), lambda each: each.plan(budget), LIMITS
    for limit in (1, 10, 100):
        yield f"limit {limit}, {label}", vp.Items(limit), lambda each: each.plan(budget), (limit,)
    for users in (20, 50):

        def bounded(each: Any, users: int = users) -> Plan:
            return replace(each, min_users=users).plan(budget)

        yield f"min_users {users}, {label}", vp.Items(), bounded, LIMITS


def weekly() -> Iterator[Task]:
    """Return the tasks of many equal releases."""
    for releases in (12, 52):

        def planned(each: Any, releases: int = releases) -> Plan:
            return each.plan(repeated(each, releases))

        yield f"one of {releases} releases", vp.Items(), planned, LIMITS


def row(cells: Any, table: str, corpus: Any, task: Task, counted: Any = None) -> list[str]:
    """Measure one task on one table. Keys are also measured with `KeyCounts` at the whole budget."""
    name, default, planned, limits = task
    mine = float(np.mean(cells.get([table, name, "default"], lambda: released(planned(default), corpus, RUNS))))
    best, classic = best_classic(cells, [table, name], planned, limits, corpus)
    keyed = "-"
    if counted is not None:
        data, mechanisms = counted
        found = [
            float(np.mean(cells.get([table, name, *how], lambda each=each: released(planned(each), data, RUNS))))
            for how, each in mechanisms.items()
        ]
        keyed = ", ".join(f"{each:,.1f}" for each in found)
        mine = max(mine, *found)
    ratio = mine / classic if classic else float("inf")
    shown = "-" if counted is None else keyed
    own = float(np.mean(cells.get([table, name, "default"], lambda: [])))
    behind = "" if ratio >= CLOSE else "yes"
    return [table, name, f"{own:,.1f}", shown, f"{classic:,.1f} ({best})", f"{ratio:.3f}", behind]


def of_keys(pairs: Pairs, most: int) -> tuple[Any, dict[tuple[str, ...], Any]]:
    """Return the data of keys with counts, and the mechanisms with a private choice and with the bound."""
    table = pl.DataFrame({"user": pairs[0], "key": pairs[1].astype(np.int64)})
    how = {"user": "user", "joint": [("key",)], "other_rows": False}
    mechanisms = {("keys", str(each)): vp.KeyCounts.of(table, max_keys_per_user=each, **how) for each in (None, most)}
    return mechanisms["keys", "None"].read(table, user="user", options=QUIET), mechanisms


def main() -> None:
    """Measure, print and write the results."""
    cells = BENCHMARK.cells()
    rows = [["table", "task", "Items", "KeyCounts, with the bound", "best classic", "best of ours / classic", "behind"]]
    single = [task for budget in BUDGETS for task in tasks(budget)]
    for table, make in TABLES.items():
        users, items = make()
        corpus = vp.read(pl.DataFrame({"user": users, "item": items}), user="user", items="item", options=QUIET)
        rows += [row(cells, table, corpus, task) for task in (*single, *weekly())]
    for table, (most, make_keys) in KEYS.items():
        users, items = make_keys()
        corpus = vp.read(pl.DataFrame({"user": users, "item": items}), user="user", items="item", options=QUIET)
        counted = of_keys((users, items), most)
        ones = [task for budget in BUDGETS for task in tasks(budget) if task[0].startswith("one release")]
        rows += [row(cells, table, corpus, task, counted) for task in (*ones, *weekly())]
    note = (
        f"Mean numbers of released items of {RUNS} releases. The best classic weighting is chosen afterwards, over "
        f"weightings and limits {', '.join(map(str, LIMITS))}. Behind: less than {100 * CLOSE:g} percent of it. "
        f"Many releases: each of one account of ({ACCOUNT.epsilon:g}, {ACCOUNT.delta:g}). KeyCounts also releases the "
        "counts; its second number is for runs with the true bound on keys per user as `max_keys_per_user`."
    )
    BENCHMARK.table("The default and classic weightings", rows, "weightings", note)


if __name__ == "__main__":
    main()
