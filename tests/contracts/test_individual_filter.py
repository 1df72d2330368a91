"""Tests of the individual filter on the real length walk, in every pass of two neighbouring collections.

Given the public results of earlier passes, the weights of two neighbours differ in each pass by at most the distance
for which the extra user paid. Therefore, the sum of the squares of these distances, relative to the noise, is at most
the cap. The search looks for a pair above the cap, and must find one in every mutant.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from support.corpora import corpus_of
from voxpop.engine.data import Subset
from voxpop.engine.local import deferred as payments
from voxpop.engine.local import length_walk as walk_module
from voxpop.mechanisms.ngrams.candidates import Candidates, Grams, Pairs
from voxpop.privacy.individual import BOUND_STEPS, MOST_BOUND, WHOLE, Charge, IndividualFilter
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.builtin import PolicyGaussian, Weighted
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting

pytestmark = [pytest.mark.jit, pytest.mark.slow]
BITS, LENGTHS, CAP, PAIRS = 40, 4, 0.5, 120
TOLERANCE = 1e-9
WORDS = "abcde"


def random_users(rng):
    """Draw a few users with documents of a few words."""
    words = WORDS[: rng.integers(2, 6)]
    return [
        [[words[i] for i in rng.integers(0, len(words), rng.integers(0, 9))] for _ in range(rng.integers(1, 4))]
        for _ in range(rng.integers(2, 9))
    ]


def public_path(rng):
    """Draw the released, voted and deferred grams of each length, without reading the data."""
    kept = [np.flatnonzero(rng.random(len(WORDS)) < 0.8)]
    grams, lengths = Grams.of_tokens(kept[0].size), []
    for _ in range(LENGTHS - 1):
        valid = Candidates.all_valid(grams, kept[0].size, single=False)
        levels = rng.integers(0, 3, len(grams)), rng.integers(1, 3, len(grams))
        pairs = Pairs(valid.pairs.left_group, valid.pairs.partner_group, levels[1], single=False)
        likely, names = Candidates(pairs, levels[0]), np.sort(valid.names(np.arange(valid.count)))
        pruned = names[Subset(likely, None).holds(names)]
        joined = Subset(likely, pruned[rng.random(pruned.size) < 0.5])
        voted = names[joined.holds(names)]
        released, missed = voted[rng.random(voted.size) < 0.5], voted[rng.random(voted.size) < 0.5]
        missed = np.setdiff1d(missed, released)
        lengths.append((valid, Subset(likely, None), joined, released, missed))
        grams = grams.longer(released, single=False)
    return kept[0], lengths


def some_price(rng, shares):
    """Draw a charge of any size, with or without rates."""
    rates = (0, *rng.integers(0, BOUND_STEPS + 1, 4).tolist()) if rng.random() < 0.4 else None
    cost = int(WHOLE * rng.choice([0.05, 0.3, 0.6, 1.0]) * rng.random()) + 1
    return IndividualFilter(CAP).charge(cost, shares.sensitivity, rates)


def passes_of(corpus, secret, path, settings):
    """Walk a corpus along a public path, and yield (charge, weights) for every pass."""
    words, lengths = path
    walk, (shares, limit, prices) = corpus.length_walk(), settings
    given, measuring = iter(prices), CalibratedRule(Weighted(), RuleSetting(limit, 2, BITS - 8))
    walk.weigh(shares, limit, secret, "length 1")
    walk.keep(words)
    for number, (valid, pruned, joined, released, missed) in enumerate(lengths):
        yield one(walk.weigh, measuring, limit, secret, f"measurement {number}", next(given))
        walk.extend(valid)
        yield one(walk.weigh, shares, limit, secret, f"prevote {number}", next(given), pruned)
        yield one(walk.weigh, shares, limit, secret, f"length {number}", next(given), joined)
        walk.keep(released, missed)
    last = replace(next(given), rates=(BOUND_STEPS,))
    yield one(walk.weigh_deferred, shares, limit, secret, "sweep", last)


def one(weigh, shares, limit, secret, pass_name, charge, *among):
    histogram = weigh(shares, limit, secret, pass_name, charge, *among)
    weights = histogram._weights / shares.setting.unit
    return charge, dict(zip(histogram._ids.tolist(), weights.tolist(), strict=True))


def spent_by_one(rng, sharing):
    """Return the mu^2 of each pass for one pair of neighbours, as a fraction of the cap."""
    users = random_users(rng)
    every = corpus_of([[list(WORDS)], *users])  # Because of the first user, both collections have the same vocabulary.
    keys = every.user_key.tolist()
    extra = int(rng.integers(1, len(keys)))
    fewer = corpus_of(
        [[list(WORDS)], *(user for i, user in enumerate(users, 1) if i != extra)],
        [key for key in keys if key != extra],
    )
    limit, cutoff = int(rng.integers(1, 6)), float(rng.uniform(1, 3)) if sharing.sequential else 0.0
    shares = CalibratedRule(sharing, RuleSetting(limit, 2, BITS, round(cutoff * 2**BITS), MOST_BOUND))
    shares = replace(shares, weighting_rule=Exact() if sharing.sequential else sharing)
    prices = [some_price(rng, shares) for _ in range(3 * LENGTHS - 2)]
    path, secret = public_path(rng), Secret.from_seed(int(rng.integers(1 << 30)))
    settings = shares, limit, prices
    both = (list(passes_of(corpus, secret, path, settings)) for corpus in (every, fewer))
    return [(distance(a, b) / charge.sigma) ** 2 / CAP for (charge, a), (_, b) in zip(*both, strict=True)]


class Exact(PolicyGaussian):
    """A variant of l2-descent that charges users only for the largest movement.

    The allowance for rounding over 2^33 users would hide a violation on grids of 2^-40.
    """

    def sensitivity(self, setting):
        return 1.0


def distance(first, second):
    names = first.keys() | second.keys()
    return np.linalg.norm([first.get(name, 0.0) - second.get(name, 0.0) for name in names]) if names else 0.0


def totals(sharing, pairs=PAIRS, seed=3):
    """Yield the mu^2 that one user spends over all passes for many pairs of neighbours, as fractions of the cap."""
    rng = np.random.default_rng(seed)
    return (sum(spent_by_one(rng, sharing)) for _ in range(pairs))


def is_found(bound, pairs=PAIRS):
    """Return whether some user spends more than a bound. The search ends at the first such pair."""
    return any(total > bound for total in totals(PolicyGaussian(), pairs))


@pytest.mark.parametrize("sharing", [Weighted(), PolicyGaussian()])
def test_no_neighbours_differ_by_more_than_the_cap(sharing):
    """For hundreds of pairs, the total over all votes, measurements and second-chance passes is at most the cap.

    The worst pair is close to the cap.
    """
    assert 0.99 < max(totals(sharing)) <= 1 + TOLERANCE


def test_users_without_candidates_are_not_charged():
    """In the real walk, a user without candidates keeps the whole budget."""
    corpus = corpus_of([[list("ab")], [list("cd")]])
    walk, secret = corpus.length_walk(), Secret.from_seed(1)
    shares = CalibratedRule(PolicyGaussian(), RuleSetting(3, 2, BITS, 2**BITS))
    charge = IndividualFilter(CAP).charge(WHOLE // 4, 1.0)
    walk.weigh(shares, 3, secret, "length 1")
    walk.keep(np.array([0, 1]))  # a and b
    walk.weigh(shares, 3, secret, "measurement 1", charge)
    assert sorted(walk._budgets.left(2).tolist()) == [WHOLE - WHOLE // 4, WHOLE]


class Watched:
    """Shares that record the distance by which each user moved the weights."""

    def __init__(self, shares):
        self.shares, self.sequential, self.setting, self.moved = shares, shares.sequential, shares.setting, []

    def add(self, histogram, items, starts, bounds=None):
        for user in range(starts.size - 1):
            before = histogram.copy()
            mine = items[starts[user] : starts[user + 1]]
            self.shares.add(histogram, mine, np.array([0, mine.size]), *([] if bounds is None else [bounds[[user]]]))
            self.moved.append(float(np.linalg.norm((histogram - before) / self.setting.unit)))


def charged_afterwards(monkeypatch, cost_of):
    """Charge users after weighing.

    The function `cost_of` maps the charge, the movement and the planned cost to the cost.
    """
    real_pay, real_weigh, last = payments.UserBudgets.pay, walk_module.weigh, {}

    def pay(self, charge, holdings, wanted):
        before = np.full(holdings.user_key.size, WHOLE) if self._left is None else self._left
        bounds = real_pay(self, charge, holdings, wanted)
        last.update(budgets=self, charge=charge, before=before, asked=before - self._left)
        return bounds

    def weigh(holdings, shares, *others):
        watched = Watched(shares)
        histogram = real_weigh(holdings, watched, *others)
        if others[-1] is not None:
            each = zip(watched.moved, last["asked"].tolist(), strict=True)
            costs = np.array([cost_of(last["charge"], moved, asked) for moved, asked in each], np.int64)
            last["budgets"]._left = last["before"] - costs
        return histogram

    monkeypatch.setattr(payments.UserBudgets, "pay", pay)
    monkeypatch.setattr(walk_module, "weigh", weigh)


def test_the_search_detects_charges_for_the_actual_movement(monkeypatch):
    """The mutant charges less, but the movement and therefore the remaining budget of a user depend on other users."""
    charged_afterwards(monkeypatch, lambda charge, moved, asked: min(asked, int(charge.cost * moved**2) + 1))
    assert is_found(1 + 1e-3, pairs=4 * PAIRS)


def test_the_search_detects_users_at_the_cutoff_who_are_not_charged(monkeypatch):
    """In the mutant, a user pays nothing if all grams of the user are at the cutoff."""
    charged_afterwards(monkeypatch, lambda charge, moved, asked: asked if moved > 0 else 0)
    assert is_found(1 + 1e-3, pairs=4 * PAIRS)


def paying(monkeypatch, twin):
    """Replace the payments. The mutant `twin` maps the charge, budgets, costs and bounds to new budgets and bounds."""
    real = payments.UserBudgets.pay

    def pay(self, charge, holdings, wanted):
        before = self.left(holdings.user_key.size)
        before = np.full(holdings.user_key.size, WHOLE) if before is None else before
        self._left = turned = twin.before(before) if hasattr(twin, "before") else before
        bounds = real(self, charge, holdings, wanted)
        costs = turned - self._left
        self._left, bounds = twin(charge, turned, costs, bounds)
        return bounds

    monkeypatch.setattr(payments.UserBudgets, "pay", pay)


def refilled(charge, left, costs, bounds):
    """Users who have spent their budget receive a whole budget again."""
    return np.where(left - costs > 0, left - costs, WHOLE), bounds


def never_charged(charge, left, costs, bounds):
    """Every pass begins with a whole budget."""
    return left, bounds


def on_average(charge, left, costs, bounds):
    """Every user pays the mean of the charges of all users."""
    return np.maximum(left - int(costs.mean()), 0), bounds


def full_reach(charge, left, costs, bounds):
    """A user who pays anything has the contribution bound of the full charge."""
    return left - costs, np.where(costs > 0, BOUND_STEPS, 0)


def reach_of_all(charge, left, costs, bounds):
    """In the mutant, the contribution bound is the largest bound of any user, so it depends on other users."""
    return left - costs, np.full(bounds.size, bounds.max(initial=0))


def shifted(charge, left, costs, bounds):
    """Budgets are shifted by one user between passes, as in a corpus that wrongly drops users without candidates."""
    return np.roll(left - costs, 1), bounds


@pytest.mark.parametrize("twin", [refilled, never_charged, on_average, full_reach, reach_of_all, shifted])
def test_the_search_detects_wrong_budgets(monkeypatch, twin):
    """In each mutant, some user spends more than the cap."""
    paying(monkeypatch, twin)
    assert is_found(1.05)


def test_the_search_detects_a_charge_that_is_too_small_for_the_noise(monkeypatch):
    """In the mutant, each pass charges a quarter of the cost of its noise."""
    real = IndividualFilter.charge

    def cheap(self, cost, *others):
        charge = real(self, cost, *others)
        return Charge(max(1, cost // 4), charge.square, charge.sensitivity, charge.sigma, charge.rates)

    monkeypatch.setattr(IndividualFilter, "charge", cheap)
    assert is_found(1.05)


def test_the_charge_of_a_whole_budget_is_exactly_the_cap():
    """The charge for a whole budget is exactly the cap, by which the search divides its totals."""
    assert IndividualFilter(CAP).square(WHOLE) == Fraction(CAP)
