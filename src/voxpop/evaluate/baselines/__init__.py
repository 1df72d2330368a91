"""What others do, to compare with.

| file | holds |
|---|---|
| `all_grams.py` | set union over grams of all lengths, without pruning (DPNE's three baselines) |
| `chains.py`, `prefix_trees.py` | sequences by Markov chains of fixed memory, and by prefixes |
"""
