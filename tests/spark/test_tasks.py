"""Tests of the tasks of the Spark engine in this process. Histograms are the same for any placement of users."""

from dataclasses import replace
from importlib import metadata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from placed import PlacedLevels, beside, states_of, summed

from support.corpora import corpus_of
from support.strategies import written_users
from voxpop.engine.spark import frames, histogram, tasks
from voxpop.engine.spark.frames import laid_together
from voxpop.engine.spark.walks import restricted_weighing
from voxpop.errors import InputError
from voxpop.mechanisms.ngrams.candidates import Candidates, Grams
from voxpop.privacy.decisions import CellNoise, NoisyLevels, ReleaseDecisions, ThresholdRule
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.builtin import PolicyGaussian, Weighted
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting

BITS = 40


def shares_of(weighting_rule, limit, cutoff=2.0):
    return CalibratedRule(
        weighting_rule, RuleSetting(limit, 2, BITS, round(cutoff * 2**BITS) if weighting_rule.sequential else 0)
    )


@given(
    users=written_users(),
    data=st.data(),
    weighting_rule=st.sampled_from([Weighted(), PolicyGaussian()]),
    limit=st.integers(1, 4),
    single=st.booleans(),
)
@settings(max_examples=120)
def test_histograms_equal_those_of_the_local_engine_exactly(users, data, weighting_rule, limit, single):
    """Votes and measurements agree at lengths 1 to 4.

    Users are in any places if weights are additive. Otherwise, all users are in one place.
    """
    keys = list(range(7, 7 + len(users)))
    most = 0 if weighting_rule.sequential else 3
    places = data.draw(st.lists(st.integers(0, most), min_size=len(users), max_size=len(users)), label="places")
    corpus, secret = corpus_of(users, keys), Secret.from_seed(4)
    local, spread, shares = (
        corpus.length_walk(),
        PlacedLevels(states_of(users, keys, places)),
        shares_of(weighting_rule, limit),
    )
    words = corpus.vocabulary.to_pylist()
    grams, listed = None, []
    for length in range(1, 5):
        found = local.weigh(shares, limit, secret, f"length {length}")
        expected = dict(zip(found._ids.tolist(), found._weights.tolist(), strict=True))
        if length == 1:
            expected = {words[number]: weight for number, weight in expected.items()}
        assert spread.weigh(shares, limit, secret, f"length {length}") == expected
        if length == 1:
            names = np.array(sorted(data.draw(st.sets(st.integers(0, len(words) - 1)))) if words else [], np.int64)
            spread.keep([words[number] for number in names])
            grams, tokens = Grams.of_tokens(names.size), names.size
        else:
            names = np.array(sorted(data.draw(st.sets(st.sampled_from(listed)))) if listed else [], np.int64)
            spread.keep(names)
            grams = grams.longer(names, single=single)
        local.keep(names)
        again = local.weigh(shares_of(Weighted(), limit), limit, secret, "again")
        measured = spread.weigh(shares_of(Weighted(), limit), limit, secret, "again")
        assert measured == dict(zip(again._ids.tolist(), again._weights.tolist(), strict=True))
        candidates = Candidates.all_valid(grams, tokens, single=single)
        listed = candidates.names(np.arange(candidates.count)).tolist()
        local.extend(candidates)
        spread.extend(candidates)


def weights_of(users, keys, places, shares, limit):
    """Return the total weights of words over all places."""
    return PlacedLevels(states_of(users, keys, places)).weigh(shares, limit, Secret.from_seed(1), "x")


def farthest(rng, shares, limit, place_of):
    """Return the l2 change that one user makes to the summed histogram of a random collection."""
    count = int(rng.integers(2, 9))
    words = "abcdef"
    users = [[[words[i] for i in rng.integers(0, 6, rng.integers(1, 6))] for _ in range(3)] for _ in range(count)]
    keys = rng.permutation(1000)[:count].tolist()
    extra = int(rng.integers(0, count))
    rows = [(user, key, place_of(rng, key)) for user, key in zip(users, keys, strict=True)]
    full = split_rows(rows)
    fewer = split_rows([row for number, row in enumerate(rows) if number != extra])
    one, other = (weights_of(*each, shares, limit) if each[0] else {} for each in (full, fewer))
    return sum(((one.get(w, 0) - other.get(w, 0)) / 2**BITS) ** 2 for w in {*one, *other}) ** 0.5


