"""Tests of a search for the largest change of counts by one user, which must detect planted faults."""

import numpy as np
import pyarrow as pa
import pytest

import voxpop as vp
from support.corpora import corpus_of
from support.exact import exact_counts
from voxpop.mechanisms.counts.mechanism import CountsMechanism
from voxpop.mechanisms.counts.plan import root_above
from voxpop.mechanisms.counts.releasing import sizes_of
from voxpop.privacy.gate import counts as holders_module
from voxpop.privacy.weightings.holders import UNIT, HolderShares
from voxpop.release.result import StoredPlan
from voxpop.release.table import SCHEMA


def random_release(rng, words):
    """Draw grams of up to three tokens, without some of their parts."""
    every = [(a,) for a in words] + [(a, b) for a in words for b in words]
    every += [(a, b, c) for a in words for b in words for c in words]
    rows = [gram for gram in every if rng.random() < 0.6] or [("a",)]
    table = pa.table({"gram": [list(row) for row in rows], "length": [len(row) for row in rows]}, schema=SCHEMA)
    return vp.Release(table, StoredPlan({}), vp.Guarantee(1, 1e-8))


def farthest(rng):
    """Return the distance by which the extra user moves all counts, relative to the sensitivity of the plan."""
    words = "abc"[: rng.integers(2, 4)]
    users = [
        [[words[i] for i in rng.integers(0, len(words), rng.integers(0, 30))] for _ in range(rng.integers(1, 3))]
        for _ in range(rng.integers(1, 5))
    ]
    release = random_release(rng, words)
    limits = CountsMechanism(int(rng.integers(1, 6))).menu(sizes_of(release))[0]
    base = [[list(words)]]
    extra = int(rng.integers(len(users)))
    fewer = base + [user for place, user in enumerate(users) if place != extra]
    both = [exact_counts(corpus_of(each), release, limits) for each in (base + users, fewer)]
    return np.linalg.norm(both[0] - both[1]) / UNIT / root_above(max(1, sum(limits)))


def search(pairs=250):
    rng = np.random.default_rng(11)
    return max(farthest(rng) for _ in range(pairs))


@pytest.mark.jit
def test_no_user_moves_the_counts_further_than_planned():
    """For hundreds of pairs of neighbours, the largest change is at most the sensitivity and close to it."""
    assert 0.98 < search() <= 1.0


@pytest.mark.slow
def test_the_search_detects_users_who_always_count_in_full(monkeypatch):
    """The mutant ignores the limit."""

    class Unbounded(HolderShares):
        def add(self, histogram, items, starts):
            HolderShares(1 << 20, self.counted).add(histogram, items, starts)

    monkeypatch.setattr(holders_module, "HolderShares", Unbounded)
    assert search() > 1.1


@pytest.mark.slow
def test_the_search_detects_grams_that_are_counted_once_per_occurrence(monkeypatch):
    """The mutant counts occurrences instead of users."""
    from voxpop.engine.local import length_walk as levels_module

    real = levels_module.weigh

    def repeated(holdings, *others):
        histogram = real(holdings, *others)
        uses = np.bincount(holdings.ids[holdings.ids >= 0], minlength=holdings.size)
        return type(histogram)(histogram._ids, histogram._weights * np.maximum(uses[histogram._ids], 1))

    monkeypatch.setattr(levels_module, "weigh", repeated)
    assert search() > 1.1


@pytest.mark.slow
def test_the_search_detects_users_who_count_twice(monkeypatch):
    """The mutant also adds shares for parts that are only walked and not counted."""

    class Parts(HolderShares):
        def add(self, histogram, items, starts):
            HolderShares(self.limit, None).add(histogram, items, starts)
            HolderShares(self.limit, self.counted).add(histogram, items, starts)

    monkeypatch.setattr(holders_module, "HolderShares", Parts)
    assert search() > 1.1
