"""Audits of whole series with many copies of two tiny streams. One of them has an additional user.

Each copy has separate words and users, so the copies are independent trials. Every bound has a false-alarm probability
of 1e-9.
"""

from dataclasses import replace
from math import exp

import numpy as np
import polars as pl
import pytest
from scipy.stats import beta

import voxpop as vp
from voxpop.engine.local.nights import NightlyPools
from voxpop.mechanisms.series.series import Series
from voxpop.privacy.individual import WHOLE
from voxpop.privacy.sampling import noisy_cells

pytestmark = [pytest.mark.jit, pytest.mark.slow]
BUDGET, NIGHTS, COPIES, ALPHA = vp.Budget(1, 0.02), 5, 20_000, 1e-9


def released(folder, seed, users, late):
    """Return the number of copies with a released word by the end of a series.

    Args:
        folder: The folder of the series.
        seed: The seed of the series.
        users: The number of users of the word of each copy.
        late: The number of the last user, who arrives on the third night, or None.
    """
    copy, user = np.divmod(np.arange(COPIES * users), users)
    table = pl.DataFrame({"who": copy * 100 + user, "what": copy})
    arrives = pl.Series(np.where(user == late, 3, 1))
    series = Series.start(folder, vp.Items(max_items_per_user=1).plan_series(BUDGET, NIGHTS), seed=seed)
    for night in range(1, NIGHTS + 1):
        rows = table.filter(arrives == night)
        series.run(vp.read(rows, user="who", items="what"), night=night)
    return sum(series.counts)


def bounds(count):
    """Return a confidence interval of a rate."""
    low = beta.ppf(ALPHA, count, COPIES - count + 1) if count else 0.0
    high = beta.ppf(1 - ALPHA, count + 1, COPIES - count) if count < COPIES else 1.0
    return low, high


def refuted(folder, others, late):
    """Return whether the rates with and without the user contradict the guarantee, in either direction."""
    joined = bounds(released(folder / f"q{others}{late}", 1, others + 1, others if late else None))
    without = bounds(released(folder / f"p{others}{late}", 2, others, None)) if others else (0.0, 0.0)
    wrong = [
        one[0] > exp(BUDGET.epsilon) * two[1] + BUDGET.delta for one, two in ((joined, without), (without, joined))
    ]
    return any(wrong)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("others", [0, 1, 2, 4])
def test_no_series_is_refuted(tmp_path, others, late):
    """The user is present from the first night, or arrives late with a whole budget."""
    assert not refuted(tmp_path, others, late)


def test_refilled_budgets_are_refuted(tmp_path, monkeypatch):
    """In the broken variant, budgets are refilled every night and spent completely."""
    real = NightlyPools.pay

    def pay(self, charge, *tonight):
        self.left = np.full_like(self.left, WHOLE)
        real(self, replace(charge, rates=(2**20,)), *tonight)

    monkeypatch.setattr(NightlyPools, "pay", pay)
    assert any(refuted(tmp_path, others, False) for others in (0, 1, 2))


def test_too_little_noise_is_refuted(tmp_path, monkeypatch):
    """The broken variant has a third of the planned noise."""
    from voxpop.privacy import upcrossing

    monkeypatch.setattr(upcrossing, "noisy_cells", lambda weights, sigma, *rest: noisy_cells(weights, sigma / 3, *rest))
    assert any(refuted(tmp_path, others, False) for others in (3, 5, 7, 9, 11))
