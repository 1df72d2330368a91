"""Weightings: how a user's unit of weight is shared over the user's items, and what is proved about each.

| file | holds |
|---|---|
| `sharing.py` | what every weighting answers |
| `additive.py`, `descent.py`, `capped.py` | those that are built in |
| `own.py` | weightings of your own |
| `cells.py` | which weighting goes with which noise |
"""

from voxpop.weighting.own import Weighting

__all__ = ["Weighting"]
