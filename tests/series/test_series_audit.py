"""Audits of whole series with many copies of two tiny streams, one of which has an additional user.

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
from voxpop.mechanisms.series import plan as planning
from voxpop.mechanisms.series.series import Series
from voxpop.privacy.individual import WHOLE
from voxpop.privacy.sampling import noisy_cells

pytestmark = [pytest.mark.jit, pytest.mark.slow]
BUDGET, NIGHTS, COPIES, ALPHA = vp.Budget(1, 0.02), 5, 20_000, 1e-9


def released(folder, seed, users, late, listed=False):
    """Return the number of copies with a released word by the end of a series.

    With a list of all words, return the number of copies with a word at or above the lowest level instead, because the
    release depends on all copies together.

    Args:
        folder: The folder of the series.
        seed: The seed of the series.
        users: The number of users of the word of each copy.
        late: The number of a user who arrives on the third night, or None.
        listed: Whether the series has a public list of all words.
    """
    copy, user = np.divmod(np.arange(COPIES * users), users)
    table = pl.DataFrame({"who": copy * 100 + user, "what": copy})
    arrives = pl.Series(np.where(user == late, 3, 1))
    mechanism = vp.Items(max_items_per_user=1, known=list(range(COPIES)) if listed else None)
    series = Series.start(folder, mechanism.plan_series(BUDGET, NIGHTS), seed=seed)
    for night in range(1, NIGHTS + 1):
        rows = table.filter(arrives == night)
        series.run(vp.read(rows, user="who", items="what"), night=night)
    return int((series._read()[1].levels > 0).sum()) if listed else sum(series.counts)


def bounds(count):
    """Return a confidence interval for a rate."""
    low = beta.ppf(ALPHA, count, COPIES - count + 1) if count else 0.0
    high = beta.ppf(1 - ALPHA, count + 1, COPIES - count) if count < COPIES else 1.0
    return low, high


def refuted(folder, others, late, listed=False):
    """Return whether the rates with and without the user contradict the guarantee, in either direction."""
    joined = bounds(released(folder / f"q{others}{late}", 1, others + 1, others if late else None, listed))
    # A word without users does not exist, but a listed word has noise.
    some = others or listed
    without = bounds(released(folder / f"p{others}{late}", 2, others, None, listed)) if some else (0.0, 0.0)
    wrong = [
        one[0] > exp(BUDGET.epsilon) * two[1] + BUDGET.delta for one, two in ((joined, without), (without, joined))
    ]
    return any(wrong)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("others", [0, 1, 2, 4])
def test_no_series_is_refuted(tmp_path, others, late):
    """The user is present from the first night, or arrives on the third night with the whole budget.

    There are zero to four other users.
    """
    assert not refuted(tmp_path, others, late)


@pytest.mark.parametrize("others", [0, 1, 3])
def test_no_series_with_a_public_list_is_refuted(tmp_path, monkeypatch, others):
    """The words of all copies are listed, so a word of the user alone has noise in both series."""
    monkeypatch.setattr(planning, "SHARE_WITHOUT_USERS", 0.3)  # With this share, noise often reaches the levels.
    assert not refuted(tmp_path, others, others == 1, listed=True)


def test_noise_on_only_listed_items_with_users_is_refuted(tmp_path, monkeypatch):
    """In the broken variant, a listed word has a level only if it is in a pool."""
    real = NightlyPools.settle

    def settle(self, *given):
        mine = np.zeros(len(self.words), np.bool_)
        mine[self.items] = True
        self.levels[~mine & (self.levels > 0)] = 0
        real(self, *given)

    monkeypatch.setattr(planning, "SHARE_WITHOUT_USERS", 0.3)
    monkeypatch.setattr(NightlyPools, "settle", settle)
    assert refuted(tmp_path, 0, False, listed=True)


def test_refilled_budgets_are_refuted(tmp_path, monkeypatch):
    """In the broken variant, budgets are refilled every night and then spent completely."""
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
