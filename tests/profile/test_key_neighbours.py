"""A search over neighbouring tables with the real kernels of keys with counts, and faults that it must detect."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import voxpop as vp
from support.corpora import corpus_of
from voxpop.engine.contract import check_engine
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.privacy.gate import counts as gates
from voxpop.privacy.opening import Opening
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.holders import UNIT, HolderShares, WholeShares
from voxpop.testing.auditing import TrialCounts, epsilon_shown

BUDGET = vp.Budget(2, 1e-7)
KEYED = vp.KeyCounts({"key": "string"}, [("key",)])
PLAN = KEYED.plan(BUDGET)
WORDS = [f"0|k{number}" for number in range(8)]


class Seen(Opening):
    """A replacement for the noise that stores the private weight of each key and releases all keys."""

    def __init__(self, found):
        self.found = found

    def __call__(self, weights, names, texts=None):
        if texts is None:
            self.found.append(weights.copy())
            return weights
        data, starts = texts
        keys = [bytes(data[a:b]).decode() for a, b in pairwise(starts)]
        self.found.append(dict(zip(keys, weights.tolist(), strict=True)))
        return np.ones(weights.size, np.int64)


def weights_of(users, place, monkeypatch):
    """Return the classes, the weights by key and the sums of shares of a release without noise."""
    found = []
    monkeypatch.setattr(gates, "WholeNoise", lambda rate, secret, purpose: Seen(found))
    monkeypatch.setattr(gates, "KeyNumbers", lambda noise, unit, secret, purpose: Seen(found))
    # The draws of users are the same with and without the extra user.
    gate = gates.KeysGate(PLAN.certificate.to_json(), Secret.from_seed(5))
    engine = check_engine(replace(corpus_of(list(users.values()), list(users)), token_source=KEYED.keys.token_source))
    gate.classes(engine)
    gate.choose(place)
    gate.numbers(engine)
    gate.rest(engine, pa.array(WORDS[:3], pa.large_string()), 1, UNIT)
    return found


def distances(rng, monkeypatch):
    """Return how much the extra user changes classes, keys and shares, relative to the charge."""
    users = {
        int(key): [[WORDS[i] for i in rng.integers(0, 8, rng.integers(1, 9))] for _ in range(rng.integers(1, 3))]
        for key in rng.choice(1000, rng.integers(2, 7), replace=False)
    }
    extra, place = next(iter(users)), int(rng.integers(3))
    fewer = {key: held for key, held in users.items() if key != extra}
    (classes, weights, shares), (before, less, rest) = (weights_of(each, place, monkeypatch) for each in (users, fewer))
    moved = [weights.get(key, 0) - less.get(key, 0) for key in {*weights, *less}]
    changed = [each for each in moved if each]
    return (
        np.abs(classes - before).sum(),
        len(changed) / (place + 1),
        max(map(abs, changed), default=0) / UNIT,
        np.abs(shares - rest).sum() / UNIT,
        # Weights must be whole numbers of users.
        max((weight % UNIT for weight in weights.values()), default=0),
    )


def worst(monkeypatch, pairs=60):
    rng = np.random.default_rng(11)
    with monkeypatch.context() as patched:
        return np.max([distances(rng, patched) for _ in range(pairs)], axis=0)


def test_no_user_changes_weights_by_more_than_is_charged(monkeypatch):
    """A user changes one class by 1, at most L keys by 1 each, and shares by at most 1. Each bound is attained."""
    classes, keys, users, shares, fractions = worst(monkeypatch)
    assert (classes, keys, users, fractions) == (1, 1, 1, 0)
    assert 0.999 < shares <= 1


# Tests of parts, which group users by their number of keys.

LIMIT, EDGES = 2, (2, 3, 4)


def parts_of(users, monkeypatch):
    """Return the numbers of users with one and with two keys per key, and the sizes and counts of all other users."""
    found = []
    monkeypatch.setattr(gates, "WholeNoise", lambda rate, secret, purpose: Seen(found))
    monkeypatch.setattr(gates, "PartNumbers", lambda parts, secret, purpose: Seen(found))
    gate = gates.KeysGate(PLAN.certificate.to_json(), Secret.from_seed(5))
    engine = check_engine(replace(corpus_of(list(users.values()), list(users)), token_source=KEYED.keys.token_source))
    gate.classes(engine)
    gate.choose(len(PLAN.menu))
    gate.few(engine)
    # Both collections have the same released keys.
    gate.sizes(engine, pa.array(WORDS[:5], pa.large_string()), EDGES)
    gate.more(LIMIT)
    # There are no weights if no user has one or two keys.
    weights = next((each for each in found if isinstance(each, dict)), {})
    _, sizes, counts = (each for each in found if not isinstance(each, dict))
    one, two = (
        {key: each(weight) for key, weight in weights.items()} for each in (lambda w: w >> 31, lambda w: w % 2**31)
    )
    return one, two, sizes, counts


def moved_parts(rng, monkeypatch):
    """Return the excess of the extra user's changes over the charge for the user's number of keys, and the charges."""
    users = {
        int(key): [[WORDS[i] for i in rng.integers(0, 8, rng.integers(1, 4))] for _ in range(rng.integers(1, 3))]
        for key in rng.choice(1000, rng.integers(2, 9), replace=False)
    }
    extra = next(iter(users))
    held = len({word for row in users[extra] for word in row})
    fewer = {key: rows for key, rows in users.items() if key != extra}
    (*with_user, sizes, counts), (*without, fewer_sizes, fewer_counts) = (
        parts_of(each, monkeypatch) for each in (users, fewer)
    )
    one, two = (
        sum(abs(more.get(key, 0) - less.get(key, 0)) for key in {*more, *less})
        for more, less in zip(with_user, without, strict=True)
    )
    heavy = np.abs(sizes - fewer_sizes).sum(), np.abs(counts - fewer_counts).sum()
    changed = np.abs(counts - fewer_counts).max(initial=0)
    # Each user belongs to one part and changes nothing in the other parts.
    allowed = {1: (1, 0, 0, 0), 2: (0, 2, 0, 0)}.get(held, (0, 0, 1, LIMIT))
    return [*(moved - most for moved, most in zip((one, two, *heavy), allowed, strict=True)), changed - 1], allowed


def worst_parts(monkeypatch, pairs=80):
    """Return the largest excess over the charge in each part, and whether each bound is attained."""
    rng = np.random.default_rng(11)
    with monkeypatch.context() as patched:
        found = [moved_parts(rng, patched) for _ in range(pairs)]
    excess = np.max([moved for moved, _ in found], axis=0)
    reached = [max((moved[place] for moved, most in found if most[place]), default=-1) == 0 for place in range(4)]
    return excess, reached


def test_no_user_changes_more_than_the_charge_of_the_part(monkeypatch):
    """A user changes one key or two keys by 1, or one class and at most l counts by 1. Each bound is attained."""
    excess, reached = worst_parts(monkeypatch)
    assert excess.max() == 0
    assert all(reached)


@pytest.mark.slow
def test_the_search_detects_users_with_two_keys_in_two_parts(monkeypatch):
    """The mutant also counts users with two keys among users with three or more keys."""
    monkeypatch.setattr(LocalCorpus, "with_more", lambda corpus, items, real=LocalCorpus.with_more: real(corpus, 1))
    assert worst_parts(monkeypatch)[0][2:4].min() > 0


@pytest.mark.slow
def test_the_search_detects_users_with_many_keys_who_affect_released_keys(monkeypatch):
    """The mutant adds users with three or more keys to the numbers that determine the released keys."""
    monkeypatch.setattr(gates, "PART_WEIGHTS", (0, 1 << 31, 1, 1))
    assert worst_parts(monkeypatch)[0][1] > 0


@pytest.mark.slow
def test_the_search_detects_users_with_many_keys_without_a_limit(monkeypatch):
    """The mutant counts all released keys of users with three or more keys."""
    real = gates.KeysGate.more

    def unlimited(gate, limit):
        walk = gate._walk

        class Unlimited:
            def weigh(self, shares, limit, secret, name):
                return walk.weigh(shares, 1000, secret, name)

        gate._walk = Unlimited()
        return real(gate, limit)

    monkeypatch.setattr(gates.KeysGate, "more", unlimited)
    assert worst_parts(monkeypatch)[0][3] > 0


@pytest.mark.slow
def test_the_search_detects_users_with_a_weight_above_one(monkeypatch):
    """In the mutant, a user with three or more keys has weight 2 for each key."""
    monkeypatch.setattr(gates, "WholeShares", lambda shares: WholeShares((0, 2) if shares == (0, 1) else shares))
    assert worst_parts(monkeypatch)[0][4] > 0


@pytest.mark.slow
def test_the_search_detects_users_who_count_for_all_their_keys(monkeypatch):
    """The mutant counts all keys of a user instead of a sample."""
    real = gates.KeysGate.numbers

    class Unlimited:
        def __init__(self, engine):
            self.engine = engine

        def weigh(self, shares, limit, secret, name):
            return self.engine.weigh(HolderShares(1000), 1000, secret, name)

    monkeypatch.setattr(gates.KeysGate, "numbers", lambda gate, engine: real(gate, Unlimited(engine)))
    assert worst(monkeypatch)[1] > 1


@pytest.mark.slow
def test_the_search_detects_fractional_weights(monkeypatch):
    """In the mutant, a user has fractional weights, as in counts after rounds. Integer noise would reveal fractions."""
    real = gates.KeysGate.numbers

    class Shared:
        def __init__(self, engine):
            self.engine = engine

        def weigh(self, shares, limit, secret, name):
            return self.engine.weigh(HolderShares(1), 1000, secret, name)

    monkeypatch.setattr(gates.KeysGate, "numbers", lambda gate, engine: real(gate, Shared(engine)))
    assert worst(monkeypatch)[4] > 0


@pytest.mark.slow
def test_the_search_detects_classes_that_count_keys_instead_of_users(monkeypatch):
    """The mutant counts a user in a class once for each key."""
    from voxpop.engine.local import pools

    real = pools.count_classes

    def repeated(starts, edges):
        kept = [np.asarray(each) for each in starts]
        sizes = np.concatenate([np.diff(each) for each in kept])
        return real([np.concatenate([[0], np.cumsum(np.repeat(sizes, sizes))])], edges)

    monkeypatch.setattr(pools, "count_classes", repeated)
    assert worst(monkeypatch)[0] > 1


# Tests with many copies of a table, which show whether the noise is too small.

COPIES = 60_000


def released_copies(users_of_a_copy, plan):
    """Return the number of copies with a released key. Each copy has one key and the given number of users."""
    users = [[[f"0|c{copy}"]] for copy in range(COPIES) for _ in range(users_of_a_copy)]
    data = replace(corpus_of(users), token_source=plan.mechanism.keys.token_source)
    return len(plan.release(data))


def shown(plan, users):
    """Return a lower bound on epsilon, estimated from releases with and without one more user."""
    joined, without = (released_copies(each, plan) for each in (users + 1, users))
    return epsilon_shown(TrialCounts(joined, without, COPIES), plan.budget.delta)


@pytest.mark.slow
def test_keys_with_two_draws_are_detected(monkeypatch):
    """The broken variant uses the better of two draws for each key, so a novel key has twice the delta.

    The probability of a false alarm is below 1e-9, because the plan releases a novel key with a probability of 0.02.
    """
    with pytest.warns(UserWarning, match="delta"):
        budget = vp.Budget(1.0, 0.02)
    plan = vp.KeyCounts({"key": "string"}, [("key",)], max_keys_per_user=1, other_rows=False).plan(budget)
    assert released_copies(1, plan) < COPIES * 0.02 + 6 * (COPIES * 0.02) ** 0.5
    real = gates.KeyNumbers

    def twice(noise, unit, secret, purpose):
        one, two = (real(noise, unit, secret, f"{purpose}{again}") for again in ("", "/again"))

        class Twice(Opening):
            def __call__(self, *given):
                return np.maximum(one(*given), two(*given))

        return Twice()

    monkeypatch.setattr(gates, "KeyNumbers", twice)
    assert released_copies(1, plan) > COPIES * 0.02 + 9 * (COPIES * 0.02) ** 0.5


@pytest.mark.slow
def test_noise_with_twice_the_rate_is_detected(monkeypatch):
    """The shown epsilon is within the budget for the planned noise (false alarm 1e-9), but not with twice the rate."""
    with pytest.warns(UserWarning, match="delta"):
        budget = vp.Budget(1.0, 0.02)
    plan = vp.KeyCounts({"key": "string"}, [("key",)], max_keys_per_user=1, other_rows=False).plan(budget)
    assert 0.5 < shown(plan, 3) <= 1
    real = gates.KeyNumbers
    monkeypatch.setattr(
        gates, "KeyNumbers", lambda noise, *rest: real(replace(noise, rate=noise.rate * Fraction(2)), *rest)
    )
    assert shown(plan, 3) > 1


def copies_in_parts(plan, monkeypatch):
    """Return two numbers of copies with a released key. The only user of each copy has one key or two keys."""
    monkeypatch.setattr(type(plan), "entry_for", lambda plan, counts: len(plan.menu))
    found = []
    for held in (1, 2):
        users = [[[f"0|c{copy} {key}" for key in range(held)]] for copy in range(COPIES)]
        data = replace(corpus_of(users), token_source=plan.mechanism.keys.token_source)
        keys = plan.release(data).counts("key")["key"].to_pylist()
        found.append(len({key.split()[0] for key in keys}))
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*delta")
def test_parts_with_two_draws_are_detected(monkeypatch):
    """The broken variant uses the better of two draws for each key of users with one and two keys.

    The plan satisfies delta for both kinds of users.
    """
    plan = vp.KeyCounts({"key": "string"}, [("key",)], other_rows=False).plan(vp.Budget(1.0, 0.02))
    most = COPIES * 0.02 + 6 * (COPIES * 0.02) ** 0.5
    one, two = copies_in_parts(plan, monkeypatch)
    assert min(one, two) > COPIES * 0.005
    assert max(one, two) < most
    real = gates.PartNumbers

    def twice(parts, secret, purpose):
        first, again = (real(parts, secret, f"{purpose}{name}") for name in ("", "/again"))

        class Twice(Opening):
            def __call__(self, *given):
                return np.maximum(first(*given), again(*given))

        return Twice()

    monkeypatch.setattr(gates, "PartNumbers", twice)
    assert max(copies_in_parts(plan, monkeypatch)) > most


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*delta")
def test_parts_with_a_lower_threshold_are_detected(monkeypatch):
    """In the broken variant, the threshold is lower by 3."""
    plan = vp.KeyCounts({"key": "string"}, [("key",)], other_rows=False).plan(vp.Budget(1.0, 0.02))
    real = gates.PartNumbers
    monkeypatch.setattr(
        gates, "PartNumbers", lambda parts, *rest: real(replace(parts, threshold=parts.threshold - 3), *rest)
    )
    assert max(copies_in_parts(plan, monkeypatch)) > COPIES * 0.02 + 6 * (COPIES * 0.02) ** 0.5
