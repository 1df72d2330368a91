"""The tuned constants of sequences. These constants are public and apply to all alphabets, lengths and budgets.

All constants were tuned on MSNBC, ubuntu_irc and small samples of both. These collections are public
(docs/design/0004). The results of the whole mechanism are in benchmarks/results/sequences_cells_*.md. Runs with other
values were not kept. No constant affects the guarantee, because `PathBudget` adds up the shares that are spent, and
everything that is computed from noisy counts is post-processing (docs/privacy/sequences.md).
"""

from fractions import Fraction
from typing import Final

# ---- The profile of users (releasing.py, profile.py) ----
MOST_FOR_LENGTHS, FOR_LENGTHS = Fraction(7, 100), 0.05
"""The part of epsilon for the lengths of sequences is `FOR_LENGTHS` / sqrt(epsilon), and at most `MOST_FOR_LENGTHS`.
With a maximum of 0.1 instead, the mean error is 0.2 to 1.9 percent larger on the five small collections, and up to 4
percent larger on all of MSNBC at epsilon 0.25.
"""
FOR_VARIETY = 1_500
"""The numbers of distinct and repeated symbols get `FOR_VARIETY` / (epsilon * users) fortieths of the remaining
epsilon, but at least one fortieth and at most six.
"""
FIRST_SYMBOLS = 10
"""If only single symbols are counted, distinct and repeated symbols are counted among this number of symbols from the
start of each sequence.
"""
CLASS_GROWTH = 1.6
"""The growth of the classes of lengths, which are 1, 2, 3, 4 to 5, 6 to 8, 9 to 13, 14 to 19, 20 to 31 and so on."""
USUAL_LENGTH, LONGEST_FOUND = 20, 1_000
"""The maximum lengths of drawn sequences if no `max_length` is given. Usually the first number applies. The second
applies if released lengths support it. According to `StepsRule` in `privacy/path_budget.py`, classes that noise
explains count as empty, and sequences are longer than usual only if a fifth of the users have such sequences. For
example, 2 % of 7,000 users of MSNBC have more than 35 pages. At epsilon 1, the error of held-out queries of up to 2
symbols is a tenth larger if sequences are drawn up to 35 symbols, and a fifth larger at 56.
"""

# ---- The tree of contexts (releasing.py) ----
EPSILON_PARTS = (Fraction(1, 20), Fraction(1, 5), Fraction(3, 10))
"""The part of the remaining epsilon on its path that a context spends if it is split. There is one part for each length
of a context from 0 on, and longer contexts use the last part. The parts are just large enough to decide whether to
split. A context that is not split spends all of the remaining epsilon.
"""
LEAST_COUNTED, PER_NOISE = Fraction(4, 5), Fraction(15)
"""The tree counts the first K steps of each sequence. K minimises the sum of two terms. One term is `PER_NOISE` times
the square root of the noise scale that spends all of epsilon, as a fraction of the mean count of a symbol. The other
term is the share of omitted steps. At least `LEAST_COUNTED` of the steps remain. Both terms follow from the released
lengths, so neither costs epsilon.
"""
TOO_NOISY, MOST_SYMBOLS = 0.45, 24
"""Only single symbols are counted if the noise scale that spends all of epsilon is more than this fraction of the mean
count of a pair of symbols. A large alphabet counts as an alphabet of `MOST_SYMBOLS` symbols, because most of its
symbols are rare.
"""
ROOT_PER_NOISE, MOST_FOR_ROOT = 6.0, Fraction(1, 2)
"""The part of the remaining epsilon that the root spends is at least this multiple of the noise scale that spends all
of epsilon, as a fraction of the mean count of a symbol. However, it is at most half.
"""
GROWTH = 3.5
"""A context of length d is counted separately if its number of occurrences is at least GROWTH^(d - 1) times the number
of bins times the noise scale, because longer contexts add less information. With 4 instead, errors on all of MSNBC are
1 to 7 percent larger from epsilon 0.25 on. With 3, the errors of random queries there are up to 4 percent larger at
epsilon 0.25, and the errors of queries on 7,000 users of a chat are up to 14 percent larger.
"""

