"""Search sound weightings for neighbours beyond the claimed distance: `PYTHONPATH=tests python -m searches`.

The exit code is 0 if the search finds none, and 1 otherwise.
"""

import argparse
import sys
from collections.abc import Callable
from math import inf
from time import perf_counter

from searches.bound_search import search_reaches
from searches.broad_search import TOLERANCE, search_broadly
from searches.walk_search import search_walks
from searches.weighed_search import search_weighing
from voxpop.privacy.weightings.builtin import WEIGHTINGS

LIMITS = (3, 6, 100)
PAIRS_FOR_A_RELEASE = 50_000
"""The number of pairs in kernels for each pair of whole releases, because a pair of releases takes half a second."""


def sound_cells() -> list[tuple[str, int]]:
    """Return every weighting together with the norm of its noise."""
    return [(name, rule.norm) for name, rule in WEIGHTINGS.items()]


def search_all(pairs: int, seed: int, say: Callable[[str], object] = print) -> float:
    """Search every sound weighting with its share of the pairs, print the results, and return the largest distance."""
    cells = sound_cells()
    each = pairs // (len(cells) * (len(LIMITS) + 1)) + 1
    farthest = 0.0
    for name, norm in cells:
        begun = perf_counter()
        found = [search_broadly(name, norm=norm, pairs=each, limit=limit, seed=seed) for limit in LIMITS]
        weighed = search_weighing(name, norm=norm, pairs=each, seed=seed)
        worst = max(weighed.distance, *(every.distance for every in found))
        done = weighed.pairs + sum(every.pairs for every in found)
        say(f"{name:12} l{norm}  {done:>9,} pairs  farthest {worst:.15f}  {perf_counter() - begun:5.1f} s")
        farthest = max(farthest, worst)
    farthest = max(farthest, 1.0 + search_own_reaches(each, seed, say))
    return max(farthest, search_releases(pairs // PAIRS_FOR_A_RELEASE + 1, seed, say))


def search_own_reaches(pairs: int, seed: int, say: Callable[[str], object]) -> float:
    """Search the weightings of phrases for users who move weights beyond their bound, and return the largest excess."""
    beyond = 0.0
    for name in ("weighted", "policy-gaussian"):
        begun = perf_counter()
        found = [search_reaches(name, pairs=pairs, limit=limit, seed=seed) for limit in LIMITS]
        worst, closest = max(each.beyond for each in found), max(each.closest for each in found)
        done, text = sum(each.pairs for each in found), f"{name}, own reach"
        say(f"{text:21}  {done:>9,} pairs  beyond {worst:.1e}  closest {closest:.12f}  {perf_counter() - begun:5.1f} s")
        beyond = max(beyond, worst)
    return beyond


def search_releases(pairs: int, seed: int, say: Callable[[str], object]) -> float:
    """Run whole releases of n-grams for neighbours, and return the largest fraction of the budget that a user spent.

    The result is infinite if a public value depends on the payments of users.
    """
    begun = perf_counter()
    found = list(search_walks(pairs, seed))
    sure = [each for each in found if not each.hit]
    most = (
        inf if any(each.strayed for each in sure) else max((max(each.total, each.words) for each in sure), default=0.0)
    )
    say(
        f"{'whole n-gram releases':21}  {pairs:>9,} pairs  most of a budget {most:.9f}  {perf_counter() - begun:5.1f} s"
    )
    return most


def main(arguments: list[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: The command-line arguments.

    Returns:
        The exit code.
    """
    parser = argparse.ArgumentParser(prog="PYTHONPATH=tests python -m searches", description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000, help="neighbouring pairs in all")
    parser.add_argument("--seed", type=int, default=0, help="the search is a function of it")
    wanted = parser.parse_args(arguments)
    farthest = search_all(wanted.pairs, wanted.seed)
    violated = farthest > 1.0 + TOLERANCE
    print("VIOLATION: a user moves more than is claimed" if violated else "no violation found")
    return int(violated)


if __name__ == "__main__":
    sys.exit(main())
