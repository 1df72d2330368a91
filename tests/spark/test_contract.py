"""Tests of the engine contract on Spark.

Releases on the executors and releases of transferred rows equal those of the reference implementation.
"""

from functools import cache

import pytest
from framed import framed

import voxpop as vp
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
from support.look import read_engine
from voxpop.engine.contract import Engine
from voxpop.engine.local.corpus import LocalCorpus
from voxpop.errors import InputError

SEQUENTIAL = ("policy-laplace", "policy-gaussian", "guided")
PARTITIONS = 3
TABLES = {"texts": (crowd, {"text": "what"}), "items": (lambda: items_of(crowd()), {"items": "what"})}


@pytest.fixture(scope="module")
def engines(spark):
    """Return a function that reads a table into the reference engine and into the engine on Spark."""

    @cache
    def read(name, partitions=PARTITIONS):
        table, columns = TABLES[name][0](), {"user": "who", **TABLES[name][1]}
        options = vp.ReadOptions(partitions=partitions)
        local = read_engine(table, **columns)
        return naive_of(local), read_engine(framed(spark, table), options=options, **columns)

    return read


@pytest.mark.parametrize("name", TABLES)
def test_transferred_rows_equal_the_rows_of_a_local_table(engines, name):
    """Users, their documents and keys are equal, so every release is the same."""
    naive, other = engines(name, None)
    assert isinstance(other, LocalCorpus)
    assert naive_of(other) == naive
    assert len(naive.users) > 200


@pytest.mark.parametrize("name", UNIONS)
def test_set_union_releases_the_same_items_on_spark(engines, name):
    """For sequential weightings, all users are in one place."""
    naive, other = engines("items", 1 if name in SEQUENTIAL else PARTITIONS)
    assert isinstance(other, Engine)
    one, two = (UNIONS[name].release(each, BUDGET, seed=3) for each in (other, naive))
    assert shown(one) == shown(two)


@pytest.mark.parametrize("name", PHRASES)
def test_phrases_are_the_same_on_spark(engines, name):
    """The mechanisms include both pruning rules and measurements."""
    naive, other = engines("texts", PARTITIONS if getattr(PHRASES[name], "weighting", None) == "weighted" else 1)
    one, two = (PHRASES[name].release(each, BUDGET, seed=3) for each in (other, naive))
    assert shown(one) == shown(two)


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_are_the_same_on_spark(engines, name):
    """The trees and their noisy counts agree."""
    naive, other = engines("texts")
    one, two = (SEQUENCES[name].release(each, PURE, seed=3) for each in (other, naive))
    assert shown(one) == shown(two)


@pytest.mark.parametrize("limit", [1, 50, None])
@pytest.mark.parametrize("known", [None, ["nobody has this", "a", "z"]])
def test_counts_are_the_same_on_spark(engines, limit, known):
    """On Spark, executors add noise before they send counts."""
    naive, other = engines("texts")
    given = {"counted_in_full": limit, "known": known, "seed": 3}
    one, two = (LISTED.count(each, BUDGET, **given) for each in (other, naive))
    assert one.users.tolist() == two.users.tolist()


def test_rankings_are_the_same_on_spark(engines):
    """On Spark, executors add noise before they send ranks."""
    naive, other = engines("texts")
    one, two = (LISTED.top(each, BUDGET, k=4, seed=3) for each in (other, naive))
    assert one.places.tolist() == two.places.tolist()


def test_heavy_hitters_are_rejected_on_spark(engines):
    """Heavy hitters run only on one machine, and the error states this restriction."""
    _, spread = engines("texts")
    with pytest.raises(InputError, match="on this machine"):
        HITTERS["characters"].release(spread, BUDGET)
