"""Counts: about how many users hold each released gram, and which are held by most.

| file | holds |
|---|---|
| `counts.py` | the mechanism and its fields |
| `plan.py` | the noise, and what it guarantees |
| `top.py` | which released grams most users hold, in order |
| `top_plan.py` | its noise, and what it guarantees |
| `query.py` | what both share: a query about the grams of a release |
| `shares.py` | what one user gives to each gram it holds |
| `holders.py` | the walk from words to the released grams: the private side |
| `releasing.py` | the double line |
| `listed.py` | the grams of a public list, as a walk through lengths names them |
"""

from voxpop.counts.counts import Counts
from voxpop.counts.plan import CountsPlan
from voxpop.counts.top import Top
from voxpop.counts.top_plan import TopPlan

__all__ = ["Counts", "CountsPlan", "Top", "TopPlan"]
