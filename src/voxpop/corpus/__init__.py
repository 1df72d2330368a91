"""The private side: read, hold, bound, weigh. It knows nothing of noise.

| file | holds |
|---|---|
| `engine.py`, `draws.py` | the engine contract: what a mechanism may ask of whatever holds the private side |
| `reading/` | from tables and files to a corpus |
| `corpus.py`, `store.py`, `loading.py` | the one data structure, in memory and as a folder |
| `holdings.py`, `bound.py`, `weigh.py`, `histogram.py` | user first: bounded sets, then weights |
| `limited/` | the same within a limit on memory |
| `weighing_order.py` | the order in which users weigh |
| `widths.py` | how much numbers of 32 bits can tell apart |
| `pool_batches.py` | the pools of users, some hundred thousand items at a time |
| `pools.py` | adaptive rounds over what users hold |
| `pool_users.py` | the users' side of adaptive rounds |
| `payments.py`, `near_misses.py`, `subset.py` | what users have left of their own budgets, and what they weigh again |
| `length_walk.py` | the corpus, length by length |
| `round_walk.py` | the items of a corpus, round after round |
| `tree_walk.py` | one sequence per user, and how often grams occur in them, one symbol longer at a time |
| `one_sequence.py` | one sequence per user |
"""

from voxpop.corpus.corpus import Corpus
from voxpop.corpus.histogram import Histogram
from voxpop.corpus.loading import load_corpus

__all__ = ["Corpus", "Histogram", "load_corpus"]
