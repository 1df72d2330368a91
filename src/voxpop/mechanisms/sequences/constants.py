"""The tuned constants of sequences: public, and the same for every alphabet, length and budget.

All were chosen on MSNBC, ubuntu_irc and small samples of both, which are public (docs/design/0004). The results of the
whole mechanism are in benchmarks/results/sequences_cells_*.md; runs with other values are not kept. No constant affects
the guarantee: `PathBudget` adds up the shares that run, and everything that is computed from noisy counts is
post-processing (docs/privacy/sequences.md).
"""

from fractions import Fraction
from typing import Final

# ---- The profile of users (releasing.py, profile.py) ----
MOST_FOR_LENGTHS, FOR_LENGTHS = Fraction(1, 10), 0.05
"""The part of epsilon for the lengths of sequences: 0.05 / sqrt(epsilon), at most a tenth."""
FOR_VARIETY = 1_500
"""Distinct and repeated symbols get `FOR_VARIETY` fortieths of the rest, divided by epsilon and users: 1 to 6."""
FIRST_SYMBOLS = 10
"""If only single symbols are counted, distinct and repeated ones are counted among this many first symbols."""
CLASS_GROWTH = 1.6
"""Lengths are counted in classes: 1, 2, 3, 4 to 5, 6 to 8, 9 to 13, 14 to 19, 20 to 31 and so on."""
USUAL_LENGTH, LONGEST_FOUND = 20, 1_000
"""Where no `max_length` is given: sequences are drawn up to the first of these lengths, as a rule; up to the second if
released lengths show so. The rule is `StepsRule` of `privacy/path_budget.py`: classes that noise explains
are empty, and longer than usual are sequences only if a fifth of the users have such ones. On 7,000 users of MSNBC, of
which 2 % have more than 35 pages, held queries of up to 2 symbols at epsilon 1 have a tenth more error if sequences are
drawn up to 35 symbols, and a fifth more at 56."""

# ---- The tree of contexts (releasing.py) ----
EPSILON_PARTS = (Fraction(1, 20), Fraction(1, 5), Fraction(3, 10))
"""The part of its path's remaining epsilon that a context spends if it is split, by the length of the context; longer
contexts use the last part. The parts are just large enough to decide; a context that is not split spends all."""
LEAST_COUNTED, PER_NOISE = Fraction(4, 5), Fraction(15)
"""The tree counts the first K steps of each sequence: K minimises `PER_NOISE` times the root of the noise of all of
epsilon, as a part of the mean count of a symbol, plus the share of the steps that are left out, of which at least
`LEAST_COUNTED` remain. Both follow from the released lengths, so neither costs epsilon."""
TOO_NOISY, MOST_SYMBOLS = 0.45, 24
"""Only single symbols are counted if noise of all of epsilon is more than this part of the mean count of a pair of
symbols. Most symbols of a large alphabet are rare: it counts like one of `MOST_SYMBOLS`."""
ROOT_PER_NOISE, MOST_FOR_ROOT = 6.0, Fraction(1, 2)
"""The root spends at least this many times that part of the rest of epsilon, but at most half."""
GROWTH = 4.0
"""A context of length d is counted separately if it occurs GROWTH^(d - 1) times the number of bins times the noise
scale: longer contexts add less information."""

LEAST_EASE, EASY = 0.5, 0.1
"""These numbers are smaller where noise is more than `EASY` of the mean count of a pair, in proportion, but by no more
than `LEAST_EASE`: there even a few contexts contain much information that single symbols lack."""
LARGE_COUNT = 1_000
"""Above this many bins their number enters the rule above by its square root times the root of `LARGE_COUNT`: most
symbols of a large alphabet are rare, and smoothing removes the noise of their bins. At epsilon 4 on reddit_posts, the
error on held queries of up to 4 words falls against the plain number from 0.068 to 0.062 (2,000 words), from 0.063 to
0.052 (20,000) and from 0.060 to 0.043 (100,000)."""

# ---- Finding the alphabet (plan.py) ----
FIND: Final = "find"
"""The value of `alphabet` that finds the alphabet in the data."""
FIND_SHARE = 0.25
"""The share of epsilon for finding the alphabet. All of delta is for it."""

# ---- From noisy counts to probabilities: empirical Bayes (context_tree.py) ----
QUANTILE, PER_EMPTY, USUAL_EMPTY, EMPTY = 0.6, 0.9, 0.3, 0.13
"""The quantile of the posterior that estimates a count, less `PER_EMPTY` times what the fitted weight of ratios below
`EMPTY` has above `USUAL_EMPTY`. Means make rare symbols too frequent, and so does a fixed quantile where most symbols
never follow: these weights are about 0.6 on processes, and 0.3 and less on clicks and chats."""
TRUSTED_MEANS = 4
"""Below this stratum noise hides the mean ratio, which is then taken to be 1."""
PRIOR_BINS, SPIKE = 5.0, 0.5
"""The fit of a stratum begins with the weights of the stratum above it, which count like `PRIOR_BINS` bins. Those of
the highest are `SPIKE` in the cell from 0, for symbols that never follow, and otherwise the density exp(-r)."""
MOST, ROUNDS = 4_000, 30
"""Maximum number of bins to which the ratios of a stratum are fitted, and rounds of expectation maximization."""
SMOOTHINGS = 3
"""Number of smoothings of the weights in a round, each by a quarter to either side. On the same trees at epsilon 0.1
the error on random queries of up to 2 symbols is, on ubuntu_irc, 0.286 without, 0.281 with one and 0.278 with three
smoothings (ten trees); on MSNBC 0.153, 0.151 and 0.150 (two trees). More smoothing, tried on single symbols only,
improved random queries and degraded held queries by the same amount."""

# ---- Drawn sequences that agree with the profile (profile.py) ----
FITTED, MOST_STEPS = 4_000, 80_000
"""Number of sequences that are simulated to fit ends and novelty, and most steps of them. A bootstrap model has an
eighth."""
NEVER, LEAST_NOVELTY, MOST_REPEATS, BISECTIONS, ROUNDS_OF_COPIES = 1e4, (1.0, 0.5), 0.98, 6, 3
"""No symbol is a copy from `NEVER` on; the least novelty, with longer contexts and without; the largest probability of
a copy of the latest symbol; bisections between the least and the largest value; rounds in which both are fitted in
turn. With longer contexts a least novelty of 0.25 made queries on MSNBC 2 to 3 percent worse."""
USUAL_DISTINCT = 0.9, 0.2
"""Sequences of real users have about 0.9 times the distinct symbols of a chain of contexts, give or take 0.2. This is
averaged with the released number by precision."""
UNSURE_OF_REPEATED = 0.2
"""Of the symbols after the first, real users repeat the share of a chain of contexts, give or take 0.2."""
UNSURE_OF_STEPS = 0.05
"""Relative error allowed for the mean number of steps of a sequence."""