def split_rows(rows):
    """Return users, keys and places. A user with documents in several places becomes one user in each place."""
    users, keys, places = [], [], []
    for documents, key, where in rows:
        for place in sorted({*where}):
            users.append([document for document, there in zip(documents, where, strict=True) if there == place])
            keys.append(key)
            places.append(place)
    return users, keys, places


def by_user(rng, key):
    """Return the places of the documents of a user, computed from the user key, as in the engine."""
    return [key % 3] * 3


def by_row(rng, key):
    """Return random places of documents, as in the broken variant that weighs a user in every place."""
    return rng.integers(0, 3, 3).tolist()


@pytest.mark.parametrize("weighting_rule", [Weighted(), PolicyGaussian()])
def test_one_user_changes_the_sum_of_all_partitions_by_at_most_one(weighting_rule):
    """The test is a random search over neighbours with the real tasks. The worst case is close to 1."""
    rng = np.random.default_rng(3)
    worst = max(farthest(rng, shares_of(weighting_rule, 4), 4, by_user) for _ in range(300))
    assert 0.99 < worst <= 1 + 1e-9


@pytest.mark.parametrize("weighting_rule", [Weighted(), PolicyGaussian()])
def test_the_search_detects_users_who_are_split_over_partitions(weighting_rule):
    """In the broken variant, rows instead of users are assigned to places, which the proof forbids."""
    rng = np.random.default_rng(3)
    assert max(farthest(rng, shares_of(weighting_rule, 4), 4, by_row) for _ in range(100)) > 1.3


@given(st.lists(st.integers(0, 2**61), min_size=1, max_size=400))
def test_sums_of_many_partitions_do_not_overflow(weights):
    """Each partition can give an item a weight of up to 2^61. Sums are exact below 2^61 and capped at 2^61."""
    parts = [frames.weight_rows(np.array([5]), np.array([weight])) for weight in weights]
    assert summed(parts, words=False) == {5: min(sum(weights), tasks.MOST_SUM)}


def test_decisions_are_the_same_in_every_batch_and_order():
    """Splitting, shuffling and repeating rows has no effect. Names without weight keep their simulated levels."""
    rule = ThresholdRule("gaussian", 1.0, 2 << 20, 2.0**-20)
    coins = ReleaseDecisions(rule, Secret.from_seed(2), "noise/x").restricted()
    rng = np.random.default_rng(1)
    names, weights = np.arange(1000), rng.integers(0, 5 << 20, 1000)
    weights[:50] = 0
    spurious_names = np.where(weights == 0, names % 3, 0)
    columns = {"name": names, "high": np.zeros(1000, np.int64), "low": weights, "spurious": spurious_names}
    whole = pa.RecordBatch.from_pydict({key: pa.array(column) for key, column in columns.items()})
    shuffled = whole.take(pa.array(rng.permutation(1000)))
    passed = [
        {
            name
            for batch in histogram.level([each.drop_columns("spurious") for each in batches], levels=coins, words=False)
            for name in batch["name"].to_pylist()
        }
        for batches in ([whole], [shuffled.slice(n * 100, 100) for n in range(10)], [whole, shuffled])
    ]
    assert passed[0] == passed[1] == passed[2]
    assert set() < passed[0] < set(range(1000))
    levels = NoisyLevels((rule, replace(rule, threshold_units=3 << 20)), Secret.from_seed(2), "noise/x")
    noisy_levels = [
        {
            row["name"]: row["level"]
            for batch in histogram.level(batches, levels=levels.restricted(), words=False)
            for row in batch.to_pylist()
        }
        for batches in ([whole], [shuffled.slice(n * 100, 100) for n in range(10)])
    ]
    assert noisy_levels[0] == noisy_levels[1]
    assert {name for name, level in noisy_levels[0].items() if name >= 50} == {name for name in passed[0] if name >= 50}
    assert {name: level for name, level in noisy_levels[0].items() if name < 50} == {
        n: n % 3 for n in range(50) if n % 3
    }
    noise = CellNoise(1.0, 1 << 20, 1 << 15, Secret.from_seed(2), "noise/y").restricted()
    cells = [
        {row["name"]: row["cells"] for batch in histogram.add_noise(batches, noise=noise) for row in batch.to_pylist()}
        for batches in ([whole], [shuffled])
    ]
    assert cells[0] == cells[1]


