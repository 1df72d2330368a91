"""Set union of the whole field in the shape of DPSU's Table 2, with missing mass, on half a million posts.

    python -m benchmarks.comparisons.set_union_field [again WORD ...]

Cells that were measured are kept; `again` and names, such as "default", measure these anew. The baselines read
private truth; for research on public data.
"""

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

import voxpop as vp
from benchmarks.baselines import (
    PrivatePairs,
    by_own_frequency,
    by_public_rank,
    private_dp_sips,
    private_greedy,
    private_mad,
    private_mad2r,
    private_pipeline_dp,
    private_released,
)
from benchmarks.baselines.adaptive import BIASED_SENSITIVITY, PUBLISHED, even_sensitivity
from benchmarks.baselines.held import Mask
from benchmarks.support.benchmark import SET_UNION, Benchmark
from benchmarks.support.cells import Cells
from benchmarks.support.common import BUDGET, posts
from voxpop.privacy.secret import Secret

BENCHMARK = Benchmark(
    __file__, ("set_union_field",), SET_UNION, minutes=35, seeds="baselines by run; ours and planned ones none"
)

LIMITS = (1, 10, 50, 100, 200)
BUDGETS = {"3, e^-10": BUDGET, "1, 1e-5": vp.Budget(1, 1e-5)}
RUNS, DEAR_RUNS = 5, 1
Baseline = Callable[[PrivatePairs, vp.Budget, int, Secret], Mask]
FOUND = even_sensitivity(PUBLISHED.most)
OWN_CODE: dict[str, Baseline] = {
    "PipelineDP 0.3.1, weighted Gaussian": lambda held, budget, limit, secret: private_pipeline_dp(
        held, budget, limit, secret
    ),
    "MAD": lambda held, budget, limit, secret: private_mad(held, budget, limit, secret),
    "MAD, noise for what was found": lambda held, budget, limit, secret: private_mad(
        held, budget, limit, secret, sensitivity=FOUND
    ),
    "MAD2R": lambda held, budget, limit, secret: private_mad2r(held, budget, limit, secret),
    "MAD2R, noise for what was found": lambda held, budget, limit, secret: private_mad2r(
        held, budget, limit, secret, sensitivity=BIASED_SENSITIVITY
    ),
    "MAD2R, one Gaussian budget": lambda held, budget, limit, secret: private_mad2r(
        held, budget, limit, secret, split_epsilon=False
    ),
    "DP-SIPS": lambda held, budget, limit, secret: private_dp_sips(held, budget, limit, secret),
}
"""Run once each: their deviation is that of the others, below half a percent from 10,000 words on."""
PLANNED: dict[str, Callable[[int], Any]] = {
    "Weighted Gaussian (basic)": vp.papers.WeightedGaussian,
    "Policy Laplace (l1-descent)": vp.papers.PolicyLaplace,
    "Policy Gaussian l2 (l2-descent)": lambda limit: vp.papers.PolicyGaussian(limit, alpha=5.0),
}
OURS = "default"
GREEDY = {"GW, own frequency (as published)": "own", "GW, shortest word first": "short"}
SOUND_GREEDY = {"GW, made sound by the limit": "own", "GW, shortest word first, made sound": "short"}


def main(again: list[str]) -> None:
    """Measure, draw, write.

    Args:
        again: words; cells whose names have one of them are measured anew.
    """
    cells = Cells("set_union_field", again)
    names = [*PLANNED, *OWN_CODE, *GREEDY, *SOUND_GREEDY, OURS]
    rows: list[list[object]] = []
    for label, budget in BUDGETS.items():
        found = {name: [runs(cells, name, label, budget, limit) for limit in LIMITS] for name in names}
        rows.append([f"items released at ({label})", *(f"limit {limit}" for limit in LIMITS)])
        rows += [[name, *(shown(values[0::2]) for values in row)] for name, row in found.items()]
        rows.append([f"missing mass, percent, at ({label})", *(f"limit {limit}" for limit in LIMITS)])
        rows += [[name, *(f"{100 * np.mean(values[1::2]):.2f}" for values in row)] for name, row in found.items()]
    note = (
        f"Words of reddit_posts; mean and deviation of {RUNS} runs, where no deviation stands one run (which deviates "
    )
    note += "by less than half a percent from 10,000 words on). GW has no limit: the same runs stand in every column. "
    note += "Without one it is not (epsilon, delta)-private (docs/privacy/errata.md); with it, it is. "
    note += "Missing mass: the share of all pairs of user and word whose word is not released. MAD and MAD2R are "
    note += "reconstructions, by our reading further apart than they claim (docs/privacy/errata.md): as published, and "
    note += "with noise for what was found. Policy Laplace has the paper's alpha, 3; Policy Gaussian 5."
    head = [["", *("" for _ in LIMITS)]]
    BENCHMARK.table("Set union of the field", [*head, *rows], "set_union_field", note)


def shown(counts: list[float]) -> str:
    """Return mean and deviation, of one run the count."""
    if len(counts) == 1:
        return f"{counts[0]:,.0f}"
    return f"{np.mean(counts):,.0f} ± {np.std(counts):.0f}"


def runs(cells: Cells, name: str, label: str, budget: vp.Budget, limit: int) -> list[float]:
    """Return count and missing mass of each run, one after the other."""
    many = DEAR_RUNS if name in OWN_CODE else RUNS
    where = "no limit" if name in GREEDY else f"limit {limit}"
    return [
        number
        for run in range(many)
        for number in cells.get([name, label, where, f"run {run}"], lambda run=run: once(name, budget, limit, run))
    ]


def once(name: str, budget: vp.Budget, limit: int, run: int) -> list[float]:
    """Return how many items one run releases, and its missing mass."""
    held = pairs()
    if name in GREEDY:
        released = private_greedy(poured(GREEDY[name]), budget, Secret.from_seed(run))
    elif name in SOUND_GREEDY:
        released = private_greedy(poured(SOUND_GREEDY[name]), budget, Secret.from_seed(run), limit=limit)
    elif name in OWN_CODE:
        released = OWN_CODE[name](held, budget, limit, Secret.from_seed(run))
    else:
        released = private_released(posts(), PLANNED.get(name, vp.SetUnion)(limit).release(posts(), budget))
    return [float(released.sum()), missing(released)]


@lru_cache(maxsize=1)
def pairs() -> PrivatePairs:
    """Return who holds which word."""
    return PrivatePairs.of(posts())


@lru_cache(maxsize=2)
def poured(order: str) -> PrivatePairs:
    """Return the pairs in an order of pouring."""
    if order == "own":
        return by_own_frequency(pairs())
    lengths = pl.Series(values=posts().vocabulary, dtype=pl.String).str.len_chars().to_numpy().astype(np.int64)
    return by_public_rank(pairs(), lengths)


@lru_cache(maxsize=1)
def holders() -> np.ndarray:
    """Return how many users hold each word."""
    return pairs().holders()


def missing(released: Mask) -> float:
    """Return the share of pairs whose item is not released."""
    return float(holders()[~released].sum() / holders().sum())


if __name__ == "__main__":
    main(sys.argv[2:] if sys.argv[1:2] == ["again"] else [])
