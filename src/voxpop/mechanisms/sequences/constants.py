"""The tuned constants of sequences, which are public and the same for every alphabet, length and budget.

All constants were chosen on MSNBC, ubuntu_irc and small samples of both, which are public (docs/design/0004). The
results of the whole mechanism are in benchmarks/results/sequences_cells_*.md; runs with other values are not kept. No
constant affects the guarantee, because `PathBudget` adds up the shares that run, and everything that is computed from
noisy counts is post-processing (docs/privacy/sequences.md).
"""

from fractions import Fraction
from typing import Final

# ---- The profile of users (releasing.py, profile.py) ----
MOST_FOR_LENGTHS, FOR_LENGTHS = Fraction(7, 100), 0.05
"""The part of epsilon for the lengths of sequences, which is `FOR_LENGTHS` / sqrt(epsilon), at most
`MOST_FOR_LENGTHS`. With a maximum of 0.1 instead, the mean error is 0.2 to 1.9 percent larger on the five small
collections, and up to 4 percent larger on all of MSNBC at epsilon 0.25."""
FOR_VARIETY = 1_500
"""Distinct and repeated symbols get `FOR_VARIETY` / (epsilon * users) fortieths of the rest, from 1 to 6."""
FIRST_SYMBOLS = 10
"""If only single symbols are counted, distinct and repeated symbols are counted among this many first symbols."""
CLASS_GROWTH = 1.6
"""Growth of the classes of lengths, which are 1, 2, 3, 4 to 5, 6 to 8, 9 to 13, 14 to 19, 20 to 31 and so on."""
USUAL_LENGTH, LONGEST_FOUND = 20, 1_000
"""Largest lengths of drawn sequences if no `max_length` is given. The first applies as a rule, and the second if
released lengths support it. By `StepsRule` of `privacy/path_budget.py`, classes that noise explains count as empty, and
sequences are longer than usual only if a fifth of the users have such sequences. For example, 2 % of 7,000 users of
MSNBC have more than 35 pages. Held queries of up to 2 symbols at epsilon 1 have a tenth more error if sequences are
drawn up to 35 symbols, and a fifth more at 56."""

# ---- The tree of contexts (releasing.py) ----
EPSILON_PARTS = (Fraction(1, 20), Fraction(1, 5), Fraction(3, 10))
"""The part of its path's remaining epsilon that a context spends if it is split, by the length of the context; longer
contexts use the last part. The parts are just large enough to decide. A context that is not split spends all of it."""
LEAST_COUNTED, PER_NOISE = Fraction(4, 5), Fraction(15)
"""The tree counts the first K steps of each sequence. K minimises the sum of two terms: `PER_NOISE` times the root of
the noise of all of epsilon, as a part of the mean count of a symbol, and the share of omitted steps. At least
`LEAST_COUNTED` of the steps remain. Both terms follow from the released lengths, so neither costs epsilon."""
TOO_NOISY, MOST_SYMBOLS = 0.45, 24
"""Only single symbols are counted if noise of all of epsilon is more than this part of the mean count of a pair of
symbols. A large alphabet counts as one of `MOST_SYMBOLS` symbols, because most of its symbols are rare."""
ROOT_PER_NOISE, MOST_FOR_ROOT = 6.0, Fraction(1, 2)
"""The root spends at least this many times that part of the remaining epsilon, but at most half."""
GROWTH = 3.5
"""A context of length d is counted separately if it occurs GROWTH^(d - 1) times the number of bins times the noise
scale, because longer contexts add less information. With 4 instead, errors on all of MSNBC are 1 to 7 percent larger
from epsilon 0.25 on. With 3, random queries there are up to 4 percent worse at epsilon 0.25, and queries on 7,000 users
of a chat are up to 14 percent worse."""

LEAST_EASE, EASY = 0.5, 0.1
"""These numbers decrease in proportion if noise is more than `EASY` of the mean count of a pair, but at most by the
factor `LEAST_EASE`, because in this case even a few contexts contain much information that single symbols lack."""
LARGE_COUNT = 1_000
"""Above this number of bins, the rule above uses the square root of the number of bins times the root of `LARGE_COUNT`,
because most symbols of a large alphabet are rare, and smoothing removes the noise of their bins. At epsilon 4 on
reddit_posts, this reduces the error on held queries of up to 4 words from 0.068 to 0.062 (2,000 words), from 0.063 to
0.052 (20,000) and from 0.060 to 0.043 (100,000)."""

# ---- Finding the alphabet (plan.py) ----
FIND: Final = "find"
"""The value of `alphabet` that finds the alphabet in the data."""
FIND_SHARE = 0.25
"""The share of epsilon for finding the alphabet, which also uses all of delta."""

# ---- From noisy counts to probabilities: empirical Bayes (context_tree.py) ----
QUANTILE, PER_EMPTY, USUAL_EMPTY, EMPTY = 0.6, 0.9, 0.3, 0.13
"""The quantile of the posterior that estimates a count. It is reduced by `PER_EMPTY` times the excess of the fitted
weight of ratios below `EMPTY` over `USUAL_EMPTY`. Means make rare symbols too frequent, and so does a fixed quantile if
most symbols never follow. These weights are about 0.6 on processes, and 0.3 and less on clicks and chats."""
TRUSTED_MEANS = 4
"""Below this stratum, noise hides the mean ratio, which is then assumed to be 1."""
PRIOR_BINS, SPIKE = 5.0, 0.5
"""The fit of a stratum begins with the weights of the next higher stratum, which count as `PRIOR_BINS` bins. The
weights of the highest stratum are `SPIKE` in the cell from 0, for symbols that never follow, and otherwise the density
exp(-r)."""
MOST, ROUNDS = 4_000, 30
"""Maximum number of bins to which the ratios of a stratum are fitted, and rounds of expectation maximization."""
SMOOTHINGS = 3
"""Number of smoothings of the weights per round, each by a quarter to either side. On the same trees at epsilon 0.1,
the error on random queries of up to 2 symbols on ubuntu_irc is 0.286 without smoothing, 0.281 with one and 0.278 with
three (ten trees). On MSNBC, it is 0.153, 0.151 and 0.150 (two trees). More smoothing, tried only on single symbols,
improved random queries and degraded held queries by the same amount."""

# ---- Drawn sequences that agree with the profile (profile.py) ----
FITTED, MOST_STEPS = 4_000, 80_000
"""Number of sequences that are simulated to fit ends and novelty, and the maximum number of their steps. A bootstrap
model uses an eighth of both."""
NEVER, LEAST_NOVELTY, MOST_REPEATS, BISECTIONS, ROUNDS_OF_COPIES = 1e4, (1.0, 0.5), 0.98, 6, 3
"""The novelty from which no symbol is a copy; the smallest novelty, with longer contexts and without; the largest
probability of a copy of the latest symbol; the number of bisections between the smallest and the largest value; the
number of rounds that fit both in turn. With longer contexts, a smallest novelty of 0.25 made queries on MSNBC 2 to 3
percent worse."""
USUAL_DISTINCT = 0.9, 0.2
"""Sequences of real users have about 0.9 times the distinct symbols of a chain of contexts, give or take 0.2. This is
averaged with the released number by precision."""
UNSURE_OF_REPEATED = 0.2
"""Real users repeat the same share of the symbols after the first as a chain of contexts, in half of the collections;
in the other half, give or take 0.2."""
UNSURE_OF_STEPS = 0.05
"""Relative error allowed for the mean number of steps of a sequence."""