def test_a_partition_without_users_returns_no_rows():
    """Every task accepts an empty partition."""
    secret = Secret.from_seed(1)
    weighing = restricted_weighing(shares_of(Weighted(), 3), 3, secret, "x", order="x")
    since = tasks.Since(1, 0)
    wanted = {"users": ["a"], "kind": "text", "columns": ["b"]}
    assert not list(tasks.encode([], wanted=wanted, versions=tasks.own_versions()))
    assert not list(tasks.weigh_items([], weighing=weighing, order="x"))
    assert not list(tasks.keep_words([], order=None))
    assert not list(tasks.weigh_grams([], weighing=weighing, since=since))
    assert not list(tasks.keep_next([], since=since))
    assert not list(tasks.weigh_deferred([], weighing=weighing, charge=None, since=since))


@pytest.mark.parametrize("name", ["voxpop", "icu4py"])
def test_executors_must_have_the_packages_of_the_driver(monkeypatch, name):
    """If a package is missing or has another version, an executor raises an error before it reads a row."""
    versions, wanted = tasks.own_versions(), {"users": ["a"], "kind": "text", "columns": ["b"]}
    assert all(version[0].isdigit() for version in versions.values())

    def unread():
        raise AssertionError("a row was read")
        yield

    with pytest.raises(InputError, match=rf"driver has {name} 0\.0\.1, an executor .* every executor"):
        list(tasks.encode(unread(), wanted=wanted, versions={**versions, name: "0.0.1"}))
    real = metadata.version

    def missing(package):
        if package == name:
            raise metadata.PackageNotFoundError(package)
        return real(package)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(InputError, match=f"an executor none.*Install {name} {versions[name]} on every executor"):
        list(tasks.encode(unread(), wanted=wanted, versions=versions))


def test_users_without_items_and_positions_of_removed_items_are_removed():
    """Users without remaining items are removed. Removed tokens between grams are replaced by one separator."""
    users = [[list("abc")], [list("xyz")], [list("aaxxxxxab")]]
    levels = PlacedLevels(states_of(users, [1, 2, 3], [0, 0, 0]))
    levels.weigh(shares_of(Weighted(), 9), 9, Secret.from_seed(1), "x")
    before = sum(batch.nbytes for batch in levels.states[0])
    levels.keep(["a", "b"])
    held = {row["name"]: row["data"] for batch in levels.states[0] for row in batch.to_pylist()}
    assert np.frombuffer(held["ids"], np.int32).tolist() == [0, 1, -1, 0, 0, -1, 0, 1, -1]
    assert np.frombuffer(held["user_start"], np.int64).tolist() == [0, 3, 9]
    assert np.frombuffer(held["user_key"], np.uint64).tolist() == [1, 3]
    assert sum(batch.nbytes for batch in levels.states[0]) < before


def test_public_arrays_are_sent_with_the_first_row():
    """The order of the pieces of a state does not matter."""
    state = states_of([[["a"] * 600_000]], [1], [0])[0]
    state = [state[0].slice(number, 1) for number in range(state[0].num_rows)]
    assert len(state) > 5
    arrays, public = laid_together(beside(state[::-1], {"need": np.arange(3)}))
    assert arrays["tokens"].size == 600_001
    assert public["need"].tolist() == [0, 1, 2]
