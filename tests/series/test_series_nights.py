"""Tests that compare nights with a reference implementation in dicts, and tests of pools."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import voxpop as vp
from naive.nights import Nights
from support.series_nights import begin_night, begun, read_night, weights_of
from support.streams import WORDS, rows_of, some_plan
from voxpop.engine.local.nights import NightlyPools
from voxpop.privacy.secret import Secret


@pytest.mark.jit
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(1, 6), st.integers(1, 3), st.integers(0, 12))
def test_nights_equal_the_reference(seed, nights, pool, tried, listed):
    """The releases of each night, scores, levels, pools and budgets agree, with and without a list.

    Some nights do not run.
    """
    rng = np.random.default_rng(seed)
    known = rng.permutation([*WORDS, "nobody", "neither", "no one"])[:listed].tolist()
    plan, secret = some_plan(rng, nights, pool, tried, known), Secret.from_seed(seed)
    pools, naive = begun(known), Nights(plan, secret, known)
    for night in range(1, nights + 1):
        if rng.random() < 0.2:
            read_night(plan, pools, secret, night, None)
            naive.run(None, night)
            continue
        people = {
            int(user) if user else 2**63 - 1: [WORDS[i] for i in np.flatnonzero(rng.random(9) < 0.4)]
            for user in np.flatnonzero(rng.random(6) < 0.7)
        }
        begin_night(plan, pools, secret, rows_of(people), night)
        weights = weights_of(plan, pools, night)
        read_night(plan, pools, secret, night, weights)
        naive.run({user: words for user, words in people.items() if words}, night)
        assert pools.words.to_pylist() == list(dict.fromkeys([*pools.words.to_pylist()]))
        words = pools.words.to_pylist()
        assert dict(zip(words, pools.decided.tolist(), strict=True)) == naive.decided
        assert dict(zip(words, pools.released.tolist(), strict=True)) == naive.released
        assert {word: level for word, level in zip(words, pools.levels.tolist(), strict=True) if level >= 0} == (
            naive.levels
        )
        for word, score in zip(words, pools.scores.tolist(), strict=True):
            assert abs(score - naive.scores[word]) <= 2.0 * sum(plan.proof.factors[:night])
        held = {
            int(key): {words[item]: int(n) for item, n in zip(pools.items[a:b], pools.nights[a:b], strict=True)}
            for key, a, b in zip(pools.keys, pools.starts[:-1], pools.starts[1:], strict=True)
        }
        assert held == naive.pools
        for mine in held.values():  # The order is by night and then by bytes, on every engine.
            assert list(mine) == sorted(mine, key=lambda word: (mine[word], word.encode()))
        assert dict(zip(pools.keys.tolist(), pools.left.tolist(), strict=True)) == naive.left
        assert NightlyPools.of(pools.arrays()).arrays().keys() == pools.arrays().keys()


def test_a_pool_accepts_items_in_order_of_arrival():
    """A full pool accepts no further items, and released items do not join a pool."""
    plan, secret, pools = (
        vp.Items(max_items_per_user=3).plan_series(vp.Budget(3, 1e-6), 9),
        Secret.from_seed(1),
        NightlyPools.empty(),
    )
    begin_night(plan, pools, secret, rows_of({7: ["a", "b"]}), 1)
    begin_night(plan, pools, secret, rows_of({7: ["a", "c", "d", "e"], 8: ["b"]}), 2)
    words = pools.words.to_pylist()
    place = pools.keys.tolist().index(7)
    mine = [words[item] for item in pools.items[pools.starts[place] : pools.starts[place + 1]]]
    assert mine[:2] == ["a", "b"]
    assert len(mine) == 3
    assert set(words) == set(mine)


def test_released_items_keep_their_place_in_the_pool():
    """A pool never loses items, so a user with three items has no room for a fourth, even if one is released.

    Otherwise, one user could have more novel items than the number for which delta is computed.
    """
    plan, secret = vp.Items(max_items_per_user=3).plan_series(vp.Budget(3, 1e-6), 9), Secret.from_seed(1)
    pools = NightlyPools.empty()
    begin_night(plan, pools, secret, rows_of({7: ["a", "b", "c"]}), 1)
    pools.decided[0] = pools.released[0] = 1
    begin_night(plan, pools, secret, rows_of({7: ["d"]}), 2)
    assert pools.words.to_pylist() == ["a", "b", "c"]
    assert pools.starts.tolist() == [0, 3]


@pytest.mark.jit
def test_a_memory_limit_changes_nothing(tmp_path):
    """The released items and their nights are the same with and without a memory limit."""
    seen = []
    for name, memory in (("plain", None), ("limited", "1GiB")):
        series = vp.Items().series(tmp_path / name, vp.Budget(3, 1e-6), nights=3, seed=1)
        for night in (1, 2):
            table = pl.DataFrame({"who": np.arange(9000) % 3000, "what": [f"w{i % (3 * night)}" for i in range(9000)]})
            table.write_parquet(tmp_path / "rows.parquet")
            options = vp.ReadOptions(memory=memory)
            series.run(vp.read(tmp_path / "rows.parquet", user="who", items="what", options=options))
        seen.append(series.released)
    assert seen[0].equals(seen[1])
    assert len(seen[0])


def test_a_night_that_exceeds_the_memory_limit_is_rejected():
    """The night is rejected before it begins."""
    from voxpop.engine.local.nights import require_memory
    from voxpop.errors import MemoryLimitError

    pools = NightlyPools.empty()
    pools.items = np.zeros(100_000_000, np.int8)
    options = vp.ReadOptions(memory="1GiB")
    corpus = vp.read(pl.DataFrame({"who": [1], "what": ["a"]}), user="who", items="what", options=options)._engine
    with pytest.raises(MemoryLimitError):
        require_memory(corpus, pools)


def test_a_group_without_users_has_the_usual_columns_on_spark():
    """Executors return an empty table with the same columns as for groups with users."""
    from voxpop.engine.spark.nights import _rows_of

    rows = _rows_of(NightlyPools.empty(), 3)
    assert rows.num_rows == 0
    assert rows.column_names == ["place", "key", "remaining", "paid", "items", "nights"]
