"""A k-hitting set, which consists of k items such that many users have at least one of them.

Source: Dick, Joseph, Raman, "Missing Mass for Differentially Private Domain Discovery" (arXiv 2603.14016, ICLR 2026).
Only summaries of the paper were available. Half of the budget finds a domain, and the other half runs a known-domain
algorithm, which repeatedly picks the item with the most remaining users and removes these users. Each pick here is an
exponential mechanism, and the picks are composed like the picks of a ranking (docs/privacy/top.md), which may differ
from the paper.
"""

import numpy as np

from benchmarks.baselines.held import Mask, PrivatePairs
from benchmarks.baselines.noise import uniform
from voxpop.kernels.arrays import Int64s
from voxpop.privacy.budget import Budget
from voxpop.privacy.peeling import largest_rate
from voxpop.privacy.secret import Secret


def private_hitting_set(held: PrivatePairs, domain: Mask, picks: int, budget: Budget, secret: Secret) -> Int64s:
    """Return the ids of the picks, as int64 (picks). There are fewer picks if the domain is smaller.

    Args:
        held: The pairs of user and item.
        domain: bool (size), the released items.
        picks: The number of picks k.
        budget: The epsilon and delta of all picks.
        secret: The source of noise.
    """
    places = np.flatnonzero(domain)
    picks = min(picks, places.size)
    rate = largest_rate(budget, picks, places.size) if picks else 0.0
    left, users, chosen = np.ones(held.sizes.size, np.bool_), held.users, np.empty(0, np.int64)
    for number in range(picks):
        counts = np.bincount(held.items[left[users]], minlength=held.size)[places]
        gumbel = -np.log(-np.log(uniform(secret, f"pick {number}", places.size)))
        scores = np.where(np.isin(places, chosen), -np.inf, rate * counts + gumbel)
        chosen = np.append(chosen, places[np.argmax(scores)])
        left[users[held.items == chosen[-1]]] = False
    return chosen


def private_users_hit(held: PrivatePairs, chosen: Int64s) -> float:
    """Return the share of users with a chosen item."""
    hit = np.unique(held.users[np.isin(held.items, chosen)]).size
    return hit / max(held.sizes.size, 1)
