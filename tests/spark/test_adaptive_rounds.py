"""Tests of adaptive rounds on Spark, which must equal local rounds for any placement of users."""

import os
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from placed import PlacedPools, states_of

import voxpop as vp
from support.corpora import corpus_of
from support.strategies import written_users
from voxpop.engine.local.pools import Pools
from voxpop.engine.local.weigh import item_names
from voxpop.engine.spark import frames
from voxpop.engine.spark import pools as pool_tasks
from voxpop.engine.spark.frames import spread_rows
from voxpop.engine.spark.pools import SparkPools
from voxpop.errors import InternalError
from voxpop.kernels.arrays import ONE_CAP, UNDECIDED
from voxpop.mechanisms.rounds.capped import lattice
from voxpop.privacy.cumulative import Caps, KnownStep, ScoreStep
from voxpop.privacy.opening import Opening
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.builtin import Weighted
from voxpop.privacy.weightings.capped import CappedDescent
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting

BUDGET = vp.Budget(epsilon=4, delta=1e-8)
BITS = 30
ROUNDS = 3
NAMES = pa.schema({"name": pa.binary(), "level": pa.int32()})


def shares_of(weighting_rule, limit):
    return CalibratedRule(weighting_rule, RuleSetting(limit, 2, BITS, 2 << BITS if weighting_rule.sequential else 0))


def capped(limit, size, chance=1.0):
    """Return a weighting with caps.

    Users with a full pool give half of the usual weight, and give weight only with probability `chance`.
    """
    weights = ((ONE_CAP,), (lattice(0.5),))
    setting = RuleSetting(limit, 2, BITS, 2 << BITS)
    return CappedDescent(setting, Caps((size - 1, size), weights, (1.0, chance)), 0)


def step_of(number, secret, threshold=2.5, floor=-0.8):
    """Return a step that releases some items and drops some."""
    pass_name = f"noise/{number}"
    return ScoreStep(0.7, 1 << BITS, 1 << 10, 1.0, threshold, floor, 3.0, 60.0, secret, pass_name)


def levels_of(number, secret):
    """Return a step for listed items, with two levels."""
    return KnownStep(step_of(number, secret), np.array([1.0, 2.0]))


@dataclass
class Recording(Opening):
    """A step that records its arguments. `known` is another step for listed items."""

    step: Any
    known: Any = None
    asked: dict = field(default_factory=dict)

    def __call__(self, weights, names, score):
        score = np.array(score)
        found = self.step(weights, names, score)
        for row in zip(map(tuple, names.tolist()), weights.tolist(), score.tolist(), strict=True):
            assert row[0] not in self.asked
            self.asked[row[0]] = row[1:]
        return found


@given(
    users=written_users("abcdefgh", users=9),
    data=st.data(),
    additive=st.booleans(),
    limit=st.integers(1, 3),
    size=st.integers(3, 6),
    released=st.sets(st.sampled_from("abc")),
    listed=st.none() | st.sets(st.sampled_from("abcdxy")),
    reducers=st.integers(1, 4),
    chance=st.sampled_from([0.4, 1.0]),
)
@settings(max_examples=80, deadline=None)
def test_rounds_equal_local_rounds(users, data, additive, limit, size, released, listed, reducers, chance):
    """Weights, scores and names of every item agree in every round.

    Users are in any places if weights are additive. Otherwise, all users are in one place.
    """
    keys = list(range(7, 7 + len(users)))
    most = 3 if additive else 0
    places = data.draw(st.lists(st.integers(0, most), min_size=len(users), max_size=len(users)), label="places")
    secret, corpus, shares = Secret.from_seed(4), corpus_of(users, keys), capped(limit, size, chance)
    shares = Additive(shares) if additive else shares
    local = Pools(corpus, secret)
    local.first_round(shares_of(Weighted(), limit), limit, Chosen(released), "opening")
    if listed is not None:
        local.recognise([pa.array(sorted(listed), pa.large_string())])
    local.draw(size, "pool")
    spread_out = PlacedPools(states_of(users, keys, places), secret, reducers)
    opened = local.released().to_pylist()
    spread_out.draw(opened, size, "pool", None if listed is None else sorted(listed))
    for number in range(ROUNDS):
        one, other = (Recording(step_of(number, secret), Recording(levels_of(number, secret))) for _ in range(2))
        local.advance(shares, one, f"round {number}")
        spread_out.advance(shares, other, f"round {number}")
        assert (one.asked, one.known.asked) == (other.asked, other.known.asked)
    found, levels = spread_out.released()
    assert sorted([*opened, *found]) == local.released().to_pylist()
    assert levels == dict(zip(*(each.tolist() for each in local.levels()), strict=True))
    steps = [replace(step_of(number, secret), known=levels_of(number, secret)) for number in range(ROUNDS)]
    rounds = [(shares, step, secret, f"round {number}") for number, step in enumerate(steps)]
    sizes = {"places": len(spread_out.states), "reducers": spread_out.reducers}
    together = pa.Table.from_batches(pool_tasks.run_rounds(spread_out.drawn, rounds=rounds, **sizes), NAMES)
    assert sorted(name.decode() for name in together["name"].to_pylist()) == sorted([*found, *levels])
    assert sum(together["level"].to_pylist()) == sum(levels.values())


