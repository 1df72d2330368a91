"""The values of all columns and pairs of a table, by several unions, one union, n-grams of keys, or one profile.

    python -m benchmarks.comparisons.profiles
    python -m benchmarks.comparisons.profiles wide     # time and memory of five million rows and 30 columns

- *one union for each*: `Items().release_each` with a data set for each column and each pair.
- *one union of typed keys*: `Items()` over all keys of a profile together, with the single values of released pairs.
- *n-grams*: `NGrams(max_length=2)`, in which each row is a document of two keys for each pair.
- *profile*: `vp.profile(..., joint="pairs", counts=False)`, in which the whole budget finds keys, as in the other rows.
- *profile with counts*: the same with noisy counts and cover in the same budget.
"""

import itertools
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl
import pyarrow as pa

import voxpop as vp
from benchmarks.datasets.orders import orders, wide
from benchmarks.support.benchmark import NGRAMS, Benchmark
from benchmarks.support.common import DATA, OUT
from voxpop.reading.keys import split_texts

BENCHMARK = Benchmark(
    __file__,
    ("profiles", "profiles_wide"),
    (*NGRAMS, "mechanisms/counts", "mechanisms/profile", "reading/typed_keys"),
    minutes=4,
    timed=True,
    seeds="0 to 4",
    commands=("", "wide"),
)
RUNS = 5
BUDGET = vp.Budget(2, 1e-7)
QUIET = vp.ReadOptions(progress=False)
WIDE = 5_000_000, 30, 500_000


def chat() -> pl.DataFrame:
    """Return the columns of a chat, which are addressee, first and last word, length, and whether it is a question."""
    words = pl.col("text").str.to_lowercase().str.extract_all(r"[\w']+")
    return pl.read_parquet(DATA / "ubuntu_irc.parquet").select(
        "user",
        pl.col("text").str.extract(r"^(\S+)[:,] ").alias("addressed"),
        words.list.first().alias("first"),
        words.list.last().alias("last"),
        words.list.len().cast(pl.Int64).alias("length"),
        pl.col("text").str.contains(r"\?").alias("asks"),
    )


def shop() -> pl.DataFrame:
    """Return made-up orders without their comments."""
    return orders([""]).drop("comment")


TABLES: dict[str, tuple[str, Callable[[], pl.DataFrame]]] = {
    "made-up orders": ("customer", shop),
    "ubuntu_irc": ("user", chat),
}
Sizes = tuple[int, int]
"""The numbers of single and of joint values."""


def each(rows: pl.DataFrame, user: str, seed: int) -> Sizes:
    """Return the sizes of one union for each column and each pair."""
    columns = [name for name in rows.columns if name != user]
    chosen = [[name] for name in columns] + [list(pair) for pair in itertools.combinations(columns, 2)]
    data = {" ".join(names): vp.read(rows, user=user, items=names, options=QUIET) for names in chosen}
    found = vp.Items().release_each(data, BUDGET, seed=seed)
    sizes = [len(found[" ".join(names)]) for names in chosen]
    return sum(sizes[: len(columns)]), sum(sizes[len(columns) :])


def typed(rows: pl.DataFrame, user: str, seed: int) -> Sizes:
    """Return the sizes of one union of all typed keys."""
    profiling = vp.ProfileMechanism.of(rows, user=user, joint="pairs")
    found = vp.Items().release(profiling.read(rows, user=user, options=QUIET), BUDGET, seed=seed)
    keys = profiling.keys
    tokens = pa.array(found.to_list(), pa.large_string())
    numbers, items = keys.split(tokens)
    single = set[tuple[str, str]]()
    for number, names in enumerate(keys.sets):
        mine = items.filter(pa.array(numbers == number))
        parts = [mine] if len(names) == 1 else split_texts(mine, len(names))
        single.update((name, text) for name, part in zip(names, parts, strict=True) for text in part.to_pylist())
    return len(single), int((numbers >= len(keys.columns)).sum())


def grams(rows: pl.DataFrame, user: str, seed: int) -> Sizes:
    """Return the sizes of n-grams of two keys."""
    columns = [name for name in rows.columns if name != user]
    keys = rows.select(user, *(pl.format(f"{name}={{}}", name).alias(name) for name in columns))
    pairs = [
        keys.select(user, pl.concat_list(one, other).list.drop_nulls().alias("keys"))
        for one, other in itertools.combinations(columns, 2)
    ]
    found = vp.NGrams(max_length=2).release(vp.read(pl.concat(pairs), user=user, tokens="keys"), BUDGET, seed=seed)
    lengths = found.grams["length"].to_pylist()
    return lengths.count(1), lengths.count(2)


def profiled(rows: pl.DataFrame, user: str, seed: int, *, counts: bool) -> Sizes:
    """Return the sizes of a profile."""
    found = vp.profile(rows, user=user, budget=BUDGET, joint="pairs", counts=counts, options=QUIET, seed=seed)
    return sum(map(len, found.columns.values())), sum(map(len, found.joint.values()))


WAYS: dict[str, Callable[[pl.DataFrame, str, int], Sizes]] = {
    "one union for each": each,
    "one union of typed keys": typed,
    "n-grams of two keys": grams,
    "profile": lambda *given: profiled(*given, counts=False),
    "profile with counts": lambda *given: profiled(*given, counts=True),
}


def main() -> None:
    """Measure, print and write the results."""
    cells = BENCHMARK.cells()
    lines: list[list[object]] = [["table", "way", "columns", "pairs", "all", "ratio"]]
    for name, (user, read) in TABLES.items():
        rows, first = read(), 0.0
        for way, measure in WAYS.items():
            runs = [cells.get([name, way, f"run {run}"], partial(measure, rows, user, run)) for run in range(RUNS)]
            single, joint = (float(np.mean(sizes)) for sizes in zip(*runs, strict=True))
            first = first or single + joint
            lines.append(
                [
                    name,
                    way,
                    f"{single:,.0f}",
                    f"{joint:,.0f}",
                    f"{single + joint:,.0f}",
                    f"{(single + joint) / first:.2f}",
                ]
            )
    note = f"Released values at epsilon 2, delta 1e-7, means of {RUNS} runs; the whole budget is the same in every row."
    BENCHMARK.table("Profiles of tables", lines, "profiles", note)


def large() -> None:
    """Measure five million rows in a new process, with and without a memory limit, and write the results."""
    path = OUT / "wide.parquet"
    if not path.exists():
        OUT.mkdir(exist_ok=True)
        wide(*WIDE).write_parquet(path)
    lines: list[list[object]] = [["memory limit", "seconds", "peak GiB", "released"]]
    for limit in ("none", "2GiB"):
        call = [sys.executable, "-m", "benchmarks.comparisons.profiles", "--run", str(path), limit]
        lines.append([limit, *subprocess.run(call, capture_output=True, text=True, check=True).stdout.split()])
    rows, columns, users = WIDE
    note = f"{rows:,} rows, {columns} columns, {users:,} users, counts and cover included, from Parquet to the profile."
    BENCHMARK.table("Time and memory of a profile", lines, "profiles_wide", note)


def run(path: str, limit: str) -> None:
    """Compute one profile, and print the seconds, the peak memory in GiB and the number of values."""
    start = time.perf_counter()
    options = vp.ReadOptions(progress=False, memory=None if limit == "none" else limit)
    found = vp.profile(path, user="user", budget=BUDGET, options=options)
    seconds, peak = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{seconds:.0f} {peak:.2f} {len(found)}")


if __name__ == "__main__":
    if "--run" in sys.argv:
        run(*sys.argv[-2:])
    elif "wide" in sys.argv:
        large()
    else:
        main()
