"""Set union: the items that many people share.

| file | holds |
|---|---|
| `set_union.py` | `SetUnion`, the public configuration |
| `planning.py`, `set_only.py`, `plan.py`, `describe.py` | from a budget to the numbers that run |
| `releasing.py` | from private weights to a public set |
| `adaptive/` | the default: rounds that add up what they saw and drop what is hopeless |
| `promised.py` | what a promise about items of few users comes to, and what it costs |
| `plan_numbers.py` | what both plans of a set union, of rounds and of adaptive rounds, say of themselves in numbers |
"""

from voxpop.union.plan import UnionPlan
from voxpop.union.set_union import SetUnion
from voxpop.weighting.own import Weighting

__all__ = ["SetUnion", "UnionPlan", "Weighting"]
