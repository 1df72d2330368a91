"""Kernels against the plain-Python loops that the paper's authors use, on bounded sets already in memory.

python -m benchmarks.speed.naive
"""

import sys
from itertools import pairwise

import numpy as np

from benchmarks.support.common import ROOT, posts, seconds, table
from voxpop.engine.local.weigh import bounded_sets
from voxpop.mechanisms.weightings.builtin import WEIGHTINGS
from voxpop.mechanisms.weightings.rule import RuleSetting
from voxpop.privacy.secret import Secret

sys.path.insert(0, str(ROOT / "tests"))
from naive import weighing as naive

USERS = 400_000
CUTOFF = 10.0


def main() -> None:
    """Measure, print, write."""
    corpus = posts()
    secret = Secret.from_seed(0)
    parts = list(bounded_sets(corpus.holdings(secret, "benchmark", ordered=False), 100, None, secret, "benchmark"))
    items = np.concatenate([part for part, _ in parts])
    sizes = np.concatenate([np.diff(starts) for _, starts in parts])[:USERS]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    items = items[: starts[-1]]
    users = [items[a:b].tolist() for a, b in pairwise(starts)]
    loops = {
        ("weighted", 2): lambda: naive.weigh_weighted(users, 2),
        ("policy-laplace", 1): lambda: naive.weigh_l1_descent(users[: USERS // 80], CUTOFF),
        ("policy-gaussian", 2): lambda: naive.weigh_l2_descent(users, CUTOFF),
    }
    rows = [["weighting", "kernel, s", "plain Python, s", "ratio"]]
    for (name, norm), loop in loops.items():
        weighting_rule = WEIGHTINGS[name]
        bits = weighting_rule.bits(CUTOFF)
        setting = RuleSetting(100, norm, bits, round(CUTOFF * 2**bits))
        fresh = [np.zeros(len(corpus.vocabulary), np.int64) for _ in range(6)]
        weighting_rule.add(fresh.pop(), items[:0], starts[:1], setting)
        kernel = seconds(lambda s=weighting_rule, t=setting, f=fresh: s.add(f.pop(), items, starts, t), 5)
        plain = seconds(loop, 1) * (80 if name == "policy-laplace" else 1)
        rows.append([name, f"{kernel:.3f}", f"{plain:.1f}", f"{plain / kernel:,.0f}"])
    note = (
        f"{USERS:,} posts, {items.size:,} (user, word) pairs. The l1-descent loop finds its level by bisection, which "
    )
    note += "is slow; it ran on an eightieth of the posts, times 80."
    table("Weighing: kernels against loops over dicts", rows, "speed_naive", note)


if __name__ == "__main__":
    main()
