"""The simulation of candidates without users.

There are too many of these candidates to list, so only those that reach the lowest cutpoint are drawn. Each candidate
has weight 0 and reaches the lowest cutpoint with the same probability, so the gaps between hits are geometric.
Candidates with votes are removed from the hits, because they have their own noise. The result has exactly the
distribution of independent draws for all candidates (docs/privacy/ngrams.md, "Simulation"). The published algorithm
uses an estimated number of candidates, which invalidates its proof (docs/privacy/errata.md).
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
"""The number of cutpoints must be smaller than this, so that `walk_slack` covers them."""


class Numbered(Protocol):
    """A public set of candidates. Each candidate has a number and a name."""

    @property
    def count(self) -> int:
        """The exact number of candidates."""

    def names(self, numbers: Int64s) -> Int64s:
        """Return the names of candidates by number, from 0 to count - 1."""


@proved("ngrams.md#proof")
def simulated(
    candidates: Numbered | None, rules: tuple[ThresholdRule, ...], secret: Secret, pass_name: str
) -> tuple[Int64s, Int64s]:
    """Return the candidates without votes that reach the lowest cutpoint, and their levels.

    Proof: "provided that those without weight are released with exactly the probability of weight zero"

    Args:
        candidates: The set of all candidates, or None if only items with users can be selected.
        rules: The probability that a noisy weight reaches each cutpoint. All rules have the same noise, and thresholds
            increase.
        secret: The source of the noise.
        pass_name: The name of this pass of the release.

    Returns:
        The names in increasing order, and the number of cutpoints that each of them reaches.
    """
    if candidates is None:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    # The probabilities p_0 >= p_1 >= ... that weight 0 reaches each cutpoint, with eighty digits.
    lowest, *higher = (each.exact(0) for each in rules)
    names = spurious_hits(candidates, lowest, secret, pass_name)
    # Given a hit, a candidate reaches cutpoint i with probability p_i / p_0. All cutpoints share one draw
    # (docs/privacy/ngrams.md, "Simulation").
    further = tuple(FixedRule(each / lowest) for each in higher)
    levels = NoisyLevels(further, secret, f"unsupported levels/{pass_name}")
    return names, 1 + levels(np.zeros(names.size, np.int64), names)


@proved("ngrams.md#proof")
def spurious_hits(candidates: Numbered, chance: Any, secret: Secret, pass_name: str) -> Int64s:
    """Return the names of the candidates that would reach the threshold without any votes.

    Proof: "Hits on candidates with weight are dropped, because these candidates have separate noise."

    The result is public, because it does not depend on votes. It does not reveal which of these candidates have votes,
    because only the histogram contains that information.

    Args:
        candidates: The set of all candidates of this length.
        chance: The high-precision probability that a candidate of weight 0 is released, strictly between 0 and 1.
        secret: The source of the gaps.
        pass_name: The name of this pass of the release.

    Returns:
        The names as int64, in increasing order.

    Raises:
        BudgetError: If there are too many candidates to number them safely.
    """
    if candidates.count > _MOST_CANDIDATES:
        raise BudgetError(
            "there are more than 2^46 candidates at one length, too many to simulate those without votes; "
            "use a lower limit, a smaller budget, or fewer lengths."
        )
    return np.sort(candidates.names(hits_below(candidates.count, chance, secret, pass_name)))


@proved("ngrams.md#proof")
def hits_below(count: int, chance: Any, secret: Secret, pass_name: str, *, band: float = SAMPLING_BAND) -> Int64s:
    """Return a random subset of the numbers below `count`, in increasing order.

    Proof: "Geometric gaps among all N numbers find hits with this probability."

    The subset contains each number independently with the same probability.

    Args:
        count: The size of the range.
        chance: The high-precision probability of each number.
        secret: The source of the gaps.
        pass_name: The name of this pass of the release.
        band: The error bound of doubles, which only tests increase.
    """
    found: list[Int64s] = []
    expected = count * float(chance)
    # Draw more gaps than expected, by six standard deviations of a binomial, so that one round almost always suffices.
    at_once = int(expected + 6 * expected**0.5) + 16
    gap, purpose = _gap_tail(chance), f"unsupported/{pass_name}"
    last, drawn = -1, 0
    while last < count:
        numbers = np.arange(drawn, drawn + at_once)
        draws = secret.draws(purpose, numbers.astype(np.uint64), 0)
        gaps = invert(gap, draws, further_bits(secret, purpose, numbers, np.zeros_like(numbers)), most=count, band=band)
        # A gap is the number of misses before a hit. Gaps are capped at `count`, so sums are far below 2^63.
        places = last + np.cumsum(np.minimum(gaps, count) + 1)
        found.append(places[places < count])
        last, drawn = int(places[-1]), drawn + at_once
    return np.concatenate([np.empty(0, np.int64), *found])


@proved("ngrams.md#proof")
def _gap_tail(chance: Any) -> Tail:
    """Return the tail probability of the number of misses before the next hit, P(at least m) = (1 - chance)^m.

    Proof: "Geometric gaps among all N numbers find hits with this probability."
    """

    def exact(context: Any) -> tuple[Any, Any]:
        # The tail is P(at least m) = e^(-rate m) with rate = -ln(1 - p).
        return -context.log1p(-context.mpf(chance)), context.mpf(0)

    return Tail(float(exact(precise.context)[0]), 0.0, exact)
