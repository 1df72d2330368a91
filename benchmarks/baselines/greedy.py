"""GW, greedy updates without sampling: the published algorithm that names most words, and a sound form of it.

Source: Carvalho, Wang, Gondara, "Incorporating Item Frequency for Differentially Private Set Union" (AAAI 2022), as
its authors' code has it. Users come in random order. Each pours an l1 budget of 1 into its items
that are below the cutoff, filling one after the other, its most frequent item first. Laplace noise of scale b = 1 /
epsilon for every item that somebody holds; released is what exceeds rho = 1 - b ln(2 delta); the cutoff is rho +
alpha b.

*Sensitivity.* With an order of pouring that is fixed by the user's own data, or public, one user moves the weights by
at most 1 in l1 (`tests/comparisons/test_greedy.py` searches it on the kernel, and finds out an order by weight).

*Novel items.* GW claims to need no limit: a user's first novel item takes all that the user has left, so one novel
item has weight. But noise alone lifts each of its other novel items above rho with probability delta e^-epsilon. A
user of n lone items is betrayed with probability delta (1 + (n - 1) e^-epsilon): 51 times delta for 1,000 items at
epsilon 3, whatever the order of users. So without a limit it is not (epsilon, delta)-private. To test only items of
positive weight does not help the proof: an item that others hold may have weight only because the extra user saved
them some, and one order of users gives a hundred such items (the test has them, 5 times delta). `limit=` makes it
sound: at most that many items of a user, drawn uniformly, and rho for delta / (1 + (limit - 1) e^-epsilon).

Verified: the steps against the authors' code by reading, sensitivity by search, novelty by the exact law. Not
verified: the paper's own tables, whose data differ. Noise is drawn in doubles here, which a release of ours would not
do.
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
        scale: b of the Laplace noise.
        threshold: rho.
        cutoff: weight at which items stop rising.
    """

    scale: float
    threshold: float
    cutoff: float

    @staticmethod
    def of(budget: Budget, alpha: float = 3.0, limit: int = 1) -> "GreedyNumbers":
        """Return the numbers for a budget; the authors take alpha = 3, and the rho of a limit of 1 for all.

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
    """Return the pairs in the published order of pouring: what a user holds most often first."""
    return held.in_order(-held.times)


def by_public_rank(held: PrivatePairs, rank: Int64s) -> PrivatePairs:
    """Return the pairs in an order of pouring that is public, such as shortest word first (not in the paper).

    Args:
        held: who holds what.
        rank: integers (items), no function of the data beyond the item itself.
    """
    return held.in_order(rank[held.items])


def private_greedy(
    ordered: PrivatePairs, budget: Budget, secret: Secret, alpha: float = 3.0, limit: int | None = None
) -> Mask:
    """Return which items GW releases: bool (size).

    Args:
        ordered: who holds what, each user's items in the order of pouring.
        budget: epsilon and delta.
        secret: source of samples, of the order of users and of noise.
        alpha: distance of the cutoff from the threshold, in b.
        limit: most items of one user; None as published, which is not (epsilon, delta)-private.
    """
    numbers, unit = GreedyNumbers.of(budget, alpha, limit or 1), 1 << BITS
    held = ordered if limit is None else ordered.drawn(limit, secret, "greedy")
    users = np.argsort(secret.draws("order", np.arange(held.sizes.size, dtype=np.uint64), 0)[:, 0])
    histogram = np.zeros(held.size, np.int64)
    pour_in_order(histogram, held.items, held.starts, users, ceil(numbers.cutoff * unit), unit)
    noisy = histogram / unit + numbers.scale * laplace(secret, "noise", held.size)
    released: Mask = (held.holders() > 0) & (noisy > numbers.threshold)
    return released
