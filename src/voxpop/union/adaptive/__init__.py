"""Adaptive rounds, the default set union: our own; docs/privacy/adaptive.md.

| file | holds |
|---|---|
| `schedule.py` | the public constants: how the budget is shared over the rounds, and what is dropped |
| `planning.py`, `plan.py`, `describe.py` | from a budget to the numbers that run |
| `holders.py` | how many users an item needs, and how often a common one stays away |
| `releasing.py` | from private weights to a public set |
| `few.py` | levels of evidence under which items of few users stay away |
"""
