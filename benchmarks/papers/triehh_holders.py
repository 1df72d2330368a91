"""Holders for 90 % discovery, published against exact, by simulation; and the time for 650,000 devices.

python -m benchmarks.papers.triehh_holders
"""

import polars as pl

import voxpop as vp
from benchmarks.papers.triehh_common import Votes
from benchmarks.support.common import OUT, seconds, table
from voxpop.datasets.pairs import write_pairs

USERS = 658_769
WORDS = 40
RUNS = 10
PLANS = {
    "published, fixed batches (no guarantee)": {"accounting": "published", "sampling": "fixed"},
    "published, Bernoulli": {"accounting": "published"},
    "exact, one word": {"votes": "one", "unit": 1},
    "exact, many words": {"votes": "one", "unit": 1, "words": "many"},
    "several votes, unit 1": {"unit": 1},
    "several votes, unit 4": {"unit": 4},
    "several votes (the default)": {},
    "several votes (the default), many words": {"words": "many"},
}


def crowd(holders: int) -> vp.Corpus:
    """Words of nine letters that share no prefix, so many holders each, among users who have nothing to vote for."""
    words = [chr(0x4E00 + number) * 9 for number in range(WORDS) for _ in range(holders)]
    words += ["too long to be voted for"] * (USERS - len(words))
    return vp.read(pl.DataFrame({"who": range(USERS), "what": words}), user="who", items="what")


def main() -> None:
    """Measure, print, write."""
    rows = [["epsilon", "plan", "rate", "theta", "holders", "found in simulation", "times fewer"]]
    for epsilon in (1, 2, 4):
        base = None
        for name, fields in PLANS.items():
            plan = vp.HeavyHitters(**fields).plan(vp.Budget(epsilon, 1 / (100 * USERS)))
            base = base or plan.holders_90
            votes = Votes.of(crowd(plan.holders_90), plan.rules)
            found = sum((votes.found(plan.rules).size for _ in range(RUNS)), 0)
            share = found / (RUNS * WORDS)
            rows.append(
                [
                    epsilon,
                    name,
                    f"{plan.sampling_rate:.4g}",
                    plan.theta,
                    f"{plan.holders_90:,}",
                    f"{share:.3f}",
                    f"{base / plan.holders_90:.1f}",
                ]
            )
    note = (
        f"n = {USERS:,}, at most 10 letters, delta = 1/(100 n); {WORDS} words that share no prefix, {RUNS} runs; all "
    )
    deviation = (0.09 / (RUNS * WORDS)) ** 0.5
    note += f"others have nothing to vote for. Expected share 0.9, standard deviation {deviation:.3f}.\n\n"
    table("Holders for discovery with probability 0.9", rows, "triehh_holders", note + speed())


def speed() -> str:
    """Time whole releases of 650,000 users."""
    OUT.mkdir(exist_ok=True)
    write_pairs(OUT / "triehh_pairs.parquet", users=650_000)
    corpus = vp.read(OUT / "triehh_pairs.parquet", user="user", items="item")
    parts = []
    for words in ("one", "many"):
        plan = vp.HeavyHitters(words=words).plan(vp.Budget(1, 1 / 65_000_000))
        plan.release(corpus)
        parts.append(f"words={words}: {seconds(lambda plan=plan: plan.release(corpus)):.2f} s")
    return (
        f"650,000 users, {corpus.tokens.size:,} words held, the default plan, whole release: " + ", ".join(parts) + "."
    )


if __name__ == "__main__":
    main()
