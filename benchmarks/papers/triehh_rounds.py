"""The number of users that a word needs, by number of rounds, with one or several votes, and the central optimum.

python -m benchmarks.papers.triehh_rounds
"""

from benchmarks.support.benchmark import HITTERS, Benchmark
from voxpop.privacy.budget import Budget
from voxpop.privacy.trie.ballot import voters_needed
from voxpop.privacy.trie.calibrate import best_sampling
from voxpop.release.report.numbers import optimal_chance, users_for

BENCHMARK = Benchmark(__file__, ("triehh_rounds",), HITTERS, minutes=3)

DELTA = 1 / 65_876_900
ROUNDS = (1, 2, 3, 4, 5, 10)


def main() -> None:
    """Compute the plans, print and write the results."""
    head = ["epsilon", "rounds", "words", "one vote each", "several votes", "rate", "again", "further", "theta"]
    rows = [[*head, "certified delta", "fewer than ten rounds of one vote", "central optimum"]]
    for epsilon in (1, 2, 4):
        budget, central = Budget(epsilon, DELTA), users_for(optimal_chance(epsilon, DELTA), 0.9)
        for words in ("one", "many"):
            before = voters_needed(0.9, best_sampling(budget, 10, words, "one").ballot, 10)
            for rounds in ROUNDS:
                coin = voters_needed(0.9, best_sampling(budget, rounds, words, "one").ballot, rounds)
                found = best_sampling(budget, rounds, words, "several")
                ballot, holders = found.ballot, voters_needed(0.9, found.ballot, rounds)
                numbers = [ballot.rate, ballot.again, ballot.further, ballot.theta, f"{found.delta:.3g}"]
                fewer = f"{100 * (1 - holders / before):.0f} %"
                rows.append([epsilon, rounds, words, coin, holders, *numbers, fewer, central])
    note = "delta = 1.5e-8 (650,000 users); a word of full length that shares no prefix, found with probability 0.9. "
    note += "Four rounds are words of nine letters by the default unit, three those of unit 4, ten those of unit 1."
    BENCHMARK.table("Users that a word needs, by rounds and votes", rows, "triehh_rounds", note)


if __name__ == "__main__":
    main()
