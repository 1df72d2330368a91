"""N-grams: phrases of every length, faithful to the paper or guided by what was released.

| file | holds |
|---|---|
| `ngrams.py` | `NGrams`, the public configuration |
| `schedule.py` | the tuned constants, each with what it was measured against |
| `budgets.py` | how the lengths share the budget |
| `planning.py`, `plan.py`, `describe.py` | from a budget to the numbers that run |
| `grams.py`, `candidates.py` | public sets: what was released, and what may be voted for next, counted exactly |
| `forecast.py`, `guide.py` | what is likely, and what is worth a vote |
| `unsupported.py` | candidates that nobody voted for, simulated exactly |
| `releasing.py`, `table.py` | from private weights to a public table |
| `bands.py` | candidates in bands of likelihood |
| `calibration.py` | estimates put right by the votes |
| `thresholds.py` | thresholds from noisy votes |
| `later.py` | the rounds of lengths after the first |
| `lengths.py` | what each length of an extraction gets, and what it ran with |
| `spending.py` | what each pass may cost, from one budget or from every user's own |
| `prevote.py` | a wide vote before the vote |
| `sweep.py` | what came close is voted on once more |
| `threshold_vote.py` | from a vote to released grams |
| `spurious.py` | how many spurious grams each length may add |
"""

from voxpop.ngrams.ngrams import NGrams
from voxpop.ngrams.plan import NGramsPlan

__all__ = ["NGrams", "NGramsPlan"]
