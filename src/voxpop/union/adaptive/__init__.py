"""Adaptive rounds, the default set union: our own; docs/privacy/adaptive.md. The rounds are in `rounds/adaptive/`.

| file | holds |
|---|---|
| `planning.py`, `plan.py`, `describe.py` | from a budget to the numbers that run |
| `releasing.py` | from rounds to a release, of one data set or of several |
"""
