"""Audits: what a release really shows of one user, measured on the path that really runs.

| file | holds |
|---|---|
| `case.py` | two neighbouring collections, copied side by side, an event, and its exact probabilities |
| `audit.py` | run the cases of a mechanism |
| `union_cases.py`, `ngrams_cases.py`, `hitters_cases.py`, `sequences_cases.py` | the worst cases of each |
| `copies.py` | many copies of one tiny collection side by side, each with items and users of its own |
| `votes_cases.py` | n-grams as they run by default: guided, thresholds from votes, several lengths |
| `engines.py`, `memory_cases.py` | the same collections within a memory limit, or on Spark |
| `contexts_cases.py` | sequences by contexts |
| `tails.py` | exact tails of integer Laplace noise |
| `adaptive_cases.py` | the worst cases of adaptive rounds, the default set union |
| `promise_cases.py` | what is promised about items of few users |
| `several_cases.py` | several data sets that share one budget |
| `all_union_cases.py` | all of set union together |
| `top_cases.py` | rankings |
| `lower_bounds.py` | from counts to certain lower bounds of epsilon and delta |
| `walk_cases.py` | the whole default path of n-grams |
"""

from voxpop.testing.audit.audit import MECHANISMS, audit
from voxpop.testing.audit.case import Case, Finding, examine
from voxpop.testing.audit.lower_bounds import Counts, delta_shown, epsilon_shown, surely_refuted

__all__ = [
    "MECHANISMS",
    "Case",
    "Counts",
    "Finding",
    "audit",
    "delta_shown",
    "epsilon_shown",
    "examine",
    "surely_refuted",
]
