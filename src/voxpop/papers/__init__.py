"""Published algorithms, with the parameters and the accounting of their papers. Each algorithm is one plain class."""

from voxpop.papers.dpne import DPNE
from voxpop.papers.dpsu import SetUnion
from voxpop.papers.ngram_model import VariableLengthNGrams
from voxpop.papers.optimal_selection import OptimalSelection
from voxpop.papers.triehh import TrieHH

__all__ = ["DPNE", "OptimalSelection", "SetUnion", "TrieHH", "VariableLengthNGrams"]
