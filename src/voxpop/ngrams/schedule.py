"""The tuned constants of n-grams: public, chosen once, for every corpus, limit and budget.

Figures are phrases released at epsilon 4, delta 1e-7, T 9, limit 100 on reddit_posts, unless another collection is
named; MSNBC at epsilon 1, T 6, limit 10. The pages of docs/design that are cited have the runs. What has no figure was
settled in prototypes whose runs are not kept: it is measured as a part of the whole only, 169,461 phrases with these
constants and individual spending, 136,573 with shared spending, 43,827 as published (docs/design/0015).

None of them touches the guarantee: whatever stands here, the filter charges what runs (docs/privacy/ngrams.md).
"""

# ---- Of whom how much counts (ngrams.py) ----
LIMIT = 3_000
"""Most grams of a user at one length, unless the caller says otherwise. Within 1.6 percent of the best of eight limits
from 10 to 100,000 on four collections, where 100 lies 4, 3, 26 and 55 percent below it (0012)."""

# ---- How the lengths share mu^2 (budgets.py) ----
FIRST_SHARE = 1 / 6
"""Length 1's share of all mu^2. 0.13 released 129,673, 1/6 129,331, 0.2 127,624 (0011): a fifth gives 7 percent more
words and 1 percent fewer phrases (0012)."""
WORDS_PART = 0.6
"""Of the same, what length 1 gets where its words come in adaptive rounds: they release more of it. In prototypes a
tenth of all mu^2 released 16,422 words among 176,484 phrases where one vote with a sixth had 15,161 among 170,452, a
twentieth 12,867 among 175,311; on ubuntu_irc 1,362 among 9,453, and 988 among 8,756 (0016)."""
WORDS_NOVELTY = 0.15
"""Share of delta for words that one user alone holds, in adaptive rounds before longer grams: set union's 0.4 leaves 2
percent less of mu^2 for these, and released 9,422 phrases of ubuntu_irc where this released 9,453 (0016)."""
FALL = 0.45
"""A length's share of mu^2 over that of the length before, as a rule. It comes within 2 percent of the best fixed
shares on text; with it, and with a measurement at every length, 134,574 came out instead of 132,376 (0011)."""
RISE = 1.5
"""The most of the same, where tokens are few and long grams outnumber short ones. On MSNBC growth of 1.5 released
10,900, shares that shrink 9,500 (0002)."""
DENSE = 0.1
"""The share of all valid candidates from which growth is assumed: expected to be released, so tokens are few. It tells
MSNBC from text, and nothing in between was measured (0002)."""
FEW_TOKENS = 100
"""Words released, up to which tokens count as few under individual spending. MSNBC has 17 and ubuntu_irc 975 (0015);
nothing in between was measured."""
LEAST_SHARE = 1 / 3
"""Of an even share of what is left, the least that a length gets, whatever it is worth: a guard, for `values` that are
0 and longer grams that are made of its own."""
MEASUREMENT = 0.02
"""Share of a length's mu^2 that goes to the measurement before it. Flat: 1.2 percent released 132,160, 2 percent
132,376, 3 percent 133,037 (0011)."""

# ---- What a pass costs a user who pays for itself, in shares of its mu^2 after length 1 (spending.py, prevote.py) ----
FIRST_PRICES = (0.25, 0.12, 0.08)
"""Of lengths 2, 3 and 4; longer ones share the rest evenly, since few users reach them: of 500,000 users 424,000 hold a
candidate of two words, 20,000 one of six (0015)."""
CHAIN_FALL = 0.6
"""Of prices where only the longest grams count, a length's over that of the length before, beside what it is worth. On
ubuntu_irc, [0, 0, 0, 0, 1]: 276 with 0.45, 356 with 0.6, 312 with 0.8 and half the exponent of worth (0013)."""
PACED_FROM = 5
"""The first length at which users keep something for what follows, by their runs of candidates. From 2 on was behind in
prototypes (0015)."""
SPARE = (0.4, 0.2, 0.1, 0.04)
"""What a paced user keeps beyond the prices that it may still meet, by length from `PACED_FROM` on; then nothing. It
goes to the sweep, which finds short phrases: half of it released 166,269 phrases, of them 1,493 of length 6, these
169,204 and 1,238, twice of it 171,578 and 980 (0015)."""
SPARE_OF_DENSE = 0.5
"""The same where tokens are few: so much of these prices, at every length."""
SWEEP_PRICE = 0.75
"""Of the sweep, at which its noise is set; users pay all that they have left, and reach further or less far by it."""
PREVOTE_PRICES = (0.05, 0.025, 0.0125, 0.00625)
"""Of the wide votes before lengths 2 to 5; longer ones have none. Without them, and with half of `SPARE`, phrases of
length 6 to 9 fell from 1,493, 333, 53 and 11 to 1,453, 280, 40 and 6, while the total rose from 166,269 to 168,157
(0015)."""

