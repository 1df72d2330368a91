"""Tests that decisions equal those computed to fifty digits, from the middle of distributions to tiny doubles."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from mpmath import MPContext

from voxpop.privacy.decisions import DECISION_BAND, SelectionRule, ThresholdRule, decide

fifty = MPContext()
fifty.dps = 50
ALL_BITS = 1 << 128


def exact_chance(noise, weight, threshold, scale):
    """Return P(weight + noise >= threshold) to fifty digits."""
    distance = (fifty.mpf(weight) - fifty.mpf(threshold)) / fifty.mpf(scale)
    if noise == "gaussian":
        return fifty.erfc(-distance / fifty.sqrt(2)) / 2
    return fifty.exp(distance) / 2 if distance < 0 else 1 - fifty.exp(-distance) / 2


def words(number):
    return [number >> 64, number & (2**64 - 1)]


def near(chance, offsets):
    """Return 128-bit draws at and near a probability."""
    place = int(fifty.floor(chance * ALL_BITS))
    return sorted({min(max(place + offset, 0), ALL_BITS - 1) for offset in offsets})


OFFSETS = [0, 1, -1, 2, 2**20, -(2**20), 2**63, -(2**63), 2**65, -(2**65), 2**90, -(2**90)]
DISTANCES = {"gaussian": 38.0, "laplace": 700.0}


@given(
    st.sampled_from(["gaussian", "laplace"]),
    st.floats(-1, 1),
    st.floats(-6, 6).map(lambda log: 10.0**log),
    st.integers(20, 50),
)
def test_decisions_equal_decisions_computed_to_fifty_digits(noise, place, scale, bits):
    """The draws are as close to the probability as 128 bits allow, or slightly further from it."""
    distance = place * DISTANCES[noise]
    threshold_units, unit = 1 << 58, 2.0**-bits
    weight = min(max(threshold_units + round(distance * scale / unit), 0), 2**62 - 1)
    rule = ThresholdRule(noise, scale, threshold_units, unit)
    chance = exact_chance(noise, fifty.mpf(weight) * unit, fifty.mpf(threshold_units) * unit, scale)
    draws = near(chance, OFFSETS)
    decided = decide(rule, np.full(len(draws), weight), np.array([words(draw) for draw in draws], np.uint64))
    for draw, released in zip(draws, decided, strict=True):
        if abs(fifty.mpf(draw) - chance * ALL_BITS) > 1e-6:
            assert bool(released) == (fifty.mpf(draw) < chance * ALL_BITS)
    assert_doubles_are_within_their_band(rule, weight, chance)


def assert_doubles_are_within_their_band(rule, weight, chance):
    """Check that the relative error of the smaller probability is below an eighth of the trusted band."""
    released, missed = (float(side[0]) for side in rule.probability(np.array([weight])))
    smaller, exact = (released, chance) if released <= missed else (missed, 1 - chance)
    if exact > fifty.mpf("1e-300") and smaller < 0.5 and exact > fifty.mpf("1e-30"):
        assert abs(fifty.mpf(smaller) / exact - 1) < DECISION_BAND / 8


@given(
    st.floats(math.log(1e-3), math.log(50)).map(math.exp),
    st.floats(math.log(1e-25), math.log(0.1)).map(math.exp),
    st.integers(0, 60),
)
def test_optimal_selection_agrees_with_a_recursion_to_fifty_digits(epsilon, delta, count):
    """The closed form gives the same decisions as the recursion."""
    e, d, chance = fifty.exp(fifty.mpf(epsilon)), fifty.mpf(delta), fifty.mpf(0)
    for _ in range(count):
        chance = min(e * chance + d, 1 - (1 - chance - d) / e, fifty.mpf(1))
    draws = near(chance, OFFSETS)
    rule = SelectionRule(epsilon, delta, unit_weight=1)
    decided = decide(rule, np.full(len(draws), count), np.array([words(draw) for draw in draws], np.uint64))
    for draw, released in zip(draws, decided, strict=True):
        if abs(fifty.mpf(draw) - chance * ALL_BITS) > 1e-3:
            assert bool(released) == (fifty.mpf(draw) < chance * ALL_BITS)


def test_both_tails_are_accurate_over_the_whole_range(record_property):
    """On a fine grid of distances, the worst relative error of doubles is below a tenth of the band."""
    worst = 0.0
    for noise, far in DISTANCES.items():
        rule = ThresholdRule(noise, 1.0, 0, 2.0**-20)
        for weight in np.linspace(-far, far, 400) * 2**20:
            units = int(weight)
            chance = exact_chance(noise, fifty.mpf(units) / 2**20, 0, 1)
            released, missed = (float(side[0]) for side in rule.probability(np.array([units])))
            exact = chance if units < 0 else exact_chance(noise, -fifty.mpf(units) / 2**20, 0, 1)
            if exact > fifty.mpf("1e-300"):  # Smaller doubles lose digits, and 128 bits cannot distinguish them.
                worst = max(worst, abs(float(fifty.mpf(min(released, missed)) / exact - 1)) / DECISION_BAND)
    assert worst < 0.1
    record_property("figure", f"doubles use {worst:.2%} of the band that is trusted")
