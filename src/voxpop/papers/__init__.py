"""Published algorithms as in their papers, one plain class each, with the parameters and accounting of the paper."""

from voxpop.papers.dpne import DPNE
from voxpop.papers.dpsu import SetUnion
from voxpop.papers.ngram_model import VariableLengthNGrams
from voxpop.papers.optimal_selection import OptimalSelection
from voxpop.papers.triehh import TrieHH

__all__ = ["DPNE", "OptimalSelection", "SetUnion", "TrieHH", "VariableLengthNGrams"]
