"""Keys with counts, by a pure choice of parts, one noisy number per key or rounds, and by pure sums of other rows.

parts:             delta = max(W(T - 2), 2 W(T - 1)), W(t) = P(2 z1 + z2 >= t)
one number per key:  delta = L max(end + coin p(j-1), the excess of p over e^rate times p, shifted by 1)
rounds:            delta = E[D(epsilon - L_1 - L_2)] over the losses of pure releases          (docs/privacy/keys.md)
"""

from fractions import Fraction
from itertools import product
from types import SimpleNamespace

from flint import arb

from .balls import largest, require, up, walk
from .rounds import adaptive
from .schema import ball, exact

MOST_REACH = 2**12


def keys(numbers: SimpleNamespace, epsilon: arb, delta: arb) -> list[tuple[str, arb, str]]:
    """Return the terms of delta with their sources."""
    n = numbers
    entries = len(n.menu) + (n.parts is not None) + (n.rounds is not None)
    rising = n.edges == sorted(set(n.edges)) and min(n.edges, default=1) >= 1
    require(
        entries >= 1 and (n.choosing > 0 if n.edges else entries == 1 and n.choosing == 0), "a choice without noise"
    )
    require(rising and n.sets >= 1 and (n.chosen is None or 0 <= n.chosen < entries), "the choice is out of range")
    spends = [of_numbers(n, each, epsilon) for each in n.menu]
    if n.parts is not None:
        spends.append(of_parts(n, n.parts, epsilon))
    if n.rounds is not None:
        require(not n.rounds.data_sets, "rounds of keys have one data set")
        spends.append(of_rounds(n, epsilon, delta))
    return [
        ("keys", largest(spends), f"the entry of {entries} that costs most"),
        ("slack", walk(epsilon, 1), "the choice by integer noise"),
    ]


def of_numbers(n: SimpleNamespace, noise: SimpleNamespace, epsilon: arb) -> arb:
    """Return the delta of one noisy number per key, by basic composition over the keys of a user."""
    require(noise.limit >= 1 and noise.rate > 0 and 1 <= noise.reach <= MOST_REACH, "the noise is out of range")
    require(0 <= noise.end < 0.5 and 0 <= noise.coin <= 1, "a probability is out of range")
    require(n.choosing + n.rest + noise.limit * noise.rate <= exact(epsilon), "the parts add up to more than epsilon")
    rate = ball(noise.rate)
    inside = [(-rate * z).exp() for z in range(noise.reach)]
    scale = (1 - 2 * noise.end) / (2 * sum(inside, arb(0)) - 1)
    p = [*(scale * each for each in inside), noise.end]
    # The outcomes -j to j + 1 of a key with one more user. Without this user, the outcomes are shifted by 1.
    shifted = {z: p[abs(z)] for z in range(-noise.reach, noise.reach + 1)}
    excess = (
        shifted.get(z, arb(0)) - rate.exp() * shifted.get(z - 1, arb(0)) for z in range(-noise.reach, noise.reach + 2)
    )
    # Between the ends, both terms are equal in exact arithmetic, so the excess is 0.
    flat = range(2, noise.reach + 1)
    shared = sum((each.max(arb(0)) for place, each in enumerate(excess) if place not in flat), arb(0))
    novel = noise.end + noise.coin * p[noise.reach - 1]
    return up(noise.limit * shared.max(novel) + walk(epsilon, 1 + noise.reach // 16))


def of_parts(n: SimpleNamespace, parts: SimpleNamespace, epsilon: arb) -> arb:
    """Bound the probability that a key of only one user is released, for users with one key and with two keys."""
    require(parts.rate > 0 and parts.threshold >= 3, "the parts are out of range")
    require(0 < parts.sizing < 2 * parts.rate, "users with more keys have no noise")
    require(n.choosing + n.rest + 2 * parts.rate <= exact(epsilon), "the parts add up to more than epsilon")
    q = (-ball(parts.rate)).exp()

    def tail(k: int) -> arb:
        """Return P(z2 >= k)."""
        return q**k / (1 + q) if k >= 1 else 1 - q ** (1 - k) / (1 + q)

    def reached(t: int) -> arb:
        some = sum((q ** (2 * abs(z)) * tail(t - 2 * z) for z in range(-t, t + 1)), arb(0))
        # Two geometric series: z1 < -t with z2 >= t - 2 z1 > 0, and z1 > t with the complement of z2 < t - 2 z1.
        far = q ** (4 * (t + 1)) / (1 - q**4)
        below, above = q**t / (1 + q) * far, q ** (2 * (t + 1)) / (1 - q**2) - q ** (1 - t) / (1 + q) * far
        return (some + below + above) * (1 - q**2) / (1 + q**2)

    return up(reached(parts.threshold - 2).max(2 * reached(parts.threshold - 1)))


def of_rounds(n: SimpleNamespace, epsilon: arb, delta: arb) -> arb:
    """Return the delta of rounds with pure releases before and after them.

    The worst case of a pure release is randomised response.
    """
    losses = [each for each in (n.choosing, n.rest) if each > 0]
    require(sum(losses, Fraction(0)) < exact(epsilon), "the choice and the other rows leave no epsilon for the rounds")
    mean = arb(0)
    for signs in product((1, -1), repeat=len(losses)):
        signed = [ball(sign * loss) for sign, loss in zip(signs, losses, strict=True)]
        chance = arb(1)
        for loss in signed:
            chance /= 1 + (-loss).exp()
        mean += chance * sum(
            (up(term) for _, term, _ in adaptive(n.rounds, epsilon - sum(signed, arb(0)), delta)), arb(0)
        )
    return up(mean)
