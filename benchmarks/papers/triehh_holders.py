"""The number of users that a word needs for 90 % discovery with published and with exact accounting, by simulation.

python -m benchmarks.papers.triehh_holders
"""

import polars as pl

import voxpop as vp
from benchmarks.papers.triehh_common import Votes, exact_rules
from benchmarks.support.benchmark import HITTERS, Benchmark
from benchmarks.support.engines import read_engine
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.privacy.trie.ballot import discovery_rate, voters_needed

BENCHMARK = Benchmark(__file__, ("triehh_holders",), HITTERS, minutes=5)

USERS = 658_769
WORDS = 40
RUNS = {"fixed": 10, "bernoulli": 250}
"""The number of runs.

Batches of fixed size involve all users, but independent samples involve only the users of a word, so more of these runs
are possible.
"""
PLANS = {
    "published, fixed batches (no guarantee)": lambda budget: vp.papers.TrieHH().plan(budget).rules,
    "published, Bernoulli": lambda budget: vp.papers.TrieHH().plan(budget).rules,
    "exact, one word": lambda budget: exact_rules(budget, votes="one"),
    "exact, many words": lambda budget: exact_rules(budget, "many", votes="one"),
    "several votes, unit 1": lambda budget: vp.HeavyHitters(unit=1).plan(budget).rules,
    "several votes, unit 4": lambda budget: vp.HeavyHitters(unit=4).plan(budget).rules,
    "several votes (the default)": lambda budget: vp.HeavyHitters().plan(budget).rules,
}


def crowd(holders: int, spare: bool) -> LocalCorpus:
    """Return words of nine letters without common prefixes, with `holders` users each, and other users if `spare`."""
    words = [chr(0x4E00 + number) * 9 for number in range(WORDS) for _ in range(holders)]
    words += ["too long to be voted for"] * (USERS - len(words) if spare else 0)
    return read_engine(pl.DataFrame({"who": range(len(words)), "what": words}), user="who", items="what")


def main() -> None:
    """Measure, print and write the results."""
    rows = [["epsilon", "plan", "rate", "theta", "holders", "planned", "found in simulation", "times fewer"]]
    for epsilon in (1, 2, 4):
        base = None
        for name, plan in PLANS.items():
            rules = plan(vp.Budget(epsilon, 1 / (100 * USERS)))
            needed = voters_needed(0.9, rules.ballot, rules.rounds)
            base = base or needed
            fixed = "fixed" in name
            runs = RUNS["fixed" if fixed else "bernoulli"]
            votes = Votes.of(crowd(needed, spare=fixed), rules)
            found = sum((votes.found(rules, fixed=fixed).size for _ in range(runs)), 0)
            share = found / (runs * WORDS)
            rows.append(
                [
                    epsilon,
                    name,
                    f"{rules.ballot.rate:.4g}",
                    rules.ballot.theta,
                    f"{needed:,}",
                    f"{discovery_rate(needed, rules.ballot, rules.rounds):.3f}",
                    f"{share:.3f}",
                    f"{base / needed:.1f}",
                ]
            )
    note = f"n = {USERS:,}, at most 10 letters, delta = 1/(100 n); {WORDS} words that share no prefix, "
    note += f"{RUNS['bernoulli']} runs, or {RUNS['fixed']} with fixed batches. Planned: at least 0.9. "
    spread = ", ".join(f"{(0.09 / (runs * WORDS)) ** 0.5:.3f}" for runs in RUNS.values())
    BENCHMARK.table(
        "Users that a word needs to be found with probability 0.9",
        rows,
        "triehh_holders",
        f"{note}Standard deviations: {spread}.",
    )


if __name__ == "__main__":
    main()