@dataclass
class Additive:
    """A weighting with the same shares, regardless of earlier users."""

    shares: CappedDescent

    def __getattr__(self, name):
        return getattr(self.shares, name)

    def add(self, histogram, items, starts, states, given, listed):
        np.add.at(histogram, items, np.repeat(given, np.diff(starts)) + states[items])


@dataclass
class Chosen(Opening):
    """A release decision for the given words if they have weight."""

    words: set

    def __call__(self, weights, names, texts):
        data, starts = texts
        words = frames.texts_of({"word_data": np.asarray(data), "word_starts": np.asarray(starts)}).to_pylist()
        return np.array([word in self.words for word in words], bool)


def test_every_undecided_item_of_a_pool_gets_noise():
    """Items that no user drew also get noise. Each of 4 users draws one of 6 items, and the step receives all six."""
    users = [[list("abcdef")] for _ in range(4)]
    secret = Secret.from_seed(1)
    pools = PlacedPools(states_of(users, range(4), [0, 1, 1, 2]), secret)
    pools.draw([], 6, "pool")
    step = Recording(step_of(0, secret, np.inf, -np.inf))
    pools.advance(capped(1, 7), step, "round 0")
    weights = [weight for weight, _ in step.asked.values()]
    names = item_names(pa.array(list("abcdef"), pa.large_string()), secret)
    assert set(step.asked) == set(map(tuple, names.tolist()))
    assert sum(weights) == pytest.approx(4 << BITS, rel=1e-6)
    assert 0 in weights


def test_missing_weights_are_rejected():
    """Otherwise, a round would run without the missing weights."""
    users = [[list("ab")] for _ in range(4)]
    secret = Secret.from_seed(1)
    pools = PlacedPools(states_of(users, range(4), [0, 1, 1, 2]), secret)
    pools.draw([], 6, "pool")
    del pools.users[next(iter(pools.users))]
    with pytest.raises(InternalError, match="do not fit"):
        pools.advance(capped(1, 7), step_of(0, secret), "round 0")


def test_sums_of_large_weights_do_not_overflow():
    """The sum of seven maximum weights is capped at the maximum weight."""
    most = pool_tasks.MOST_SUM
    arrays = {"senders": np.arange(7), "held_starts": np.arange(8), "held": np.zeros(7, np.int32)}
    sent = {sender: {"weights": np.array([most])} for sender in range(7)}
    assert pool_tasks._summed(arrays, np.full(1, UNDECIDED, np.uint8), sent).tolist() == [most]


@pytest.mark.parametrize("count", [1, 2, 3, 8, 200])
def test_each_place_is_in_a_separate_partition_of_spark(spark, count):
    """The hash of Spark assigns exactly one place to each partition."""
    numbers = spark.createDataFrame(pa.table({"place": pa.array(spread_rows(count), pa.int32())}))
    found = numbers.selectExpr(f"pmod(hash(place), {count}) AS at").toArrow()["at"].to_pylist()
    assert found == list(range(count))


@pytest.fixture(scope="module")
def crowd():
    """Return 500 users who each have twelve common items and one unique item."""
    rng = np.random.default_rng(1)
    rows = [(user, f"w{int(200 * rng.random() ** 3)}") for user in range(500) for _ in range(12)]
    own = [(user, f"nobody else holds number{user}") for user in range(500)]
    return pl.DataFrame([*rows, *own], schema={"who": pl.Int64, "what": pl.String}, orient="row")


