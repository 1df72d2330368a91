"""Whole sequences: a tree of released grams with noisy counts, and synthetic data from it (CAC12).

| file | holds |
|---|---|
| `sequences.py`, `alphabet.py`, `plan.py` | `Sequences`, the public configuration, and what will run |
| `schedule.py` | the tuned constants, each with what it was chosen on |
| `exploring.py`, `children.py`, `path_budget.py` | from private counts to a public tree: the double line |
| `splitting.py`, `context_tree.py`, `settling.py` | the same for contexts: the double line, the public tree, chances |
| `context_sampling.py`, `context_table.py` | what a tree of contexts is and does |
| `tree.py`, `openings.py` | the public tree: consistent chances, and how sequences begin |
| `model.py`, `sampling.py`, `synthesis.py`, `table.py`, `saving.py` | what a release is and does |
| `composition.py` | what an alphabet and a model cost together |
| `finding.py` | an alphabet found with part of the budget |
| `asking.py`, `redrawing.py` | questions to a model of contexts, each answer with an interval |
| `releasing.py` | from a plan and a corpus to a model |
| `reporting.py`, `picturing.py` | the report of a model, and what it draws |
| `likelihood.py` | how likely a draw is one whole sequence |
| `limits.py` | what bounds an exploration |
"""

from voxpop.sequences.composition import spent_together
from voxpop.sequences.finding import FindingPlan
from voxpop.sequences.model import SequenceModel
from voxpop.sequences.plan import SequencePlan
from voxpop.sequences.sequences import Sequences

__all__ = ["FindingPlan", "SequenceModel", "SequencePlan", "Sequences", "spent_together"]
