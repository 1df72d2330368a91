"""Focused set union: rounds that add up what they saw, and drop what is hopeless (our own; docs/privacy/focus.md).

| file | holds |
|---|---|
| `schedule.py` | the public constants: how the budget is shared over the rounds, and what is dropped |
| `planning.py`, `plan.py`, `describe.py` | from a budget to the numbers that run |
| `holders.py` | how many users an item needs |
| `releasing.py` | from private weights to a public set |
"""
