"""The tuned constants of n-grams. These constants are public and were chosen once for all corpora, limits and budgets.

Figures are numbers of phrases that were released from reddit_posts at epsilon 4, delta 1e-7, T 9 and limit 100, unless
another collection is named. Figures for MSNBC are at epsilon 1, T 6 and limit 10. The cited pages of docs/design
describe the runs. Constants without a figure were chosen in prototypes, and the runs of these prototypes were not kept.
The effect of such constants was measured only for all of them together. With them, 169,461 phrases were released,
compared with 136,573 phrases with budgets shared by all users and 43,827 phrases with the published algorithm
(docs/design/0015).

None of the constants affects the guarantee, because the individual filter charges for the passes that actually run
(docs/privacy/ngrams.md).
"""

# ---- Contribution bound (mechanism.py) ----
PHRASES_PER_USER = 100_000
"""The default maximum number of grams per user at each length from 2 on. By default, the limit of words is chosen
privately. A higher limit does not change the noise. With the private choice, 179,292 phrases were released from
reddit_posts and 9,688 from ubuntu_irc. With a limit of 3,000 at all lengths, the numbers were 178,330 and 9,603. With
100,000 at all lengths, they were 177,608 and 9,646.
"""

# ---- Shares of mu^2 by length (charges.py) ----
WORDS_OF_FEW = ((0, 0.5), (1_000, 0.2), (10_000, 0.1))
"""Pairs of a number of users and the share of the total mu^2 for length 1 from this number of users on, if all grams
have equal values. Numbers of users are in units of the sigma of one count that spends the whole budget. If few words
are released, few phrases can be made of them, so words need a larger share. If a limit is given, users are not counted,
and the last share applies. In prototypes, a share of a tenth released 16,422 words among 176,484 phrases, and a
twentieth released 12,867 words among 175,311 phrases (0016).
"""
KNOWN_WORDS_OF_FEW = ((0, 0.35), (1_000, 0.14), (10_000, 0.07))
"""The pairs with a public list of words. The shares are multiplied by 0.7, so that both words and phrases benefit from
the list.
"""
SPURIOUS_WORDS = 0.5
"""The part of `max_spurious_share` that words of a public list may use."""
WORDS_NOVELTY = 0.15
"""The share of delta for words that only one user has, in adaptive rounds before longer grams. The share of set union,
0.4, leaves 2 percent less mu^2 for longer grams, and released 9,422 phrases from ubuntu_irc instead of 9,453 (0016).
"""
VOTE_FALL = 0.45
"""The usual ratio of a length's share of mu^2 to the share of the preceding length. On text, the result is within 2
percent of the result with the best fixed shares. With this ratio and a measurement at every length, 134,574 phrases
were released instead of 132,376 (0011).
"""
RISE = 1.5
"""The maximum of this ratio, for collections with few tokens, which have more long grams than short grams. On
MSNBC, a growth of 1.5 released 10,900 phrases, and decreasing shares released 9,500 (0002).
"""
DENSE = 0.1
"""Growth is assumed if at least this share of all valid candidates is expected to be released, because there are then
few tokens. The value separates MSNBC from text. No collection between the two was measured (0002).
"""
FEW_TOKENS = 100
"""The maximum number of released words that counts as few tokens. MSNBC has 17 words, and ubuntu_irc has 975 (0015). No
collection between the two was measured.
"""
LEAST_SHARE = 1 / 3
"""The minimum part of an even share of the remaining budget that each length receives, regardless of its worth. It
protects lengths whose value is 0, because their grams are parts of longer grams.
"""
MEASUREMENT = 0.02
"""The share of a length's mu^2 that pays for the measurement before it. The optimum is flat. A share of 1.2 percent
released 132,160 phrases, 2 percent released 132,376, and 3 percent released 133,037 (0011).
"""

