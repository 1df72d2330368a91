"""The engine contract on Spark: what plain dicts release, executors release, and this machine of rows handed over."""

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
    """Return into how many places users go."""
    return (1 if sequential else 3) if spread else None


@SPREAD
@pytest.mark.parametrize("name", UNIONS)
def test_set_union_releases_the_same(read_both, name, spread):
    """Sequential weightings where all users are in one place."""
    local, other = read_both(items_of(crowd()), places(spread, name in SEQUENTIAL), items="what")
    assert isinstance(other, Engine)
    one, two = (UNIONS[name].release(each, BUDGET, seed=3) for each in (other, naive_of(local)))
    assert shown(one) == shown(two)


@SPREAD
@pytest.mark.parametrize("name", PHRASES)
def test_phrases_are_the_same(read_both, name, spread):
    """Both pruning rules, measurements and all."""
    local, other = read_both(crowd(), places(spread, getattr(PHRASES[name], "weighting", None) != "weighted"))
    one, two = (PHRASES[name].release(each, BUDGET, seed=3) for each in (other, naive_of(local)))
    assert shown(one) == shown(two)


@SPREAD
@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_are_the_same(read_both, name, spread):
    """Noisy counts, in the same tree."""
    local, other = read_both(crowd(), places(spread))
    one, two = (SEQUENCES[name].release(each, PURE, seed=3) for each in (other, naive_of(local)))
    assert shown(one) == shown(two)


@SPREAD
@pytest.mark.parametrize("limit", [1, 50, None])
def test_counts_are_the_same(read_both, limit, spread):
    """Counts run on a cluster too: noise is added before anything leaves the executors."""
    local, other = read_both(crowd(), places(spread))
    one, two = (LISTED.count(each, BUDGET, limit=limit, seed=3) for each in (other, naive_of(local)))
    assert one.users.tolist() == two.users.tolist()


@SPREAD
def test_rankings_are_the_same(read_both, spread):
    """Noise is added where the counts are; the order is that of plain dicts."""
    local, other = read_both(crowd(), places(spread))
    one, two = (LISTED.top(4, each, BUDGET, seed=3) for each in (other, naive_of(local)))
    assert one.places.tolist() == two.places.tolist()


def test_heavy_hitters_need_one_machine(read_both):
    """Devices are simulated in arrays; the error says so."""
    _, spread = read_both(crowd())
    with pytest.raises(InputError, match="on this machine"):
        HITTERS["characters"].release(spread, BUDGET)


@pytest.mark.parametrize("name", HITTERS)
def test_heavy_hitters_run_on_rows_handed_over(read_both, name):
    """They are arrays of this machine."""
    local, other = read_both(crowd(), None)
    one, two = (HITTERS[name].release(each, BUDGET, seed=3) for each in (other, naive_of(local)))
    assert shown(one) == shown(two)
