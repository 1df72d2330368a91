"""Weighted set union by accounting: published, joint, and set-only at several caps; mean and deviation of 5 runs.

python -m benchmarks.comparisons.set_only
"""

import numpy as np

import voxpop as vp
from benchmarks.support.common import BUDGET, chat, posts, table
from voxpop.union import UnionPlan

RUNS = 5
CAPS = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15)
PUBLISHED_POLICY = {"weighting": "l2-descent", "accounting": "published"}
ACCOUNTINGS: dict[str, dict[str, object]] = {
    "published": {"accounting": "published"},
    "joint": {"accounting": "joint"},
    **{f"set-only, cap {cap:g}": {"accounting": "set-only", "cap": cap} for cap in CAPS},
}


def main() -> None:
    """Measure, print, write."""
    collections = {"reddit_posts": posts(), "ubuntu_irc": chat()}
    head = [f"{name}, {rounds} round{'s' * (rounds > 1)}" for name in collections for rounds in (1, 3)]
    rows: list[list[object]] = [["weighted, accounting", "threshold, 1 round", *head]]
    for name, fields in ACCOUNTINGS.items():
        once, thrice = (vp.SetUnion(weighting="weighted", rounds=each, **fields).plan(BUDGET) for each in (1, 3))
        cells = [_counted(plan, corpus) for corpus in collections.values() for plan in (once, thrice)]
        rows.append([name, f"{once.threshold:.2f}", *cells])
    policy = vp.SetUnion(**PUBLISHED_POLICY).plan(BUDGET)
    cells = [_counted(policy, corpus) for corpus in collections.values()]
    rows.append(["(l2-descent, published)", f"{policy.threshold:.2f}", cells[0], "", cells[1], ""])
    note = f"Words released, limit 100, epsilon 3, delta e^-10, {RUNS} runs. Threshold: released half the time."
    table("Set-only accounting of weighted set union", rows, "set_only", note)


def _counted(plan: UnionPlan, corpus: vp.Corpus) -> str:
    counts = [len(plan.release(corpus, seed)) for seed in range(RUNS)]
    return f"{np.mean(counts):,.0f} ± {np.std(counts):.0f}"


if __name__ == "__main__":
    main()
