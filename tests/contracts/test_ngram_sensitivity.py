"""Tests of a search over neighbouring collections at every length, which must also detect planted faults.

Given the releases of earlier lengths, one user moves each vote and each measurement by at most 1 in l2. The search
draws users, released sets and pruned candidates, and walks both collections through the same lengths.
"""

import numpy as np
import pytest

from support.corpora import corpus_of
from voxpop.engine.local import length_walk as levels_module
from voxpop.mechanisms.ngrams.candidates import Candidates, Grams, Pairs
from voxpop.privacy.secret import Secret
from voxpop.privacy.weightings.builtin import PolicyGaussian, Weighted
from voxpop.privacy.weightings.rule import CalibratedRule, RuleSetting

BITS = 40
PAIRS = 150
SLACK = 1e-9
LENGTHS = 4


def shares_of(weighting_rule, limit, cutoff=0.0):
    return CalibratedRule(weighting_rule, RuleSetting(limit, 2, BITS, round(cutoff * 2**BITS)))


def random_users(rng):
    words = "abcde"[: rng.integers(2, 6)]
    return [
        [[words[i] for i in rng.integers(0, len(words), rng.integers(0, 9))] for _ in range(rng.integers(1, 4))]
        for _ in range(rng.integers(2, 9))
    ]


def weights_of(corpus, shares, limit, kept, candidates, secret):
    """Return the vote and the measurement at every length, for given released sets and candidates."""
    levels, found = corpus.length_walk(), []
    for length, (names, rule) in enumerate(zip(kept, candidates, strict=True), start=1):
        for weighting in (shares, shares_of(Weighted(), limit)):
            histogram = levels.weigh(weighting, limit, secret, f"{length}/{weighting.weighting_rule.name}/{len(found)}")
            found.append(dict(zip(histogram._ids.tolist(), histogram._weights.tolist(), strict=True)))
            if len(found) % 2:
                levels.keep(names)
        levels.extend(rule)
    return found


def farthest(rng, shares, limit):
    """Return the largest l2 distance between one pair of neighbours at any length."""
    users = random_users(rng)
    every = corpus_of([[list("abcde")], *users])  # The first user gives both collections the same vocabulary.
    keys = every.user_key.tolist()
    extra = int(rng.integers(1, len(keys)))
    fewer = corpus_of(
        [[list("abcde")], *(user for i, user in enumerate(users, 1) if i != extra)],
        [key for key in keys if key != extra],
    )
    kept, candidates = public_path(rng)
    secret = Secret.from_seed(int(rng.integers(1 << 30)))
    both = (weights_of(corpus, shares, limit, kept, candidates, secret) for corpus in (every, fewer))
    return max(distance(a, b) for a, b in zip(*both, strict=True))


def public_path(rng):
    """Draw released sets and pruned candidates without reading the data."""
    kept, candidates, grams = [np.flatnonzero(rng.random(5) < 0.8)], [], None
    for _ in range(LENGTHS):
        grams = Grams.of_tokens(kept[0].size) if grams is None else grams.longer(kept[-1], single=False)
        valid = Candidates.all_valid(grams, kept[0].size, single=False)
        size = len(grams)
        levels = rng.integers(0, 3, size), rng.integers(1, 3, size)
        pairs = Pairs(valid.pairs.left_group, valid.pairs.partner_group, levels[1], single=False)
        rule = Candidates(pairs, levels[0])
        candidates.append(rule)
        names = rule.names(np.arange(rule.count))
        kept.append(names[rng.random(names.size) < 0.7])
    return kept[:-1], candidates


def distance(first, second):
    names = first.keys() | second.keys()
    return np.linalg.norm([(first.get(n, 0) - second.get(n, 0)) / 2**BITS for n in names]) if names else 0.0


@pytest.mark.slow
@pytest.mark.parametrize("weighting_rule", [Weighted(), PolicyGaussian()])
def test_the_distance_of_neighbours_is_at_most_one(weighting_rule):
    """For votes and measurements of four lengths, the largest distance of hundreds of pairs is at most 1 and near 1."""
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(PAIRS):
        limit = int(rng.integers(1, 6))
        cutoff = float(rng.uniform(1, 3)) if weighting_rule.sequential else 0.0
        worst = max(worst, farthest(rng, shares_of(weighting_rule, limit, cutoff), limit))
    assert 0.99 < worst <= 1 + SLACK


def search(limit=3, pairs=60):
    rng = np.random.default_rng(5)
    return max(farthest(rng, shares_of(Weighted(), limit), limit) for _ in range(pairs))


@pytest.mark.slow
def test_the_search_detects_samples_that_depend_on_other_users(monkeypatch):
    """In the mutant, the sample of each user depends on the number of earlier users."""
    real = levels_module.weigh

    def crooked(holdings, *others):
        shifted = type(holdings)(
            holdings.ids,
            holdings.user_start,
            np.arange(holdings.user_key.size, dtype=np.uint64),  # the positions of users instead of their keys
            holdings.size,
            holdings.names,
        )
        return real(shifted, *others)

    assert search() <= 1 + SLACK
    monkeypatch.setattr(levels_module, "weigh", crooked)
    assert search() > 1.1


@pytest.mark.jit
def test_the_search_detects_grams_that_are_counted_once_per_occurrence(monkeypatch):
    """In the mutant, shares depend on the number of distinct grams, but users add one share per occurrence."""
    real = levels_module.weigh

    def repeated(holdings, *others):
        histogram = real(holdings, *others)
        uses = np.bincount(holdings.ids[holdings.ids >= 0], minlength=holdings.size)
        ids = histogram._ids if holdings.names is None else np.searchsorted(np.sort(holdings.names), histogram._ids)
        if holdings.names is not None:
            ids = np.argsort(holdings.names)[ids]
        return type(histogram)(histogram._ids, histogram._weights * np.maximum(uses[ids], 1))

    monkeypatch.setattr(levels_module, "weigh", repeated)
    assert search() > 1.1


@pytest.mark.slow
def test_the_search_detects_candidates_that_depend_on_private_support(monkeypatch):
    """The mutant removes pairs with few users before the vote."""
    real = levels_module.number_pairs

    def thrifty(ids, partners, offset, begin, end, need, estimates, most):
        names, count = real(ids, partners, offset, begin, end, need, estimates, most)
        uses = np.bincount(ids[ids >= 0], minlength=names.size + 1)
        ids[(ids >= 0) & (uses[np.maximum(ids, 0)] < 3)] = -1
        return names, count

    monkeypatch.setattr(levels_module, "THREADS", 1)
    monkeypatch.setattr(levels_module, "number_pairs", thrifty)
    assert search(pairs=200) > 1.1
