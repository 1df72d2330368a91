"""Tests that compare the membership, count and list of candidates with an enumeration of all extensions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive import ngrams as naive_ngrams
from voxpop.mechanisms.ngrams.candidates import Candidates, Grams
from voxpop.mechanisms.ngrams.forecast import FINE_CELLS, Estimates, Forecast

WORDS = "abcd"


def released(data, *, single):
    """Draw released grams of lengths 1 to 3. Each gram is valid given the grams of the previous length."""
    words = data.draw(st.sets(st.sampled_from(WORDS), min_size=1), label="words")
    lengths = [{(word,) for word in words}]
    for _ in range(data.draw(st.integers(0, 2), label="longer")):
        valid = sorted(naive_ngrams.valid_grams(lengths[-1], words, single=single))
        lengths.append(data.draw(st.sets(st.sampled_from(valid)), label="released") if valid else set())
    return words, lengths


def as_grams(words, lengths, *, single):
    """Build the given grams with `Grams.longer`, from the numbers of pairs."""
    order = sorted(words)
    grams = Grams.of_tokens(len(order))
    text = [(word,) for word in order]
    for longer in lengths[1:]:
        place = {gram: rank for rank, gram in enumerate(text)}
        pairs = [(place[g[:-1]], order.index(g[-1]) if single else place[g[1:]]) for g in longer]
        names = np.sort(np.array([(a << 32) | b for a, b in pairs], np.int64))
        grams = grams.longer(names, single=single)
        text = [tuple(order[token] for token in row) for row in grams.tokens]
    return grams, text


def as_text(candidates, grams, text, words, *, single):
    """Return all candidates in the order of their numbers, as tuples of tokens."""
    order = sorted(words)
    names = candidates.names(np.arange(candidates.count))
    left, partner = (names >> 32).tolist(), (names & 0xFFFFFFFF).tolist()
    last = order if single else [gram[-1] for gram in text]
    return [(*text[a], last[b]) for a, b in zip(left, partner, strict=True)]


@given(data=st.data(), single=st.booleans())
def test_valid_candidates_equal_the_set_of_the_paper(data, single):
    """`count` equals the number of listed candidates, no candidate is listed twice, and grams are sorted by tokens."""
    words, lengths = released(data, single=single)
    grams, text = as_grams(words, lengths, single=single)
    assert text == sorted(lengths[-1])
    candidates = Candidates.all_valid(grams, len(words), single=single)
    listed = as_text(candidates, grams, text, words, single=single)
    assert len(listed) == len(set(listed)) == candidates.count
    assert set(listed) == naive_ngrams.valid_grams(lengths[-1], words, single=single)


@given(data=st.data(), level=st.integers(1, 40 * FINE_CELLS))
def test_candidates_are_kept_if_and_only_if_their_forecast_reaches_the_level(data, level):
    """The candidates equal those from exact fractions. Estimates repeat, so forecasts often equal the level."""
    words, lengths = released(data, single=False)
    grams, text = as_grams(words, lengths, single=False)
    cells = st.integers(-3, 9)
    own = np.array([data.draw(cells) for _ in text], np.int64)
    estimates = Estimates(own, cell=1.0)
    if grams.length == 1:
        overlap, before = np.full(len(text), estimates.total), {(): estimates.total}
    else:
        before = {gram: data.draw(st.integers(1, 9)) for gram in lengths[-2]}
        overlap = np.array([before[gram[1:]] for gram in text], np.int64)
    valid = Candidates.all_valid(grams, len(words), single=False)
    forecast = Forecast.of(valid, estimates, overlap, 1.0)
    capped = dict(zip(text, estimates.capped.tolist(), strict=True))
    wanted = {
        gram
        for gram in naive_ngrams.valid_grams(lengths[-1], words, single=False)
        if naive_ngrams.forecast(gram, capped, before, FINE_CELLS) >= level
    }
    candidates = forecast.candidates(level)
    assert set(as_text(candidates, grams, text, words, single=False)) == wanted
    assert candidates.count == len(wanted)
    for a, left in enumerate(text):
        for b, partner in enumerate(text):
            if left[1:] == partner[:-1]:
                member = bool(candidates.estimates[b] >= candidates.need[a])
                assert member == ((*left, partner[-1]) in wanted)


def test_estimates_are_positive_and_capped():
    """Because of the cap, products of estimates are positive and do not overflow."""
    estimates = Estimates(np.array([-50, 0, 3, 2**40]), cell=0.5)
    assert estimates.capped.tolist() == [1, 1, 3, 2**36]
    assert Estimates(np.array([-7]), cell=1.0).total == 1


@pytest.mark.parametrize("weight", [0.1, 1.0, 2.5, 1e300])
def test_a_level_is_the_capped_weight_rounded_up(weight):
    """Without the cap, products of levels would overflow."""
    valid = Candidates.all_valid(Grams.of_tokens(2), 2, single=False)
    estimates = Estimates(np.array([5, 6]), cell=0.25)
    forecast = Forecast.of(valid, estimates, np.array([11, 11]), 0.25)
    level = forecast.level_of(weight)
    assert level * forecast.unit >= weight or level == 2**26
    assert (level - 1) * forecast.unit < weight
    assert Fraction(forecast.unit) == Fraction(1, 4 * FINE_CELLS)


def test_the_largest_estimates_and_levels_do_not_overflow():
    """Even at the limits of the allowed range, `need` is exact."""
    top = 2**36
    valid = Candidates.all_valid(Grams.of_tokens(2), 2, single=False)
    estimates = Estimates(np.array([top, 2**50]), cell=1.0)
    forecast = Forecast.of(valid, estimates, np.array([top, top]), 1.0)
    assert forecast.candidates(2**26).need.tolist() == [2**26 // FINE_CELLS] * 2
    assert forecast.candidates(2**26).count == 4
