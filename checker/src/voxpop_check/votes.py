"""Heavy hitters by sampled votes and a threshold, without noise (docs/privacy/heavy-hitters.md).

A prefix grows with probability p = pi(k) without the user and q = pi(k + 1) with the user. F_i(c) is the largest value
of (mass with) - c (mass without) over the events of rounds i to L. Then delta is F_1(e^epsilon), in both directions.
"""

from math import floor, nextafter
from types import SimpleNamespace

from flint import arb, ctx

from .balls import ONE, down, largest, require, up

LOW = -9.0
"""The value of ln c at the first node. Left of this node, F is bounded by 1."""
GRIDS = ((20, 0.6), (40, 0.3), (120, 0.2))
"""The number of nodes per unit of ln c, and the width of a range of numbers of users in ln q - ln(1 - p). If one grid
does not prove the claim, the next grid is tried."""


def votes(numbers: SimpleNamespace, epsilon: arb, delta: arb) -> list[tuple[str, arb, str]]:
    """Return the terms of delta with their sources."""
    n = numbers
    require(0 < n.rate < 1 and 0 <= n.again <= 1 and 0 <= n.further <= 1, "a probability is out of range")
    require(n.theta >= 1 and n.rounds >= 1, "the numbers of votes or rounds are out of range")
    # With a delta of 0, no number of users could be ignored, although there are infinitely many numbers.
    require(bool(delta > 0), "votes have a delta above 0")
    # For some k, a prefix almost never or almost always grows with k users. Ignoring these k costs twice this number
    # per round.
    ignored = delta / 10**6 / n.rounds
    precision, ctx.prec = ctx.prec, 64
    try:
        points = pairs(n, ignored)
        # With one word per user, 1 - q >= (1 - s)(1 - p). Therefore the other direction costs nothing if
        # epsilon >= -ln(1 - s).
        free = n.words == "one" and epsilon >= -(-n.rate).log1p()
        for steps, wide in GRIDS:
            # With several votes per user, the points are not known to be on a concave curve, so every point is a
            # corner.
            corners = [point[1:] for point in points] if n.again > 0 else hull(points, n, wide)
            worst = recursion(corners, n, epsilon, steps)
            if not free:
                worst = largest([worst, recursion([(q, p, q_, p_) for p, q, p_, q_ in corners], n, epsilon, steps)])
            if worst + 2 * n.rounds * ignored <= delta:
                break
    finally:
        ctx.prec = precision
    source = f"the largest over all numbers of users in {n.rounds} rounds"
    return [
        ("votes", worst, source),
        ("ignored", 2 * n.rounds * ignored, "numbers of users that almost surely determine a round"),
    ]


def pairs(n: SimpleNamespace, ignored: arb) -> list[tuple[int, arb, arb, arb, arb]]:
    """Return (k, p, q, 1 - p, 1 - q) for all numbers k of users that do not almost surely determine a round."""
    # Each tail is a product of at most theta doubles, rounded to a multiple of 2^-128.
    exact = [n.rate] + [n.rate * n.again * n.further**x for x in range(n.theta - 1)]
    tails = [ONE] + [x * (1 + arb(0, n.theta * 2.0**-52)) + arb(0, 2.0**-128) if x > 0 else arb(0) for x in exact]
    law = [
        (x, a - b) for x, (a, b) in enumerate(zip(tails, [*tails[1:], arb(0)], strict=True)) if not (a - b).is_zero()
    ]
    k, grown, waiting = 0, arb(0), [ONE] + [arb(0)] * (n.theta - 1)
    points: list[tuple[int, arb, arb, arb, arb]] = []
    while True:
        # All terms of the probabilities of growing and of waiting are positive, so nothing cancels.
        more = grown + sum((w * tails[n.theta - held] for held, w in enumerate(waiting)), arb(0))
        ahead = [arb(0)] * n.theta
        for held, w in enumerate(waiting):
            for x, chance in law if not w.is_zero() else ():
                if held + x < n.theta:
                    ahead[held + x] += w * chance
        lost = sum(waiting, arb(0))
        if lost < ignored:
            return points
        if not more < ignored:
            points.append((k, grown, more, lost, sum(ahead, arb(0))))
        k, grown, waiting = k + 1, more, ahead


