"""Reference implementations of the algorithms of the papers with dicts and loops.

DPSU is Gopi et al., "Differentially Private Set Union" (ICML 2020). A user is a list of distinct items, and a histogram
is a dict. `docs/privacy/errata.md` lists the errors of the paper that the code corrects.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence, Set
from math import sqrt
from typing import Any

import numpy as np

Items = Sequence[Hashable]
Weights = dict[Hashable, float]


def word_name(secret: Any, word: str) -> int:
    """Return the number that identifies a word in sampling draws, computed from the bytes of the word."""
    content = np.frombuffer(word.encode(), np.uint8)
    return int(secret.text_draws("words", content, np.array([0, content.size]))[0, 0])


def bounded_sets(
    users: Iterable[Items],
    limit: int,
    priority: Callable[[int, Hashable], int],
    candidates: set[Hashable] | None = None,
) -> list[list[Hashable]]:
    """Return the distinct candidates of each user, or the `limit` candidates with the smallest priorities."""
    bounded = []
    for number, items in enumerate(users):
        distinct = [item for item in dict.fromkeys(items) if candidates is None or item in candidates]
        kept = set(sorted(distinct, key=lambda item: priority(number, item))[:limit])
        bounded.append([item for item in distinct if item in kept])
    return bounded


def weigh_count(users: Iterable[Items], limit: int, norm: int) -> Weights:
    """Add the same share to each item (DPSU Section 1.1), scaled so that the weights of a user have norm at most 1."""
    histogram: Weights = {}
    for items in users:
        for item in items:
            histogram[item] = histogram.get(item, 0.0) + limit ** (-1.0 / norm)
    return histogram


def weigh_weighted(users: Iterable[Items], norm: int) -> Weights:
    """Divide a weight of norm 1 evenly among the items of each user (DPSU Section 1.1)."""
    histogram: Weights = {}
    for items in users:
        for item in items:
            histogram[item] = histogram.get(item, 0.0) + len(items) ** (-1.0 / norm)
    return histogram


def weigh_l1_descent(users: Iterable[Items], cutoff: float) -> Weights:
    """Apply DPSU Algorithm 4, with the cutoff instead of the old weight that the paper prints."""
    histogram: Weights = {}
    for items in users:
        gaps = {item: cutoff - histogram.get(item, 0.0) for item in items}
        level = _level(list(gaps.values()), lambda gap, level: min(gap, level))
        for item in items:
            histogram[item] = histogram.get(item, 0.0) + min(gaps[item], level)
    return histogram


def weigh_l2_descent(users: Iterable[Items], cutoff: float) -> Weights:
    """Apply DPSU Algorithm 7."""
    histogram: Weights = {}
    for items in users:
        gaps = {item: cutoff - histogram.get(item, 0.0) for item in items}
        length = sqrt(sum(gap * gap for gap in gaps.values()))
        for item in items:
            histogram[item] = histogram.get(item, 0.0) + gaps[item] / max(1.0, length)
    return histogram


def weigh_capped_descent(
    users: Iterable[Items], cutoffs: dict[Hashable, float], caps: Sequence[float], listed: Set[Hashable] = frozenset()
) -> Weights:
    """Project the gaps onto the unit ball and a box, with bisection for the factor.

    For listed items, the side of the box is 1.
    """
    histogram: Weights = {}
    for items, cap in zip(users, caps, strict=True):
        gaps = {item: cutoffs[item] - histogram.get(item, 0.0) for item in items}

        sides = {item: 1.0 if item in listed else cap for item in items}

        def norm(factor: float, gaps: Weights = gaps, sides: Weights = sides) -> float:
            return sum(min(factor * gap, sides[item]) ** 2 for item, gap in gaps.items())

        low, high = 0.0, 1.0
        for _ in range(200 if norm(1.0) > 1.0 else 0):
            middle = (low + high) / 2
            low, high = (middle, high) if norm(middle) <= 1.0 else (low, middle)
        for item in items:
            histogram[item] = histogram.get(item, 0.0) + min(high * gaps[item], sides[item])
    return histogram


def weigh_algorithm_8(users: Iterable[Items], cutoff: float, start: Weights | None = None) -> Weights:
    """Apply DPSU Algorithm 8, which is NOT as private as claimed. Tests use it to show why the library rejects it."""
    histogram: Weights = dict(start or {})
    for items in users:
        gaps = {item: cutoff - histogram.get(item, 0.0) for item in items}
        level = _level(list(gaps.values()), lambda gap, level: min(gap, level) ** 2)
        for item in items:
            histogram[item] = histogram.get(item, 0.0) + min(gaps[item], level)
    return histogram


def _level(gaps: list[float], cost: Callable[[float, float], float]) -> float:
    """Return the level at which the cost is 1, by bisection, or the widest gap if all gaps together cost at most 1."""
    if not gaps:
        return 0.0
    low, high = 0.0, max(gaps)
    if sum(cost(gap, high) for gap in gaps) <= 1.0:
        return high
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(cost(gap, middle) for gap in gaps) <= 1.0 else (low, middle)
    return low


def distance(first: Weights, second: Weights, norm: int) -> float:
    """Return the l1 or l2 distance between two histograms."""
    items = set(first) | set(second)
    return sum(abs(first.get(i, 0.0) - second.get(i, 0.0)) ** norm for i in items) ** (1.0 / norm)


def pour_in_order(users: Iterable[Items], cutoff: float) -> Weights:
    """Apply GW (Carvalho et al., 2022), which fills items up to the cutoff in order until one unit is used."""
    histogram: Weights = {}
    for items in users:
        left = 1.0
        for item in items:
            poured = min(left, cutoff - histogram.get(item, 0.0))
            histogram[item] = histogram.get(item, 0.0) + poured
            left -= poured
    return histogram


def adaptive_weights(users: Sequence[dict[int, float]], tau: float, most: int) -> Weights:
    """Apply our reconstruction of MAD. Each user is a dict from items to shares."""
    start: Weights = {}
    for shares in users:
        if len(shares) <= most:
            for item, share in shares.items():
                start[item] = start.get(item, 0.0) + share / sqrt(len(shares))
    weights: Weights = {item: min(weight, tau) for item, weight in start.items()}
    for shares in users:
        got = 0.0
        if len(shares) <= most:
            got = sum(s / sqrt(len(shares)) * max(0.0, 1.0 - tau / start[i]) for i, s in shares.items() if start[i])
        for item, share in shares.items():
            rest = share * (1 - 1 / sqrt(len(shares))) + got / most if len(shares) <= most else share
            weights[item] = weights.get(item, 0.0) + rest
    return weights
