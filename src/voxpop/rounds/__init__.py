"""One round of weighing and deciding: what set union and n-grams are made of.

| file | holds |
|---|---|
| `plan.py` | a round with its noise filled in |
| `fractions.py` | how rounds share a budget |
| `holders.py` | how many users an item needs |
| `running.py` | one round on an engine |
"""
