"""GW, greedy updates without sampling, is the published algorithm that releases the most words.

This module also has a private variant.

Source: Carvalho, Wang, Gondara, "Incorporating Item Frequency for Differentially Private Set Union" (AAAI 2022), as in
its authors' code. Users are in random order. Each user spends an l1 budget of 1 on its items below the cutoff. It fills
one item after the other, starting with its most frequent item. Every item with at least one user gets Laplace noise of
scale b = 1 / epsilon. Items above rho = 1 - b ln(2 delta) are released. The cutoff is rho + alpha b.

*Sensitivity.* If the order of a user's items is public, or a function of this user's data only, one user moves the
weights by at most 1 in l1 (`tests/comparisons/test_greedy.py` searches for violations in the kernel, and detects an
order by weight).

*Novel items.* GW claims to need no limit, because the first novel item of a user gets the entire remaining budget of
the user, so only one novel item has weight. However, noise by itself lifts each of the user's other novel items above
rho with probability delta e^-epsilon. If a user has n novel items, the probability that any of them is released is
delta (1 + (n - 1) e^-epsilon). For 1,000 items at epsilon 3 this is 51 times delta, for any order of users. Therefore
GW is not (epsilon, delta)-private without a limit. Testing only items of positive weight does not repair the proof. An
item of other users may have weight only because the added user saved them some of their budget, and one order of users
gives a hundred such items (the test contains this order, with 5 times delta). `limit=` makes GW private. It keeps at
most that number of items per user, drawn uniformly, and uses rho for delta / (1 + (limit - 1) e^-epsilon).

The steps were verified by comparison with the authors' code, the sensitivity by search, and novelty by the exact
distribution. The paper's own tables were not verified, because they use different data. Noise is drawn in doubles here,
but never in Voxpop's releases.
"""

from dataclasses import dataclass
from math import ceil, exp, log
from typing import Final

import numpy as np

from benchmarks.baselines.held import Mask, PrivatePairs
from benchmarks.baselines.noise import laplace
from benchmarks.baselines.pouring import pour_in_order
from voxpop.kernels.arrays import Int64s
from voxpop.privacy.budget import Budget
from voxpop.privacy.secret import Secret

BITS: Final = 40


@dataclass(frozen=True, slots=True)
class GreedyNumbers:
    """The public numbers of GW.

    Attributes:
        scale: The scale b of the Laplace noise.
        threshold: The threshold rho.
        cutoff: The weight above which items receive no more weight.
    """

    scale: float
    threshold: float
    cutoff: float

    @staticmethod
    def of(budget: Budget, alpha: float = 3.0, limit: int = 1) -> "GreedyNumbers":
        """Return the numbers for a budget. The authors use alpha = 3, and the rho of limit 1 for every limit.

        Example:
            >>> numbers = GreedyNumbers.of(Budget(3, 4.54e-5))
            >>> round(numbers.threshold, 3), round(numbers.cutoff, 3)
            (4.102, 5.102)
        """
        scale = 1.0 / budget.epsilon
        novel = budget.delta / (1.0 + (limit - 1) * exp(-budget.epsilon))
        threshold = 1.0 - scale * log(2.0 * novel)
        return GreedyNumbers(scale, threshold, max(threshold + alpha * scale, 1.0))


def by_own_frequency(held: PrivatePairs) -> PrivatePairs:
    """Return the pairs in the published order, with the most frequent items of a user first."""
    return held.in_order(-held.times)


def by_public_rank(held: PrivatePairs, rank: Int64s) -> PrivatePairs:
    """Return the pairs in a public order, such as the shortest word first (not in the paper).

    Args:
        held: The pairs of user and item.
        rank: integers (items), a function of only the item.
    """
    return held.in_order(rank[held.items])


def private_greedy(
    ordered: PrivatePairs, budget: Budget, secret: Secret, alpha: float = 3.0, limit: int | None = None
) -> Mask:
    """Return the items that GW releases, as bool (size).

    Args:
        ordered: The pairs of user and item, with each user's items in the order in which they get weight.
        budget: The budget (epsilon and delta).
        secret: The source of samples, of the order of users and of noise.
        alpha: The distance of the cutoff from the threshold, in b.
        limit: The maximum number of items per user. None is as published, which is not (epsilon, delta)-private.
    """
    numbers, unit = GreedyNumbers.of(budget, alpha, limit or 1), 1 << BITS
    held = ordered if limit is None else ordered.drawn(limit, secret, "greedy")
    users = np.argsort(secret.draws("order", np.arange(held.sizes.size, dtype=np.uint64), 0)[:, 0])
    histogram = np.zeros(held.size, np.int64)
    pour_in_order(histogram, held.items, held.starts, users, ceil(numbers.cutoff * unit), unit)
    noisy = histogram / unit + numbers.scale * laplace(secret, "noise", held.size)
    released: Mask = (held.holders() > 0) & (noisy > numbers.threshold)
    return released
