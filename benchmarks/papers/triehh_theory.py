"""TrieHH's Table 1 and the figures that need no data (2 to 4 and 10 to 16), published accounting beside exact.

python -m benchmarks.papers.triehh_theory
"""

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from benchmarks.papers.triehh_common import Panel, panels
from benchmarks.papers.triehh_published import (
    fixed_discovery_rate,
    printed_rate,
    table_theta,
    theorem_epsilon,
    trade_off,
    trie_epsilon,
)
from benchmarks.support.common import table
from voxpop.papers.triehh import corollary_rate, theorem_delta
from voxpop.privacy.budget import Budget
from voxpop.privacy.trie.ballot import Ballot, discovery_rate, users_needed
from voxpop.privacy.trie.calibrate import best_sampling

ROUNDS = 10
EPSILONS = (1, 2, 4)
SENTIMENT = 658_769
Rate = Callable[..., float]


@cache
def exact_plan(epsilon: float, users: int, words: str = "one") -> Ballot:
    """Rate and threshold by exact accounting, at delta 1/(100 n)."""
    found = best_sampling(Budget(epsilon, 1 / (100 * users)), ROUNDS, words, "one")
    return found.ballot


def table_1() -> None:
    """Table 1 as the paper has it, and what the same parameters cost by exact accounting."""
    rows = [["n", "m", "theta", "delta", "eps, L=1", "eps, L=10", "exact eps, L=10, one word", "many words"]]
    for power in (4, 6, 8, 10):
        users = 10**power
        rate, theta = users**-0.5, table_theta(users)
        delta = 1 / (100 * users)
        exact = [
            trie_epsilon(delta, Ballot(rate, theta), 10, words) if power < 10 else math.nan for words in ("one", "many")
        ]
        rows.append(
            [
                f"1e{power}",
                round(rate * users),
                theta,
                f"{delta:.0e} ({theorem_delta(theta):.1e} by Theorem 1)",
                f"{theorem_epsilon(rate, theta, 1):.2g}",
                f"{theorem_epsilon(rate, theta, 10):.3g}",
                *("-" if math.isnan(value) else f"{value:.3g}" for value in exact),
            ]
        )
    table("TrieHH, Table 1: gamma = 1, theta = ceil(log10 n + 6)", rows, "triehh_table1", "Exact: Bernoulli sampling.")


def claims() -> None:
    """What the paper's experiments claim, and what it costs."""
    head = ["claimed epsilon", "m by Corollary 2", "epsilon by Theorem 1", "exact, one word", "exact, many words"]
    rows = [[*head, "m that Theorem 1 supports"]]
    for epsilon in EPSILONS:
        rate = printed_rate(epsilon, ROUNDS)
        exact = [trie_epsilon(1 / (100 * SENTIMENT), Ballot(rate, 12), ROUNDS, words) for words in ("one", "many")]
        rows.append(
            [
                epsilon,
                f"{int(rate * SENTIMENT):,}",
                f"{theorem_epsilon(rate, 12, ROUNDS):.4f}",
                *(f"{value:.4f}" for value in exact),
                f"{int(corollary_rate(epsilon, 12, ROUNDS) * SENTIMENT):,}",
            ]
        )
    table("What Corollary 2 claims, n = 658,769, L = 10, theta = 12, delta = 1/(100 n)", rows, "triehh_claims")


def published_rate_of(frequency: float, users: int, epsilon: float) -> float:
    """Worst-case discovery with the paper's batches."""
    theta = table_theta(users)
    batch = int(corollary_rate(epsilon, theta, ROUNDS) * users)
    return fixed_discovery_rate(max(1, round(frequency * users)), users, batch, theta, ROUNDS)


def exact_rate_of(frequency: float, users: int, epsilon: float) -> float:
    """Worst-case discovery with coins and exact accounting."""
    return discovery_rate(max(1, round(frequency * users)), exact_plan(epsilon, users), ROUNDS)


def compared(panel: Panel, places: Sequence[Any], theirs: Rate, ours: Rate) -> Panel:
    """Fill a panel with both rates for every epsilon."""
    for epsilon in EPSILONS:
        panel.lines[f"epsilon {epsilon}, published"] = places, [theirs(each, epsilon=epsilon) for each in places]
        panel.lines[f"epsilon {epsilon}, exact"] = places, [ours(each, epsilon=epsilon) for each in places]
    return panel


