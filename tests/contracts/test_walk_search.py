"""Tests of a search over neighbouring collections that runs whole releases with all passes of the default.

The distance of each pair is computed exactly and not estimated from draws, so there are no false alarms.
"""

from dataclasses import replace

import numpy as np
import pytest

from searches.walk_search import WALK, WORDS, search_walks
from voxpop.engine.local.deferred import UserBudgets
from voxpop.engine.local.length_walk import MemoryLengthWalk
from voxpop.engine.local.pools import Pools, PoolUsers
from voxpop.kernels.arrays import DROPPED
from voxpop.mechanisms.ngrams.mechanism import NGrams
from voxpop.privacy.budget import Budget
from voxpop.privacy.gate import walks
from voxpop.privacy.gate.walks import LaterPasses
from voxpop.privacy.individual import BOUND_STEPS
from voxpop.privacy.weightings.capped import CappedDescent
from voxpop.testing.collections import numbered_words

pytestmark = [pytest.mark.jit, pytest.mark.slow]
TOLERANCE = 1e-9
PAIRS = 24


def test_no_user_spends_more_than_the_budget_in_a_whole_release():
    """Every pass spends a part of the budget, and the largest total is within 1 percent of the budget."""
    assert (
        NGrams(
            WALK.max_length, max_phrases_per_user=WALK.max_phrases_per_user, max_spurious_share=WALK.max_spurious_share
        )
        == WALK
    )  # the defaults, on a small scale
    found = list(search_walks(PAIRS))
    assert not any(each.strayed or each.hit for each in found)
    assert 0.99 < max(each.total for each in found) <= 1 + TOLERANCE
    assert all(each.screened and each.deferred for each in found)
    for name in ("prevote 2", "length 2", "length 3", "length 4", "sweep"):
        assert max(each.spent.get(name, 0.0) for each in found) > 0.01, name


def test_length_1_is_within_its_budget():
    """All rounds of length 1, with the executed noise, are within their budget. Their mu^2 is not part of the total.

    At this budget, words remain undecided through all rounds, so the worst pair is within 2 percent of the budget.
    """
    found = list(search_walks(12, budget=Budget(2.0, 1e-4)))
    assert not any(each.strayed or each.hit for each in found)
    assert 0.98 < max(each.words for each in found) <= 1 + TOLERANCE


def test_the_choice_of_a_limit_is_within_its_caps():
    """Without a limit, the histogram and the rounds that it selects are within the caps of the menu."""
    found = list(search_walks(12, ngrams=replace(WALK, max_phrases_per_user=None)))
    assert not any(each.strayed or each.hit for each in found)
    assert 0.4 < max(each.words for each in found) <= 1 + TOLERANCE
    assert max(each.total for each in found) <= 1 + TOLERANCE


def test_a_public_list_of_words_changes_no_bound():
    """The list contains half of the common words and some words without users.

    The test runs with and without a given limit.
    """
    listed = [*numbered_words(WORDS).to_pylist()[::2], *(f"nobody{number}" for number in range(50))]
    for limit in (WALK.max_phrases_per_user, None):
        found = list(search_walks(8, ngrams=replace(WALK, max_phrases_per_user=limit, known=listed)))
        assert not any(each.strayed or each.hit for each in found)
        assert 0.2 < max(each.words for each in found) <= 1 + TOLERANCE
        assert 0.5 < max(each.total for each in found) <= 1 + TOLERANCE


def test_rounds_with_noise_only_on_drawn_items_are_detected(monkeypatch):
    """In the mutant, an item that only the extra user draws gets noise only if this user is present."""
    monkeypatch.setattr(Pools, "advance", advance_of_the_drawn)
    assert any(each.strayed for each in search_walks(PAIRS))


def advance_of_the_drawn(self, shares, step, pass_name):
    """Advance pools like `Pools.advance`, but leave undecided items without weight unchanged."""
    histogram = self._users.weigh_pools(shares, pass_name)
    ids = np.flatnonzero(histogram)
    self._score[ids], states = step(histogram[ids], self._names[ids], self._score[ids])
    self._decide(ids, states)


