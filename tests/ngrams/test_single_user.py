"""A test of the planned probability that a phrase of one user is released.

The phrases of the test are released nearly as often as planned.
"""

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

import voxpop as vp

WORDS, RUNS = 60, 3
ALONE = np.random.default_rng(1).random((WORDS, WORDS)) < 0.05


@pytest.mark.jit
@pytest.mark.parametrize(("users", "again"), [(8, False), (5, True)])
def test_phrases_of_one_user_are_released_at_most_as_often_as_planned(users, again, record_property):
    """Most pairs of words are the only phrase of several users, and 185 pairs are the phrase of one user.

    Therefore, nearly all candidates are likely, and thresholds are as low as `max_spurious_share` permits. With fewer
    users, the second-chance pass also runs. The probability of a false alarm is below 1e-9 for each case.
    """
    pairs = [f"a{i} a{j}" for i in range(WORDS) for j in range(WORDS) for _ in range(1 if ALONE[i, j] else users)]
    said = pairs + [f"a{i}" for i in range(WORDS) for _ in range(400)]
    corpus = vp.read(pl.DataFrame({"who": range(len(said)), "said": said}), user="who", text="said")
    plan, alone = vp.NGrams(max_length=2).plan(vp.Budget(4, 1e-7)), np.argwhere(ALONE)
    planned, shares = chance(str(plan)), []
    for seed in range(RUNS):
        release = plan.release(corpus, seed=seed)
        found = sum((f"a{i}", f"a{j}") in release for i, j in alone)
        assert (release.plan.second_chance is not None) == again
        stated = chance(str(release.plan))
        assert stated <= planned
        shares.append(f"{found / len(alone):.0%} released, at most {stated:.1%} stated")
        assert binom.sf(found - 1, len(alone), stated) > 1e-9 / RUNS
        # An earlier bound, which used the thresholds of unlikely candidates, is not valid.
        assert binom.sf(found - 1, len(alone), 0.0369) < 1e-9
    record_property("figure", shares[0])


def chance(text):
    """Return the probability in the text of a plan."""
    return float(text.split("probability of up to ")[1].split(" %")[0]) / 100
