"""Tests of GW.

These tests compare the kernel with plain loops, search for violations of the sensitivity, and check the noise and the
threshold.
"""

from itertools import pairwise
from math import exp

import numpy as np
import pytest
from benchmarks.baselines.greedy import GreedyNumbers, by_own_frequency, by_public_rank, private_greedy
from benchmarks.baselines.held import PrivatePairs
from benchmarks.baselines.pouring import pour_in_order
from hypothesis import given
from hypothesis import strategies as st

from naive import weighing as naive
from searches.broad_search import search_broadly
from support.strategies import as_arrays, bounded_users
from voxpop.privacy.budget import Budget
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.rule import WeightingRule

UNIT = 1 << 40


def poured(users: list[list[int]], cutoff: float) -> np.ndarray:
    """Run the real kernel with users and items in the given order."""
    items, starts = as_arrays(users)
    histogram = np.zeros(8, np.int64)
    pour_in_order(histogram, items, starts, np.arange(len(users)), round(cutoff * UNIT), UNIT)
    return histogram


@given(users=bounded_users(), cutoff=st.floats(1.0, 4.0))
def test_the_kernel_equals_plain_loops(users, cutoff):
    """Each user fills items one after another, and an item is full before the next item receives weight."""
    weights = naive.pour_in_order(users, cutoff)
    for item, weight in enumerate(poured(users, cutoff) / UNIT):
        assert weight == pytest.approx(weights.get(item, 0.0), abs=1e-9)


@given(users=bounded_users(), cutoff=st.floats(1.0, 4.0), data=st.data())
def test_one_user_moves_the_weights_by_at_most_one(users, cutoff, data):
    """The change is measured in l1 and in whole units. The extra user does not decrease the weight of any item."""
    extra = data.draw(st.integers(0, len(users) - 1))
    change = poured(users, cutoff) - poured([user for i, user in enumerate(users) if i != extra], cutoff)
    assert (change >= 0).all()
    assert change.sum() <= UNIT


@given(users=bounded_users(), cutoff=st.floats(1.0, 4.0))
def test_at_most_one_novel_item_has_weight(users, cutoff):
    """The first item that no other user has receives all the remaining weight of its user."""
    fresh = [[7, *(item for item in user if item < 5), 6] for user in users[-1:]]
    others = [[item for item in user if item < 5] for user in users[:-1]]
    histogram = poured([*others, *fresh], cutoff)
    assert (histogram[6:] > 0).sum() <= 1
    assert histogram[6:].sum() <= UNIT


class Greedy(WeightingRule):
    """The kernel with the interface that the search requires.

    `order` determines the sequence of items that a user fills.
    """

    __slots__ = ("order",)
    sequential = True
    name = "greedy"

    def __init__(self, order: str) -> None:
        self.order = order

    noise, sound_norms = "gaussian", (2,)

    def novelty(self, setting):
        raise NotImplementedError("GW has its own threshold")

    def share(self, held, setting):
        raise NotImplementedError("one user's first item takes all")

    def add(self, histogram, items, starts, setting):
        for begin, end in pairwise(starts):
            mine = self._ordered(items[begin:end], histogram)
            pour_in_order(
                histogram, mine, np.array([0, mine.size]), np.zeros(1, np.int64), setting.cutoff, setting.unit
            )

    def _ordered(self, mine, histogram):
        mine = mine.astype(np.int64)
        if self.order == "public":
            return mine
        if self.order == "own":  # The order is a function of the user's set, and differs between sets.
            return mine[np.argsort((mine + 1) * (40503 + 257 * int((mine % 9).sum())) % 65537)]
        return mine[np.argsort(-histogram[mine], kind="stable")]  # The order by weight depends on other users.


@pytest.mark.jit
@pytest.mark.parametrize("order", ["public", "own"])
def test_the_distance_of_all_neighbours_is_at_most_one(order, record_property):
    """The search runs the kernel on thousands of pairs, with any initial weights, in individual or public orders."""
    found = search_broadly(Greedy(order), norm=1, pairs=6_000, limit=6, seed=3)
    assert not found.violated
    assert found.distance > 0.999
    record_property("figure", f"{found.pairs:,} pairs, farthest apart {found.distance:.12f}")


@pytest.mark.jit
def test_an_order_that_depends_on_other_users_is_detected(record_property):
    """In this broken variant, users first fill the item that is nearest to the cutoff."""
    found = search_broadly(Greedy("fullest"), norm=1, pairs=6_000, limit=6, seed=3)
    assert found.distance > 1.5
    record_property("figure", f"fullest item first: {found.distance:.3f}")