# ---- Charges of passes, in shares of the mu^2 after length 1 (charges.py) ----
FIRST_CHARGES = (0.25, 0.12, 0.08)
"""The charges of lengths 2, 3 and 4. Longer lengths share the rest evenly, because few users reach them. Of 500,000
users, 424,000 have a candidate of two words, and 20,000 have a candidate of six words (0015).
"""
CHAIN_FALL = 0.6
"""The ratio of the charge of a length to the charge of the preceding length if only the longest grams count, in
addition to the effect of worth. On ubuntu_irc with [0, 0, 0, 0, 1], a ratio of 0.45 released 276 phrases and 0.6
released 356. A ratio of 0.8 with half the exponent of worth released 312 (0015).
"""
PACED_FROM = 5
"""From this length on, users reserve budget for later lengths, depending on their runs of candidates. In prototypes,
starting at length 2 released fewer phrases (0015).
"""
SECOND_CHANCE_SPARE = (0.4, 0.2, 0.1, 0.04)
"""The budget that a user keeps in addition to the charges that can still follow, for each length from `PACED_FROM` on;
0 for lengths after the last entry. The second-chance pass spends it and finds short phrases. With half of these values,
166,269 phrases were released, and 1,493 of them had length 6. With these values, the numbers were 169,204 and 1,238,
and with twice these values, they were 171,578 and 980 (0015).
"""
SPARE_OF_DENSE = 0.5
"""The spare budget at every length if there are few tokens, as a multiple of the charges that can still follow."""
SECOND_CHARGE = 0.75
"""The charge that determines the noise of the second-chance pass. Users pay all of their remaining budget."""
SCREENING_CHARGES = (0.05, 0.025, 0.0125, 0.00625)
"""The charges of the screening votes before lengths 2 to 5. Longer lengths have no screening vote. Without screening
votes, and with half of `SECOND_CHANCE_SPARE`, the numbers of phrases of lengths 6 to 9 decreased from 1,493, 333, 53
and 11 to 1,453, 280, 40 and 6, but the total increased from 166,269 to 168,157 (0015).
"""

# ---- Which candidates take part in a vote (forecast.py, schedule.py) ----
FIRST_BREADTH = 24
"""The number of candidates of length 2 for each released token. A breadth of 24 released 128,900 phrases, and 12
released 123,852 (0011).
"""
BREADTH = 3
"""The maximum number of candidates of length k + 1 for each released gram of length k, from k = 2 on. The results of 2,
2.5 and 3 differ by less than half a percent, and 8 released 130,677 phrases instead of 136,413 (0011). On four
collections that differ by a factor of thirty in users and in tokens per user, both breadths are within 2 percent of the
best value (0002).
"""
LIKELY = 0.5
"""Candidates with a forecast of at least this multiple of the threshold are never pruned. This matters if there are so
few tokens that nearly all candidates are likely. On MSNBC, 10,034 phrases are released with this rule, and 7,703
without it (0002).
"""
YIELD = 0.1
"""The share of a band that must be released for candidates with such forecasts to take part in the next vote. A yield
of 0.08 released 136,460 phrases, 0.1 released 136,413, 0.12 released 136,907, and 0.2 released 134,272 (0011).
"""
MANY = 200
"""The minimum number of candidates in a band that make its yield informative. With 200 candidates, the standard
deviation of a yield of 0.1 is a fifth of the yield.
"""
FIRST_STANDING_OUT = 2.0
"""The expected number of candidates that pass the screening vote before length 2 only because of noise, per gram
released at the preceding length.
"""
STANDING_OUT = 0.3
"""The number of such candidates before later lengths."""
SCREENING_STEPS = (0.5, 1.0, 2.0)
"""The cutpoints of a screening vote above its first cutpoint, in units of its sigma. They divide the candidates that
pass into bands.
"""
FIRST_EDGE = 0.5
"""The lowest forecast of the second band of candidates, in units of the vote's sigma. Each further band begins at twice
the lowest forecast of the preceding band.
"""
MOST_BANDS = 12
"""The maximum number of bands per length. The forecast doubles from band to band, so 11 edges span a factor of 1,024.
"""
FEWEST_IN_BAND = 64
"""The minimum number of remaining candidates that form a further band."""