# ---- Who is voted on (guide.py, prevote.py, bands.py) ----
FIRST_BREADTH = 24
"""Candidates of length 2 for each released token. 24 released 128,900, 12 123,852 (0011)."""
BREADTH = 3
"""Candidates of length k + 1 for each released gram of length k, from k = 2 on, at most. 2, 2.5 and 3 lie within half a
percent; 8 released 130,677 instead of 136,413 (0011). Both breadths are within 2 percent of the best value on four
collections that differ thirtyfold in users and in tokens per user (0002)."""
LIKELY = 0.5
"""Candidates whose forecast is at least so many thresholds are never pruned, however many they are. It matters where
few tokens make nearly all likely: MSNBC 10,034 with it, 7,703 without (0002)."""
WORTHWHILE = 0.5
"""Under shared spending: where fewer than so many times the candidates to be kept are valid, there is too little to
prune for a measurement. MSNBC had lost 1.5 percent to measurements (0002)."""
YIELD = 0.1
"""Share of a band that must come out for its forecasts to be voted for at the next length. 0.08 released 136,460, 0.1
136,413, 0.12 136,907, 0.2 134,272 (0011)."""
MANY = 200
"""Candidates of a band, below which its yield says nothing: at a yield of 0.1 its deviation is a fifth of it."""
FIRST_STANDING_OUT = 2.0
"""Candidates that stand out in the wide vote before length 2 by noise alone, for each gram released before."""
STANDING_OUT = 0.3
"""The same before later lengths."""
PREVOTE_STEPS = (0.5, 1.0, 2.0)
"""Cutpoints of a wide vote above its first, in its sigma: they part those that stand out into bands."""
FIRST_EDGE = 0.5
"""Where the second band of candidates begins, in sigma of the vote; each next one begins at twice that."""
MOST_BANDS = 12
"""Bands of a length, at most: with twice the forecast from band to band, 11 edges span a factor of 1,024."""
FEWEST_IN_BAND = 64
"""No band begins where fewer candidates than that are left."""

# ---- Where thresholds may lie (thresholds.py, releasing.py) ----
ALPHA = 5.0
"""How far above the threshold weight rises, in sigma. 4 released 133,243, 5 132,376 (0011). With 3 a frequent word is
missing once in 700 releases and takes all its phrases with it (0002), with 5 less than once in a million."""
FINE_CUTPOINTS = 24
"""Cutpoints below the published threshold. Thresholds by band released 123,852, one for each length 111,474 (0011)."""
FINE_STEP = 0.1
"""Step between cutpoints up to a sigma above the published threshold, in sigma: they may decide a band's fate."""
COARSE_STEP = 0.5
"""The same beyond: these only tell how much a gram weighs."""
FURTHEST = 20.0
"""Sigma above the published threshold at which cutpoints end, whatever alpha is."""
HITS = 4
"""Candidates that reach the lowest cutpoint by noise alone, for each gram released before: so many are simulated."""
SWEPT_HITS = 8
"""The same where what comes close is voted on once more."""
LIKELIEST = 0.3
"""No cutpoint is so low that a candidate without votes reaches it more often."""
MOST_REACH = 0.93
"""Of candidates that nobody holds, so many may reach the cutpoint whose others tell how many there are. Only the sweep
has lower ones. With 0.98, 0.93, 0.84 and 0.6 it released 66,884, 67,091, 65,862 and 63,006 phrases of the posts, 3,436,
3,637, 3,532 and 3,359 of ubuntu_irc, 2,715, 3,141, 3,138 and 3,024 of MSNBC: below a higher one there are more that few
people hold, below a lower one there are few of any. One sweep each over votes that were kept; no page has the runs."""
EARLY_ETA = 0.7
"""Under individual spending, the part of eta that lengths up to 4 may use: the sweep needs the rest (0015)."""
OWN_ETA_FROM = 5
"""From this length on each length may have eta times the grams released one shorter, as published, and never more than
eta of everything in all (0015)."""

# ---- Estimates (forecast.py, calibration.py) ----
CELLS_IN_SIGMA = 16
"""Cells of a measurement in one sigma of its noise: rounding adds 1 / (12 * 256) to the variance, and the cost of exact
arithmetic does not depend on the scale (0002)."""
ALIKE = 100
"""Grams whose measurements are averaged, at least, so that their mean is ten times as exact as one; neighbouring levels
are taken together. Forecasts from measurements and levels: 132,376 instead of 128,900 (0011)."""
LEAST_OF_MEAN = 0.25
"""Floor of an estimate, as a part of the mean of its class. Floors in sigma were measured before there were classes: a
tenth and a whole one released 1 and 3 percent fewer than a quarter (0002)."""
LEAST_MEAN = 1 / 16
"""Floor of such a mean, in sigma: every released gram is held by somebody, most likely."""

# ---- The sweep (sweep.py) ----
PIECES = 6
"""Most pieces into which the near misses of one band are parted, by their level."""
FEWEST_IN_PIECE = 100
"""No piece is smaller, unless it is a whole band."""
LEAST_REAL = 0.1
"""Pieces of which less than this is held by anybody, by estimate, are not swept."""
LOWEST_SWEPT = -2.0
"""The lowest cutpoint of the sweep, in sigma: what it votes on is likely to begin with."""
SWEEP_CUTPOINTS = 60
"""Cutpoints of the sweep below the published threshold; with those above there must be fewer than `MOST_CUTPOINTS`."""
SWEEP_ALPHA = 3.0
"""How far above its threshold weight rises in the sweep, in sigma: nothing is built on what comes out last."""
