"""From a budget to the numbers that run."""

from typing import TYPE_CHECKING

from voxpop.errors import BudgetError
from voxpop.hitters.plan import HittersPlan
from voxpop.hitters.rules import Rules
from voxpop.privacy.budget import Budget
from voxpop.privacy.trie.accountant import trie_delta
from voxpop.privacy.trie.ballot import Ballot
from voxpop.privacy.trie.calibrate import best_sampling
from voxpop.privacy.trie.published import published_sampling

if TYPE_CHECKING:
    from voxpop.hitters.heavy_hitters import HeavyHitters


def plan_hitters(hitters: "HeavyHitters", budget: Budget) -> HittersPlan:
    """Fill in rate and threshold; see `HeavyHitters.plan`."""
    if budget.delta <= 0.0:
        raise BudgetError(
            "heavy hitters need a delta above 0, got 0: without noise a word can always betray that one more user "
            "holds it. Choose it far below 1 / (number of users you expect), such as 1e-8, and not by looking at "
            "the data."
        )
    if hitters.accounting == "exact":
        best = best_sampling(budget, hitters.rounds, hitters.words, hitters.votes)
        return HittersPlan(hitters, budget, _rules(hitters, best.ballot), delta=best.delta).checked(best.delta)
    rules = _rules(hitters, Ballot(*published_sampling(budget, hitters.rounds)))
    if hitters.sampling == "fixed":
        # Nothing is proved for them, so delta is 1 and nothing is promised (docs/privacy/heavy-hitters.md has a
        # counterexample).
        return HittersPlan(hitters, budget, rules, delta=1.0).checked(0.0)
    delta = _confirmed(budget, rules)
    return HittersPlan(hitters, budget, rules, delta=delta).checked(delta)


def certified_plan(hitters: "HeavyHitters", budget: Budget, ballot: Ballot) -> HittersPlan:
    """Return the plan of a ballot that somebody else chose, if it keeps to the budget: nodes check before they vote.

    Args:
        hitters: the mechanism.
        budget: what may be spent.
        ballot: what is proposed.

    Raises:
        BudgetError: if it costs more.
    """
    # By the exact accountant, from the numbers that came: nothing that the server claims is taken for granted.
    delta = trie_delta(budget.epsilon, ballot, hitters.rounds, hitters.words)
    if delta > budget.delta:
        raise BudgetError(
            f"the votes that were asked for cost a delta of {delta:.3g} at epsilon {budget.epsilon:g}, more than "
            f"{budget.delta:g}; nothing is answered."
        )
    return HittersPlan(hitters, budget, _rules(hitters, ballot), delta=delta).checked(delta)


def _rules(hitters: "HeavyHitters", ballot: Ballot) -> Rules:
    first, unit = hitters.units
    return Rules(
        ballot.rate,
        ballot.theta,
        hitters.rounds,
        unit,
        hitters.max_length,
        words=hitters.words,
        sampling=hitters.sampling,
        again=ballot.again,
        further=ballot.further,
        first=first,
    )


def _confirmed(budget: Budget, rules: Rules) -> float:
    """Return what the paper's numbers really cost with Bernoulli sampling: their proof is ours, not the paper's."""
    delta = trie_delta(budget.epsilon, rules.ballot, rules.rounds, rules.words)
    if delta > budget.delta:
        raise BudgetError(
            f"the paper's rate and threshold for epsilon {budget.epsilon:g} and delta {budget.delta:g} cost a delta of "
            f'{delta:.3g} by exact accounting. Use accounting="exact".'
        )
    return delta
