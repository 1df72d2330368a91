"""Tests of the plan of a series, including its guarantee, its charges and the states of items."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import voxpop as vp
from voxpop.errors import BudgetError, InputError, InternalError
from voxpop.mechanisms.series.plan import CUTOFF, SeriesPlan, states_of
from voxpop.privacy.certificate import night_charge
from voxpop.privacy.gaussian import delta as gaussian_delta
from voxpop.privacy.individual import WHOLE
from voxpop.privacy.upcrossing import UNLISTED, ever_reached

BUDGET = vp.Budget(3, 1e-6)


@pytest.mark.parametrize(
    ("nights", "spending"),
    [
        (1, "growing"),
        (1, "equal"),
        (2, "equal"),
        (30, "growing"),
        (365, "equal"),
        pytest.param(1000, "growing", marks=pytest.mark.slow),
    ],
)
def test_the_guarantee_follows_from_the_numbers(nights, spending):
    """The plan spends nearly all of delta, charges are within the budget, and the loaded plan equals the original."""
    plan = vp.Items().plan_series(BUDGET, nights, spending=spending)
    assert 0.999e-6 < plan.delta_spent <= 1e-6
    assert sum(plan.proof.costs) <= WHOLE
    exact = np.array(plan.proof.thresholds) - np.cumsum(plan.proof.factors) / 2
    hit = ndtr(ndtri(plan.proof.pool * ever_reached(plan.spreads, exact)) + plan.proof.square**0.5)
    assert hit + gaussian_delta(3, plan.proof.square**0.5) <= plan.delta_spent * (1 + 1e-12)
    again = SeriesPlan.from_dict(json.loads(json.dumps(plan.to_dict())))
    assert again == plan
    assert str(again) == str(plan)
    # A user who is present from the first night pays all charges, except for rounding of the rates.
    left = np.array([WHOLE])
    for night in range(1, nights + 1):
        charge = night_charge(plan.certificate.proof, night)
        assert (charge.sensitivity / charge.sigma) ** 2 <= float(charge.square) * (1 + 1e-12)
        left = left - charge.costs(left, np.array([True]))
    assert left[0] == 0


def test_plans_with_unsafe_numbers_are_rejected():
    """A plan with lower thresholds, less noise, a larger pool or a larger mu^2 has no guarantee."""
    plan = vp.Items().plan_series(BUDGET, 30)
    lower = tuple(int(each * 0.99) for each in plan.proof.thresholds)
    proof = plan.proof
    for broken in (
        replace(plan, proof=replace(proof, thresholds=lower)),
        replace(plan, proof=replace(proof, thresholds=(*proof.thresholds[:-1], 0))),
        replace(plan, proof=replace(proof, sigmas=tuple(0.99 * each for each in proof.sigmas))),
        replace(plan, proof=replace(proof, pool=proof.pool + 50)),
        replace(plan, proof=replace(proof, square=1.01 * proof.square)),
        replace(plan, budget=vp.Budget(2.9, 1e-6)),
    ):
        with pytest.raises(InputError, match="was changed"):
            broken.guarantee  # noqa: B018
        with pytest.raises(InternalError):
            SeriesPlan.from_dict(broken.to_dict())


@pytest.mark.parametrize("nights", [30, 1000])
def test_every_night_is_charged_for_its_readings(nights):
    """Delta includes the errors of 2^31 readings per night, each with an error of at most 2^-128 in each of 2^23 cells.

    At epsilon 25, this part of delta is large enough to be measured.
    """
    plan = vp.Items().plan_series(vp.Budget(25, 1e-6), nights)
    exact = np.array(plan.proof.thresholds) - np.cumsum(plan.proof.factors) / 2
    hit = ndtr(ndtri(plan.proof.pool * ever_reached(plan.spreads, exact)) + plan.proof.square**0.5)
    arithmetic = plan.delta_spent - (hit + gaussian_delta(25, plan.proof.square**0.5))
    assert arithmetic >= 0.99 * nights * 2.0 ** (31 + 23 - 128) * np.exp(25)
    # Noise that is drawn from 128 bits does not exceed 14 standard deviations.
    cells = (14 + CUTOFF) * max(plan.proof.sigmas) * 2**plan.proof.bits / plan.proof.cell
    assert cells < 2**23
    assert cells * sum(plan.proof.factors) < 2**63


def test_the_state_of_an_item_depends_only_on_its_score():
    """On the first night, all items are active. Released items remain released."""
    plan = vp.Items().plan_series(BUDGET, 30)
    scores = np.array([-(2**50), plan.rests[20], plan.rests[20] - 1, 2**50, 2**50])
    released, none = np.array([0, 0, 0, 0, 3]), np.full(5, UNLISTED)
    assert states_of(plan, scores, released, none, 22).tolist() == [1, 2, 1, 2, 0]
    assert states_of(plan, scores, released, none, 1).tolist() == [2, 2, 2, 2, 0]


@pytest.mark.parametrize(
    ("union", "budget", "nights", "error"),
    [
        (vp.Items(), vp.Budget(3), 30, BudgetError),
        (vp.Items(), vp.Budget(60, 1e-6), 30, BudgetError),
        (vp.Items(), BUDGET, 0, InputError),
        (vp.Items(), BUDGET, 1001, InputError),
    ],
)
def test_wrong_plans_are_rejected(union, budget, nights, error):
    """The cases are a budget without delta, a very large epsilon, and numbers of nights out of range."""
    with pytest.raises(error):
        union.plan_series(budget, nights)