@pytest.mark.parametrize(("cell", "kind"), [({"max_items_per_user": 1}, "items"), ({"max_items_per_user": 3}, "text")])
def test_one_partition_gives_the_release_of_the_local_engine(read_both, crowd, cell, kind):
    """Releases of items and releases of words from texts are equal."""
    local, spread_out = read_both(crowd, 1, **{kind: "what"})
    union = vp.Items(**cell)
    one, other = (union.release(corpus, BUDGET, seed=5) for corpus in (local, spread_out))
    assert one.grams.equals(other.grams)
    assert len(one) > 20


def test_only_released_items_are_sent_to_the_driver(read_both, crowd, collected):
    """The driver also receives whether all pools fit into one task.

    A release from several partitions contains most of the items of the local release.
    """
    local, spread_out = read_both(crowd, 4, items="what")
    union = vp.Items(max_items_per_user=3)
    other = union.release(spread_out, BUDGET, seed=5)
    [fits] = [table for table in collected if table.column_names == ["fits"]]
    assert fits.to_pylist() == [{"fits": True}]
    named = [table for table in collected if table is not fits]
    told = [name.decode() for table in named for name in table["name"].to_pylist()]
    # The first round returns level 1 for each released item.
    assert {tuple(table.column_names) for table in named} == {("name",), ("name", "level")}
    assert {level for table in collected if "level" in table.column_names for level in table["level"].to_pylist()} <= {
        1
    }
    assert sorted(told) == sorted(item for (item,) in other.each_gram())
    one = set(union.release(local, BUDGET, seed=5))
    assert len(one & set(other)) >= 0.7 * len(one) > 15


def test_one_task_and_one_task_per_place_give_the_same_release(read_both, crowd, monkeypatch):
    """The release does not depend on whether pools fit into one task."""
    _, spread_out = read_both(crowd, 4, items="what")
    releases = []
    for limits in ({}, {"MOST_TOGETHER": 1}, {"MOST_MESSAGES": 1}):
        with monkeypatch.context() as patch:
            for name, most in limits.items():
                patch.setattr(pool_tasks, name, most)
            releases.append(vp.Items(max_items_per_user=3).release(spread_out, BUDGET, seed=5).grams)
    assert releases[0].equals(releases[1])
    assert releases[0].equals(releases[2])
    assert releases[0].num_rows > 15


@dataclass(frozen=True)
class DiesAtFirst(Opening):
    """A step that ends its worker process on the first attempt of every task."""

    step: ScoreStep
    dies: bool

    def restricted(self):
        return DiesAtFirst(self.step.restricted(), self.dies)

    def __call__(self, weights, names, score):
        from pyspark import TaskContext

        if self.dies and TaskContext.get().attemptNumber() == 0:
            os._exit(1)
        return self.step(weights, names, score)


@pytest.mark.parametrize("most", [-1, pool_tasks.MOST_TOGETHER], ids=["a task for each place", "one task"])
def test_repeated_tasks_give_the_same_release(read_both, crowd, monkeypatch, most):
    """In every place, the worker process ends during the first attempt of a step. The release is still the same."""
    monkeypatch.setattr(pool_tasks, "MOST_TOGETHER", most)
    releases = []
    for dies in (True, False):
        _, spread_out = read_both(crowd, 2, items="what")
        secret = Secret.from_seed(3)
        pools: SparkPools = spread_out.pools(secret)
        pools.draw(60, "pool")
        pools.advance(capped(3, 60), DiesAtFirst(step_of(0, secret), dies), "round 0")
        pools.advance(capped(3, 60), DiesAtFirst(step_of(1, secret), False), "round 1")
        releases.append(pools.released().to_pylist())
    assert releases[0] == releases[1]
    assert len(releases[0]) > 5


def test_rounds_before_a_draw_are_rejected(read_both, crowd):
    """A round before a draw raises an error of Voxpop instead of an error of Spark."""
    _, spread_out = read_both(crowd, 2, items="what")
    secret = Secret.from_seed(3)
    with pytest.raises(InternalError, match="before pools were drawn"):
        spread_out.pools(secret).advance(capped(3, 60), step_of(0, secret), "round 0")
