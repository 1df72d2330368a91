"""The tuned constants of sequences: public, chosen once, for every alphabet, length and budget.

`PARTS` and `GROWTH` were chosen on MSNBC and ubuntu_irc, which are public, and are the same for both
(docs/design/0004). What the whole gives stands in benchmarks/results/sequences_cells_msnbc.md and
sequences_cells_irc.md; runs with other values are not kept. None of them touches the guarantee: `PathBudget`
adds up what runs, and all that is done with noisy counts is post-processing (docs/privacy/sequences.md).

Two more constants of the same kind stand in `kernels/backoff.py` (`SIGNIFICANT`, `LEAST_OUTSIDE`), for a kernel needs
them when it is compiled.
"""

from fractions import Fraction

import numpy as np

# ---- The tree of contexts: what spends how much, and what is split (path_budget.py, splitting.py) ----
PARTS = (Fraction(1, 20), Fraction(1, 5), Fraction(3, 10))
"""What a context that is split spends of what its path has left, by its length; longer ones as the last. Just enough to
decide: a context that is not split spends all that is left."""
GROWTH = 4.0
"""A context is counted for itself where it occurs this often to the power of its length less one, times what follows it
can be times the scale of the noise: longer contexts say less that is new."""

# ---- Finding the alphabet (finding.py) ----
FIND_SHARE = 0.25
"""Of epsilon, what finding the alphabet costs; delta is all for it."""

# ---- From noisy counts of contexts to chances: empirical Bayes (settling.py) ----
EDGES = np.concatenate([[0.0], np.geomspace(1 / 64, 64, 49)])
"""float64 (50), edges of the cells of count over expected count: one from 0, then 8 to a factor of 4."""
STRATA = np.array([0.25, 1.0, 4.0, 16.0, 64.0, 256.0])
"""float64 (6), expected counts, in scales of the noise, that part bins whose ratios are told apart."""
TRUSTED_MEANS = 4
"""Below this stratum noise hides the mean ratio, which is then taken to be 1."""
FEWEST, MOST, ROUNDS = 30, 4_000, 30
"""Bins of a stratum from which its ratios are fitted, at least and at most, and rounds of expectation maximisation."""

# ---- The tree of grams: where sequences begin (openings.py) ----
SIGNIFICANT = 3.0
"""Standard deviations of noise below which a deviation is taken for noise."""

# ---- Drawing from contexts (context_sampling.py) ----
DRAWN_TO_COUNT = 20_000
"""Sequences drawn to see how many are cut at the greatest length: one deviation of their share is at most 0.0036."""
UNSURE_OF_CUT = 0.1
"""By how much of itself the drawn share of sequences that are cut may be wrong."""
UNSURE_OF_STEPS = 0.02
"""By how much of itself the drawn mean number of steps may be wrong: a hundredth on MSNBC, and 20,000 are drawn."""
