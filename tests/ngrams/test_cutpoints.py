"""Tests that compare cutpoints and charges with a reference implementation and with all outcomes of small votes."""

from itertools import product
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive import cutpoints as naive
from voxpop.mechanisms.ngrams import constants
from voxpop.mechanisms.ngrams import votes as thresholds
from voxpop.mechanisms.ngrams.votes import Votes

CHANCES = (0.75, 0.5, 0.125)
"""These numbers, their complements, prices and shares are sums of a few powers of two, so sums of doubles are exact."""
PRICES = 2.0 ** np.arange(-3, 9)
RULES = [(0.25, 0.0), (0.25, 1.0), (0.0, 0.5), (0.0, 1.0), (0.5, -0.25)]
REFERENCES = [0, 1]


@pytest.fixture(autouse=True)
def few_prices(monkeypatch):
    """Replace the prices with a few powers of two."""
    monkeypatch.setattr(thresholds, "PRICES", PRICES)


def set_reference(monkeypatch, reference):
    """Use a cutpoint as the reference, below which candidates are counted."""
    monkeypatch.setattr(constants, "MOST_CHANCE", CHANCES[reference])


def votes_of(bands):
    """Return the votes of bands, given the levels of the candidates of each band."""
    reached = [[naive.reached(band, cutpoint) for cutpoint in range(len(CHANCES))] for band in bands]
    return Votes(np.array(reached, np.int64), np.array([len(band) for band in bands]), np.array(CHANCES))


bands = st.lists(st.lists(st.integers(0, len(CHANCES)), min_size=1, max_size=9), min_size=1, max_size=3)


@pytest.mark.parametrize("reference", REFERENCES)
def test_cutpoints_and_charges_equal_the_reference_implementation(reference, monkeypatch):
    """The reference implementation tries every level of every candidate, and repeats the whole choice each time."""
    set_reference(monkeypatch, reference)

    @given(bands, st.sampled_from(RULES))
    def check(found, rule):
        setting = naive.Setting(CHANCES, reference, PRICES.tolist(), *rule)
        cutpoints, charged = votes_of(found).choose(*rule)
        assert cutpoints.tolist() == naive.chosen(found, setting)
        assert charged.tolist() == naive.charged(found, setting)

    check()


def outcomes(empty):
    """Yield each combination of levels of candidates without users, ignoring their order, and its probability."""
    exactly = [1 - CHANCES[0], CHANCES[0] - CHANCES[1], CHANCES[1] - CHANCES[2], CHANCES[2]]
    for counts in product(range(empty + 1), repeat=len(exactly)):
        if sum(counts) == empty:
            ways = prod(comb(sum(counts[place:]), each) for place, each in enumerate(counts))
            levels = [level for level, each in enumerate(counts) for _ in range(each)]
            yield levels, ways * prod(chance**each for chance, each in zip(exactly, counts, strict=True))


def means(empty, held, rule):
    """Return the mean spurious grams, the mean charge, and the mean charge for only the chosen cutpoints.

    Args:
        empty: The number of candidates without users in each band.
        held: The levels of all other candidates in each band.
        rule: The number of spurious grams allowed for each released gram, and the number allowed regardless of
            releases.
    """
    spurious = charged = by_cutpoint = 0.0
    for found in product(*(outcomes(each) for each in empty)):
        votes = votes_of([levels + more for (levels, _), more in zip(found, held, strict=True)])
        cutpoints, charge = votes.choose(*rule)
        out = sum(naive.reached(levels, cut) for (levels, _), cut in zip(found, cutpoints.tolist(), strict=True))
        chance = prod(each for _, each in found)
        spurious += chance * out
        charged += chance * charge.sum()
        by_cutpoint += chance * float(votes.empty @ np.append(CHANCES, 0.0)[cutpoints])
    return spurious, charged, by_cutpoint


@pytest.mark.jit
@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("empty", [(8,), (4, 5), (1, 6), (2, 2, 2)], ids=str)
def test_without_users_the_mean_charge_equals_the_mean_number_of_spurious_grams(empty, rule, reference, monkeypatch):
    """Both means are taken over all outcomes, weighted by their probabilities."""
    set_reference(monkeypatch, reference)
    spurious, charged, _ = means(empty, [[]] * len(empty), rule)
    assert charged == pytest.approx(spurious, abs=1e-12)


@pytest.mark.jit
@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("held", [([0, 0, 1, 2, 3, 3, 3], []), ([0] * 7 + [1], [3] * 9)], ids=str)
def test_with_users_the_mean_charge_is_at_least_the_mean_number_of_spurious_grams(held, rule, reference, monkeypatch):
    """The charges are high enough for few and for many candidates with users, at low and at high levels."""
    set_reference(monkeypatch, reference)
    spurious, charged, _ = means((4, 3), held, rule)
    assert charged >= spurious - 1e-12


@pytest.mark.jit
def test_a_charge_for_only_the_chosen_cutpoints_is_too_low(monkeypatch):
    """This broken variant ignores that the cutpoint of a band is chosen after its votes are counted."""
    short = []
    for reference, rule in product(REFERENCES, RULES):
        set_reference(monkeypatch, reference)
        spurious, charged, by_cutpoint = means((8,), [[]], rule)
        assert charged == pytest.approx(spurious, abs=1e-12)
        short.append(by_cutpoint < 0.95 * spurious)
    assert any(short)


def test_a_charge_for_only_candidates_below_the_reference_is_too_low(monkeypatch):
    """This broken variant ignores empty candidates above the reference."""
    real = thresholds.charges

    def once(reached, sizes, reference, chances, *more):
        return real(reached, sizes, reference, chances, *more) * (1 - chances[reference])

    monkeypatch.setattr(thresholds, "charges", once)
    spurious, charged, _ = means((8,), [[]], (0.0, 1.0))
    assert charged < 0.95 * spurious
