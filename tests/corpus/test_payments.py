"""Tests of individual budgets and deferred candidates, and of the errors raised if the users of two calls differ."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.corpora import corpus_of
from voxpop.engine.data import Subset
from voxpop.engine.local import deferred as payments
from voxpop.engine.local.deferred import DeferredCandidates, UserBudgets, runs_of_holdings
from voxpop.engine.local.weigh import Holdings, weigh
from voxpop.errors import InternalError
from voxpop.mechanisms.ngrams.candidates import Candidates, Grams
from voxpop.privacy.individual import WHOLE, IndividualFilter
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.builtin import Weighted
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting

SECRET = Secret.from_seed(1)
SHARES = CalibratedRule(Weighted(), RuleSetting(3, 2))
PRICE = IndividualFilter(1.0).charge(WHOLE // 8, 1.0)
USERS = st.lists(st.lists(st.integers(-1, 5), max_size=6), min_size=1, max_size=8)


def holdings_of(users):
    """Return the items of each user, in the order of users."""
    ids = np.array([place for user in users for place in user], np.int32)
    starts = np.cumsum([0, *map(len, users)]).astype(np.int64)
    return Holdings(ids, starts, np.arange(len(users), dtype=np.uint64), 6)


@given(USERS, st.integers(1, 7))
def test_runs_do_not_depend_on_the_division_of_users(users, at_once):
    """Users are processed a few items at a time, and some users have no items."""
    holdings = holdings_of(users)
    expected = runs_of_holdings(holdings, None, whole=True).tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(payments, "_DEFERRED_AT_ONCE", at_once)
        assert runs_of_holdings(holdings, None, whole=True).tolist() == expected


@given(st.lists(USERS.map(lambda users: (users + [[]] * 8)[:8]), min_size=1, max_size=3), st.sets(st.integers(0, 5)))
def test_deferred_candidates_equal_those_of_plain_loops(lengths, wanted):
    """Each user's deferred candidates are distinct, and ordered by length and then by appearance."""
    found, expected, places = DeferredCandidates(None), [[] for _ in range(8)], np.array(sorted(wanted), np.int64)
    # The rank of each id among deferred candidates, or -1.
    ranks = np.array([sorted(wanted).index(place) if place in wanted else -1 for place in range(6)], np.int32)
    for number, users in enumerate(lengths):
        found.add(holdings_of(users), ranks, places.size)
        for mine, user in zip(expected, users, strict=True):
            held = [place for place in dict.fromkeys(user) if place in wanted]
            mine += [number * places.size + places.tolist().index(place) for place in held]
    together = found.holdings(np.arange(8, dtype=np.uint64))
    assert found.size == together.size == len(lengths) * places.size
    cuts = together.user_start
    assert [together.ids[a:b].tolist() for a, b in pairwise(cuts)] == expected
    again = DeferredCandidates.of(*found.joined(8), found.size)
    assert again.holdings(np.arange(8, dtype=np.uint64)).ids.tolist() == together.ids.tolist()


def test_a_changed_number_of_users_is_rejected():
    """A call is rejected if the number of users changes between two passes."""
    budgets = UserBudgets()
    budgets.pay(PRICE, holdings_of([[0], []]), None)
    assert budgets.left(2).tolist() == [WHOLE - WHOLE // 8, WHOLE]
    with pytest.raises(InternalError, match="users changed"):
        budgets.pay(PRICE, holdings_of([[0]]), None)


def test_bounds_of_other_users_are_rejected():
    """A call is rejected if the number of users who paid exceeds the number of users who are weighed."""
    with pytest.raises(InternalError, match="bounds of other users"):
        weigh(holdings_of([[0], [1]]), SHARES, 3, None, SECRET, "x", np.array([1, 1, 1]))


def test_a_walk_rejects_calls_in_the_wrong_state():
    """The cases are a charge for length 1, a subset of released grams, and deferred grams without candidates."""
    walk = corpus_of([[list("ab")]]).length_walk()
    with pytest.raises(InternalError, match="length 1"):
        walk.weigh(SHARES, 3, SECRET, "length 1", PRICE)
    walk.keep(np.arange(2))
    subset = Subset(Candidates.all_valid(Grams.of_tokens(2), 2, single=False), None)
    with pytest.raises(InternalError, match="a subset of the candidates"):
        walk.weigh(SHARES, 3, SECRET, "measurement", PRICE, subset)
    with pytest.raises(InternalError, match="deferred"):
        walk.keep(np.arange(2), np.arange(1))
