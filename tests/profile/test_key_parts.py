"""Tests of parts of users, including the delta of tiny tables, the threshold, and the distribution of draws."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

from voxpop.errors import InputError
from voxpop.privacy.parts import (
    PART_BITS,
    PartNumbers,
    parts_bound,
    parts_delta,
    parts_probabilities,
    parts_spread,
    planned_parts,
)
from voxpop.privacy.secret import Secret

CASES = [(2.0, 0.05), (1.0, 0.2), (4.0, 0.01), (0.5, 0.02)]
PARTS = {case: planned_parts(Fraction(case[0]), Fraction(case[0]) / 20, case[1]) for case in CASES}


def laplace(rate, far):
    q = np.exp(-float(rate))
    return (1 - q) / (1 + q) * q ** np.abs(np.arange(-far, far + 1))


@cache
def law(case, one, two):
    """Return the probability of each level of a key, beginning with 0 (not released)."""
    parts = PARTS[case]
    far = int(45 / float(parts.rate))
    z = np.arange(-far, far + 1)
    first, second = one + z[:, None], two + z[None, :]
    chance = laplace(2 * parts.rate, far)[:, None] * laplace(parts.rate, far)[None, :]
    released = (2 * first + second >= parts.threshold) & (one + two > 0)
    levels = np.where(released, np.maximum(first + second, 1), 0)
    return np.bincount(levels.ravel(), chance.ravel(), minlength=2 * far + 10)


def excess(one, other, epsilon):
    """Return the sum of max(0, P - e^epsilon Q) over the outcomes of all keys, which are independent."""
    joint = [np.array([1.0]), np.array([1.0])]
    for sides in zip(one, other, strict=True):
        joint = [np.multiply.outer(before, own).ravel() for before, own in zip(joint, sides, strict=True)]
    return np.maximum(0, joint[0] - np.exp(epsilon) * joint[1]).sum()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_tiny_table_exceeds_delta(case):
    """The extra user has one or two shared or novel keys, and other users have one or two keys."""
    found = []
    for one, two in product(range(3), repeat=2):
        found += [(law(case, one + 1, two),), (law(case, one, two),)]
    alone = [excess(a, b, case[0]) for a, b in zip(found[::2], found[1::2], strict=True)]
    alone += [excess(b, a, case[0]) for a, b in zip(found[::2], found[1::2], strict=True)]
    pairs = []
    for keys in product([(0, 0), (0, 1), (1, 0), (2, 1)], repeat=2):
        more = [law(case, one, two + 1) for one, two in keys]
        less = [law(case, one, two) for one, two in keys]
        pairs += [excess(more, less, case[0]), excess(less, more, case[0])]
    spent = float(parts_delta(PARTS[case]))
    assert max(alone + pairs) <= spent + 1e-12
    # Two novel keys are both missed with probability (1 - d)^2.
    assert max(alone + pairs) > 0.95 * spent
    # Keys that other users also have cost no delta.
    assert alone[1:9] == pytest.approx([0] * 8, abs=1e-12)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_threshold_is_the_smallest_within_the_budget(case):
    """Delta is within the budget at the threshold, but not at a threshold that is lower by one."""
    parts = PARTS[case]
    assert parts_delta(parts) <= case[1] < parts_delta(replace(parts, threshold=parts.threshold - 1))


def drawn(case, one, two, number=200_000):
    """Return the levels of many keys with the same numbers of users."""
    words = [f"key {each}" for each in range(number)]
    data = np.frombuffer("".join(words).encode(), np.uint8)
    starts = np.concatenate([[0], np.cumsum([len(word) for word in words])])
    numbers = PartNumbers(PARTS[case], Secret.from_seed(3), "test").restricted()
    weights = np.full(number, (one << PART_BITS) + two)
    return numbers(weights, np.empty(0, np.int64), (data, starts))


@pytest.mark.parametrize("case", CASES[:2], ids=str)
@pytest.mark.parametrize(("one", "two"), [(1, 0), (0, 1), (3, 4)])
def test_draws_have_the_exact_distribution(case, one, two):
    """The frequency of every level is within 6 standard errors of its probability."""
    levels = drawn(case, one, two)
    chance = law(case, one, two)
    found = np.bincount(levels, minlength=chance.size)[: chance.size] / levels.size
    assert (np.abs(found - chance) <= 6 * np.sqrt(chance / levels.size) + 1e-5).all()


def test_a_weight_that_does_not_fit_is_rejected():
    """One integer contains both numbers of users, so more than 2^30 users of a key would overflow."""
    with pytest.raises(InputError, match="more than a billion"):
        drawn(CASES[0], 1 << 30, 0, number=1)


def test_spread_and_bound_agree_with_the_probabilities():
    """The standard deviation equals that of the exact distribution.

    The bound covers 95 percent of the errors, but the next lower bound does not.
    """
    parts = PARTS[1.0, 0.2]
    chance, z = parts_probabilities(parts, 3, 400), np.arange(-400, 401)
    assert chance.sum() == pytest.approx(1)
    assert parts_spread(parts, 3) == pytest.approx(np.sqrt((chance * z**2).sum()))
    bound = parts_bound(parts, 3, 0.95)
    assert chance[np.abs(z) <= bound].sum() >= 0.95 > chance[np.abs(z) <= bound - 1].sum()
