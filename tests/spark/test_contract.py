"""The engine contract on Spark: what plain dicts release, executors release."""

import pytest

from support.engine_contract import (
    BUDGET,
    HITTERS,
    LISTED,
    PHRASES,
    PURE,
    SEQUENCES,
    UNIONS,
    crowd,
    items_of,
    naive_of,
    shown,
)
from voxpop.corpus.engine import Engine
from voxpop.errors import InputError

SEQUENTIAL = ("l1-descent", "l2-descent", "guided")


@pytest.mark.parametrize("name", UNIONS)
def test_set_union_releases_the_same(read_both, name):
    """Sequential weightings where all users are in one place."""
    local, spread = read_both(items_of(crowd()), 1 if name in SEQUENTIAL else 3, items="what")
    assert isinstance(spread, Engine)
    one, other = (UNIONS[name].release(each, BUDGET, seed=3) for each in (spread, naive_of(local)))
    assert shown(one) == shown(other)


@pytest.mark.parametrize("name", PHRASES)
def test_phrases_are_the_same(read_both, name):
    """Both pruning rules, measurements and all."""
    local, spread = read_both(crowd(), 1 if PHRASES[name].weighting == "l2-descent" else 3)
    one, other = (PHRASES[name].release(each, BUDGET, seed=3) for each in (spread, naive_of(local)))
    assert shown(one) == shown(other)


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_are_the_same(read_both, name):
    """Noisy counts, in the same tree."""
    local, spread = read_both(crowd())
    one, other = (SEQUENCES[name].release(each, PURE, seed=3) for each in (spread, naive_of(local)))
    assert shown(one) == shown(other)


@pytest.mark.parametrize("limit", [1, 50])
def test_counts_are_the_same(read_both, limit):
    """Counts run on a cluster too: noise is added before anything leaves the executors."""
    local, spread = read_both(crowd())
    one, other = (LISTED.count(each, BUDGET, limit=limit, seed=3) for each in (spread, naive_of(local)))
    assert one.users.tolist() == other.users.tolist()


def test_rankings_are_the_same(read_both):
    """Noise is added where the counts are; the order is that of plain dicts."""
    local, spread = read_both(crowd())
    one, other = (LISTED.top(4, each, BUDGET, seed=3) for each in (spread, naive_of(local)))
    assert one.places.tolist() == other.places.tolist()


def test_heavy_hitters_need_one_machine(read_both):
    """Devices are simulated in arrays; the error says so."""
    _, spread = read_both(crowd())
    with pytest.raises(InputError, match="on this machine"):
        HITTERS["characters"].release(spread, BUDGET)
