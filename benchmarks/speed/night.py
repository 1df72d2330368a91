"""One night of a series against one adaptive round over the same ten million pairs, in one process.

python -m benchmarks.speed.night
"""

import time
from unittest.mock import patch

import numpy as np
import polars as pl

import voxpop as vp
from benchmarks.support.common import table
from voxpop.engine.contract import check_engine
from voxpop.engine.local.nights import NightlyPools
from voxpop.engine.local.pools import Pools
from voxpop.mechanisms.series.series import begin_night, read_night, weights_of
from voxpop.privacy.secret import Secret

USERS, EACH, WORDS, NIGHTS, SEED = 400_000, 26, 1_000_000, 30, 1
BUDGET = vp.Budget(epsilon=3, delta=1e-6)


def rows() -> pl.DataFrame:
    """Return pairs of users and items, of which a tenth are common."""
    rng = np.random.default_rng(SEED)
    items = np.minimum(rng.pareto(0.6, USERS * EACH) * 10, WORDS).astype(np.int64)
    return (
        pl.DataFrame({"user": np.repeat(np.arange(USERS), EACH), "word": items})
        .unique()
        .with_columns(pl.format("w{}", "word").alias("word"))
    )


def seconds_of_rounds(corpus: vp.Corpus) -> list[float]:
    """Return the seconds of each adaptive round of one release."""
    found, real = [], Pools.advance

    def timed(self: Pools, *arguments: object) -> None:
        begun = time.perf_counter()
        real(self, *arguments)  # type: ignore[arg-type]
        found.append(time.perf_counter() - begun)

    with patch.object(Pools, "advance", timed):
        vp.SetUnion(limit=EACH).release(corpus, BUDGET, seed=SEED)
    return found


def main() -> None:
    """Measure, print, write."""
    pairs = rows()
    whole = vp.read(pairs, user="user", items="word")
    few = vp.read(pairs.sample(fraction=1 / NIGHTS, seed=SEED), user="user", items="word")
    small = vp.read(pairs.head(1000), user="user", items="word")
    plan, secret = vp.SetUnion().plan_series(BUDGET, NIGHTS), Secret.from_seed(SEED)
    pools, nights = NightlyPools.empty(), []
    for kernels in (True, False):  # compiled first
        pools = NightlyPools.empty()
        for number, corpus in enumerate((small, small) if kernels else (whole, few, few), start=1):
            begun = time.perf_counter()
            begin_night(plan, pools, secret, check_engine(corpus), number)
            read_night(plan, pools, secret, number, weights_of(plan, pools, number))
            nights.append(time.perf_counter() - begun)
    rounds = seconds_of_rounds(whole)
    first = max(rounds)
    found: list[list[object]] = [["pairs", pairs.height, "seconds", "of the round"]]
    for name, took in (
        ("adaptive round, all pairs undecided", first),
        ("night 1, all pairs are new", nights[-3]),
        ("night 3, all pairs in pools, rows of a thirtieth", nights[-1]),
    ):
        found.append([name, "", f"{took:.2f}", f"{took / first:.1f}"])
    note = "In one run on two cores. Rounds: the slowest of one release. Nights without the file of the state."
    table("A night of a series and an adaptive round", found, "series_night", note)


if __name__ == "__main__":
    main()
