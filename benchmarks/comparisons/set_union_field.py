"""Set unions of many authors in the form of DPSU's Table 2, with missing mass, on three collections.

    python -m benchmarks.comparisons.set_union_field

In the posts, each post is one user. In the other two collections, a user is a person with many texts. Cells that the
same code has measured are cached in `out/cells`. The baselines read exact private numbers, which is permitted only for
research on public data.
"""

from collections.abc import Callable
from functools import lru_cache, partial
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
    private_mad2r_renyi,
    private_pipeline_dp,
    private_policy_renyi,
    private_released,
    private_weighted_renyi,
)
from benchmarks.baselines.adaptive import BIASED_SENSITIVITY, PUBLISHED, even_sensitivity
from benchmarks.baselines.held import Mask
from benchmarks.support.benchmark import SET_UNION, Benchmark
from benchmarks.support.cells import Cells
from benchmarks.support.common import BUDGET, chat, joined, posts
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.privacy.secret import Secret

BENCHMARK = Benchmark(
    __file__, ("set_union_field",), SET_UNION, minutes=15, seeds="baselines: number of the run; others: none"
)

COLLECTIONS: dict[str, tuple[Callable[[], LocalCorpus], tuple[int, ...]]] = {
    "": (posts, (1, 10, 50, 100, 200)),
    "25 posts per person: ": (lambda: joined(posts(), 25), (100, 300, 1_000, 3_000, 10_000)),
    "ubuntu_irc: ": (chat, (30, 100, 300, 1_000, 3_000)),
}
"""The collections by the prefix of their rows, with the limits of their columns."""
BUDGETS = {"3, e^-10": BUDGET, "1, 1e-5": vp.Budget(1, 1e-5)}
RUNS, DEAR_RUNS = 5, 1
Baseline = Callable[[PrivatePairs, vp.Budget, int, Secret], Mask]
FOUND = even_sensitivity(PUBLISHED.most)
OWN_CODE: dict[str, Baseline] = {
    "PipelineDP 0.3.1, weighted Gaussian": private_pipeline_dp,
    "MAD": private_mad,
    "MAD, noise for what was found": partial(private_mad, sensitivity=FOUND),
    "MAD2R": private_mad2r,
    "MAD2R, noise for what was found": partial(private_mad2r, sensitivity=BIASED_SENSITIVITY),
    "MAD2R, one Gaussian budget": partial(private_mad2r, split_epsilon=False),
    "MAD2R, Rényi selection": private_mad2r_renyi,
    "Policy Gaussian l2, Rényi selection": private_policy_renyi,
    "Weighted, Rényi selection": private_weighted_renyi,
    "DP-SIPS": private_dp_sips,
}
"""Baselines with one run each. Their deviation is like the deviation of the other rows, below half a percent from
10,000 words on."""
PLANNED: dict[str, Callable[[int], Any]] = {
    "Weighted Gaussian (basic)": partial(vp.papers.SetUnion, weighting="weighted"),
    "Policy Laplace (l1-descent)": partial(vp.papers.SetUnion, weighting="policy-laplace"),
    "Policy Gaussian l2 (l2-descent)": lambda limit: vp.papers.SetUnion(limit, "policy-gaussian", alpha=5.0),
}
OURS, CHOSEN = "default", "default, no limit given"
GREEDY = {"GW, own frequency (as published)": "own", "GW, shortest word first": "short"}
SOUND_GREEDY = {"GW, made sound by the limit": "own", "GW, shortest word first, made sound": "short"}
NAMES = [*PLANNED, *OWN_CODE, *GREEDY, *SOUND_GREEDY, OURS, CHOSEN]
BEST = "best limit"


