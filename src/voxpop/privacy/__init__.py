"""Budgets, noise scales, thresholds, accounting and the secret: numbers that know nothing of data.

The names below are loaded on first use, so that `Budget` costs neither numpy nor scipy. Two functions share their
module's name and are imported from it: `voxpop.privacy.calibrate.calibrate` and `voxpop.privacy.decide.decide`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voxpop.privacy.budget import Budget
    from voxpop.privacy.calibrate import Scale, total_delta
    from voxpop.privacy.decide import Rule, SelectionRule, ThresholdRule
    from voxpop.privacy.guarantee import Guarantee
    from voxpop.privacy.novelty import Novelty
    from voxpop.privacy.secret import Secret
    from voxpop.privacy.slack import numerical_slack

_MODULES = {
    "Budget": "budget",
    "Guarantee": "guarantee",
    "Novelty": "novelty",
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
    "Novelty",
    "Rule",
    "Scale",
    "Secret",
    "SelectionRule",
    "ThresholdRule",
    "numerical_slack",
    "total_delta",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
