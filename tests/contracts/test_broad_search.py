"""Tests of a search that runs the real kernels on a million neighbouring pairs and must also detect planted faults."""

from dataclasses import replace
from math import isqrt

import numpy as np
import pytest
from benchmarks.papers.algorithm8 import _Algorithm8 as Algorithm8

from searches import __main__ as search
from searches.broad_search import TOLERANCE, search_broadly
from searches.crowds import piled_crowds, wild_crowds
from searches.weighed_search import search_weighing
from voxpop.engine.local import weigh as bound
from voxpop.kernels._jit import jit
from voxpop.privacy.weightings.builtin import PolicyGaussian, Weighted, shares_by_size
from voxpop.privacy.weightings.rule import WeightingRule

pytestmark = pytest.mark.jit


@pytest.mark.slow
def test_the_distance_of_a_million_pairs_is_at_most_one(capsys, record_property):
    """For all sound weightings, the distance is at most 1 for pairs of every kind and for whole releases."""
    assert search.main(["--pairs", "1000000", "--seed", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    cells = [line.split() for line in lines if " farthest " in line]
    bounds = [line.split() for line in lines if " own reach " in line]
    pairs = sum(int(words[2].replace(",", "")) for words in cells)
    farthest = max(float(words[5]) for words in cells)
    releases = [line.split() for line in lines if line.startswith("whole n-gram releases")]
    assert len(lines) == len(cells) + len(bounds) + len(releases) + 1
    assert (len(bounds), len(releases)) == (2, 1)
    # This search has few pairs of whole releases. The worst pair of `test_walk_search.py` is within a hundredth of 1.
    assert 0.8 < float(releases[0][9]) <= 1 + TOLERANCE
    assert pairs >= 1_000_000
    assert 0.999 < farthest <= 1 + TOLERANCE
    record_property("figure", f"{pairs:,} pairs, farthest apart {farthest:.12f}")


@pytest.mark.slow
def test_the_search_detects_algorithm_8_with_gaussian_noise(record_property):
    """With two users, the distance exceeds 1.046. With many users and a limit of 100, the distance exceeds 4."""
    two = search_broadly(Algorithm8(), norm=2, pairs=20_000, limit=4, users=2)
    many = search_broadly(Algorithm8(), norm=2, pairs=4_000, limit=100)
    assert two.worst.sets.shape[1] == 2
    assert two.distance > 1.0463
    assert many.distance > 4.0
    assert two.violated
    record_property("figure", f"two users {two.distance:.4f}, limit 100 {many.distance:.3f}")


class Faulty(WeightingRule):
    """A weighting of the library with one planted fault."""

    sequential = True
    name = "faulty"

    noise, sound_norms = "gaussian", (2,)

    def novelty(self, setting):
        raise NotImplementedError

    def share(self, held, setting):
        return 1.0


class RoundedUp(Faulty):
    """Shares are rounded up to the grid instead of down, so they are too large by 1e-10."""

    sequential = False

    def add(self, histogram, items, starts, setting):
        table = shares_by_size(setting)
        table[1:] += [isqrt(setting.unit**2 // held) ** 2 * held < setting.unit**2 for held in range(1, table.size)]
        np.add.at(histogram, items, np.repeat(table[np.diff(starts)], np.diff(starts)))


class OpenOnly(Faulty):
    """Each user has an even share for the items that other users have not raised to the cutoff.

    This weighting is not contractive.
    """

    def add(self, histogram, items, starts, setting):
        share_open(histogram, items, starts, setting.cutoff, setting.unit)


@jit
def share_open(histogram, items, starts, cutoff, unit):
    for j in range(starts.size - 1):
        mine = items[starts[j] : starts[j + 1]]
        count = 0
        for item in mine:
            count += histogram[item] < cutoff
        for item in mine:
            if histogram[item] < cutoff:
                histogram[item] = min(cutoff, histogram[item] + np.int64(unit / np.sqrt(count)))


class Coarse(Faulty):
    """A weighting that rounds the weights of l2-descent to a coarse grid."""

    def add(self, histogram, items, starts, setting):
        PolicyGaussian().add(histogram, items, starts, setting)
        grid = setting.unit // 64
        histogram[:] = histogram // grid * grid


@pytest.mark.parametrize(("fault", "least"), [(RoundedUp(), 1 + 1e-10), (OpenOnly(), 1.1), (Coarse(), 1.002)])
def test_planted_faults_are_detected(fault, least, record_property):
    """A search over 100,000 pairs in total finds each fault."""
    found = search_broadly(fault, norm=2, pairs=100_000, limit=6)
    assert found.distance > least
    assert found.violated
    record_property("figure", f"{type(fault).__name__} {found.distance:.12g}")


def test_the_returned_pair_has_the_largest_distance():
    """The returned pair has the returned distance and is within the limit."""
    found = search_broadly(OpenOnly(), norm=2, pairs=20_000, limit=5)
    assert float(found.worst.distances(OpenOnly(), 2, 5)[0]) == found.distance
    assert found.worst.sets.sum(axis=2).max() <= 5


@pytest.mark.parametrize("make", [wild_crowds, piled_crowds])
def test_pairs_respect_the_limit_and_the_cutoff(make):
    """The search tries only pairs that can occur in a collection."""
    rng = np.random.default_rng(2)
    for _ in range(50):
        crowds = make(rng, 20, 7)
        for each in (crowds, crowds.mutated(rng, 7)):
            assert each.sets.sum(axis=2).max() <= 7
            assert (each.start >= 0).all()
            assert (each.start <= each.cutoff).all()


def test_the_largest_distance_of_the_whole_private_computation_is_close_to_one():
    """Some users have more items than the limit or have items twice, and users are read in different orders."""
    assert 0.99 < search_weighing("policy-gaussian", norm=2, pairs=40_000).distance <= 1 + TOLERANCE


def test_items_that_are_not_made_distinct_are_detected(monkeypatch):
    """In the mutant, a user who has an item twice counts twice, with the share of the smaller set."""
    real = bound.gather_distinct

    def repeated(tokens, user_start, users, candidates, seen, stamp):
        items, starts = real(tokens, user_start, users, candidates, seen, stamp)
        doubled = np.repeat(items, 2)
        return doubled, 2 * starts

    monkeypatch.setattr(bound, "gather_distinct", repeated)
    monkeypatch.setattr(bound, "cut_to_limit", lambda holdings, items, starts, *rest: (items, starts))
    assert search_weighing(Halves(), norm=2, pairs=4_000).distance > 1.2


class Halves(Faulty):
    """The weighted rule, with shares that are determined by the number of distinct items."""

    sequential = False

    def add(self, histogram, items, starts, setting):
        table = shares_by_size(replace(setting, limit=50))
        np.add.at(histogram, items, np.repeat(table[np.diff(starts) // 2], np.diff(starts)))


def test_samples_that_depend_on_the_number_of_earlier_users_are_detected(monkeypatch):
    """In the mutant, samples depend on the position of the user instead of the key.

    Therefore, one more user changes the samples of all later users.
    """
    real = bound.cut_to_limit

    def by_place(holdings, items, starts, keys, *rest):
        return real(holdings, items, starts, np.arange(keys.size, dtype=np.uint64), *rest)

    monkeypatch.setattr(bound, "cut_to_limit", by_place)
    assert search_weighing(Weighted(), norm=2, pairs=4_000).distance > 1.2
