"""Tests of n-grams with words from adaptive rounds. Words and longer grams together spend the budget."""

from dataclasses import replace

import numpy as np
import pytest

import voxpop as vp
from support.corpora import corpus_of
from support.deltas import total_delta
from voxpop.mechanisms.rounds.adaptive import AdaptiveRounds
from voxpop.mechanisms.rounds.menu import released_in_rounds
from voxpop.privacy.gate.rounds import AdaptiveGate
from voxpop.privacy.gaussian import delta as gaussian_delta
from voxpop.privacy.secret import Secret

BUDGETS = [vp.Budget(4, 1e-7), vp.Budget(0.5, 1e-5), vp.Budget(20, 1e-9)]
pytestmark = pytest.mark.jit


def spent(plan, first, rest):
    """Return the delta of the given rounds and the later lengths, including slack."""
    return total_delta(first, plan.budget, rest=rest) + plan.slack


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize(
    "fields",
    [
        {"max_phrases_per_user": 3000},
        {"max_length": 2, "max_phrases_per_user": 7},
        {"max_length": 1, "max_phrases_per_user": 100},
    ],
    ids=str,
)
def test_rounds_and_later_passes_together_spend_the_budget(budget, fields):
    """The delta of the rounds and the later passes is within the budget, but exceeds it if either part costs more."""
    plan = vp.NGrams(**fields).plan(budget)
    first = plan.first
    assert isinstance(first, AdaptiveRounds)
    assert 0.9 * budget.delta < spent(plan, first, plan.later) <= plan.delta_spent * (1 + 1e-9) <= budget.delta
    # The delta of the total mu^2 alone, without novel words, is below the budget.
    assert gaussian_delta(budget.epsilon, (first.square + plan.later) ** 0.5) < budget.delta
    if plan.mechanism.max_length > 1:
        assert first.square < plan.later
        # In the deliberately broken variants, the cost of the rounds is not deducted from later lengths, or rounds have
        # too little noise.
        assert spent(plan, first, first.square + plan.later) > 1.02 * budget.delta
        louder = replace(first, first_round=replace(first.first_round, scale=first.first_round.scale / 3))
        assert spent(plan, louder, plan.later) > budget.delta


def test_words_of_a_release_equal_those_of_the_planned_rounds():
    """If the planned rounds run separately with the same secret, they release the same words."""
    corpus = corpus_of([[["old", "red", "barn"], [f"own{user}"]] for user in range(400)])
    plan = vp.NGrams(max_length=3, max_phrases_per_user=5).plan(vp.Budget(4, 1e-6))
    release = plan.release(corpus, seed=3)
    found, ran = released_in_rounds(plan.first, AdaptiveGate(plan.certificate.to_json(), Secret.of(3)), corpus)
    words = found.to_pylist()
    assert ran is plan.first
    assert [gram[0] for gram in release.each_gram() if len(gram) == 1] == words == ["barn", "old", "red"]
    assert ("old", "red", "barn") in {tuple(gram) for gram in release.each_gram()}


def test_the_plan_shows_the_rounds_of_words():
    """The text of the plan contains the number of rounds, and the table of passes has one row per round."""
    plan = vp.NGrams(max_length=2, max_phrases_per_user=100).plan(vp.Budget(1, 1e-6))
    assert "Length 1 runs in 21 adaptive rounds" in str(plan)
    squares = [row["scale"] ** -2 for row in plan.to_dict()["passes"] if row["pass"] in ("threshold", "round")]
    assert np.isclose(sum(squares), plan.first.square, rtol=5e-3)
