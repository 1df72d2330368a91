"""Set union: weightings × noises, rounds, plans and releases.

| file | holds |
|---|---|
| `set_union.py` | `SetUnion`, the public configuration |
| `cells.py` | which weighting goes with which noise |
| `sharing.py` | what every weighting answers |
| `additive.py`, `descent.py` | the four weightings |
| `weighting.py` | weightings of your own |
| `planning.py`, `plan.py`, `holders.py`, `describe.py` | from a budget to the numbers that run |
| `releasing.py` | from private weights to a public set |
| `adaptive/` | the default: rounds that add up what they saw and drop what is hopeless |
"""

from voxpop.union.plan import UnionPlan
from voxpop.union.set_union import SetUnion
from voxpop.union.weighting import Weighting

__all__ = ["SetUnion", "UnionPlan", "Weighting"]
