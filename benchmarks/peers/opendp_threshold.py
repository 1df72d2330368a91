"""OpenDP with a noisy threshold on a polars count of users per item, and at most `limit` items per user.

python opendp_threshold.py PAIRS.parquet gaussian|laplace
"""

import math
import sys
import time

import opendp.prelude as dp
import polars as pl

LIMIT, EPSILON, DELTA = 100, 3.0, math.exp(-10)


def main(path: str, noise: str) -> None:
    """Count, calibrate and release, and print the number of items and the seconds."""
    start = time.perf_counter()
    dp.enable_features("contrib")
    pairs = pl.scan_parquet(path).unique()
    bounded = pairs.filter(pl.int_range(pl.len()).shuffle(seed=0).over("user") < LIMIT)
    counts = dict(bounded.group_by("item").len().collect().iter_rows())
    space = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T="i32"))
    if noise == "laplace":
        metric, _d_in = dp.l01inf_distance(dp.absolute_distance(T="i32")), (LIMIT, LIMIT, 1)
        scale = LIMIT / EPSILON

        def make(t):
            return (space, metric) >> dp.m.then_laplace_threshold(scale=scale, threshold=t)
    else:
        metric, _d_in = dp.l02inf_distance(dp.absolute_distance(T="i32")), (LIMIT, math.sqrt(LIMIT), 1)
        scale = 1.3328 * math.sqrt(LIMIT)

        def make(t):
            return (space, metric) >> dp.m.then_gaussian_threshold(scale=scale, threshold=t)

    threshold = round(1 + scale * (5.7 if noise == "gaussian" else math.log(LIMIT / (2 * DELTA))))
    released = make(threshold)(counts)
    print(f"{len(released)} {time.perf_counter() - start:.2f}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
