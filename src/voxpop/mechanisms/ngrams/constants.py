"""The tuned constants of n-grams, which are public and were chosen once for every corpus, limit and budget.

Figures are the numbers of phrases released at epsilon 4, delta 1e-7, T 9 and limit 100 on reddit_posts, unless another
collection is named. Figures of MSNBC are at epsilon 1, T 6 and limit 10. The cited pages of docs/design have the runs.
Constants without a figure were chosen in prototypes, and the runs of these are not kept. Such constants were only
measured together: 169,461 phrases with these constants, 136,573 with budgets shared by all users, 43,827 as published
(docs/design/0015).

None of the constants affects the guarantee, because the filter charges the passes that run for any constants
(docs/privacy/ngrams.md).
"""

# ---- Contribution bound (mechanism.py) ----
PHRASES_PER_USER = 100_000
"""Default maximum number of grams per user at each length from 2 on. The limit of words is chosen privately by
default. A higher limit does not change the noise. With the private choice, 179,292 phrases were released, and 9,688
on ubuntu_irc. With 3,000 at all lengths the numbers were 178,330 and 9,603, with 100,000 at all lengths 177,608 and
9,646."""

# ---- Shares of mu^2 by length (charges.py) ----
WORDS_OF_FEW = ((0, 0.5), (1_000, 0.2), (10_000, 0.1))
"""Pairs of a number of users and length 1's share of the total mu^2 from this number on, if every gram counts the same.
The unit of users is the sigma of one count that spends the whole budget. If few words are released, few phrases can be
made of them, so words need a larger share. With a given limit users are not counted, and the last share applies. In
prototypes, a tenth released 16,422 words among 176,484 phrases, and a twentieth 12,867 among 175,311 (0016)."""
KNOWN_WORDS_OF_FEW = ((0, 0.35), (1_000, 0.14), (10_000, 0.07))
"""The same with a public list of words, multiplied by 0.7, so that both words and phrases gain from the list."""
SPURIOUS_WORDS = 0.5
"""The part of `max_spurious_share` that words of a public list may use."""
WORDS_NOVELTY = 0.15
"""Share of delta for words of only one user, in adaptive rounds before longer grams. The 0.4 of set union leaves 2
percent less mu^2 for longer grams, and released 9,422 phrases on ubuntu_irc instead of 9,453 (0016)."""
VOTE_FALL = 0.45
"""Usual ratio of a length's share of mu^2 to the share of the preceding length. The result is within 2 percent of the
best fixed shares on text. With this ratio and a measurement at every length, 134,574 phrases were released instead of
132,376 (0011)."""
RISE = 1.5
"""Maximum of the same ratio, for collections with few tokens, where long grams outnumber short ones. On MSNBC, a growth
of 1.5 released 10,900 and decreasing shares 9,500 (0002)."""
DENSE = 0.1
"""Minimum share of all valid candidates that must be expected to be released for growth to be assumed, because tokens
are then few. The value separates MSNBC from text, and nothing in between was measured (0002)."""
FEW_TOKENS = 100
"""Maximum number of released words that counts as few tokens. MSNBC has 17 and ubuntu_irc 975 (0015). Nothing in
between was measured."""
LEAST_SHARE = 1 / 3
"""Minimum part of an even share of the remaining budget that each length receives, for any worth. It protects lengths
with `values` of 0, because their grams are parts of longer grams."""
MEASUREMENT = 0.02
"""Share of a length's mu^2 that pays for the measurement before it. The optimum is flat: 1.2 percent released 132,160,
2 percent 132,376 and 3 percent 133,037 (0011)."""

# ---- Charges of passes, in shares of the mu^2 after length 1 (charges.py) ----
FIRST_CHARGES = (0.25, 0.12, 0.08)
"""Charges of lengths 2, 3 and 4. Longer lengths share the rest evenly, because few users reach them: of 500,000 users,
424,000 have a candidate of two words and 20,000 have one of six (0015)."""
CHAIN_FALL = 0.6
"""Ratio of the charge of a length to the charge of the preceding length if only the longest grams count, in addition to
worth. On ubuntu_irc with [0, 0, 0, 0, 1], 0.45 released 276, 0.6 released 356, and 0.8 with half the exponent of worth
312 (0013)."""
PACED_FROM = 5
"""From this length on, users reserve budget for later lengths, depending on their runs of candidates. A start at length
2 released fewer phrases in prototypes (0015)."""
SECOND_CHANCE_SPARE = (0.4, 0.2, 0.1, 0.04)
"""Budget that a user keeps in addition to the charges that can still follow, by length from `PACED_FROM` on; nothing at
later lengths. The second-chance pass spends it and finds short phrases. Half of these values released 166,269 phrases,
and 1,493 of them had length 6. These values released 169,204 and 1,238, twice the values 171,578 and 980 (0015)."""
SPARE_OF_DENSE = 0.5
"""Spare budget if tokens are few, as a multiple of the charges that can still follow, at every length."""
SECOND_CHARGE = 0.75
"""Charge that determines the noise of the second-chance pass. Users pay all of their remaining budget."""
SCREENING_CHARGES = (0.05, 0.025, 0.0125, 0.00625)
"""Charges of the screening votes before lengths 2 to 5. Longer lengths have no screening vote. Without screening votes,
and with half of `SECOND_CHANCE_SPARE`, the numbers of phrases of length 6 to 9 decreased from 1,493, 333, 53 and 11 to
1,453, 280, 40 and 6, while the total increased from 166,269 to 168,157 (0015)."""

