"""Tests of the pools of adaptive rounds, including draws, the items that receive noise, and independence of users."""

import itertools

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given

import voxpop as vp
from naive.pools import naive_undecided
from support.exact import By
from support.look import read_engine
from voxpop.kernels.arrays import DROPPED, RELEASED, UNDECIDED
from voxpop.kernels.weigh import keep_undecided
from voxpop.privacy.opening import Opening
from voxpop.privacy.secret import Secret
from voxpop.reading.limited.memory import MemoryLimit

MEMORY = ("all of it", "a limit")


class Recorded:
    """Shares that give one unit to every drawn item, and record the drawn sets and the numbers of items in the pool."""

    sequential, draws = True, False

    def __init__(self, limit=1):
        self.limit, self.sets, self.counts = limit, [], []

    def given(self, undecided, dropped, bits, listed=0):
        assert bits is None
        self.counts += zip(undecided.tolist(), dropped.tolist(), strict=True)
        return undecided + dropped

    def add(self, histogram, items, starts, states=None, given=None, listed=None):
        assert given is None or (given.size == starts.size - 1 and (states[items] > 1).all())
        for begin, end in itertools.pairwise(starts):
            self.sets.append(tuple(sorted(items[begin:end].tolist())))
        np.add.at(histogram, items, 1)


class Step(Opening):
    """A round with a custom decision rule that records its arguments."""

    def __init__(self, states=lambda names: np.full(len(names), UNDECIDED)):
        self.states, self.asked = states, []

    def __call__(self, weights, names, score):
        self.asked.append((weights.copy(), [tuple(name) for name in names.tolist()]))
        return score, self.states(names).astype(np.uint8)


@By
def nothing(weights, names, texts):
    return np.zeros(weights.size, bool)


def corpus_of(rows, memory="all of it"):
    corpus = read_engine(pl.DataFrame(rows, schema=["who", "what"], orient="row"), user="who", items="what")
    return corpus if memory == "all of it" else corpus.within(MemoryLimit.of("1GiB"))


def crowd(users=30, held=12, items=80, seed=4):
    rng = np.random.default_rng(seed)
    return [(f"u{user:03}", f"i{item:03}") for user in range(users) for item in rng.choice(items, held, replace=False)]


def run(corpus, size, limit, rounds, step=None, seed=5):
    """Return the drawn sets of each round and the step. The first round releases nothing."""
    pools, step = corpus.pools(Secret.from_seed(seed)), step or Step()
    pools.first_round(Recorded(), limit, nothing, "round 0")
    pools.draw(size, "pool")
    sets = []
    for number in range(rounds):
        shares = Recorded(limit)
        pools.advance(shares, step, f"round {number + 1}")
        sets.append(shares.sets)
    return sets, step


@pytest.mark.parametrize("memory", MEMORY)
def test_every_round_draws_exactly_the_limit_from_one_pool(memory):
    """Each user has 12 items and a pool of 7, and draws 3 per round.

    All rounds together use at most 7 items of a user, and the draws of two rounds differ.
    """
    sets, _ = run(corpus_of(crowd(), memory), size=7, limit=3, rounds=20)
    assert all(len(one) == 3 for each in sets for one in each)
    seen = [set().union(*(each[user] for each in sets)) for user in range(30)]
    assert all(len(pool) == 7 for pool in seen)
    # Two rounds draw the same three of seven items with a probability of 1 in 35 for one user, and of 1e-46 for all 30
    # users.
    assert all(one != other for one, other in itertools.pairwise(sets))


@pytest.mark.parametrize("memory", MEMORY)
def test_every_undecided_item_of_any_pool_gets_noise(memory):
    """Items that no user drew also receive noise. A broken variant that omits them violates the proof."""
    rows = crowd()
    corpus = corpus_of(rows, memory)
    sets, step = run(corpus, size=7, limit=1, rounds=1)
    pools = corpus.pools(Secret.from_seed(5))
    pools.first_round(Recorded(), 1, nothing, "round 0")
    whole = Recorded(7)
    pools.draw(7, "pool")
    pools.advance(whole, Step(), "another round")  # draws the entire pool
    pooled = set().union(*whole.sets)
    ((weights, names),) = step.asked
    assert len(names) == len(set(names)) == len(pooled) > len(set().union(*sets[0]))
    assert (weights == 0).sum() == len(pooled) - len(set().union(*sets[0]))


def test_dropped_items_are_not_drawn_again():
    """No user draws a dropped item in a later round. Users with fewer items than the limit draw all remaining items."""
    corpus = corpus_of(crowd())
    sets, step = run(
        corpus, size=12, limit=12, rounds=2, step=Step(lambda names: np.where(names[:, 0] % 2, UNDECIDED, DROPPED))
    )
    dropped = {name for name in step.asked[0][1] if name[0] % 2 == 0}
    assert dropped
    assert not dropped & set(step.asked[1][1])
    assert sum(map(len, sets[1])) < sum(map(len, sets[0]))


