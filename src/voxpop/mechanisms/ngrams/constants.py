"""The tuned constants of n-grams: public, chosen once, for every corpus, limit and budget.

Figures are phrases released at epsilon 4, delta 1e-7, T 9, limit 100 on reddit_posts, unless another collection is
named; MSNBC at epsilon 1, T 6, limit 10. The pages of docs/design that are cited have the runs. Constants without a
figure were chosen in prototypes whose runs are not kept. They were measured only together: 169,461 phrases with these
constants, 136,573 with budgets shared by all users, 43,827 as published (docs/design/0015).

None of them affects the guarantee: for any constants, the filter charges the passes that run (docs/privacy/ngrams.md).
"""

# ---- Contribution bound (mechanism.py) ----
PHRASES_PER_USER = 100_000
"""Most grams of a user at one length from 2 on, unless the caller gives another one; the limit of words is chosen
privately. A higher limit does not change the noise. With the choice, 179,292 phrases and 9,688 of ubuntu_irc; with
3,000 at all lengths 178,330 and 9,603, with 100,000 at all lengths 177,608 and 9,646."""

# ---- How the lengths share mu^2 (charges.py) ----
SHARE_OF_WORDS = 1 / 6
"""Length 1's share of all mu^2. 0.13 released 129,673, 1/6 129,331, 0.2 127,624 (0011): a fifth gives 7 percent more
words and 1 percent fewer phrases (0012)."""
WORDS_PART = 0.6
"""The same share if words come in adaptive rounds, which release more with it. In prototypes a tenth of all mu^2
released 16,422 words among 176,484 phrases where one vote with a sixth had 15,161 among 170,452, a twentieth 12,867
among 175,311; on ubuntu_irc 1,362 among 9,453, and 988 among 8,756 (0016)."""
WORDS_NOVELTY = 0.15
"""Share of delta for words that only one user holds, in adaptive rounds before longer grams: set union's 0.4 leaves 2
percent less of mu^2 for these, and released 9,422 phrases of ubuntu_irc where this released 9,453 (0016)."""
VOTE_FALL = 0.45
"""A length's share of mu^2 over that of the length before, as a rule. It comes within 2 percent of the best fixed
shares on text; with it, and with a measurement at every length, 134,574 phrases were released instead of 132,376
(0011)."""
RISE = 1.5
"""The most of the same, where tokens are few and long grams outnumber short ones. On MSNBC growth of 1.5 released
10,900, shares that shrink 9,500 (0002)."""
DENSE = 0.1
"""The share of all valid candidates from which growth is assumed: expected to be released, so tokens are few. It
separates MSNBC from text, and nothing in between was measured (0002)."""
FEW_TOKENS = 100
"""Words released, up to which tokens count as few. MSNBC has 17 and ubuntu_irc 975 (0015);
nothing in between was measured."""
LEAST_SHARE = 1 / 3
"""The least part of an even share of the remaining budget that a length gets, for any worth: a guard for lengths whose
`values` are 0 but whose grams are parts of longer grams."""
MEASUREMENT = 0.02
"""Share of a length's mu^2 that goes to the measurement before it. Flat: 1.2 percent released 132,160, 2 percent
132,376, 3 percent 133,037 (0011)."""

# ---- Charges of passes, in shares of the mu^2 after length 1 (charges.py) ----
FIRST_CHARGES = (0.25, 0.12, 0.08)
"""Of lengths 2, 3 and 4; longer ones share the rest evenly, since few users reach them: of 500,000 users 424,000 hold a
candidate of two words, 20,000 one of six (0015)."""
CHAIN_FALL = 0.6
"""Ratio of the charge of a length to that of the length before if only the longest grams count, in addition to worth.
On ubuntu_irc, [0, 0, 0, 0, 1]: 276 with 0.45, 356 with 0.6, 312 with 0.8 and half the exponent of worth (0013)."""
PACED_FROM = 5
"""The first length at which users keep budget for later lengths, by their runs of candidates. From 2 on was behind in
prototypes (0015)."""
SECOND_CHANCE_SPARE = (0.4, 0.2, 0.1, 0.04)
"""Budget that a user keeps beyond the charges that can still follow, by length from `PACED_FROM` on; then nothing. It
goes to the second-chance pass, which finds short phrases: half of it released 166,269 phrases, of them 1,493 of length
6, these 169,204 and 1,238, twice of it 171,578 and 980 (0015)."""
SPARE_OF_DENSE = 0.5
"""The same where tokens are few: so much of these charges, at every length."""
SECOND_CHARGE = 0.75
"""Charge by which the noise of the second-chance pass is set; users pay all that they have left."""
SCREENING_CHARGES = (0.05, 0.025, 0.0125, 0.00625)
"""Of the screening votes before lengths 2 to 5; longer ones have none. Without them, and with half of
`SECOND_CHANCE_SPARE`, phrases of length 6 to 9 fell from 1,493, 333, 53 and 11 to 1,453, 280, 40 and 6, while the total
rose from 166,269 to 168,157 (0015)."""

