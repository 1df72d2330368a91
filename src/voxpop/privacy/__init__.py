"""Budgets, noise scales, thresholds, accounting and the secret: numbers that know nothing of data.

The names below are loaded on first use, so that `Budget` costs neither numpy nor scipy. Two functions share their
module's name and are imported from it: `voxpop.privacy.calibrate.calibrate` and `voxpop.privacy.decide.decide`.

| file | holds |
|---|---|
| `budget.py` | what may be spent |
| `calibrate.py` | how much noise and how high a threshold a budget asks for |
| `charging.py` | what a mechanism asks of an account before it touches data |
| `round_composition.py` | several releases with unknown items, one after the other |
| `decide.py` | which items are released |
| `discrete_laplace.py` | integer noise |
| `event.py` | guarantees as events of dp-accounting |
| `evidence.py` | items that one user alone holds, when rounds add up what they saw |
| `filter.py` | a budget for Gaussian releases whose noise is chosen from earlier results |
| `individual.py` | the same where every user pays for itself |
| `gaussian.py` | the analytic Gaussian mechanism, accurate from delta 1e-300 to 0.1 |
| `guarantee.py` | what was spent, in words and as data |
| `inversion.py` | whole numbers with exactly the wanted distribution, from uniform bits |
| `joint.py` | the exact joint bound for one thresholded Gaussian release |
| `rounded_noise.py` | noisy weights on a coarse grid, exact where doubles could err |
| `precise.py` | the same functions in eighty digits, for the few values that must be beyond doubt |
| `search.py` | one-dimensional searches with a bracket that is never lost |
| `secret.py` | the one secret from which all randomness of a release follows |
| `set_only.py` | what a release that says only *which* items costs |
| `slack.py` | what finite arithmetic costs, charged to delta |
| `spend.py` | what a Gaussian release spends, in the form in which several of them compose without loss |
| `threshold.py` | how high a threshold must be for items that one user alone holds |
| `composition.py` | what several releases from one collection spend together |
| `trie/` | accounting for tries grown by sampling and a threshold (TrieHH) |
| `optimal.py` | the optimal release rule when each user holds one item |
| `release_table.py` | the largest probabilities of release |
| `evidence_step.py` | what one round adds to the evidence of items, and what becomes of them |
| `survival.py` | how likely noise alone keeps evidence above the floors of all rounds so far |
| `decisions.py` | randomised answers about weights, ready to be sent to where the weights are |
| `unique_items.py` | how much weight the items that only one user holds can have |
| `in_words.py` | what a guarantee means to whoever must judge it |
| `gumbel_noise.py` | gumbel noise in whole cells |
| `peeling.py` | what it costs to pick the largest counts one after the other, by exponential mechanisms |
| `planned.py` | what the plan of every mechanism begins with |
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voxpop.privacy.budget import Budget
    from voxpop.privacy.calibrate import Scale, total_delta
    from voxpop.privacy.decide import Rule, SelectionRule, ThresholdRule
    from voxpop.privacy.guarantee import Guarantee
    from voxpop.privacy.secret import Secret
    from voxpop.privacy.slack import numerical_slack
    from voxpop.privacy.unique_items import UniqueItems

_MODULES = {
    "Budget": "budget",
    "Guarantee": "guarantee",
    "UniqueItems": "unique_items",
    "Rule": "decide",
    "Scale": "calibrate",
    "Secret": "secret",
    "SelectionRule": "decide",
    "ThresholdRule": "decide",
    "numerical_slack": "slack",
    "total_delta": "calibrate",
}

__all__ = [
    "Budget",
    "Guarantee",
    "Rule",
    "Scale",
    "Secret",
    "SelectionRule",
    "ThresholdRule",
    "UniqueItems",
    "numerical_slack",
    "total_delta",
]


if not TYPE_CHECKING:  # type checkers know the names from above, and refuse all others

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
