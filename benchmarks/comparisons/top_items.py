"""The items with the most users, and hitting sets, by several algorithms at equal budgets.

    python -m benchmarks.comparisons.top_items

- *ranking*: half of the budget finds the items (the default set union), half ranks them (`release.top`, peeling).
- *weighted Gaussian, ranking*: the same with the published weighted Gaussian mechanism for the items, at three limits,
  which is the unknown-domain top-k of Dick, Joseph and Raman (2026).
- *counts*: the same, but the second half counts them (`release.count`), at three limits.
- *one histogram*: the whole budget finds and counts at once. The result is the items with noisy weights above the
  threshold, by the weighting "count", in the order of these weights.

A hitting set consists of k items such that many users have one of them. Half of the budget finds the items as above,
and half picks among them (`benchmarks.baselines.hitting`).

The benchmark reads exact private numbers, which is permitted only for research on public data.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import voxpop as vp
from benchmarks.baselines import PrivatePairs, private_released
from benchmarks.baselines.hitting import private_hitting_set, private_users_hit
from benchmarks.evaluation import private_user_counts
from benchmarks.evaluation.weights import private_weights
from benchmarks.support.benchmark import SET_UNION, Benchmark
from benchmarks.support.common import BUDGET, chat, posts
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.privacy.secret import Secret

BENCHMARK = Benchmark(__file__, ("top_items",), (*SET_UNION, "mechanisms/counts"), minutes=6)

RUNS = 5
PLACES = (10, 30, 100, 300, 1_000)
LIMITS = (30, 100, 300)
HITS = PLACES[:2]
BUDGETS = {"3, e^-10": BUDGET, "1, 1e-7": vp.Budget(1, 1e-7)}
CORPORA = {"reddit_posts": posts, "ubuntu_irc": chat}
Order = Callable[[int], NDArray[np.int64]]


def main() -> None:
    """Measure, print and write the results."""
    rows: list[list[object]] = [["", *(f"k = {k:,}" for k in PLACES)]]
    for name, read in CORPORA.items():
        for label, budget in BUDGETS.items():
            rows.append([f"{name} at ({label})", *("" for _ in PLACES)])
            found = measured(read(), budget)
            rows += [[way, *(f"{np.mean(each):.3f}" for each in cells)] for way, cells in found.items()]
            rows.append([f"{name} at ({label}): users hit", *("" for _ in PLACES)])
            blank = [""] * (len(PLACES) - len(HITS))
            for way, cells in hitting(read(), budget).items():
                rows.append([way, *(f"{np.mean(each):.3f}" for each in cells), *blank])
    note = f"Share of the k words with the most users that are among the k released ones, means of {RUNS} runs. "
    note += "The whole budget is the same "
    note += "in every row; rankings and counts have half of it, the set union that found the words the other half. "
    note += f"Users hit: the share of users who have one of the k words of a hitting set, for k up to {HITS[-1]}."
    BENCHMARK.table("The words with the most users", rows, "top_items", note)


def measured(corpus: LocalCorpus, budget: vp.Budget) -> dict[str, list[list[float]]]:
    """Return the named share in each run, by method and number of places."""
    truth = private_user_counts(corpus)
    number = {word: place for place, word in enumerate(corpus.vocabulary.to_pylist())}
    half = vp.Budget(budget.epsilon / 2, budget.delta / 2)
    found: dict[str, list[list[float]]] = {}
    for _ in range(RUNS):
        words = vp.Items().release(corpus, half)
        ids = np.array([number[word] for word in words])
        ways: dict[str, Order] = {"ranking": lambda k, words=words, ids=ids: ids[words.top(corpus, half, k=k).places]}
        for limit in LIMITS:
            users = words.count(corpus, half, counted_in_full=limit).users
            ordered = ids[np.argsort(-users, kind="stable")]
            ways[f"counts, limit {limit}"] = lambda k, ordered=ordered: ordered[:k]
        for limit in LIMITS:
            rival = vp.papers.SetUnion(limit, "weighted").release(corpus, half)
            mine = np.array([number[word] for word in rival])
            ways[f"weighted Gaussian, ranking, limit {limit}"] = lambda k, rival=rival, mine=mine: mine[
                rival.top(corpus, half, k=k).places
            ]
        for limit in LIMITS:
            all_at_once = by_weight(corpus, budget, limit)
            ways[f"one histogram, limit {limit}"] = lambda k, all_at_once=all_at_once: all_at_once[:k]
        for way, order in ways.items():
            cells = found.setdefault(way, [[] for _ in PLACES])
            for cell, k in zip(cells, PLACES, strict=True):
                cell.append(share(truth, order(k), k))
    return found


def hitting(corpus: LocalCorpus, budget: vp.Budget) -> dict[str, list[list[float]]]:
    """Return the share of users hit in each run, by set union and number of picks."""
    held, half = PrivatePairs.of(corpus), vp.Budget(budget.epsilon / 2, budget.delta / 2)
    unions: dict[str, Any] = {"hitting set": vp.Items()}
    unions |= {
        f"weighted Gaussian, hitting set, limit {limit}": vp.papers.SetUnion(limit, "weighted") for limit in LIMITS
    }
    found: dict[str, list[list[float]]] = {}
    for name, union in unions.items():
        found[name] = [[] for _ in HITS]
        for run in range(RUNS):
            domain = private_released(corpus, union.release(corpus, half))
            for cell, picks in zip(found[name], HITS, strict=True):
                chosen = private_hitting_set(held, domain, picks, half, Secret.from_seed(run))
                cell.append(private_users_hit(held, chosen))
    return found


def by_weight(corpus: LocalCorpus, budget: vp.Budget, limit: int) -> NDArray[np.int64]:
    """Return the items above the threshold of the weighting "count", by noisy weight. The noise is drawn in doubles."""
    plan = vp.papers.SetUnion(limit, "count", accounting="joint").plan(budget)
    shares = plan.last.shares
    ids, weights = private_weights(corpus.weigh(shares, limit, Secret.fresh()))
    noise = np.random.default_rng().normal(0.0, plan.sigma, ids.size)
    noisy = weights / shares.setting.unit + noise
    order = np.argsort(-noisy)
    return ids[order[noisy[order] >= plan.threshold]]


def share(truth: NDArray[np.int64], named: NDArray[np.int64], k: int) -> float:
    """Return the share of the k items with the most users that are named. Ties with the last of them count."""
    least = np.sort(truth)[-k]
    return float(np.count_nonzero(truth[named] >= least) / k)


if __name__ == "__main__":
    main()