def main() -> None:
    """Measure and write the results."""
    cells = BENCHMARK.cells()
    rows: list[list[object]] = [["", *("" for _ in COLLECTIONS[""][1]), ""]]
    for begin, (_, limits) in COLLECTIONS.items():
        for label, budget in BUDGETS.items():
            head = [*(f"limit {limit}" for limit in limits), BEST]
            found = {name: [runs(cells, name, begin, label, budget, limit) for limit in limits] for name in NAMES}
            rows.append([f"{begin}items released at ({label})", *head])
            rows += [[name, *map(shown, counts), shown(max(counts, key=np.mean))] for name, counts in parts(found, 0)]
            rows.append([f"{begin}missing mass, percent, at ({label})", *head])
            for name, masses in parts(found, 1):
                means = [float(np.mean(each)) for each in masses]
                rows.append([name, *(f"{100 * mean:.2f}" for mean in (*means, min(means)))])
    note = "Words of reddit_posts (one post is one user; no prefix), of 25 posts per person, and of ubuntu_irc. Mean "
    note += f"and deviation of {RUNS} runs; rows without a deviation are one run (which deviates "
    note += "by less than half a percent from 10,000 words on). GW has no limit, so its columns are the same runs. "
    note += "Without a limit, it is not (epsilon, delta)-private (docs/privacy/errata.md); with a limit, it is. "
    note += "Missing mass: the share of all pairs of user and word whose word is not released. MAD and MAD2R are "
    note += "reconstructions, whose weights move further than claimed (docs/privacy/errata.md): as published, and "
    note += (
        "with noise for the measured distance. Rényi selection (2026) is a reconstruction from an abstract; "
        "with MAD2R and "
    )
    note += "Policy Gaussian its proof is not available here. Policy Laplace has the paper's alpha, 3; Policy Gaussian "
    note += "5. Without a given limit, the default chooses one privately within the same budget."
    BENCHMARK.table("Set union of the field", rows, "set_union_field", note)


def parts(found: dict[str, list[list[float]]], place: int) -> list[tuple[str, list[list[float]]]]:
    """Return the counts (0) or the missing masses (1) of all runs, by algorithm and limit."""
    return [(name, [values[place::2] for values in row]) for name, row in found.items()]


def shown(counts: list[float]) -> str:
    """Return the mean and the deviation, or the count of a single run."""
    if len(counts) == 1:
        return f"{counts[0]:,.0f}"
    return f"{np.mean(counts):,.0f} ± {np.std(counts):.0f}"


def runs(cells: Cells, name: str, begin: str, label: str, budget: vp.Budget, limit: int) -> list[float]:
    """Return the count and the missing mass of each run, one after the other."""
    many = DEAR_RUNS if name in OWN_CODE else RUNS
    where = "no limit" if name in GREEDY or name == CHOSEN else f"limit {limit}"
    return [
        number
        for run in range(many)
        for number in cells.get([name, begin, label, where, run], partial(once, name, begin, budget, limit, run))
    ]


def once(name: str, begin: str, budget: vp.Budget, limit: int, run: int) -> list[float]:
    """Return the number of released items and the missing mass of one run."""
    held, secret = pairs(begin), Secret.from_seed(run)
    if name in GREEDY:
        released = private_greedy(poured(GREEDY[name], begin), budget, secret)
    elif name in SOUND_GREEDY:
        released = private_greedy(poured(SOUND_GREEDY[name], begin), budget, secret, limit=limit)
    elif name in OWN_CODE:
        released = OWN_CODE[name](held, budget, limit, secret)
    else:
        mechanism = vp.Items() if name == CHOSEN else PLANNED.get(name, vp.Items)(limit)
        released = private_released(corpus(begin), mechanism.release(corpus(begin), budget))
    return [float(released.sum()), held.missing_mass(released)]


@lru_cache(maxsize=1)
def corpus(begin: str) -> LocalCorpus:
    """Return a collection."""
    return COLLECTIONS[begin][0]()


@lru_cache(maxsize=1)
def pairs(begin: str) -> PrivatePairs:
    """Return the pairs of user and word of a collection."""
    return PrivatePairs.of(corpus(begin))


@lru_cache(maxsize=2)
def poured(order: str, begin: str = "") -> PrivatePairs:
    """Return the pairs in the order of GW, which is by the user's own frequency or by the length of words."""
    if order == "own":
        return by_own_frequency(pairs(begin))
    words = pl.Series(values=corpus(begin).vocabulary, dtype=pl.String)
    return by_public_rank(pairs(begin), words.str.len_chars().to_numpy().astype(np.int64))


if __name__ == "__main__":
    main()
