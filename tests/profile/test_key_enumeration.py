"""Tests of the exact delta of whole releases of keys for tiny tables, over every outcome of the real code."""

from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import prod

import mpmath
import numpy as np
import pytest

import voxpop as vp
from voxpop.privacy.certificate import check
from voxpop.privacy.truncated import key_levels

WHOLE = 1 << 128
BUDGETS = [(2, 0.05), (1, 0.2), (6, 0.3), (3, 0.01)]
EXTRA = [{0}, {0, 1}, {1, 2}, {0, 1, 2}]
OTHERS = [[], [{0}], [{2}], [{0, 1}], [{0, 1, 2}], [{0}, {0}], [{0, 1}, {2}]]


def growth(epsilon):
    """Return e^epsilon as a fraction, rounded down by less than 2^-190."""
    with mpmath.workdps(80):
        return Fraction(int(mpmath.floor(mpmath.exp(mpmath.mpf(epsilon)) * 2**190)), 1 << 190)


def level_at(noise, users, uniform):
    words = np.array([[uniform >> 64, uniform & (2**64 - 1)]], np.uint64)
    return int(key_levels(noise, np.array([users]), words)[0])


@cache
def law(noise, users):
    """Return the exact probability of each level of a key, by bisection of the uniform number."""
    if users == 0:
        return {0: Fraction(1)}
    found, begin = {}, 0
    while begin < WHOLE:
        level, low, high = level_at(noise, users, begin), begin, WHOLE
        # The last number with this level is in [low, high).
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if level_at(noise, users, middle) == level else (low, middle)
        assert level not in found
        found[level], begin = Fraction(high - begin, WHOLE), high
    assert sum(found.values()) == 1
    return found


def released(noise, users, limit):
    """Return the probability of every outcome of three keys, over all samples of users' keys and all draws."""
    samples = [list(combinations(sorted(each), min(limit, len(each)))) for each in users]
    found = {}
    for kept in product(*samples):
        laws = [law(noise, sum(key in each for each in kept)) for key in range(3)]
        for levels in product(*laws):
            chance = prod((each[level] for each, level in zip(laws, levels, strict=True)), start=Fraction(1))
            found[levels] = found.get(levels, 0) + chance / prod(map(len, samples))
    return found


def excess(one, other, factor):
    return sum((max(Fraction(0), chance - factor * other.get(name, 0)) for name, chance in one.items()), Fraction(0))


@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.filterwarnings("ignore:.*delta")
def test_no_tiny_table_exceeds_the_certificate(limit, budget):
    """Tables have up to two other users and three shared or novel keys.

    Both directions and limits of 1 to 3 are tested.
    """
    keyed = vp.KeyCounts({"key": "string"}, [("key",)], max_keys_per_user=limit, other_rows=False)
    plan = keyed.plan(vp.Budget(*budget))
    (noise,), spent, factor = plan.menu, Fraction(check(plan.certificate)), growth(budget[0])
    found = []
    for others in OTHERS:
        without = released(noise, others, limit)
        for extra in EXTRA:
            joined = released(noise, [*others, extra], limit)
            found += [excess(joined, without, factor), excess(without, joined, factor)]
    # The errors of e^epsilon and of draws are at most 2^-120.
    assert max(found) <= spent + Fraction(1, 1 << 120)
    # The certificate is attained for one key, and nearly attained for L keys, because all novel keys are missed with
    # probability (1 - d)^L.
    each = float(spent) / limit
    assert float(max(found)) > (1 - (1 - each) ** limit) * 0.999


@pytest.mark.filterwarnings("ignore:.*delta")
@pytest.mark.parametrize("change", [{"coin": 1.05}, {"end": 1.3}, {"rate": Fraction(11, 10)}], ids=str)
def test_the_enumeration_detects_too_little_noise(change):
    """With a larger `coin`, `end` or `rate`, the delta of some table exceeds the certificate."""
    keyed = vp.KeyCounts({"key": "string"}, [("key",)], max_keys_per_user=1, other_rows=False)
    plan = keyed.plan(vp.Budget(2, 0.05))
    less = replace(plan.menu[0], **{name: getattr(plan.menu[0], name) * factor for name, factor in change.items()})
    pairs = [(released(less, others, 1), released(less, [*others, {0}], 1)) for others in OTHERS]
    found = max(max(excess(one, two, growth(2)), excess(two, one, growth(2))) for one, two in pairs)
    assert found > Fraction(check(plan.certificate))


@pytest.mark.filterwarnings("ignore:.*delta")
def test_a_choice_based_on_noisy_numbers_costs_at_most_its_part_of_the_budget():
    """The noisy number of users in one class determines whether one or two keys per user count.

    An outcome consists of this choice and the released keys.
    """
    plan = vp.KeyCounts({"key": "string"}, [("key",)], other_rows=False).plan(vp.Budget(2, 0.05))
    spent, factor, rate = Fraction(check(plan.certificate)), growth(2), float(plan.choosing)
    far = 800
    with mpmath.workdps(60):
        scale = (1 - mpmath.exp(-rate)) / (1 + mpmath.exp(-rate))
        sizes = [Fraction(int(scale * mpmath.exp(-rate * k) * 2**190), 1 << 190) for k in range(far + 2)]
    beyond = 1 - sizes[0] - 2 * sum(sizes[1 : far + 1])
    for users, extra in (([{0}], {1}), ([{0}, {0, 1}], {0, 1}), ([], {0, 1, 2})):
        sides = [(users, 0), ([*users, extra], 1)]
        # The release uses two keys per user if the noisy number is at least 3.
        laws = [[released(plan.menu[place], people, place + 1) for place in (0, 1)] for people, _ in sides]
        parts = []
        for one, other in ((0, 1), (1, 0)):
            total = beyond
            for noisy in range(-far, far + 1):
                mine, theirs = (sizes[abs(noisy - sides[side][1])] for side in (one, other))
                place = int(noisy >= 3)
                total += mine * excess(laws[one][place], laws[other][place], factor * theirs / mine)
            parts.append(total)
        assert max(parts) <= spent


@pytest.mark.parametrize("other_rows", [False, True])
def test_rounds_after_pure_releases_are_charged_for_all_losses(other_rows):
    """A second implementation averages the delta of a Gaussian over the losses of the pure releases."""
    plan = vp.KeyCounts({"key": "string"}, [("key",)], other_rows=other_rows).plan(vp.Budget(2, 1e-7))
    proof = plan.certificate.proof
    mu = mpmath.sqrt(
        mpmath.mpf(proof.rounds.choice.sigma) ** -2 + proof.rounds.choice.square + proof.rounds.later.square
    )

    def gaussian(epsilon):
        return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)

    losses = [mpmath.mpf(each.numerator) / each.denominator for each in (proof.choosing, proof.rest) if each]
    with mpmath.workdps(40):
        whole = mpmath.mpf(0)
        for signs in product((0, 1), repeat=len(losses)):
            # In randomised response, the odds of a true response are e^loss.
            chance = mpmath.fprod(
                mpmath.exp(loss) / (1 + mpmath.exp(loss)) if sign else 1 / (1 + mpmath.exp(loss))
                for loss, sign in zip(losses, signs, strict=True)
            )
            lost = mpmath.fsum(loss if sign else -loss for loss, sign in zip(losses, signs, strict=True))
            whole += chance * (proof.rounds.choice.novel + gaussian(2 - lost))
    assert float(whole) == pytest.approx(check(plan.certificate), rel=1e-5)
    assert float(whole) <= 1e-7
    assert len(losses) == 1 + other_rows
