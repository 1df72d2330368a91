"""The influence of one user on the weights, and the weights of novel items (docs/privacy/set-union.md)."""

from dataclasses import dataclass
from types import SimpleNamespace

from flint import arb

from .balls import ONE, any_of, largest, normal, require, up

USERS = 2**33
"""The public bound on the number of users. Each of the two runs has the rounding error of one step per user."""
STEP = arb(2) ** -50
"""8 * 2^-53, the rounding error of a step of length 1. It is the sum over conversion, square, sum, root and
quotient."""
EVEN = {"count", "weighted"}
SEQUENTIAL = {"policy-gaussian", "capped"}


@dataclass(frozen=True)
class Bounded:
    """A weighting with its parameters, its sensitivity S, and the range [least, most(t)] of t novel weights."""

    name: str
    p: int
    limit: int
    unit: arb
    sensitivity: arb
    least: arb

    def share(self, n: int) -> arb:
        """Return n^(-1/p), the weight of each of n items that share a p-norm of 1 evenly."""
        return ONE / n if self.p == 1 else ONE / arb(n).sqrt()

    def most(self, t: int) -> arb:
        """Return the largest weight of each of t novel items, which have equal weights and a norm of at most S."""
        if self.name == "count":
            # "count" gives every item the weight of one of `limit` equal items, rounded down to the grid.
            return (self.share(self.limit) / self.unit).floor() * self.unit
        return self.sensitivity * self.share(t)


def bounded(b: SimpleNamespace, least_cap: arb | None = None) -> Bounded:
    """Return a weighting with its sensitivity. `least_cap` is the smallest cap (below 1) of an adaptive round."""
    p, limit, unit = b.norm, b.limit, arb(2) ** -b.bits
    require(p in (1, 2) and limit >= 1 and 0 <= b.bits <= 62 and b.bound in (1, 4), "a bounding is out of range")
    require(b.name in EVEN or p == (1 if b.name == "policy-laplace" else 2), "the norm does not belong to the rule")
    # The cutoff must be at least 1, so that items of weight 0 receive the largest step.
    fits = b.cutoff == 0 if b.name in EVEN else 2**b.bits <= b.cutoff <= 2**62
    require(fits, "a cutoff is out of range")
    share = ONE / limit if p == 1 else ONE / arb(limit).sqrt()
    floor = share - unit
    if b.name in EVEN:
        error, least = arb(0), floor
    elif b.name == "policy-laplace":
        error, least = limit * unit, floor
    else:
        # "A step is within 8u (1 + 4 / a) + L^(1/2) 2^-bits of the exact one." With individual bounds, the first
        # summand is multiplied by the largest bound, 4.
        error = STEP * b.bound * (1 if least_cap is None else 1 + 4 / least_cap) + arb(limit).sqrt() * unit
        least = floor - error
    require(least > 0, "novel items could have no weight")
    return Bounded(b.name, p, limit, unit, 1 + 2 * USERS * error, least)


def reach(first: SimpleNamespace, rule: Bounded, w: arb) -> arb:
    """Return the probability that an item of weight w reaches the threshold of a pass."""
    gap = (first.threshold * rule.unit - w) / first.scale
    if first.noise == "gaussian":
        return normal(-gap)
    # The tail of Laplace noise has one formula on either side of the peak.
    return (-gap).exp() / 2 if gap >= 0 else ONE - gap.exp() / 2 if gap < 0 else ONE


def first_novel(first: SimpleNamespace, rule: Bounded) -> arb:
    """Return the largest probability that a pass releases a novel item, which has the largest possible weight."""
    require(first.scale > 0, "a scale is not above 0")
    return largest(any_of(up(reach(first, rule, rule.most(t))), t) for t in range(1, rule.limit + 1))
