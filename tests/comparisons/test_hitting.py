"""Tests of the private greedy hitting set, which is nearly exact at a large epsilon and random at a tiny epsilon."""

import numpy as np
from benchmarks.baselines.held import PrivatePairs
from benchmarks.baselines.hitting import private_hitting_set, private_users_hit

from support.strategies import as_arrays
from voxpop.privacy.budget import Budget
from voxpop.privacy.secret import Secret

USERS = [[0, 1]] * 500 + [[0, 2]] * 400 + [[3]] * 300 + [[4]] * 5
"""Item 0 hits 900 users. After this pick, items 1 and 2 hit no other user, and item 3 hits 300."""


def pairs() -> PrivatePairs:
    """Return the pairs of users and items."""
    items, starts = as_arrays(USERS)
    return PrivatePairs(items, starts, np.ones_like(items), 5)


def test_users_of_a_pick_are_removed():
    """The picks are items 0 and 3, not the more common items 1 and 2 (false alarm below 1e-100)."""
    held = pairs()
    chosen = private_hitting_set(held, np.ones(5, np.bool_), 2, Budget(4, 1e-7), Secret.from_seed(1))
    assert chosen.tolist() == [0, 3]
    assert private_users_hit(held, chosen) == 1200 / 1205


def test_picks_are_distinct_items_of_the_domain():
    """A domain of two items gives at most two picks."""
    domain = np.array([False, True, False, False, True])
    chosen = private_hitting_set(pairs(), domain, 3, Budget(4, 1e-7), Secret.from_seed(1))
    assert sorted(chosen.tolist()) == [1, 4]
    assert private_hitting_set(pairs(), np.zeros(5, np.bool_), 3, Budget(4, 1e-7), Secret.from_seed(1)).size == 0


def test_picks_are_random_at_a_tiny_epsilon():
    """Every item is the first pick of some of 200 runs (false alarm below 1e-17)."""
    domain = np.ones(5, np.bool_)
    runs = [private_hitting_set(pairs(), domain, 1, Budget(1e-4, 1e-9), Secret.from_seed(run)) for run in range(200)]
    assert {int(chosen[0]) for chosen in runs} == set(range(5))
