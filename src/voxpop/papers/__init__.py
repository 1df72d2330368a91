"""Published algorithms as in their papers, one plain class each, with the parameters and accounting of the paper."""

from voxpop.papers.dpne import DPNE
from voxpop.papers.dpsu import SetUnion
from voxpop.papers.ngram_model import VariableLengthNGrams
from voxpop.papers.partition_selection import PartitionSelection
from voxpop.papers.triehh import TrieHH

__all__ = ["DPNE", "PartitionSelection", "SetUnion", "TrieHH", "VariableLengthNGrams"]