# ---- Which candidates take part in a vote (forecast.py, schedule.py) ----
FIRST_BREADTH = 24
"""Candidates of length 2 for each released token. 24 released 128,900, 12 123,852 (0011)."""
BREADTH = 3
"""Candidates of length k + 1 for each released gram of length k, from k = 2 on, at most. 2, 2.5 and 3 lie within half a
percent; 8 released 130,677 instead of 136,413 (0011). Both breadths are within 2 percent of the best value on four
collections that differ thirtyfold in users and in tokens per user (0002)."""
LIKELY = 0.5
"""Candidates whose forecast is at least this multiple of the threshold are never pruned. It matters where few tokens
make nearly all likely: MSNBC 10,034 with it, 7,703 without (0002)."""
YIELD = 0.1
"""Share of a band that must be released for its forecasts to be voted for at the next length. 0.08 released 136,460,
0.1 136,413, 0.12 136,907, 0.2 134,272 (0011)."""
MANY = 200
"""Number of candidates of a band below which its yield carries no information: at a yield of 0.1 its deviation is a
fifth of it."""
FIRST_STANDING_OUT = 2.0
"""Candidates that pass the screening vote before length 2 only by noise, for each gram released before."""
STANDING_OUT = 0.3
"""The same before later lengths."""
SCREENING_STEPS = (0.5, 1.0, 2.0)
"""Cutpoints of a screening vote above its first, in its sigma: they divide the candidates that pass into bands."""
FIRST_EDGE = 0.5
"""Where the second band of candidates begins, in sigma of the vote; each next one begins at twice that."""
MOST_BANDS = 12
"""Bands of a length, at most: with twice the forecast from band to band, 11 edges span a factor of 1,024."""
FEWEST_IN_BAND = 64
"""No band begins where fewer candidates than that are left."""

# ---- Where thresholds may lie (votes.py, schedule.py) ----
VOTE_ALPHA = 5.0
"""Distance above the threshold at which weight stops rising, in sigma. 4 released 133,243, 5 132,376 (0011). With 3 a
frequent word is missing once in 700 releases and takes all its phrases with it (0002), with 5 less than once in a
million."""
FINE_CUTPOINTS = 24
"""Cutpoints below the published threshold. Thresholds by band released 123,852, one for each length 111,474 (0011)."""
FINE_STEP = 0.1
"""Step between cutpoints up to a sigma above the published threshold, in sigma: they may decide a band's fate."""
COARSE_STEP = 0.5
"""The same beyond: these only show the weight of a gram."""
FURTHEST = 20.0
"""Sigma above the published threshold at which cutpoints end, for any alpha."""
HITS = 8
"""Candidates that reach the lowest cutpoint only by noise, for each gram released before. These are simulated."""
LIKELIEST = 0.3
"""No cutpoint is so low that a candidate without votes reaches it more often."""
MOST_CHANCE = 0.93
"""Share of the candidates without users that can reach the cutpoint from which their number is estimated. Only the
second-chance pass has lower ones. With 0.98, 0.93, 0.84 and 0.6 it released 66,884, 67,091, 65,862 and 63,006 phrases
of the posts, 3,436, 3,637, 3,532 and 3,359 of ubuntu_irc, 2,715, 3,141, 3,138 and 3,024 of MSNBC: below a higher one
there are more that few people hold, below a lower one there are few of any. One second-chance pass each over votes that
were kept; no page has the runs."""
EARLY_ETA = 0.7
"""The part of eta that lengths up to 4 may use: the second-chance pass needs the rest (0015)."""
OWN_ETA_FROM = 5
"""From this length on each length may have eta times the grams released one shorter, as published, and never more than
eta of everything in all (0015)."""

# ---- Estimates (forecast.py) ----
FORECAST_CELLS_IN_SIGMA = 16
"""Cells of a measurement in one sigma of its noise: rounding adds 1 / (12 * 256) to the variance, and the cost of exact
arithmetic does not depend on the scale (0002)."""
ALIKE = 100
"""Grams whose measurements are averaged, at least, so that their mean is ten times as exact as one; neighbouring levels
are taken together. Forecasts from measurements and levels: 132,376 instead of 128,900 (0011)."""
LEAST_OF_MEAN = 0.25
"""Floor of an estimate, as a part of the mean of its class. Floors in sigma were measured before there were classes: a
tenth and a whole one released 1 and 3 percent fewer than a quarter (0002)."""
LEAST_MEAN = 1 / 16
"""Lower bound of such a mean, in sigma: most released grams are held by at least one user."""

# ---- The second-chance pass (votes.py, schedule.py) ----
PIECES = 6
"""Most pieces into which the deferred candidates of one band are parted, by their level."""
FEWEST_IN_PIECE = 100
"""No piece is smaller, unless it is a whole band."""
LEAST_REAL = 0.1
"""Pieces with a smaller estimated share of candidates that have users are left out of the second-chance pass."""
LOWEST_SECOND = -2.0
"""The lowest cutpoint of the second-chance pass, in sigma: its candidates are likely from the start."""
SECOND_CUTPOINTS = 60
"""Cutpoints of the second-chance pass below the published threshold; with those above there must be fewer than
`MOST_CUTPOINTS`."""
SECOND_ALPHA = 3.0
"""Distance above its threshold at which weight stops rising in the second-chance pass, in sigma: no later pass uses its
grams."""
