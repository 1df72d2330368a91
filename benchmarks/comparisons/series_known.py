"""A series with and without a public list, on the streams of `series`.

    python -m benchmarks.comparisons.series_known

The list is the English words of `wordfreq` ("large"). The benchmark reads exact private numbers, which is permitted
only for research on public data.
"""

import numpy as np
import polars as pl

import voxpop as vp
from benchmarks.comparisons.known_items import words
from benchmarks.comparisons.series import run_night, stream
from benchmarks.support.benchmark import SET_UNION, Benchmark
from voxpop.engine.local.nights import NightlyPools
from voxpop.privacy.secret import Secret
from voxpop.reading.keys import NO_KEYS

BENCHMARK = Benchmark(
    __file__,
    ("series_known",),
    (*SET_UNION, "mechanisms/series", "release/known"),
    minutes=8,
    seeds="1 to 3",
)
RUNS, NIGHTS = 3, 30
BUDGETS = {"3, 1e-6": vp.Budget(3, 1e-6), "1, 1e-7": vp.Budget(1, 1e-7)}
Parts = dict[tuple[object, ...], pl.DataFrame]


def run(
    parts: Parts, mechanism: vp.Items, budget: vp.Budget, spending: str, seed: int
) -> tuple[list[list[str]], int, float]:
    """Return the items released up to each night, the number of unlisted items, and the processor seconds."""
    known, pools, secret = mechanism.known_items, NightlyPools.empty(), Secret.from_seed(seed)
    plan = mechanism.plan_series(budget, NIGHTS, spending=spending)  # type: ignore[arg-type]
    if known is not None:
        pools.recognise(known.parts("items", "items", NO_KEYS))
    took, found, none = 0.0, [], next(iter(parts.values())).clear()
    for night in range(1, NIGHTS + 1):
        took += run_night(plan, secret, pools, parts.get((night - 1,), none), night).cpu
        found.append(pools.out(0)[0].to_pylist())
    return found, int((~pools.out(0)[2]).sum()), took


def measured(parts: Parts, held: set[str], budget: vp.Budget, spending: str) -> list[object]:
    """Return the means of a collection at a budget."""
    listed, rows = set(words().given.to_pylist()), []
    for seed in range(1, RUNS + 1):
        (without, _, before), (found, unlisted, after) = (
            run(parts, mechanism, budget, spending, seed) for mechanism in (vp.Items(), vp.Items(known=words()))
        )
        share = [len(set(each) - held) / max(1, len(each)) for each in found]
        unknown = len(set(without[-1]) - listed)
        half = NIGHTS // 2 - 1
        counts = [len(each) for each in (without[half], found[half], without[-1], found[-1])]
        rows.append([*counts, unknown, unlisted, before, after, *share])
    means = np.mean(rows, axis=0)
    numbers = [f"{each:,.0f}" for each in means[:4]]
    return [
        *numbers,
        f"{means[3] / means[2]:.2f}",
        f"{means[5] / means[4]:.3f}",
        f"{100 * means[8:].max():.2f}",
        f"{means[7] / means[6]:.2f}",
    ]


def main() -> None:
    """Measure, print and write the results."""
    head = ["collection", "spending", "budget", "without, night 15", "with, night 15", "without", "with"]
    table: list[list[object]] = [[*head, "ratio", "unknown", "nobody %", "time"]]
    for name in ("posts", "chat"):
        rows = stream(name, NIGHTS)
        # Only the first night of each word of a user matters.
        first = rows.group_by("user", "word").agg(pl.col("night").min())
        parts, held = first.partition_by("night", as_dict=True), set(rows["word"].unique().to_list())
        for spending in ("growing", "equal"):
            for label, budget in BUDGETS.items():
                table.append([name, spending, label, *measured(parts, held, budget, spending)])
                print(table[-1], flush=True)
    note = (
        f"Words released by night 15 and by the last of {NIGHTS} nights; means of {RUNS} series. Unknown: the ratio of "
        "released words that are not on the list. Nobody: the share of released words that no user has, as a mean of "
        "the series on the night with the largest mean. Time: CPU time with a list relative to without, for all nights."
    )
    BENCHMARK.table("A series with a public list", table, "series_known", note)


if __name__ == "__main__":
    main()
