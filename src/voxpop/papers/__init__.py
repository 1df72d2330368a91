"""Published algorithms as their papers state them: one plain class each, with the paper's parameters and accounting."""

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