# ---- Which candidates take part in a vote (forecast.py, schedule.py) ----
FIRST_BREADTH = 24
"""Candidates of length 2 for each released token. A breadth of 24 released 128,900, and 12 released 123,852 (0011)."""
BREADTH = 3
"""Maximum number of candidates of length k + 1 for each released gram of length k, from k = 2 on. The results of 2, 2.5
and 3 differ by less than half a percent, and 8 released 130,677 instead of 136,413 (0011). Both breadths are within 2
percent of the best value on four collections that differ thirtyfold in users and in tokens per user (0002)."""
LIKELY = 0.5
"""Candidates with a forecast of at least this multiple of the threshold are never pruned. This matters if there are so
few tokens that nearly all candidates are likely: MSNBC has 10,034 phrases with it and 7,703 without (0002)."""
YIELD = 0.1
"""Share of a band that must be released for candidates with such forecasts to take part in the next vote. A yield of
0.08 released 136,460, 0.1 136,413, 0.12 136,907 and 0.2 134,272 (0011)."""
MANY = 200
"""Minimum number of candidates in a band for its yield to be informative. With 200 candidates, the standard deviation
of a yield of 0.1 is a fifth of it."""
FIRST_STANDING_OUT = 2.0
"""Candidates that pass the screening vote before length 2 only because of noise, per gram released at the preceding
length."""
STANDING_OUT = 0.3
"""The same number before later lengths."""
SCREENING_STEPS = (0.5, 1.0, 2.0)
"""Cutpoints of a screening vote above its first cutpoint, in units of its sigma. They divide the candidates that pass
into bands."""
FIRST_EDGE = 0.5
"""Lowest forecast of the second band of candidates, in units of the vote's sigma. Each further band begins at twice the
forecast of the preceding band."""
MOST_BANDS = 12
"""Maximum number of bands per length. The forecast doubles from band to band, so 11 edges span a factor of 1,024."""
FEWEST_IN_BAND = 64
"""Minimum number of remaining candidates for a further band to begin."""

# ---- Possible thresholds (votes.py, schedule.py) ----
VOTE_ALPHA = 5.0
"""Distance above the threshold at which weight stops increasing, in sigma. An alpha of 4 released 133,243 and 5
released 132,376 (0011). With 3, a frequent word is missing once in 700 releases, and then all its phrases are missing
too (0002). With 5, it is missing less than once in a million releases."""
FINE_CUTPOINTS = 24
"""Cutpoints below the published threshold. Thresholds by band released 123,852, and one threshold for each length
111,474 (0011)."""
FINE_STEP = 0.1
"""Step between cutpoints up to one sigma above the published threshold, in sigma. These cutpoints may become the
threshold of a band."""
COARSE_STEP = 0.5
"""Step between higher cutpoints, in sigma. These only show the weight of a gram."""
FURTHEST = 20.0
"""Distance of the last cutpoint above the published threshold, in sigma, for any alpha."""
HITS = 8
"""Candidates that reach the lowest cutpoint only because of noise, per gram released at the preceding length. Their
weights are simulated."""
LIKELIEST = 0.3
"""Maximum probability that a candidate without votes reaches the lowest cutpoint."""
MOST_CHANCE = 0.93
"""Maximum share of the candidates without users that reach the reference cutpoint, which is used to estimate their
number. Only the second-chance pass has lower cutpoints. With 0.98, 0.93, 0.84 and 0.6 it released 66,884, 67,091,
65,862 and 63,006 phrases of the posts, 3,436, 3,637, 3,532 and 3,359 of ubuntu_irc, and 2,715, 3,141, 3,138 and 3,024
of MSNBC. Below a higher cutpoint there are more candidates with few users, below a lower one there are few candidates
of any kind. These are single second-chance passes over votes that were kept, and no page has the runs."""
EARLY_ETA = 0.7
"""The part of eta that lengths up to 4 may use, because the second-chance pass needs the rest (0015)."""
OWN_ETA_FROM = 5
"""From this length on, each length may add eta times the number of released grams that are one token shorter, as
published, but never more than eta of all released grams in total (0015)."""

# ---- Estimates (forecast.py) ----
FORECAST_CELLS_IN_SIGMA = 16
"""Cells of a measurement per sigma of its noise. Rounding adds 1 / (12 * 256) to the variance, and the cost of exact
arithmetic does not depend on the scale (0002)."""
ALIKE = 100
"""Minimum number of grams with averaged measurements, so that their mean is ten times as exact as one measurement.
Neighbouring levels are merged to reach this number. Forecasts from measurements and levels released 132,376 instead of
128,900 (0011)."""
LEAST_OF_MEAN = 0.25
"""Lower bound of an estimate, as a part of the mean of its class. Bounds in sigma were measured before there were
classes: a tenth and a whole sigma released 1 and 3 percent fewer than a quarter (0002)."""
LEAST_MEAN = 1 / 16
"""Lower bound of such a mean, in sigma, because released grams usually have at least one user."""

# ---- The second-chance pass (votes.py, schedule.py) ----
PIECES = 6
"""Maximum number of pieces into which the deferred candidates of one band are divided, by their level."""
FEWEST_IN_PIECE = 100
"""Minimum size of a piece, unless the piece is a whole band."""
LEAST_REAL = 0.1
"""Minimum estimated share of candidates with users. The second-chance pass skips pieces with a smaller share."""
LOWEST_SECOND = -2.0
"""The lowest cutpoint of the second-chance pass, in sigma. It is low because the deferred candidates are likely from
the start."""
SECOND_CUTPOINTS = 60
"""Cutpoints of the second-chance pass below the published threshold. Together with the cutpoints above it there must be
fewer than `MOST_CUTPOINTS`."""
SECOND_ALPHA = 3.0
"""Distance above the threshold at which weight stops increasing in the second-chance pass, in sigma. It is smaller than
in votes, because no later pass uses these grams."""