def test_an_item_of_one_user_is_released_with_probability_delta():
    """A weight of 1 with Laplace noise exceeds the threshold with a probability of exactly delta."""
    budget = Budget(3, exp(-10))
    numbers = GreedyNumbers.of(budget)
    assert 0.5 * exp(-(numbers.threshold - 1) / numbers.scale) == pytest.approx(budget.delta, rel=1e-12)
    assert numbers.cutoff == pytest.approx(numbers.threshold + 1.0)
    assert GreedyNumbers.of(Budget(700, 0.4999)).cutoff >= 1.0


def exceeded(weights: np.ndarray, numbers: GreedyNumbers) -> float:
    """Return the probability that some item exceeds the threshold with Laplace noise."""
    return float(-np.expm1(np.log1p(-0.5 * np.exp((weights - numbers.threshold) / numbers.scale)).sum()))


def test_without_a_limit_unique_items_cost_more_than_delta(record_property):
    """With the published threshold, noise releases one of 999 items without weight too often.

    A limit of 1,000 prevents this.
    """
    budget = Budget(3, exp(-10))
    lone = np.zeros(1000, np.int64)
    items, starts = np.arange(1000, dtype=np.int32), np.array([0, 1000])
    pour_in_order(lone, items, starts, np.zeros(1, np.int64), 5 * UNIT, UNIT)
    published = exceeded(lone / UNIT, GreedyNumbers.of(budget)) / budget.delta
    sound = exceeded(lone / UNIT, GreedyNumbers.of(budget, limit=1000)) / budget.delta
    assert published == pytest.approx(1 + 999 * exp(-3), rel=2e-3)
    assert 0.99 < sound <= 1.0
    record_property("figure", f"1,000 lone items: {published:.1f} times delta as published, {sound:.3f} with the limit")


def saving_users(shares: int = 100) -> tuple[list[list[int]], int]:
    """Return users in order, and the position of an extra user.

    If this user is present, later users give weight to items that would otherwise have no weight.

    A unit has `shares` shares, and the cutoff is five units and one share. Items a are one share below the cutoff, and
    items b are about one unit below the cutoff. The extra user fills the items a. Each later user has one item a, one
    item b and one item c. Item b receives all the remaining weight except the weight that item a no longer needs.
    """
    users, near = [], 3 * shares
    for number in range(shares):
        a, b = number, shares + number
        users += [[a]] * 5 + [[b]] * 4
        full = list(range(near, near + shares - 2))
        users += [[item] for item in full for _ in range(5)]
        users.append([*full, b])
        near += shares - 2
    extra = len(users)
    users.append(list(range(shares)))
    users += [[number, shares + number, 2 * shares + number] for number in range(shares)]
    return users, extra


@pytest.mark.jit
def test_items_of_other_users_have_weight_only_through_the_extra_user(record_property):
    """In one order, 100 items of other users have weight only because of the extra user, and cost 5 times delta."""
    users, extra = saving_users()
    size, share = 1 + max(max(user) for user in users), -(-UNIT // 100)
    histograms = []
    for these in (users, users[:extra] + users[extra + 1 :]):
        items, starts = as_arrays(these)
        histograms.append(np.zeros(size, np.int64))
        pour_in_order(histograms[-1], items, starts, np.arange(len(these)), 5 * UNIT + share, UNIT)
    larger, smaller = histograms
    only = (larger > 0) & (smaller == 0)
    budget = Budget(3, exp(-10))
    cost = exceeded(larger[only] / UNIT, GreedyNumbers.of(budget)) / budget.delta
    assert only.sum() == 100
    assert (larger - smaller).sum() <= UNIT
    assert cost > 4.9
    record_property("figure", f"{only.sum()} items of others: {cost:.2f} times delta in one order")


def test_users_fill_items_in_the_documented_order():
    """Users fill items in descending order of frequency, with ties by first appearance, or by a public rank."""
    held = PrivatePairs(np.array([2, 0, 1, 1], np.int32), np.array([0, 3, 4]), np.array([1, 4, 1, 1], np.int32), 3)
    assert by_own_frequency(held).items.tolist() == [0, 2, 1, 1]
    assert by_own_frequency(held).times.tolist() == [4, 1, 1, 1]
    assert by_public_rank(held, np.array([9, 1, 5])).items.tolist() == [1, 2, 0, 1]


def test_common_items_are_released_and_unique_items_are_not():
    """A hundred users have items 0 and 1, and only user j has item 2 + j."""
    users = [[0, 1, 2 + j] for j in range(100)]
    items, starts = as_arrays(users)
    held = PrivatePairs(items, starts, np.ones_like(items), 102)
    for limit in (None, 3):
        released = private_greedy(held, Budget(3, 1e-9), Secret.from_seed(1), alpha=20, limit=limit)
        assert released[:2].all()
        assert not released[2:].any()
    held = private_greedy(held, Budget(3, 1e-9), Secret.from_seed(1), alpha=20, limit=1)
    assert held.sum() <= 2
