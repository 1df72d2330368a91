"""One round of weighing and deciding: what set union and n-grams are made of.

| file | holds |
|---|---|
| `adaptive/` | rounds that add up evidence |
| `plan.py` | a round with its noise filled in |
| `fractions.py` | how rounds share a budget |
| `holders.py` | how many users an item needs |
| `running.py` | one round on an engine |
| `charge.py` | what rounds of weights cost, computed from the settings that will run, whoever planned them |
| `at_least.py` | items of few users stay away |
"""