LEAST_EASE, EASY = 0.5, 0.1
"""The required numbers of occurrences decrease in proportion if the noise is more than the fraction `EASY` of the mean
count of a pair, but at most by the factor `LEAST_EASE`. In this case, even a few contexts contain much information that
single symbols lack.
"""
LARGE_COUNT = 1_000
"""Above this number of bins, the rule above uses the square root of the number of bins times the square root of
`LARGE_COUNT`, because most symbols of a large alphabet are rare, and smoothing removes the noise of their bins. At
epsilon 4 on reddit_posts, this reduces the error on held-out queries of up to 4 words from 0.068 to 0.062 (2,000
words), from 0.063 to 0.052 (20,000 words) and from 0.060 to 0.043 (100,000 words).
"""

# ---- Finding the alphabet (plan.py) ----
FIND: Final = "find"
"""The value of `alphabet` that finds the alphabet in the data."""
FIND_SHARE = 0.25
"""The share of epsilon for finding the alphabet, which also uses all of delta."""

# ---- From noisy counts to probabilities: empirical Bayes (context_tree.py) ----
QUANTILE, PER_EMPTY, USUAL_EMPTY, EMPTY = 0.6, 0.9, 0.3, 0.13
"""The quantile of the posterior that estimates a count. It is reduced by `PER_EMPTY` times the amount by which the
fitted weight of ratios below `EMPTY` exceeds `USUAL_EMPTY`. Means make rare symbols too frequent. A fixed quantile also
makes them too frequent if most symbols never follow. These weights are about 0.6 on processes, and 0.3 or less on
clicks and chats.
"""
TRUSTED_MEANS = 4
"""Below this stratum, the mean ratio cannot be estimated because of the noise, so it is assumed to be 1."""
PRIOR_BINS, SPIKE = 5.0, 0.5
"""The fit of a stratum begins with the weights of the next higher stratum, which count as `PRIOR_BINS` bins. The
initial weights of the highest stratum have the density exp(-r), plus a weight of `SPIKE` in the cell that starts at 0,
for symbols that never follow.
"""
MOST, ROUNDS = 4_000, 30
"""The maximum number of bins to which the ratios of a stratum are fitted, and the number of rounds of expectation
maximisation.
"""
SMOOTHINGS = 3
"""The number of smoothing steps of the weights per round. Each step moves a quarter of the weight to each side. On the
same trees at epsilon 0.1, the error on random queries of up to 2 symbols on ubuntu_irc is 0.286 without smoothing,
0.281 with one step and 0.278 with three steps (ten trees). On MSNBC, it is 0.153, 0.151 and 0.150 (two trees). More
smoothing was tried only on single symbols. It improved random queries and degraded held-out queries by the same amount.
"""

# ---- Drawn sequences that agree with the profile (profile.py) ----
FITTED, MOST_STEPS = 4_000, 80_000
"""The number of sequences that are simulated to fit ends and novelty, and the maximum number of their steps. A
bootstrap model uses an eighth of both.
"""
NEVER, LEAST_NOVELTY, MOST_REPEATS, BISECTIONS, ROUNDS_OF_COPIES = 1e4, (1.0, 0.5), 0.98, 6, 3
"""The novelty from which no symbol is a copy; the smallest novelty with longer contexts, and without them; the largest
probability of a copy of the latest symbol; the number of bisections between the smallest and the largest value; and the
number of rounds that fit both in turn. With longer contexts, a smallest novelty of 0.25 increased the error of queries
on MSNBC by 2 to 3 percent.
"""
USUAL_DISTINCT = 0.9, 0.2
"""Sequences of real users have about 0.9 times the number of distinct symbols of a chain of contexts, with a standard
deviation of about 0.2. This prior is averaged with the released number, weighted by precision.
"""
UNSURE_OF_REPEATED = 0.2
"""In half of the collections, real users repeat the same share of the symbols after the first as a chain of contexts.
In the other half, the share differs, with a standard deviation of about 0.2.
"""
UNSURE_OF_STEPS = 0.05
"""The relative error that is assumed for the mean number of steps of a sequence."""