def test_rounds_with_two_contributions_of_a_user_are_detected(monkeypatch):
    """In the mutant, a user moves the weights by two units, but the noise is calibrated to one."""
    real = CappedDescent.add

    def twice(self, *given):
        real(self, *given)
        real(self, *given)

    monkeypatch.setattr(CappedDescent, "add", twice)
    assert any(each.words > 1.02 for each in search_walks(PAIRS))


def test_rounds_with_draws_that_depend_on_the_number_of_users_are_detected(monkeypatch):
    """In the mutant, the number of words that a user draws depends on whether the number of users is even."""
    real = PoolUsers.weigh_pools

    def by_users(self, shares, pass_name):
        setting = replace(shares.setting, limit=shares.limit - self.joined().keys.size % 2)
        return real(self, replace(shares, setting=setting), pass_name)

    monkeypatch.setattr(PoolUsers, "weigh_pools", by_users)
    assert any(each.words > 1.02 or each.strayed for each in search_walks(PAIRS))


def test_rounds_with_caps_that_depend_on_novel_items_are_detected(monkeypatch):
    """In the mutant, the caps of all users depend on the number of undecided items in all pools."""
    real = PoolUsers.weigh_pools

    def by_all(self, shares, pass_name):
        part = 1 + int((self.states > DROPPED).sum()) % 3
        weights = tuple(tuple(each // part for each in level) for level in shares.caps.weights)
        return real(self, replace(shares, caps=replace(shares.caps, weights=weights)), pass_name)

    monkeypatch.setattr(PoolUsers, "weigh_pools", by_all)
    assert any(each.words > 1.02 or each.strayed for each in search_walks(PAIRS))


def is_found():
    """Return whether a pair of neighbours spends more than its budget."""
    return any(each.total > 1.02 for each in search_walks(PAIRS))


def test_a_second_chance_pass_with_too_low_a_charge_is_detected(monkeypatch):
    """In the mutant, the charge is half of the cost of the noise, so users have too much budget left."""
    real = walks.Charge

    def cheap(cost, square, sensitivity, sigma, rates):
        return real(cost // 2 if rates == (BOUND_STEPS,) else cost, square, sensitivity, sigma, rates)

    monkeypatch.setattr(walks, "Charge", cheap)
    assert is_found()


def test_a_second_chance_pass_with_new_budgets_is_detected(monkeypatch):
    """In the mutant, the pass begins with whole budgets, although users have already paid for earlier passes."""
    real = MemoryLengthWalk.weigh_deferred

    def refilled(self, *given):
        self._budgets = UserBudgets()
        return real(self, *given)

    monkeypatch.setattr(MemoryLengthWalk, "weigh_deferred", refilled)
    assert is_found()


def test_a_screening_vote_without_a_charge_is_detected(monkeypatch):
    """In the mutant, users have the same budget after the screening vote as before it."""
    real = MemoryLengthWalk.weigh

    def free(self, shares, limit, secret, pass_name, *priced):
        before = self._budgets._left
        histogram = real(self, shares, limit, secret, pass_name, *priced)
        if pass_name.startswith("prevote"):
            self._budgets._left = before
        return histogram

    monkeypatch.setattr(MemoryLengthWalk, "weigh", free)
    assert is_found()


def private_counts(self):
    """Return the private number of users who have deferred candidates."""
    return int((np.diff(self._walk._engine._deferred.joined(self._walk._engine._user_key.size)[1]) > 0).sum())


def test_second_chance_cutpoints_chosen_by_a_private_count_are_detected(monkeypatch):
    """In the mutant, two neighbours with the same noisy weights get different levels."""
    real = LaterPasses.run

    def counted(self, step):
        if step.kind == "second chance":
            rules = step.vote.rules[private_counts(self) % 2 :]
            step = replace(step, vote=replace(step.vote, rules=rules))
        return real(self, step)

    monkeypatch.setattr(LaterPasses, "run", counted)
    assert any(each.strayed for each in search_walks(PAIRS))
