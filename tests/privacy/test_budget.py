"""Tests of `Budget`, the allowed cost, and `Guarantee`, the actual cost."""

import subprocess
import sys
from fractions import Fraction

import pytest

from voxpop.errors import BudgetError
from voxpop.privacy.budget import Budget
from voxpop.privacy.guarantee import Guarantee


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "3", True, None, 1j])
def test_invalid_epsilons_are_rejected(epsilon):
    """An epsilon must be a finite positive real number."""
    with pytest.raises(BudgetError, match="epsilon"):
        Budget(epsilon, 1e-7)


@pytest.mark.parametrize("delta", [-1e-9, 1, 1.5, float("nan"), "1e-7", False])
def test_invalid_deltas_are_rejected(delta):
    """A delta must be a real number in [0, 1)."""
    with pytest.raises(BudgetError, match="delta"):
        Budget(3, delta)


def test_epsilon_and_delta_are_converted_to_floats():
    """Integers and fractions become doubles, and delta defaults to 0."""
    budget = Budget(Fraction(1, 2))
    assert (budget.epsilon, budget.delta) == (0.5, 0.0)
    assert isinstance(Budget(4, 0).epsilon, float)


def test_the_text_of_a_guarantee_is_a_sentence():
    """The text of a seeded guarantee begins with a warning."""
    assert str(Guarantee(4, 1e-7)) == "(4, 1e-07)-DP, one user added or removed"
    assert str(Guarantee(4, 1e-7, private=False)) == (
        "NOT PRIVATE: made with a seed; otherwise (4, 1e-07)-DP, one user added or removed"
    )


def test_a_guarantee_can_be_converted_to_a_dict_and_back():
    """`from_dict` reverses `to_dict`."""
    guarantee = Guarantee(1.5, 1e-9, private=False)
    assert Guarantee.from_dict(guarantee.to_dict()) == guarantee


def test_budget_and_guarantee_import_no_large_library():
    """The modules of `Budget` and `Guarantee` do not import numpy, scipy, mpmath or cryptography."""
    program = (
        "import sys; from voxpop.privacy.budget import Budget; from voxpop.privacy.guarantee import Guarantee\n"
        "assert not {'numpy', 'scipy', 'mpmath', 'cryptography'} & set(sys.modules), 'heavy import'\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
