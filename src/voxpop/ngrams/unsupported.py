"""Candidates that nobody voted for: released with exactly the chance that noise alone gives them, without listing them.

Every candidate is hit independently with the chance p of an empty one. The gaps between hits are geometric, so hits are
found one after the other among the numbers of the candidates; then those with votes are left out, since their own noise
decides. What is left is exactly as if every unsupported candidate had had its own coin: the published algorithm does
the same with an estimated number of candidates, which breaks its proof (docs/privacy/errata.md).
"""

from typing import Any

import numpy as np

from voxpop.arrays import Int64s
from voxpop.errors import BudgetError
from voxpop.ngrams.candidates import Numbered
from voxpop.privacy import precise
from voxpop.privacy.inversion import BAND, Tail, further_bits, invert
from voxpop.privacy.secret import Secret

MOST_CANDIDATES = 2**46


def spurious_hits(candidates: Numbered, chance: Any, secret: Secret, pass_name: str) -> Int64s:
    """Return the names of the candidates that noise alone lifts over the threshold, should nobody vote for them.

    Public, since votes play no part in it. Which of them have votes is for the histogram to say, so that this stays
    where the votes are.

    Args:
        candidates: all candidates of this length.
        chance: high-precision probability that a candidate of weight 0 is released; strictly between 0 and 1.
        secret: source of the gaps.
        pass_name: which pass of the release this is.

    Returns:
        int64, rising names.

    Raises:
        BudgetError: where there are too many candidates to number them safely.
    """
    if candidates.count > MOST_CANDIDATES:
        raise BudgetError(
            "there are more than 2^46 candidates at one length, too many to simulate those without votes; "
            "use guide=True, a smaller budget for length 1, or pruning='both'."
        )
    return np.sort(candidates.names(hits_below(candidates.count, chance, secret, pass_name)))


def hits_below(count: int, chance: Any, secret: Secret, pass_name: str, *, band: float = BAND) -> Int64s:
    """Return the rising numbers below `count`, each of which is hit independently with the chance.

    Args:
        count: how many numbers there are.
        chance: high-precision probability.
        secret: source of the gaps.
        pass_name: which pass of the release this is.
        band: how far doubles are trusted; only tests widen it.
    """
    found: list[Int64s] = []
    expected = count * float(chance)
    # Six deviations of a binomial more than expected: nearly always one round is enough.
    at_once = int(expected + 6 * expected**0.5) + 16
    gap, purpose = _gap_tail(chance), f"unsupported/{pass_name}"
    last, drawn = -1, 0
    while last < count:
        numbers = np.arange(drawn, drawn + at_once)
        draws = secret.draws(purpose, numbers.astype(np.uint64), 0)
        gaps = invert(gap, draws, further_bits(secret, purpose, numbers, np.zeros_like(numbers)), most=count, band=band)
        # A gap is how many are missed before a hit. Capped at `count`, sums stay far below 2^63.
        places = last + np.cumsum(np.minimum(gaps, count) + 1)
        found.append(places[places < count])
        last, drawn = int(places[-1]), drawn + at_once
    return np.concatenate([np.empty(0, np.int64), *found])


def _gap_tail(chance: Any) -> Tail:
    """How many are missed before the next hit: P(at least m) = (1 - chance)^m."""

    def exact(context: Any) -> tuple[Any, Any]:
        # P(at least m) = e^(-rate m), with rate = -ln(1 - p).
        return -context.log1p(-context.mpf(chance)), context.mpf(0)

    return Tail(float(exact(precise.context)[0]), 0.0, exact)