@pytest.mark.parametrize("memory", MEMORY)
def test_dropped_items_of_the_pool_are_counted_and_released_items_are_not(memory):
    """Two rounds make decisions. Caps depend on the number of items in the pool that are not released."""
    states = np.array([RELEASED, DROPPED, UNDECIDED])
    corpus = corpus_of(crowd(), memory)
    pools, step = corpus.pools(Secret.from_seed(5)), Step(lambda names: states[names[:, 0] % 3])
    pools.draw(7, "pool")
    first, second = Recorded(7), Recorded(7)
    pools.advance(first, step, "round 1")
    pools.advance(second, step, "round 2")
    names = dict(zip(sorted(set().union(*first.sets)), (name for name, _ in step.asked[0][1]), strict=True))
    fates = [[int(states[names[item] % 3]) for item in one] for one in first.sets]
    assert first.counts == [(7, 0)] * 30
    # Users without an undecided item are removed.
    assert second.counts == [(each.count(UNDECIDED), each.count(DROPPED)) for each in fates if UNDECIDED in each]


@pytest.mark.parametrize("memory", MEMORY)
@pytest.mark.parametrize(("size", "limit"), [(12, 12), (6, 6), (6, 2)])
def test_a_user_does_not_change_draws_of_other_users(size, limit, memory):
    """With and without one user, other users draw the same items in each round and are weighed in the same order."""
    rows = crowd()
    names = sorted({what for _, what in rows})
    alone = {what for who, what in rows if who == "u007"} - {what for who, what in rows if who != "u007"}
    with_user, _ = run(corpus_of(rows, memory), size, limit, 4)
    rest = [row for row in rows if row[0] != "u007"]
    left = [name for name in names if name not in alone]
    number = {place: names.index(name) for place, name in enumerate(left)}
    without, _ = run(corpus_of(rest, memory), size, limit, 4)
    for whole, part in zip(with_user, without, strict=True):
        renamed = [tuple(sorted(number[item] for item in one)) for one in part]
        assert len(whole) == len(renamed) + 1
        skipped = next((place for place, one in enumerate(renamed) if whole[place] != one), len(renamed))
        assert whole[:skipped] + whole[skipped + 1 :] == renamed


def test_draws_do_not_depend_on_scores():
    """The draws of a round do not depend on scores of previous rounds, given the same undecided items."""
    corpus = corpus_of(crowd())

    class Loud(Step):
        def __call__(self, weights, names, score):
            return score + names[:, 0].astype(float), np.full(weights.size, UNDECIDED, np.uint8)

    assert run(corpus, 7, 2, 5)[0] == run(corpus, 7, 2, 5, step=Loud())[0]


def test_draws_are_uniform():
    """In three rounds, each of 4,000 users draws one of four undecided items (false alarm below 1e-9)."""
    rows = [(user, f"i{user}-{item}") for user in range(4000) for item in range(4)]
    sets, _ = run(corpus_of(rows), size=4, limit=1, rounds=3)
    for each in sets:
        counts = np.bincount(np.array([one[0] for one in each]) % 4, minlength=4)
        assert np.all(np.abs(counts - 1000) < 6.5 * (4000 * 0.25 * 0.75) ** 0.5)
    again = sum(one == other for one, other in zip(sets[0], sets[1], strict=True))
    assert abs(again - 1000) < 6.5 * (4000 * 0.25 * 0.75) ** 0.5


users = st.lists(st.lists(st.integers(0, 9), unique=True, min_size=1), max_size=8)


@given(users, st.lists(st.sampled_from([RELEASED, DROPPED, 2, UNDECIDED]), min_size=10, max_size=10))
def test_keeping_undecided_items_agrees_with_the_reference_implementation(sets, states):
    items = np.array([item for each in sets for item in each], np.int32)
    starts = np.cumsum([0, *map(len, sets)]).astype(np.int64)
    keys = np.arange(len(sets), dtype=np.uint64)
    dropped = np.zeros(keys.size, np.int64)
    kept, left = keep_undecided(items, starts, keys, dropped, np.array(states, np.uint8))
    expected = naive_undecided(dict(enumerate(sets)), states)
    found = {
        int(key): (items[starts[j] : starts[j + 1]].tolist(), int(dropped[j])) for j, key in enumerate(keys[:left])
    }
    assert found == expected
    assert kept == sum(len(items) for items, _ in expected.values())


def test_a_memory_limit_does_not_change_the_release():
    """Pools in a work file and pools in memory give the same release."""
    rows = crowd(users=400, held=75, items=90)
    plan = vp.Items(max_items_per_user=2).plan(vp.Budget(3, 1e-3))
    releases = [plan.release(corpus_of(rows, memory), seed=3) for memory in MEMORY]
    assert releases[0] == releases[1]
    assert len(releases[0]) > 20
