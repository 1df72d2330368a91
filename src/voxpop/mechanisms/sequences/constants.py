"""The tuned constants of sequences: public, and the same for every alphabet, length and budget.

`PARTS` and `GROWTH` were chosen on MSNBC and ubuntu_irc, which are public (docs/design/0004). The results of the whole
mechanism are in benchmarks/results/sequences_cells_msnbc.md and sequences_cells_irc.md; runs with other values are not
kept. No constant affects the guarantee: `PathBudget` adds up the shares that run, and everything that is computed from
noisy counts is post-processing (docs/privacy/sequences.md).
"""

from fractions import Fraction
from typing import Final

# ---- The tree of contexts (releasing.py) ----
import os
def knob(name, default): return float(os.environ.get(name, default))
PARTS = (Fraction(1, 20), Fraction(int(knob("P1",200)), 1000), Fraction(3, 10))
"""The part of its path's remaining epsilon that a context spends if it is split, by the length of the context; longer
contexts use the last part. The parts are just large enough to decide; a context that is not split spends all."""
GROWTH = 4.0
"""A context of length d is counted separately if it occurs GROWTH^(d - 1) times the number of bins times the noise
scale: longer contexts add less information."""

GROWTH = knob("GROWTH",4)
SHARE_OF_LENGTHS = Fraction(int(knob("LEN", 100)), 1000)
CLASSES = knob("CLASSES", 1.3)
ROOT_A = knob("ROOT_A", 6)
LEAST_K = knob("LEAST_K", 1)
K0 = knob("K0", .3)
X0 = knob("X0", .045)
TOP = knob("TOP", .5)

LARGE = 1_000
"""Above this many bins their number enters the rule above by its square root times the root of `LARGE`: most symbols of
a large alphabet are rare, and smoothing removes the noise of their bins. At epsilon 4 on reddit_posts, the error on
held queries of up to 4 words falls against the plain number from 0.068 to 0.062 (2,000 words), from 0.063 to 0.052
(20,000) and from 0.060 to 0.043 (100,000)."""

# ---- Finding the alphabet (plan.py) ----
FIND: Final = "find"
"""The value of `alphabet` that finds the alphabet in the data."""
FIND_SHARE = 0.25
"""The share of epsilon for finding the alphabet. All of delta is for it."""

# ---- From noisy counts to probabilities: empirical Bayes (smoothing.py) ----
TRUSTED_MEANS = 4
"""Below this stratum noise hides the mean ratio, which is then taken to be 1."""
FEWEST, MOST, ROUNDS = int(knob("FEWEST",30)), 4_000, 30
"""Minimum and maximum number of bins to which the ratios of a stratum are fitted, and rounds of expectation
maximization."""
SMOOTHINGS = 3
"""Number of smoothings of the weights in a round, each by a quarter to either side. On the same trees at epsilon 0.1
the error on random queries of up to 2 symbols is, on ubuntu_irc, 0.286 without, 0.281 with one and 0.278 with three
smoothings (ten trees); on MSNBC 0.153, 0.151 and 0.150 (two trees). More smoothing, tried on symbols alone, improved
random queries and degraded held queries by the same amount."""

# ---- Drawing from contexts (sampling.py) ----
DRAWN_TO_COUNT = 20_000
"""Sequences drawn to estimate the share that is cut at the maximum length: its standard deviation is at most 0.0036."""
UNSURE_OF_CUT = 0.1
"""Relative error allowed for the drawn share of sequences that are cut."""
UNSURE_OF_STEPS = 0.02
"""Relative error allowed for the drawn mean number of steps; it is 0.01 on MSNBC."""
