"""Candidates that nobody voted for: released with exactly the chance that noise alone gives them, without listing them.

Every candidate is hit independently with the chance p of an empty one. The gaps between hits are geometric, so hits are
found one after the other among the numbers of the candidates; then those with votes are left out, since their own noise
decides. What is left is exactly as if every unsupported candidate had had its own coin: the published algorithm does
the same with an estimated number of candidates, which breaks its proof (docs/privacy/errata.md).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxpop.errors import BudgetError
from voxpop.ngrams.candidates import Candidates
from voxpop.privacy import precise
from voxpop.privacy.secret import Secret

Int64s = NDArray[np.int64]

MOST_CANDIDATES = 2**46
DOUBT = 2.0**-32
"""Relative distance to a whole number within which doubles are not trusted; their error is below 2^-48."""
TAIL = 2.0**24
"""First words nearer than this to either end have too few bits left to take a logarithm of; one draw in 2^39."""


def unsupported_hits(candidates: Candidates, chance: Any, supported: Int64s, secret: Secret, occasion: str) -> Int64s:
    """Return the names of the unsupported candidates that noise alone lifts over the threshold.

    Args:
        candidates: all candidates of this length.
        chance: high-precision probability that a candidate of weight 0 is released; strictly between 0 and 1.
        supported: int64, names of the candidates with weight.
        secret: source of the gaps.
        occasion: which pass of the release this is.

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
    names = candidates.names(hits_below(candidates.count, chance, secret, occasion))
    return np.setdiff1d(names, supported, assume_unique=True)


def hits_below(count: int, chance: Any, secret: Secret, occasion: str) -> Int64s:
    """Return the rising numbers below `count`, each of which is hit independently with the chance."""
    found: list[Int64s] = []
    expected = count * float(chance)
    at_once = int(expected + 6 * expected**0.5) + 16
    last, drawn = -1, 0
    while last < count:
        numbers = np.arange(drawn, drawn + at_once, dtype=np.uint64)
        gaps = _gaps(secret.draws(f"unsupported/{occasion}", numbers, 0), chance)
        places = last + np.cumsum(np.minimum(gaps, count) + 1)
        found.append(places[places < count])
        last, drawn = int(places[-1]), drawn + at_once
    return np.concatenate([np.empty(0, np.int64), *found])


def _gaps(draws: NDArray[np.uint64], chance: Any) -> Int64s:
    """Return floor(log(uniform) / log(1 - chance)): how many are missed before the next hit."""
    log_miss = float(precise.context.log1p(-chance))
    words = draws[:, 0].astype(np.float64)
    missing = (~draws[:, 0]).astype(np.float64)
    logs = np.where(words < 2.0**63, np.log((words + 0.5) / 2.0**64), np.log1p(-(missing + 0.5) / 2.0**64))
    values = logs / log_miss
    gaps = np.floor(np.minimum(values, 2.0**62)).astype(np.int64)
    doubtful = np.abs(values - np.round(values)) <= DOUBT * (values + 1)
    for index in np.flatnonzero(doubtful | (words < TAIL) | (missing < TAIL)):
        gaps[index] = _exact_gap(draws[index], chance)
    return gaps


def _exact_gap(words: NDArray[np.uint64], chance: Any) -> int:
    uniform = precise.number(2 * ((int(words[0]) << 64) | int(words[1])) + 1) / precise.number(1 << 129)
    value = precise.context.log(uniform) / precise.context.log1p(-chance)
    return int(min(precise.context.floor(value), 2**62))
