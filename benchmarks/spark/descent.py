"""l2-descent in many partitions: how much is lost, without Spark: the same sum of the same kernels.

python -m benchmarks.spark.descent
"""

from dataclasses import replace

import numpy as np

import voxpop as vp
from benchmarks.support.common import BUDGET, posts, table
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.privacy.decisions import ReleaseDecisions
from voxpop.privacy.secret import Secret

PARTS = (1, 2, 8, 64, 256)
SEEDS = 1


def main() -> None:
    """Measure, print, write."""
    corpus = posts()
    rows: list[list[object]] = [["partitions", "words by l2-descent", "against one", "words by weighted"]]
    plan = vp.SetUnion(limit=100, weighting=vp.weightings.PolicyGaussian()).plan(BUDGET)
    even = vp.SetUnion(limit=100, weighting=vp.weightings.Weighted()).plan(BUDGET)
    weighted = round(np.mean([len(even.release(corpus, seed=seed)) for seed in range(SEEDS)]))
    whole = 0.0
    for parts in PARTS:
        count = float(np.mean([released(plan.round, corpus, parts, Secret.from_seed(seed)) for seed in range(SEEDS)]))
        whole = whole or count
        rows.append([parts, round(count), f"{100 * (count / whole - 1):+.2f} %", weighted])
    note = f"reddit_posts, 500,000 users, limit 100, epsilon {BUDGET.epsilon:g}, delta e^-10; {SEEDS} secret."
    table("l2-descent in many Spark partitions", rows, "spark_descent", note)


def released(round_plan: object, corpus: LocalCorpus, parts: int, secret: Secret) -> int:
    """Return how many words pass where users are dealt out by a hash of their keys."""
    shares = round_plan.shares
    places = secret.draws("places", corpus.user_key, 0)[:, 0] % np.uint64(parts)
    total = np.zeros(len(corpus.vocabulary), np.float64)
    histogram = np.zeros(len(corpus.vocabulary), np.int64)
    for part in range(parts):
        mine = np.flatnonzero(places == part)
        found = users_of(corpus, mine).length_walk().weigh(shares, shares.setting.limit, secret, "length 1")
        total[found.ids] += found.weights
        histogram[found.ids] = np.where(total[found.ids] >= 2.0**61, 2**61, histogram[found.ids] + found.weights)
    held = np.flatnonzero(histogram)
    coins = ReleaseDecisions(round_plan.rule(BUDGET), secret, "noise/length 1")
    return int(coins(histogram[held], held, None).sum())


def users_of(corpus: LocalCorpus, users: np.ndarray) -> LocalCorpus:
    """Return a corpus of some of the users."""
    starts, sizes = corpus.user_start[users], np.diff(corpus.user_start)[users]
    ends = np.cumsum(sizes)
    places = np.arange(ends[-1]) + np.repeat(starts - (ends - sizes), sizes)
    user_start = np.concatenate([[0], ends]).astype(np.int64)
    return replace(corpus, tokens=corpus.tokens[places], user_start=user_start, user_key=corpus.user_key[users])


if __name__ == "__main__":
    main()