def hull(points: list[tuple[int, arb, arb, arb, arb]], n: SimpleNamespace, wide: float) -> list[tuple[arb, ...]]:
    """Return a few corners that bound the points, which are on a concave curve for one vote per user.

    The slope from k to k + 1 is (1 - s)(k + 1) / (k + 2 - theta), which decreases in k. Therefore a range of points is
    inside the triangle of its two ends and the intersection of the tangents at these ends. The maximised expression is
    convex, so it suffices to evaluate it at the corners.
    """
    corners, a = [points[0][1:]], 0
    while a < len(points) - 1:
        b = a + 1
        start = float((points[a][2] / points[a][3]).log())
        while b < len(points) - 1 and float((points[b][2] / points[b][3]).log()) < start + wide:
            b += 1
        (k, p, q, p_, q_), (end, p2, q2, p2_, q2_) = points[a], points[b]
        if b > a + 1 and k + 2 > n.theta:
            left, right = ((1 - n.rate) * (j + 1) / (j + 2 - n.theta) for j in (k, end - 1))
            across, above = (p2 - p).intersection(p_ - p2_), (q2 - q).intersection(q_ - q2_)
            x = (above - right * across) / (left - right)
            corners.append((p + x, q + left * x, p_ - x, q_ - left * x))
        else:
            corners += [point[1:] for point in points[a + 1 : b]]
        corners.append(points[b][1:])
        a = b
    return corners


def recursion(corners: list[tuple[arb, ...]], n: SimpleNamespace, epsilon: arb, steps: int) -> arb:
    """Return F_1(e^epsilon).

    F is decreasing and convex with F(0) = 1, so straight lines between nodes are upper bounds.
    """
    g = ONE / steps
    top = float(epsilon.upper()) + (0.0 if n.words == "one" else 2.0)
    first = floor(LOW * steps)
    # Node j has c = e^(g j) e^epsilon, so that e^epsilon is a node.
    nodes = range(first, floor((top - float(epsilon)) * steps) + 1)
    c = [(epsilon + g * j).exp() for j in nodes]
    values = [up((1 - x).max(arb(0))) for x in c]
    moved = []
    for p, q, p_, q_ in corners:
        moved.append((up(q), shift(p, q, g), up(q_), down(p_), shift(p_, q_, g)))
    for turn in range(n.rounds):
        wanted = range(len(c)) if turn < n.rounds - 1 else [-first]
        best = {j: values[j] for j in wanted}
        for q, (m, w, stay), q_, p_, (m2, w2, stay2) in moved:
            for j in wanted:
                value = q * at(values, j + m, w, stay)
                if n.words == "one":
                    rest = up(q_ - down(c[j] * p_))
                    value = value + rest if rest > 0 else value
                else:
                    value += q_ * at(values, j + m2, w2, stay2)
                if not value <= best[j]:
                    best[j] = up(value)
        values = [best[j] for j in wanted] if turn < n.rounds - 1 else [best[-first]]
    return values[0]


def shift(p: arb, q: arb, g: arb) -> tuple[int, arb, arb]:
    """Return ln(p / q) as a number of nodes, rounded down, with the weights of the upper and the lower node."""
    if not (p > 0 and q > 0):
        return -(10**9), arb(0), ONE
    move = nextafter(float(down((p / q).log() / g)), float("-inf"))
    m = floor(move)
    w = ((move - m) * g).expm1() / g.expm1()
    return m, w, 1 - w


def at(values: list[arb], j: int, w: arb, stay: arb) -> arb:
    """Return F between two nodes.

    F is at most 1 to the left of all nodes, and at most its value at the last node to the right of them.
    """
    if j < 0:
        return ONE
    return values[-1] if j >= len(values) - 1 else values[j] * stay + values[j + 1] * w
