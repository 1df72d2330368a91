"""Accounting for tries grown by sampled votes and a threshold (TrieHH). No data is used here."""

from voxpop.privacy.trie.accountant import Words, trie_delta
from voxpop.privacy.trie.ballot import Ballot, discovery_rate, holders_needed
from voxpop.privacy.trie.calibrate import Sampling, best_sampling

__all__ = [
    "Ballot",
    "Sampling",
    "Words",
    "best_sampling",
    "discovery_rate",
    "holders_needed",
    "trie_delta",
]
