"""TrieHH's Table 1, with its parameters, epsilon by the paper's theorem, and epsilon by exact accounting.

python -m benchmarks.papers.triehh_table1
"""

from benchmarks.papers.triehh_published import table_theta, theorem_epsilon, trie_epsilon
from benchmarks.support.benchmark import HITTERS, Benchmark
from voxpop.papers.triehh import theorem_delta
from voxpop.privacy.trie.ballot import Ballot

BENCHMARK = Benchmark(
    __file__, ("triehh_table1",), (*HITTERS, "papers/triehh"), minutes=1, seeds="none: nothing is random"
)
ROUNDS, POWERS, EXACT = 10, (4, 6, 8, 10), 8
"""Exact accounting is computed for up to 10^EXACT users."""


def row(power: int) -> list[object]:
    """Return the row of 10^power users."""
    users = 10**power
    rate, theta, delta = users**-0.5, table_theta(users), 1 / (100 * users)
    exact = [
        f"{trie_epsilon(delta, Ballot(rate, theta), ROUNDS, words):.3g}" if power <= EXACT else "-"
        for words in ("one", "many")
    ]
    by_theorem = [f"{theorem_epsilon(rate, theta, rounds):.3g}" for rounds in (1, ROUNDS)]
    return [
        f"1e{power}",
        round(rate * users),
        theta,
        f"{delta:.0e}",
        f"{theorem_delta(theta):.1e}",
        *by_theorem,
        *exact,
    ]


def main() -> None:
    """Compute and write the table."""
    head = ["n", "m", "theta", "delta", "delta by Theorem 1", "epsilon, L = 1", f"epsilon, L = {ROUNDS}"]
    rows = [[*head, f"exact epsilon, L = {ROUNDS}, one word", "many words"], *map(row, POWERS)]
    note = "Exact: users are sampled independently."
    BENCHMARK.table("TrieHH, Table 1: gamma = 1, theta = ceil(log10 n + 6)", rows, "triehh_table1", note)


if __name__ == "__main__":
    main()
