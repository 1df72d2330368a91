"""The engine contract on Spark. Executors, transferred rows and the reference implementation agree."""

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
from voxpop.engine.contract import Engine
from voxpop.errors import InputError

SPREAD = pytest.mark.parametrize("spread", [True, False], ids=["spread", "handed over"])
SEQUENTIAL = ("policy-laplace", "policy-gaussian", "guided")


def places(spread, sequential=False):
    """Return the number of places of users."""
    return (1 if sequential else 3) if spread else None


@SPREAD
@pytest.mark.parametrize("name", UNIONS)
def test_set_union_releases_the_same(read_both, name, spread):
    """Sequential weightings run with all users in one place."""
    local, other = read_both(items_of(crowd()), places(spread, name in SEQUENTIAL), items="what")
    assert isinstance(other, Engine)
    one, two = (UNIONS[name].release(each, BUDGET, seed=3) for each in (other, naive_of(local)))
    assert shown(one) == shown(two)


@SPREAD
@pytest.mark.parametrize("name", PHRASES)
def test_phrases_are_the_same(read_both, name, spread):
    """The test covers both pruning rules and measurements."""
    local, other = read_both(crowd(), places(spread, getattr(PHRASES[name], "weighting", None) != "weighted"))
    one, two = (PHRASES[name].release(each, BUDGET, seed=3) for each in (other, naive_of(local)))
    assert shown(one) == shown(two)


@SPREAD
@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_are_the_same(read_both, name, spread):
    """Noisy counts agree, in the same tree."""
    local, other = read_both(crowd(), places(spread))
    one, two = (SEQUENCES[name].release(each, PURE, seed=3) for each in (other, naive_of(local)))
    assert shown(one) == shown(two)


@SPREAD
@pytest.mark.parametrize("limit", [1, 50, None])
@pytest.mark.parametrize("known", [None, ["nobody has this", "a", "z"]])
def test_counts_are_the_same(read_both, limit, known, spread):
    """Counts also run on a cluster, where noise is added before any counts leave the executors."""
    local, other = read_both(crowd(), places(spread))
    given = {"counted_in_full": limit, "known": known, "seed": 3}
    one, two = (LISTED.count(each, BUDGET, **given) for each in (other, naive_of(local)))
    assert one.users.tolist() == two.users.tolist()


@SPREAD
def test_rankings_are_the_same(read_both, spread):
    """Noise is added on the executors, and the order equals that of the reference implementation."""
    local, other = read_both(crowd(), places(spread))
    one, two = (LISTED.top(each, BUDGET, k=4, seed=3) for each in (other, naive_of(local)))
    assert one.places.tolist() == two.places.tolist()


def test_heavy_hitters_need_one_machine(read_both):
    """Devices are simulated in local arrays, and the error explains this restriction."""
    _, spread = read_both(crowd())
    with pytest.raises(InputError, match="on this machine"):
        HITTERS["characters"].release(spread, BUDGET)


@pytest.mark.parametrize("name", HITTERS)
def test_heavy_hitters_run_on_transferred_rows(read_both, name):
    """Transferred rows are local arrays."""
    local, other = read_both(crowd(), None)
    one, two = (HITTERS[name].release(each, BUDGET, seed=3) for each in (other, naive_of(local)))
    assert shown(one) == shown(two)
