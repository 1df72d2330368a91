"""Adaptive rounds: what is sure is released, what is hopeless is dropped; our own, docs/privacy/adaptive.md.

| file | holds |
|---|---|
| `schedule.py` | the public constants: how the budget is shared over the rounds, and what is dropped |
| `numbers.py`, `planning.py` | the numbers that run, from a share of a budget |
| `running.py` | the double line: from private weights to released items |
| `holders.py` | how many users an item needs, and how often a common one stays away |
| `few.py` | levels of evidence under which items of few users stay away |
"""
