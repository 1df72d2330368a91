"""Tests that every mechanism gives the same release on every engine, including the reference engine of plain dicts."""

import importlib
import pkgutil
from functools import cache

import polars as pl
import pyarrow as pa
import pytest

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
    release_of,
    shown,
)
from support.look import read_engine
from voxpop.engine import local
from voxpop.engine.contract import Engine
from voxpop.errors import InputError

MODULES = [importlib.import_module(f"{local.__name__}.{each.name}") for each in pkgutil.iter_modules(local.__path__)]
HOLDERS = [
    each
    for module in MODULES
    for each in vars(module).values()
    if isinstance(each, type) and each.__module__ == module.__name__ and each.__name__ not in ("_Scratch", "Summary")
]
"""All classes of the local engine except two. The repr of the dataclass `_Scratch` contains the marker of one thread.
`Summary` is the private text that the owner of the data requested.
"""


def read(kind, memory=None, **columns):
    table = crowd() if columns == {"text": "what"} else items_of(crowd())
    return read_engine(table, user="who", options=vp.ReadOptions(memory=memory), **columns)


READINGS = {"texts": {"text": "what"}, "items": {"items": "what"}}
ENGINES = {
    "memory": lambda **columns: read("memory", **columns),
    "limited memory": lambda **columns: read("limited", memory="3GiB", **columns),
}


@pytest.fixture(scope="module")
def naive():
    """Return the reference engine for texts and for items."""
    return {name: naive_of(read("memory", **columns)) for name, columns in READINGS.items()}


@pytest.fixture(scope="module")
def naive_release(naive):
    """Return a function that releases from the reference engine, and caches its results.

    Each release runs once for all engines that are compared with the reference engine.
    """
    mechanisms = {"union": UNIONS, "phrases": PHRASES}
    return cache(lambda kind, name, holds: mechanisms[kind][name].release(naive[holds], BUDGET, seed=3))


@pytest.fixture(scope="module", params=ENGINES)
def engines(request):
    """Return one kind of engine, for texts and for items."""
    return {name: ENGINES[request.param](**columns) for name, columns in READINGS.items()}


def test_all_engines_satisfy_the_protocol(engines, naive):
    """Engines have the methods of the contract, and a table is not an engine."""
    assert all(isinstance(each, Engine) for each in (*engines.values(), *naive.values()))
    assert not isinstance(crowd(), Engine)


@pytest.mark.parametrize("holds", READINGS)
@pytest.mark.parametrize("name", UNIONS)
def test_set_union_releases_the_same_items_on_every_engine(engines, naive_release, holds, name):
    """The releases are equal for all weightings and accountings, with one round or two rounds."""
    one, other = UNIONS[name].release(engines[holds], BUDGET, seed=3), naive_release("union", name, holds)
    assert shown(one) == shown(other)
    assert len(one) >= 5


@pytest.mark.parametrize("name", PHRASES)
def test_phrases_are_the_same_on_every_engine(engines, naive_release, name):
    """The releases agree with and without forecasts, with both pruning rules and with measurements."""
    one, other = PHRASES[name].release(engines["texts"], BUDGET, seed=3), naive_release("phrases", name, "texts")
    assert shown(one) == shown(other)
    assert max(map(len, one)) >= 2


@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences_are_the_same_on_every_engine(engines, naive, name):
    """The trees and their noisy counts agree."""
    one, other = (SEQUENCES[name].release(each["texts"], PURE, seed=3) for each in (engines, naive))
    assert shown(one) == shown(other)
    assert one.tree.nodes > 3


@pytest.mark.parametrize("name", HITTERS)
def test_heavy_hitters_are_the_same_on_every_engine(engines, naive, name):
    """Each engine gives the results of devices that are simulated in arrays on one machine."""
    one, other = (HITTERS[name].release(each["texts"], BUDGET, seed=3) for each in (engines, naive))
    assert shown(one) == shown(other)


@pytest.mark.parametrize("limit", [1, 50, None])
def test_counts_are_the_same_on_every_engine(engines, naive, limit):
    """Counts agree for grams with and without users, whether or not their parts are on the list."""
    grams = LISTED
    one, other = (grams.count(each["texts"], BUDGET, counted_in_full=limit, seed=3) for each in (engines, naive))
    assert one.users.tolist() == other.users.tolist()
    words = release_of([("good",), ("nobody",), ("own7",), ("naïve",)])
    one, other = (words.count(each["items"], BUDGET, counted_in_full=limit, seed=3) for each in (engines, naive))
    assert one.users.tolist() == other.users.tolist()


@pytest.mark.parametrize("k", [1, 6])
def test_rankings_are_the_same_on_every_engine(engines, naive, k):
    """Rankings of grams and rankings of words agree."""
    one, other = (LISTED.top(each["texts"], BUDGET, k=k, seed=3) for each in (engines, naive))
    assert one.places.tolist() == other.places.tolist()
    words = release_of([("good",), ("nobody",), ("own7",), ("naïve",)])
    one, other = (words.top(each["items"], BUDGET, k=k, seed=3) for each in (engines, naive))
    assert one.places.tolist() == other.places.tolist()


def test_mechanisms_that_need_an_order_reject_items_on_every_engine(engines, naive):
    """Phrases, sequences, and counts of phrases of items raise an error before anything is drawn."""
    for engine in (engines["items"], naive["items"]):
        for call in (
            lambda engine=engine: PHRASES["default"].release(engine, BUDGET),
            lambda engine=engine: SEQUENCES["short contexts"].release(engine, PURE),
            lambda engine=engine: release_of([("good", "night")]).count(engine, BUDGET),
        ):
            with pytest.raises(InputError, match="order"):
                call()


def test_kept_items_can_be_weighed_by_rank(engines, naive):
    """Kept words are weighed by rank, even if they have no users."""
    from support.exact import Exact
    from voxpop.privacy.secret import Secret
    from voxpop.privacy.weightings.holders import HolderShares

    words = pa.array(["aa", "good", "you", "zebra"], pa.large_string())
    found = []
    for engine in (engines["texts"], naive["texts"]):
        walk = engine.length_walk()
        walk.keep_words(words)
        weights = walk.weigh(HolderShares(4), 4, Secret.from_seed(1), "x")
        found.append(weights.measured(Exact(), 4).tolist())
    assert found[0] == found[1]
    assert found[0][0] == found[0][3] == 0 < found[0][1]


def test_a_table_is_rejected_as_an_engine():
    """The error contains the next step."""
    with pytest.raises(InputError, match=r"voxpop\.read"):
        vp.Items().release(pl.DataFrame({"who": [1]}), BUDGET)


@pytest.mark.parametrize("holder", HOLDERS, ids=lambda each: each.__name__)
def test_no_class_prints_its_private_data(holder):
    """Classes with private data have the repr of a plain object.

    The repr of a dataclass would contain its fields, which tracebacks print.
    """
    assert holder.__repr__ is object.__repr__
    assert holder.__str__ is object.__str__
