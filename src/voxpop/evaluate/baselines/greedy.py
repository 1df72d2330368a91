"""GW, greedy updates without sampling: the best published algorithm of set union that we know of.

Source: Carvalho, Wang, Gondara, "Incorporating Item Frequency for Differentially Private Set Union" (AAAI 2022), and
the authors' code (`dpsu_gw.py`), with which the numbers below agree. Users come in random order. Each pours an l1
budget of 1 into its items that are below the cutoff, filling one after the other, its most frequent item first.
Laplace noise of scale b = 1 / epsilon; released is what exceeds rho = 1 - b ln(2 delta); the cutoff is rho + alpha b.

There is no limit on items, and none is needed: as the cutoff is at least 1, a user's first novel item takes all that
the user has left, so at most one novel item has weight, at most 1, and exceeds rho with probability at most delta.

The order of pouring must not depend on other users: with an order fixed by the user's own data, or by a public rule,
one user moves the weights by at most 1 in l1 (`tests/evaluate/test_greedy.py` searches it on the kernel and finds an
order by weight). Verified: the numbers against the authors' code, the sensitivity by search. Not verified: the
paper's own tables, whose data differ. Noise is drawn in doubles here, which a release of ours would not do.
"""

from dataclasses import dataclass
from math import ceil, log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from voxpop.evaluate.baselines.held import Mask, PrivatePairs
from voxpop.evaluate.baselines.noise import laplace
from voxpop.kernels.pouring import pour_in_order
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
    def of(budget: Budget, alpha: float = 3.0) -> "GreedyNumbers":
        """Return the numbers for a budget; the authors take alpha = 3.

        Example:
            >>> numbers = GreedyNumbers.of(Budget(3, 4.54e-5))
            >>> round(numbers.threshold, 3), round(numbers.cutoff, 3)
            (4.102, 5.102)
        """
        scale = 1.0 / budget.epsilon
        threshold = 1.0 - scale * log(2.0 * budget.delta)
        return GreedyNumbers(scale, threshold, max(threshold + alpha * scale, 1.0))


def by_own_frequency(held: PrivatePairs) -> PrivatePairs:
    """Return the pairs in the published order of pouring: what a user holds most often first."""
    return held.in_order(-held.times)


def by_public_rank(held: PrivatePairs, rank: NDArray[np.int64]) -> PrivatePairs:
    """Return the pairs in an order of pouring that is public, such as shortest word first (not in the paper).

    Args:
        held: who holds what.
        rank: integers (items), no function of the data beyond the item itself.
    """
    return held.in_order(rank[held.items])


def private_greedy(ordered: PrivatePairs, budget: Budget, secret: Secret, alpha: float = 3.0) -> Mask:
    """Return which items GW releases: bool (size).

    Args:
        ordered: who holds what, each user's items in the order of pouring.
        budget: epsilon and delta.
        secret: source of the order of users and of noise.
        alpha: distance of the cutoff from the threshold, in b.
    """
    numbers, unit = GreedyNumbers.of(budget, alpha), 1 << BITS
    users = np.argsort(secret.draws("order", np.arange(ordered.sizes.size, dtype=np.uint64), 0)[:, 0])
    histogram = np.zeros(ordered.size, np.int64)
    pour_in_order(histogram, ordered.items, ordered.starts, users, ceil(numbers.cutoff * unit), unit)
    noisy = histogram / unit + numbers.scale * laplace(secret, "noise", ordered.size)
    released: Mask = (histogram > 0) & (noisy > numbers.threshold)
    return released
