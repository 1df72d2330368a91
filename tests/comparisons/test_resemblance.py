"""Tests of the figures of resemblance, which are small only for sequences from the same source."""

import numpy as np
import pytest
from benchmarks.evaluation import as_sequences, private_resemblance

import voxpop as vp


def drawn(seed, stay, number=4000):
    """Return sequences that repeat the previous symbol with probability `stay`."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, number)
    symbols = rng.integers(4, size=sizes.sum())
    firsts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    for place in range(1, symbols.size):
        if place not in firsts and rng.random() < stay:
            symbols[place] = symbols[place - 1]
    return as_sequences(symbols.astype(np.int32), sizes, 4)


def figures(one, other):
    return dict(private_resemblance(one, other).iter_rows())


@pytest.fixture(scope="module")
def real():
    return drawn(1, 0.5)


def test_sequences_of_one_source_are_accepted(real):
    """All distances are as small as those between two samples of one source, and the classifier only guesses.

    The accuracy of the classifier is 0.5 with a standard deviation of 0.009.
    """
    found = figures(real, drawn(2, 0.5))
    assert max(value for what, value in found.items() if what != "classifier") < 0.05
    assert abs(found["classifier"] - 0.5) < 0.065


def test_other_transitions_are_reported(real):
    """Symbols and lengths have the same distribution, so only transitions and the classifier show the difference."""
    found = figures(real, drawn(3, 0.0))
    assert found["lengths"] < 0.05
    assert found["symbols"] < 0.05
    assert found["transitions"] > 0.2
    assert found["classifier"] > 0.7


def test_equal_collections_have_distance_zero(real):
    """All distances are exactly 0, and the accuracy of the classifier is 0.5."""
    found = figures(real, real)
    assert found.pop("classifier") == pytest.approx(0.5)
    assert set(found.values()) == {0.0}


def test_different_alphabets_are_rejected(real):
    """Sequences over different alphabets cannot be compared."""
    with pytest.raises(vp.errors.InputError, match="alphabet"):
        private_resemblance(real, as_sequences(np.zeros(3, np.int32), np.ones(3, np.int64), 5))
