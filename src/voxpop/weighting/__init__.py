"""Weightings: how a user's unit of weight is shared over the user's items, and what is proved about each.

| file | holds |
|---|---|
| `rule.py` | what every weighting answers |
| `additive.py`, `descent.py`, `capped.py` | those that are built in |
| `own.py` | weightings of your own |
| `soundness.py` | the two axes of set union, weighting and noise, and which of their cells are sound |
"""

from voxpop.weighting.own import Weighting

__all__ = ["Weighting"]
