"""The private side: read, tokenise, encode, hold. It knows nothing of noise.

| file | holds |
|---|---|
| `read.py`, `sources.py`, `files.py` | tables and files as a stream of Arrow batches |
| `tokenisers.py`, `interner.py`, `code_points.py` | from text to words and their ids |
| `sentences.py` | texts cut into sentences |
| `encode.py`, `users.py`, `vocabulary.py`, `arrow.py` | from rows to the corpus |
| `corpus.py`, `store.py` | the one data structure, in memory and as a folder |
| `holdings.py`, `bound.py`, `weigh.py`, `histogram.py` | user first: bounded sets, then weights |
| `levels.py` | the same at every length of phrases, in place |
| `memory.py`, `work_file.py`, `pages.py` | a bound on memory, and files that nobody else sees |
| `stretches.py`, `spilling.py`, `sorter.py`, `word_runs.py`, `user_files.py` | reading within it |
| `ordering.py`, `mapped_positions.py` | weighing within it |
"""

from voxpop.corpus.corpus import Corpus
from voxpop.corpus.histogram import Histogram
from voxpop.corpus.read import read
from voxpop.corpus.store import load_corpus

__all__ = ["Corpus", "Histogram", "load_corpus", "read"]
