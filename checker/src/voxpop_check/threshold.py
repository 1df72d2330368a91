"""One pass over unknown items with a threshold, for classic weightings and DPNE (docs/privacy/set-union.md).

For Gaussian noise, the joint bound is the maximum over all (t, w) for a user who has t novel items of weight w each.
Let d be the probability 1 - Phi((threshold - w) / sigma)^t, and let m^2 = (S^2 - t w^2) / sigma^2 + M. Then delta is
bounded by the larger of

    d + (1 - d) delta_G(epsilon - ln(1 - d); m)    and    delta_G(epsilon + ln(1 - d); m).

Both terms increase in d and m, so the largest d and the largest m of a cell cover all its cases.
"""

from collections.abc import Callable, Iterator
from types import SimpleNamespace

from flint import arb

from .balls import ONE, any_of, gauss, largest, numerical, require, root, up
from .bounding import Bounded, bounded, reach
from .rounds import passes_of, remaining

FINEST = 14
"""The maximum number of halvings of a cell. A cell that was halved this often is not divided further."""
Case = Callable[[arb, arb], arb]


def threshold(numbers: SimpleNamespace, epsilon: arb, delta: arb) -> list[tuple[str, arb, str]]:
    """Return the terms of delta with their sources."""
    first, rest = numbers.first, remaining(numbers.later)
    require(first.bounding.name != "capped" and first.bounding.bound == 1, "caps belong to adaptive rounds")
    require(first.bounding.norm == (2 if first.noise == "gaussian" else 1), "the norm does not fit the noise")
    require(first.scale > 0, "a scale is not above 0")
    rule = bounded(first.bounding)
    slack = numerical(epsilon) + passes_of(numbers.later, epsilon)
    if first.noise == "laplace":
        require(numbers.later is None, "later releases follow only Gaussian noise")
        require(rule.sensitivity <= epsilon * first.scale, "the scale is below S / epsilon")
        hit = largest(any_of(up(reach(first, rule, rule.most(t))), t) for t in range(1, rule.limit + 1))
        return [("novel", hit, "items of one user"), ("slack", slack, "decisions by 128 bits")]
    alone = gauss(epsilon, ((rule.sensitivity / first.scale) ** 2 + rest).sqrt())
    joint = largest([alone, *cases(first, rule, rest, epsilon, delta - slack)])
    return [("joint", joint, "the largest over all numbers and weights of novel items"), ("slack", slack, "128 bits")]


def cases(first: SimpleNamespace, rule: Bounded, rest: arb, epsilon: arb, allowed: arb) -> Iterator[arb]:
    """Yield bounds that together cover every case, and divide the cases until each bound is at most `allowed`."""

    def cost(few: int, many: int, light: arb, heavy: arb, shared: arb) -> arb:
        """Bound all cases with `few` to `many` items and weights from `light` to `heavy`.

        `shared` bounds the sum of the squares of the user's other weights.
        """
        d = any_of(up(reach(first, rule, heavy)), many)
        if not d < 1:
            return ONE
        m, log = root(up(shared) / first.scale**2 + rest), (-d).log1p()
        return (d + (1 - d) * gauss(epsilon - log, m)).max(gauss(epsilon + log, m))

    s2 = up(rule.sensitivity**2)
    if rule.name == "count":
        w = rule.most(1)
        for t in range(1, rule.limit + 1):
            yield cost(t, t, w, w, (rule.limit - t) * w**2)
    elif rule.name == "weighted":
        for n in range(1, rule.limit + 1):

            def some(a: int, b: int, n: int = n, w: arb = rule.most(n)) -> arb:  # noqa: B008
                return cost(a, b, w, w, s2 * (n - a) / n)

            yield from divided(1, n, some, allowed)
    else:
        for t in range(1, rule.limit + 1):
            light, heavy = rule.least, rule.most(t)
            require(light <= heavy, "novel items have no weight")

            def part(a: int, b: int, t: int = t, light: arb = light, heavy: arb = heavy) -> arb:
                low, high = (light + (heavy - light) * k / 2**FINEST for k in (a, b))
                return cost(t, t, low, high, s2 - t * low**2)

            yield from divided(0, 2**FINEST, part, allowed, spread=True)


def divided(low: int, high: int, bound: Callable[[int, int], arb], allowed: arb, spread: bool = False) -> Iterator[arb]:
    """Yield bounds of parts of [low, high].

    Each part is halved until its bound is at most `allowed` or the part is a single case.
    """
    parts = [(low, high)]
    while parts:
        a, b = parts.pop()
        value = up(bound(a, b))
        if value <= allowed or b - a <= (1 if spread else 0):
            yield value
            if not value <= allowed:
                return
        else:
            middle = (a + b) // 2
            parts += [(a, middle), (middle if spread else middle + 1, b)]