# ---- Possible thresholds (votes.py, schedule.py) ----
VOTE_ALPHA = 5.0
"""The distance above the threshold at which weight stops increasing, in sigma. An alpha of 4 released 133,243 phrases,
and 5 released 132,376 (0011). With 3, a frequent word is missing from one in 700 releases, and then all its phrases are
also missing (0002). With 5, it is missing from fewer than one in a million releases.
"""
FINE_CUTPOINTS = 24
"""The number of cutpoints below the published threshold. One threshold for each band released 123,852 phrases, and one
threshold for each length released 111,474 (0011).
"""
FINE_STEP = 0.1
"""The step between cutpoints up to one sigma above the published threshold, in sigma. These cutpoints may become the
threshold of a band.
"""
COARSE_STEP = 0.5
"""The step between higher cutpoints, in sigma. These cutpoints only show the weight of a gram."""
FURTHEST = 20.0
"""The distance from the published threshold up to the last cutpoint, in sigma, for any alpha."""
HITS = 8
"""The expected number of candidates that reach the lowest cutpoint only because of noise, per gram released at the
preceding length. Their weights are simulated.
"""
LIKELIEST = 0.3
"""The maximum probability that a candidate without votes reaches the lowest cutpoint."""
MOST_CHANCE = 0.93
"""The maximum share of the candidates without users that reach the reference cutpoint. This cutpoint is used to
estimate their number. Only the second-chance pass has lower cutpoints. With 0.98, 0.93, 0.84 and 0.6, it released
66,884, 67,091, 65,862 and 63,006 phrases of the posts, 3,436, 3,637, 3,532 and 3,359 phrases of ubuntu_irc, and 2,715,
3,141, 3,138 and 3,024 phrases of MSNBC. Below a higher cutpoint, there are more candidates with few users. Below a
lower cutpoint, there are few candidates of any kind. These figures are from single second-chance passes over stored
votes, and no page describes the runs.
"""
EARLY_ETA = 0.7
"""The part of eta that lengths up to 4 may use. The second-chance pass needs the rest (0015)."""
OWN_ETA_FROM = 5
"""From this length on, each length may add eta times the number of released grams that are one token shorter, as
published. The total never exceeds a share of eta of all released grams (0015).
"""

# ---- Estimates (forecast.py) ----
FORECAST_CELLS_IN_SIGMA = 16
"""The number of cells of a measurement per sigma of its noise. Rounding adds a share of 1 / (12 * 256) to the variance,
and the cost of exact arithmetic does not depend on the scale (0002).
"""
ALIKE = 100
"""The minimum number of grams whose measurements are averaged, so that the error of their mean is a tenth of the error
of one measurement. Adjacent levels are merged to reach this number. Forecasts from both measurements and levels
released 132,376 phrases instead of 128,900 (0011).
"""
LEAST_OF_MEAN = 0.25
"""The lower bound of an estimate, as a fraction of the mean of its class. Bounds in sigma were measured before there
were classes. A bound of a tenth of sigma released 1 percent fewer phrases than a quarter, and a whole sigma released 3
percent fewer (0002).
"""
LEAST_MEAN = 1 / 16
"""The lower bound of such a mean, in sigma. The mean has a lower bound because released grams usually have at least one
user.
"""

# ---- The second-chance pass (votes.py, schedule.py) ----
PIECES = 6
"""The maximum number of pieces into which the deferred candidates of one band are divided, by their level."""
FEWEST_IN_PIECE = 100
"""The minimum size of a piece, unless the piece is a whole band."""
LEAST_REAL = 0.1
"""The minimum estimated share of candidates with users. The second-chance pass skips pieces with a smaller share."""
LOWEST_SECOND = -2.0
"""The lowest cutpoint of the second-chance pass, in sigma. It is low because deferred candidates are already likely."""
SECOND_CUTPOINTS = 60
"""The number of cutpoints of the second-chance pass below the published threshold. Together with the cutpoints above
it, there must be fewer than `MOST_CUTPOINTS`.
"""
SECOND_ALPHA = 3.0
"""The distance above the threshold at which weight stops increasing in the second-chance pass, in sigma. It is smaller
than in votes, because no later pass uses these grams.
"""
