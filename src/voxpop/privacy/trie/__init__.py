"""Accounting for tries grown by sampling and a threshold (TrieHH): numbers that know nothing of words.

| file | holds |
|---|---|
| `curve.py` | how likely a prefix survives a round, with one user and without, for every number of other holders |
| `accountant.py` | delta and epsilon of all rounds together, certified from above |
| `calibrate.py` | the sampling rate and the threshold at which a word needs the fewest holders |
| `discovery.py` | how likely a word is found, and how many holders it needs |
| `published.py` | what the paper proves and claims, for comparison |
| `grid.py` | f on a grid of c |
"""

from voxpop.privacy.trie.accountant import Words, trie_delta, trie_epsilon
from voxpop.privacy.trie.calibrate import Sampling, best_sampling
from voxpop.privacy.trie.discovery import discovery_rate, holders_needed

__all__ = ["Sampling", "Words", "best_sampling", "discovery_rate", "holders_needed", "trie_delta", "trie_epsilon"]
