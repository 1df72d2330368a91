"""One night of a series, compared with one adaptive round over the same ten million pairs, in one process.

python -m benchmarks.speed.night
"""

import time
from unittest.mock import patch

import numpy as np
import polars as pl

import voxpop as vp
from benchmarks.support.benchmark import SET_UNION, Benchmark
from voxpop.engine.contract import check_engine
from voxpop.engine.local.nights import NightlyPools
from voxpop.engine.local.pools import Pools
from voxpop.mechanisms.series.series import _gate, _tonight
from voxpop.privacy.secret import Secret

BENCHMARK = Benchmark(__file__, ("series_night",), (*SET_UNION, "mechanisms/series"), minutes=1, seeds="1")
USERS, EACH, WORDS, NIGHTS, SEED = 400_000, 26, 1_000_000, 30, 1
BUDGET = vp.Budget(epsilon=3, delta=1e-6)


def rows() -> pl.DataFrame:
    """Return pairs of users and items, a tenth of which are common."""
    rng = np.random.default_rng(SEED)
    items = np.minimum(rng.pareto(0.3, USERS * EACH) * 2, WORDS).astype(np.int64)
    return (
        pl.DataFrame({"user": np.repeat(np.arange(USERS), EACH), "word": items})
        .unique()
        .with_columns(pl.format("w{}", "word").alias("word"))
    )


def seconds_of_rounds(corpus: vp.Corpus) -> tuple[float, float]:
    """Return the seconds of the slowest adaptive round of a release, and of the whole release."""
    found, real = [], Pools.advance

    def timed(self: Pools, *arguments: object) -> None:
        begun = time.process_time()
        real(self, *arguments)  # type: ignore[arg-type]
        found.append(time.process_time() - begun)

    with patch.object(Pools, "advance", timed):
        begun = time.process_time()
        vp.Items(max_items_per_user=EACH).release(corpus, BUDGET, seed=SEED)
    return max(found), time.process_time() - begun


def main() -> None:
    """Measure, print and write the results."""
    pairs = rows()
    whole = vp.read(pairs, user="user", items="word")
    few = vp.read(pairs.sample(fraction=1 / NIGHTS, seed=SEED), user="user", items="word")
    small = vp.read(pairs.head(1000), user="user", items="word")
    plan, secret = vp.Items().plan_series(BUDGET, NIGHTS), Secret.from_seed(SEED)
    pools, nights = NightlyPools.empty(), []
    for kernels in (True, False):  # the first turn compiles the kernels
        pools = NightlyPools.empty()
        for number, corpus in enumerate((small, small) if kernels else (whole, few, few), start=1):
            begun = time.process_time()
            gate = _gate(plan, secret)
            gate.begin(pools, check_engine(corpus), number, *_tonight(plan, number))
            joined = time.process_time()
            gate.complete(pools, number, *_tonight(plan, number))
            ended = time.process_time()
            nights.append((ended - begun, ended - joined))
    seconds_of_rounds(small)
    first, release = seconds_of_rounds(whole)
    found: list[list[object]] = [[f"{pairs.height:,} pairs", "seconds", "of the round"]]
    for name, took in (
        ("adaptive round, all pairs undecided", first),
        ("one release: reading of pools and all rounds", release),
        ("night 1, all pairs are new", nights[-3][0]),
        ("night 3, all pairs in pools, rows of a thirtieth", nights[-1][0]),
        ("of which weights, noise and decisions", nights[-1][1]),
    ):
        found.append([name, f"{took:.2f}", f"{took / first:.1f}"])
    note = "Processor time of all threads, in one run. Nights without the file of the state."
    BENCHMARK.table("A night of a series and an adaptive round", found, "series_night", note)


if __name__ == "__main__":
    main()
