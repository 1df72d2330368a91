"""Candidates that no user holds: too many to list, so those that reach the lowest cutpoint are drawn.

Each of them reaches the lowest cutpoint with the chance of weight 0, by geometric gaps between hits; candidates with
votes are left out of the hits, since their own noise decides. The result has exactly the distribution of independent
draws for all candidates (docs/privacy/ngrams.md, "Simulation"). The published algorithm uses an estimated number of
candidates, which breaks its proof (docs/privacy/errata.md).
"""

from typing import Any, Protocol

import numpy as np

from voxpop.errors import BudgetError
from voxpop.kernels.arrays import Int64s
from voxpop.kernels.proved import proved
from voxpop.privacy import precise
from voxpop.privacy.decisions import FixedRule, NoisyLevels, ThresholdRule
from voxpop.privacy.sampling import SAMPLING_BAND, Tail, further_bits, invert
from voxpop.privacy.secret import Secret

_MOST_CANDIDATES = 2**46
MOST_CUTPOINTS = 2**7
"""`walk_slack` covers fewer."""


class Numbered(Protocol):
    """A public set of candidates, each with one number and one name."""

    @property
    def count(self) -> int:
        """The exact number of candidates."""

    def names(self, numbers: Int64s) -> Int64s:
        """Return the names of candidates by number, from 0 to count - 1."""


@proved("ngrams.md#proof")
def simulated(
    candidates: Numbered | None, rules: tuple[ThresholdRule, ...], secret: Secret, pass_name: str
) -> tuple[Int64s, Int64s]:
    """Grade the candidates without votes: who reaches the lowest cutpoint, and how they go on from there.

    Proof: "provided that those without weight are released with exactly the probability of weight zero"

    Args:
        candidates: all of them; None where only held items can be selected.
        rules: whether a noisy weight reaches each cutpoint; rising thresholds, the same noise.
        secret: source of the noise.
        pass_name: which pass of the release this is.

    Returns:
        Names, rising, and the number of cutpoints that each of them reaches.
    """
    if candidates is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    # p_0 >= p_1 >= ...: the chances of weight 0 in eighty digits.
    lowest, *higher = (each.exact(0) for each in rules)
    names = spurious_hits(candidates, lowest, secret, pass_name)
    # Given a hit, cutpoint i is reached with p_i / p_0, by one toss for all i (docs/privacy/ngrams.md, "Simulation").
    further = tuple(FixedRule(each / lowest) for each in higher)
    levels = NoisyLevels(further, secret, f"unsupported levels/{pass_name}")
    return names, 1 + levels(np.zeros(names.size, np.int64), names)


def spurious_hits(candidates: Numbered, chance: Any, secret: Secret, pass_name: str) -> Int64s:
    """Return the names of the candidates that would reach the threshold without any votes.

    Public, because votes are not used. Only the histogram determines which of them have votes, so that this information
    stays with the votes.

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
    if candidates.count > _MOST_CANDIDATES:
        raise BudgetError(
            "there are more than 2^46 candidates at one length, too many to simulate those without votes; "
            "use a lower limit, a smaller budget, or fewer lengths."
        )
    return np.sort(candidates.names(hits_below(candidates.count, chance, secret, pass_name)))


def hits_below(count: int, chance: Any, secret: Secret, pass_name: str, *, band: float = SAMPLING_BAND) -> Int64s:
    """Return the rising numbers below `count`, each of which is hit independently with the chance.

    Args:
        count: size of the range.
        chance: high-precision probability.
        secret: source of the gaps.
        pass_name: which pass of the release this is.
        band: error bound of doubles; only tests widen it.
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
        # A gap is the number of misses before a hit. Capped at `count`, sums stay far below 2^63.
        places = last + np.cumsum(np.minimum(gaps, count) + 1)
        found.append(places[places < count])
        last, drawn = int(places[-1]), drawn + at_once
    return np.concatenate([np.empty(0, np.int64), *found])


def _gap_tail(chance: Any) -> Tail:
    """The number of misses before the next hit: P(at least m) = (1 - chance)^m."""

    def exact(context: Any) -> tuple[Any, Any]:
        # P(at least m) = e^(-rate m), with rate = -ln(1 - p).
        return -context.log1p(-context.mpf(chance)), context.mpf(0)

    return Tail(float(exact(precise.context)[0]), 0.0, exact)
