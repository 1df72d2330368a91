"""Tests that compare the kernels for pairs with implementations that use dictionaries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxpop.kernels.group import rename
from voxpop.kernels.pairs import (
    PAIRS_AT_ONCE,
    belongs,
    find_names,
    mark_met,
    merge_names,
    move_down,
    number_pairs,
    rename_in_runs,
    table_of,
)

SIZE = 6
IDS = st.lists(st.integers(-1, SIZE - 1), max_size=3 * PAIRS_AT_ONCE)
MOST = 1 << 31
LEVELS = st.lists(st.integers(0, 3), min_size=SIZE, max_size=SIZE)


def numbered(*arguments):
    """Return the names of pairs in the order of their numbers."""
    names, count = number_pairs(*arguments, MOST)
    return names[:count]


def naive_pairs(ids, partners, offset, need, estimates):
    """Return the name of the pair at each position, or None if the position has no pair."""
    found = []
    for position, left in enumerate(ids):
        place = position + offset
        right = partners[place] if place < len(ids) else -1
        ok = left >= 0 and right >= 0 and estimates[right] >= need[left]
        found.append((left << 32) | right if ok else None)
    return found


@given(ids=IDS, need=LEVELS, estimates=LEVELS, offset=st.integers(1, 3), alone=st.booleans())
def test_pairs_are_numbered_by_first_appearance(ids, need, estimates, offset, alone):
    """Each position receives the number of its pair. The array of partners may be the array that is overwritten."""
    expected = naive_pairs(ids, ids, offset, need, estimates)
    mine = np.array(ids, np.int32)
    partners = mine.copy() if alone else mine
    names, count = number_pairs(mine, partners, offset, 0, mine.size, np.array(need), np.array(estimates), MOST)
    names = names[:count]
    assert names.tolist() == list(dict.fromkeys(name for name in expected if name is not None))
    assert [None if number < 0 else names[number] for number in mine] == expected
    assert find_names(names, table_of(names)).tolist() == list(range(names.size))
    absent = np.array([(SIZE << 32) | 1, SIZE << 32], np.int64)
    assert find_names(absent, table_of(names)).tolist() == [-1, -1]


@pytest.mark.jit
def test_the_table_grows_in_the_middle_of_a_block():
    """Frequent and rare pairs alternate, so the first name that does not fit is between known names of its block."""
    rare = np.arange(20_000, dtype=np.int32)
    ids = np.stack([rare % 7, rare, np.full(rare.size, -1, np.int32)], axis=1).ravel().astype(np.int32)
    zeros = np.zeros(rare.size, np.int64)
    expected = naive_pairs(ids.tolist(), ids.tolist(), 1, zeros, zeros)
    names = numbered(ids, ids, 1, 0, ids.size, zeros, zeros)
    assert [None if number < 0 else names[number] for number in ids] == expected
    assert names.size == rare.size


@given(ids=IDS, cut=st.integers(0, 3 * PAIRS_AT_ONCE))
def test_a_range_does_not_affect_positions_outside(ids, cut):
    """Positions outside a range do not change, because they belong to another range."""
    end = min(cut, len(ids))
    zeros = np.zeros(SIZE, np.int64)
    mine = np.array(ids, np.int32)
    names = numbered(mine, mine, 1, 0, end, zeros, zeros)
    short = np.array(ids[:end], np.int32)
    again = numbered(short, short, 1, 0, end, zeros, zeros)
    assert mine[end:].tolist() == ids[end:]
    assert mine[:end].tolist() == short.tolist()
    assert names.tolist() == again.tolist()


@given(first=st.lists(st.integers(0, 99), unique=True), second=st.lists(st.integers(0, 99), unique=True))
def test_merging_keeps_every_name_once(first, second):
    """Names of the first part keep their numbers, and new names of the second part follow."""
    renamed = np.empty(len(second), np.int32)
    names = merge_names(np.array(second, np.int64), np.array(first, np.int64), len(first), renamed)
    assert names.tolist() == list(dict.fromkeys(first + second))
    assert [names[number] for number in renamed] == second
    assert find_names(names, table_of(names)).tolist() == list(range(names.size))


NAMES = st.lists(st.integers(0, 2 * SIZE), unique=True)


@given(known=NAMES, parts=st.lists(NAMES, max_size=3))
def test_names_that_occur_are_marked(known, parts):
    """Names that occur in any of several successive parts are marked in one array."""
    met = np.zeros(len(known), np.uint8)
    for part in parts:
        mark_met(np.array(part, np.int64), table_of(np.array(known, np.int64)), met)
    assert met.tolist() == [any(name in part for part in parts) for name in known]


@given(need=LEVELS, estimates=LEVELS, further=st.sets(st.tuples(*[st.integers(0, SIZE - 1)] * 2)))
def test_pairs_are_selected_by_rule_or_by_name(need, estimates, further):
    """All pairs are tested, with the rule that the numbering uses and with a list of names."""
    pairs = [(left, right) for left in range(SIZE) for right in range(SIZE)]
    names = np.array([(left << 32) | right for left, right in pairs], np.int64)
    table = table_of(np.array(sorted((left << 32) | right for left, right in further), np.int64))
    found = belongs(names, np.array(need), np.array(estimates), table)
    assert found.tolist() == [estimates[right] >= need[left] or (left, right) in further for left, right in pairs]


@pytest.mark.jit
@pytest.mark.parametrize("more", [0, 1])
def test_too_many_pairs_are_reported(more):
    """The maximum number of pairs can be numbered. One more pair is rejected and does not reuse a number."""
    ids = np.arange((1 << 12) + 1 + more, dtype=np.int32)
    zeros = np.zeros(ids.size, np.int64)
    _, count = number_pairs(ids, ids.copy(), 1, 0, ids.size, zeros, zeros, 1 << 12)
    assert count == (-1 if more else 1 << 12)


@pytest.mark.jit
def test_the_table_grows():
    """The test numbers a hundred thousand distinct pairs and finds each of them."""
    ids = np.arange(100_001, dtype=np.int32)
    zeros = np.zeros(ids.size, np.int64)
    names, count = number_pairs(ids, ids.copy(), 1, 0, ids.size, zeros, zeros, MOST)
    names = names[:count]
    assert names.size == 100_000
    assert np.array_equal(find_names(names, table_of(names)), np.arange(100_000))


@given(ids=IDS, renamed=st.lists(st.integers(-1, 9), min_size=SIZE, max_size=SIZE))
def test_renaming_in_place_and_into_another_array_agree(ids, renamed):
    """Renaming in place and into another array gives the same ids, and negative ids remain negative."""
    names, here, there = np.array(renamed, np.int32), np.array(ids, np.int32), np.empty(len(ids), np.int32)
    rename(here, names, there)
    rename(here, names, here)
    assert here.tolist() == there.tolist() == [renamed[i] if i >= 0 else -1 for i in ids]


@given(
    users=st.lists(st.lists(st.integers(-1, SIZE - 1), max_size=8), min_size=1, max_size=6),
    renamed=st.lists(st.integers(-1, 9), min_size=SIZE, max_size=SIZE),
    data=st.data(),
)
def test_positions_of_grouped_users_are_compacted(users, renamed, data):
    """Runs keep their order. One of the empty positions after a run remains. Other users remain unchanged."""
    first = data.draw(st.integers(0, len(users) - 1))
    stop = data.draw(st.integers(first, len(users)))
    ids = np.array([place for user in users for place in user], np.int32)
    user_start, starts = np.cumsum([0, *map(len, users)]), np.full(len(users) + 1, -7)
    before = ids.copy()
    end = rename_in_runs(ids, user_start, first, stop, np.array(renamed, np.int32), starts)
    expected = []
    for user in users[first:stop]:
        mine = [renamed[old] if old >= 0 else -1 for old in user]
        expected.append([new for new, last in zip(mine, [-1, *mine], strict=False) if new >= 0 or last >= 0])
    edges = np.cumsum([user_start[first], *map(len, expected)])
    assert starts.tolist() == [-7] * first + edges[:-1].tolist() + [-7] * (len(users) + 1 - stop)
    assert end == edges[-1]
    assert ids[user_start[first] : end].tolist() == [place for user in expected for place in user]
    assert ids[: user_start[first]].tolist() == before[: user_start[first]].tolist()
    assert ids[user_start[stop] :].tolist() == before[user_start[stop] :].tolist()


@given(ids=IDS, data=st.data())
def test_moved_ranges_equal_slices_even_if_they_overlap(ids, data):
    """Ranges are correctly moved to lower positions even if they overlap."""
    target, begin, end = sorted(data.draw(st.tuples(*[st.integers(0, len(ids))] * 3)))
    found = np.array(ids, np.int32)
    move_down(found, begin, end, target)
    assert found.tolist() == [*ids[:target], *ids[begin:end], *ids[target + end - begin :]]