def utility() -> None:
    """Figures 2 and 14 (frequency), 3 and 15 (population), 4 (both)."""
    plots = []
    for users in (10**6, 10**5):
        panel = Panel(f"Figures 2 and 14: n = {users:,}", ("frequency", "worst-case discovery"), logs="x")
        rates = partial(published_rate_of, users=users), partial(exact_rate_of, users=users)
        plots.append(compared(panel, np.geomspace(10 / users, 0.2, 60), *rates))
    sizes = [int(size) for size in np.geomspace(10**4, 10**7, 9)]
    for frequency in (0.01, 0.1):
        panel = Panel(f"Figures 3 and 15: frequency {frequency}", ("users", "worst-case discovery"), logs="x")
        rates = partial(published_rate_of, frequency), partial(exact_rate_of, frequency)
        plots.append(compared(panel, sizes, *rates))
    panels("triehh_utility", [*plots, figure_4(sizes)])


def figure_4(sizes: list[int]) -> Panel:
    """The frequency that is found with probability 0.9, by population."""
    panel = Panel("Figure 4: found with probability 0.9", ("frequency", "users needed"), logs="xy")
    for epsilon in EPSILONS:
        theirs = [
            users_needed(0.9, Ballot(corollary_rate(epsilon, table_theta(n), ROUNDS), table_theta(n)), ROUNDS)
            for n in sizes
        ]
        ours = [users_needed(0.9, exact_plan(epsilon, n), ROUNDS) for n in sizes]
        panel.lines[f"epsilon {epsilon}, published"] = ([w / n for w, n in zip(theirs, sizes, strict=True)], sizes)
        panel.lines[f"epsilon {epsilon}, exact"] = ([w / n for w, n in zip(ours, sizes, strict=True)], sizes)
    return panel


def batches() -> None:
    """Figures 10 (length), 11 and 13 (batch size), 12 and 16 (the cut K)."""
    sizes = [int(size) for size in np.geomspace(10**4, 10**7, 7)]
    lengths = Panel("Figure 10: gamma = 1, delta = 1/(100 n)", ("users", "epsilon"), logs="xy")
    for rounds in (1, 10, 100):
        rates = [(n**-0.5, table_theta(n)) for n in sizes]
        lengths.lines[f"L = {rounds}, published"] = (sizes, [theorem_epsilon(s, t, rounds) for s, t in rates])
        if rounds < 100:
            exact = [
                trie_epsilon(1 / (100 * n), Ballot(s, t), rounds)
                for n, (s, t) in zip(sizes[::3], rates[::3], strict=True)
            ]
            lengths.lines[f"L = {rounds}, exact"] = (sizes[::3], exact)
    plots = [lengths]
    for users in (10**6, 10**5):
        frequencies = np.geomspace(100 / users, 0.2, 60)
        panel = Panel(f"Figures 11 and 13: n = {users:,}, theta = 11", ("frequency", "worst-case discovery"), logs="x")
        for gamma in (1, 2, 5, 10, 20):
            batch = int(gamma * users**0.5)
            exact = trie_epsilon(1 / (100 * users), Ballot(batch / users, 11), ROUNDS)
            label = f"m = {batch}: epsilon {theorem_epsilon(batch / users, 11, ROUNDS):.2g}, exact {exact:.2g}"
            panel.lines[label] = (
                frequencies,
                [fixed_discovery_rate(round(f * users), users, batch, 11, ROUNDS) for f in frequencies],
            )
        plots.append(panel)
    for users in (10**6, 10**5):
        theta, batch = table_theta(users), int(users**0.5)
        cuts = list(range(theta, int(users**0.5), max(1, int(users**0.5) // 60)))
        pairs = [trade_off(cut, users, batch, theta) for cut in cuts]
        panel = Panel(f"Figures 12 and 16: n = {users:,}, L = 1", ("K", "epsilon and delta"), logs="y")
        panel.lines["epsilon, published"] = (cuts, [pair.epsilon for pair in pairs])
        panel.lines["delta, published"] = (cuts, [pair.delta for pair in pairs])
        panel.lines["exact epsilon at that delta"] = (
            cuts[::15],
            [trie_epsilon(max(pair.delta, 1e-13), Ballot(batch / users, theta), 1) for pair in pairs[::15]],
        )
        plots.append(panel)
    panels("triehh_batches", plots)


def main() -> None:
    """Compute, print, write."""
    table_1()
    claims()
    utility()
    batches()


if __name__ == "__main__":
    main()
