"""Published algorithms as their papers state them: one plain class each, with the paper's parameters and accounting."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voxpop.papers.dpne import DPNE
    from voxpop.papers.dpsu import (
        CountGaussian,
        CountLaplace,
        PolicyGaussian,
        PolicyLaplace,
        WeightedGaussian,
        WeightedLaplace,
    )
    from voxpop.papers.ngram_model import VariableLengthNGrams
    from voxpop.papers.triehh import TrieHH

_HOMES = {
    "DPNE": "dpne",
    "CountGaussian": "dpsu",
    "CountLaplace": "dpsu",
    "PolicyGaussian": "dpsu",
    "PolicyLaplace": "dpsu",
    "WeightedGaussian": "dpsu",
    "WeightedLaplace": "dpsu",
    "VariableLengthNGrams": "ngram_model",
    "TrieHH": "triehh",
}

__all__ = [
    "DPNE",
    "CountGaussian",
    "CountLaplace",
    "PolicyGaussian",
    "PolicyLaplace",
    "TrieHH",
    "VariableLengthNGrams",
    "WeightedGaussian",
    "WeightedLaplace",
]


if not TYPE_CHECKING:  # type checkers know the names from above, and refuse all others

    def __getattr__(name: str) -> Any:
        """Import a class on first use and keep it."""
        if name not in _HOMES:
            raise AttributeError(f"module 'voxpop.papers' has no attribute {name!r}; it has {', '.join(__all__)}")
        value = getattr(import_module(f"voxpop.papers.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return list(__all__)
