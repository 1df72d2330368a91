"""Tests of lengths and of distinct and repeated symbols, including a reference implementation and drawn sequences."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import voxpop as vp
from naive import engine as naive
from support.exact import By
from support.look import read_engine
from voxpop.engine.local.tree_walk import MemoryTreeWalk
from voxpop.kernels.sequences import count_variety, fit_ends
from voxpop.mechanisms.sequences.constants import NEVER
from voxpop.mechanisms.sequences.profile import Fitted, StepProfile, length_classes, plain_lengths
from voxpop.mechanisms.sequences.queries import ContextSampler, lengths
from voxpop.mechanisms.sequences.releasing import _ease
from voxpop.privacy.path_budget import Limits
from voxpop.privacy.secret import Secret

PAGES = ["home", "news", "sport", "weather"]
SIGMAS = 7.0  # The absolute value of a normal deviate exceeds this with probability 2.6e-12.


@By
def exact(keys, counts):
    """Return the counts without noise."""
    return dict(zip(keys.tolist(), counts.tolist(), strict=True))


@given(
    st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=9), max_size=12),
    st.integers(9, 30),
    st.integers(1, 9),
    st.integers(1, 2),
    st.integers(1, 9),
)
def test_counts_equal_the_reference_implementation(users, most, counted, bins, steps):
    """Each user is counted in one class of length.

    Distinct symbols, repeated symbols and first steps are summed over users.
    """
    flat = [symbol for user in users for symbol in [*user, 3]]
    walk, other = MemoryTreeWalk(np.array(flat, np.int32), 3, most), naive.NaiveTree(users, 3, most)
    first = length_classes(most)
    assert walk.released("lengths", exact, first) == other.released("lengths", exact, first)
    given = np.array([counted, bins])
    for each in (walk, other):
        each.count_first(steps)
    assert walk.released("variety", exact, given) == other.released("variety", exact, given)
    counts = walk.released("following", exact)
    assert counts == other.released("following", exact)
    assert sum(counts.values()) == sum(min(len(user) + 1, most, steps) for user in users)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(1, 12))
def test_distinct_and_repeated_symbols_together_are_at_most_the_counted_symbols(user, counted):
    """A symbol cannot be new and also repeat the previous symbol.

    The sensitivity is based on this fact.
    """
    found = count_variety(np.array(user, np.int32), np.array([0]), np.array([len(user)]), 4, counted)
    assert found.min() >= 0
    assert found.sum() <= min(len(user), counted)


def test_contexts_have_a_lower_threshold_if_noise_is_large():
    """The factor is 1 for noise up to a tenth of the mean count of a pair, 1/2 from a fifth, and linear in between."""
    limits = Limits(Fraction(1), 9, 10, 3)
    # The noise relative to the mean count of a pair is 10 (9 + 1)^2 / steps.
    found = [_ease(limits, steps) for steps in (1e9, 10_000.0, 8_000.0, 5_000.0, 10.0)]
    assert found == pytest.approx([1, 1, 0.8, 0.5, 0.5])


@pytest.mark.parametrize("most", [1, 2, 3, 20, 100, 10_000])
def test_classes_cover_all_lengths(most):
    """The classes begin at 1 and increase, and the last class contains only truncated sequences."""
    first = length_classes(most)
    assert (first[0], first[-1]) == (1, most)
    assert (np.diff(first) > 0).all()
    assert first.size < 30


def naive_shares(sampler):
    """Return the exact share of each length, computed from the probabilities of all sequences."""
    most, symbols = sampler.tree.max_length, range(sampler.tree.width - 1)
    every = (list(each) for size in range(1, most + 1) for each in product(symbols, repeat=size))
    shares = np.zeros(most + 1)
    for sequence in every:
        shares[len(sequence)] += sampler.probability(sequence)
    return shares


@pytest.fixture(scope="module")
def short_samplers(visits):
    """Return samplers of sequences of at most four symbols, by the longest gram that was counted."""
    return {
        gram: vp.Sequences(4, gram, alphabet=PAGES).release(visits, vp.Budget(4), seed=1)._sampler for gram in (1, 3)
    }


@pytest.mark.jit
@pytest.mark.parametrize("gram", [1, 3])
@pytest.mark.parametrize("copies", [(1.5, 0.0), (NEVER, 0.0), (1.5, 0.4)])
def test_shares_of_lengths_equal_those_of_all_sequences(short_samplers, copies, gram):
    """The simulated shares are accurate for 200,000 sequences, and the fit gives the requested shares."""
    sampler = short_samplers[gram]
    sampler = replace(sampler, fit=replace(sampler.fit, novelty=copies[0], repeats=copies[1]))
    tree, ends = sampler.tree, sampler.fit.ends.copy()
    given = tree.width, sampler.sums.ravel(), (tree.child, tree.others), copies
    seeds = np.random.default_rng(3).integers(0, 2**63, 200_000, dtype=np.uint64)
    shares = fit_ends(seeds.copy(), *given, np.full(4, -1.0), ends)
    assert np.abs(shares - naive_shares(sampler)).max() < SIGMAS * 0.5 / seeds.size**0.5
    fit_ends(seeds.copy(), *given, np.array([-1.0, 0.5, 0.2, 0.75]), ends)
    wanted = np.array([0.0, 0.5, 0.1, 0.3, 0.1])
    fitted = replace(sampler, fit=replace(sampler.fit, ends=ends))
    assert np.abs(naive_shares(fitted) - wanted).max() < SIGMAS * 0.5 / seeds.size**0.5 + 1e-3


@pytest.fixture(scope="module")
def people():
    """Return a corpus of 3,000 users, each with 1 to 12 visits to at most three pages, and the lists of pages."""
    rng = np.random.default_rng(4)
    pages = [
        rng.choice(np.array(PAGES)[rng.integers(4, size=3)], size=rng.integers(1, 13)).tolist() for _ in range(3000)
    ]
    return read_engine(pl.DataFrame({"who": range(3000), "pages": pages}), user="who", sequence="pages"), pages


def variety(sampler, most=12):
    """Return the mean numbers of distinct and of repeated symbols of drawn sequences."""
    drawn = sampler.draw(np.arange(20_000, dtype=np.uint64))
    return count_variety(drawn.symbols, drawn.starts[:-1], drawn.starts[1:], 4, most) / drawn.size


@pytest.mark.jit
def test_drawn_sequences_have_the_lengths_and_the_variety_of_the_data(people):
    """With little noise, lengths and the number of distinct symbols agree with the data, but not without copies."""
    corpus, pages = people
    model = vp.Sequences(12, 1, alphabet=PAGES).release(corpus, vp.Budget(20), seed=1)
    real = np.mean([len(set(each)) for each in pages])

    sampler = model._sampler
    drawn = sampler.draw(np.arange(20_000, dtype=np.uint64))
    truth = np.bincount([len(each) for each in pages], minlength=13)[1:] / 3000
    assert np.abs(lengths(sampler, drawn) - truth).sum() / 2 < 0.06
    assert model.n_users == pytest.approx(3000, rel=0.02)
    assert variety(sampler)[0] == pytest.approx(real, rel=0.05)
    assert variety(replace(sampler, fit=replace(sampler.fit, novelty=NEVER, repeats=0.0)))[0] > 1.3 * real


@pytest.mark.jit
@pytest.mark.parametrize("repeats", [0.0, 0.6])
def test_drawn_sequences_repeat_symbols_as_often_as_the_data(repeats):
    """Only single symbols are counted. The shares of symbols also agree with the data."""
    rng, shares = np.random.default_rng(5), [0.5, 0.3, 0.15, 0.05]
    pages = []
    for size in rng.integers(1, 13, 5000):
        mine = rng.choice(4, size, p=shares).tolist()
        for place in range(1, size):
            mine[place] = mine[place - 1] if rng.random() < repeats else mine[place]
        pages.append(mine)
    rows = pl.DataFrame({"who": range(5000), "pages": [[PAGES[page] for page in each] for each in pages]})
    corpus = read_engine(rows, user="who", sequence="pages")
    model = vp.Sequences(12, 1, alphabet=PAGES).release(corpus, vp.Budget(20), seed=1)
    real = np.mean([sum(one == other for one, other in pairwise(each)) for each in pages])
    assert variety(model._sampler, 12)[1] == pytest.approx(real, rel=0.05)
    drawn = model._sampler.draw(np.arange(20_000, dtype=np.uint64))
    assert np.abs(np.bincount(drawn.symbols) / drawn.symbols.size - shares).max() < 0.02
    plain = replace(model._sampler, fit=replace(model._sampler.fit, repeats=0.0))
    assert repeats == 0.0 or variety(plain, 12)[1] < 0.7 * real


@pytest.mark.jit
def test_sequences_have_the_lengths_of_the_contexts_if_the_profile_is_noise(model):
    """If the noise far exceeds lengths and distinct symbols, lengths are determined by the contexts."""
    profile = StepProfile(
        np.full_like(model.profile.lengths, -(10**7)), np.full_like(model.profile.variety, -(10**9)), (1e9, 1e9)
    )
    sampler = ContextSampler.of(model.tree, profile)
    assert np.isfinite(sampler.fit.ends).all()
    assert sampler.fit.sequences == pytest.approx(6000, rel=0.2)
    drawn = sampler.draw(np.arange(20_000, dtype=np.uint64))
    chain = replace(sampler, fit=replace(sampler.fit, novelty=NEVER, ends=np.append(0.0, np.ones(7))))
    drawn_of_chain = chain.draw(np.arange(20_000, dtype=np.uint64))
    gap = lengths(sampler, drawn) - lengths(chain, drawn_of_chain)
    assert np.abs(gap).sum() / 2 < 0.25


def test_no_sequence_is_empty_without_a_node_for_beginnings():
    """No drawn sequence is empty, even if only single symbols were counted."""
    rows = pl.DataFrame({"who": range(300), "pages": [["home"], ["home", "news"]] * 150})
    corpus = read_engine(rows, user="who", sequence="pages")
    model = vp.Sequences(20, 5, alphabet=PAGES).release(corpus, vp.Budget(0.2), seed=1)
    assert model.tree.nodes == 1
    assert model.sample(500, seed=1)["sequence"].list.len().min() >= 1
    assert model.probability([]) == 0


def test_the_profile_varies_between_bootstrap_models(model):
    """Bootstrap models have different lengths and variety, so intervals include the noise of the profile."""
    fits = [ContextSampler.of(model.tree, model.profile, Secret.from_seed(seed)).fit for seed in range(2)]
    assert not np.array_equal(fits[0].ends, fits[1].ends)


def test_lengths_that_the_fit_excludes_are_shared_equally_within_their_class():
    """Intervals and the report must be defined even if the fit has no sequences in a class."""
    first = length_classes(20)
    shares = np.zeros(20)
    shares[0] = 1.0
    released = np.full(first.size, 10, np.int64)
    fit = Fitted(np.ones(20), NEVER, 0.0, float(released.sum()), shares)
    found = plain_lengths(StepProfile(released, np.array([1]), (1.0, 1.0)), fit)
    sizes = np.diff(np.append(first, 21))
    np.testing.assert_allclose(found, np.repeat(1 / first.size / sizes, sizes))
