"""Adaptive rounds, the private choice of their limit, and the later releases of n-grams and profiles.

    delta = n d + delta_G(epsilon; (n mu^2 + M)^(1/2)) + finite arithmetic            (docs/privacy/adaptive.md)

for n data sets. d bounds the probability that an item of only one user is released, mu^2 is the sum of (S / sigma)^2
over all rounds, and M caps the mu^2 of all later releases. With a choice of limit, d and mu^2 are caps
(docs/privacy/limit.md).
"""

from itertools import pairwise
from math import floor
from types import SimpleNamespace

from flint import arb, arb_mat, ctx

from .balls import ONE, down, gauss, largest, normal, phi, require, up, walk
from .bounding import Bounded, bounded, first_novel
from .schema import exact

Grid = list[list[arb]]
"""A matrix of numbers by level and point."""
WHOLE_CAP = 2**30
MARGIN = arb(10) ** -9
"""Scores are added in doubles, so thresholds are moved by this amount in addition to half a cell per round."""
DRAWN_BITS = 53
"""The number of bits of the uniform number that determines whether a user takes part."""
GRIDS = (40, 80)
"""The numbers of points of the score in one standard deviation of a round. Levels that a grid does not prove use the
next grid."""


def adaptive(numbers: SimpleNamespace, epsilon: arb, delta: arb) -> list[tuple[str, arb, str]]:
    """Return the terms of delta with their sources."""
    sets = max(1, len(numbers.data_sets))
    require(len(set(numbers.data_sets)) == len(numbers.data_sets), "two data sets have one name")
    later, slack, choice, rounds = numbers.later, numbers.slack, numbers.choice, numbers.rounds
    require(choice is not None or rounds is not None, "there are neither rounds nor a choice")
    rest, cost = remaining(later), slack_of(slack, epsilon)
    if rounds is not None:
        covered(slack, rounds, choice is not None, numbers.known)
    if choice is not None:
        d, square = choice.novel, 1 / choice.sigma**2 + choice.square
        require(choice.sigma > 0 and choice.square >= 0 and 0 <= choice.novel <= 1, "the choice is out of range")
        if rounds is not None:
            # Chosen rounds must not exceed the caps that were charged.
            require(square_of(rounds) <= choice.square, "the chosen rounds exceed the cap on mu^2")
            require(novel(rounds, choice.novel) <= choice.novel, "the chosen rounds exceed the cap on novel items")
        source = "the cap on novel items, whatever limit is chosen"
    else:
        square = square_of(rounds)
        known = gauss(epsilon, (sets * square + rest).sqrt()) + sets * cost
        d = novel(rounds, (delta - known - passes_of(later, epsilon)) / sets)
        source = "items of one user: the first round, and V_1(0) of the later rounds"
    mu = (sets * square + rest).sqrt()
    return [
        ("novel", sets * d, source),
        ("shared", gauss(epsilon, mu), f"delta_G at mu {mu.str(9, radius=False)}, later releases included"),
        ("slack", sets * cost + passes_of(later, epsilon), "decisions by 128 bits, draws by 64"),
    ]


def whole_square(numbers: SimpleNamespace) -> arb:
    """Return the mu^2 of the rounds of one data set, or its cap, including later releases."""
    choice = numbers.choice
    square = square_of(numbers.rounds) if choice is None else 1 / choice.sigma**2 + choice.square
    return square + remaining(numbers.later)


def slack_of(slack: SimpleNamespace, epsilon: arb) -> arb:
    """Return the cost of finite arithmetic in the rounds of one data set."""
    require(min(slack.passes, slack.pool, slack.rounds) >= 0, "the slack is negative")
    return walk(epsilon, slack.passes) + arb((slack.rounds + 1) * slack.pool**2) / arb(2) ** 65


def covered(slack: SimpleNamespace, rounds: SimpleNamespace, chosen: bool, stated: SimpleNamespace | None) -> None:
    """Require that the slack covers every round, and the draws from pools that are larger than the limit.

    A public list costs nothing, because its items are shared and its levels do not affect delta
    (docs/privacy/known.md).
    """
    require((listed := rounds.known and rounds.known.listed) == stated, "the rounds have another list")
    limits = {each.bounding.limit for each in rounds.later}
    require(len(limits) == 1, "the later rounds do not have one limit")
    require(slack.passes >= len(rounds.later) + 1 + chosen, "the slack covers fewer passes than ran")
    # In a pool with a public list, an unknown item can share its bits with any other item of the user.
    sharing = rounds.pool**2 if listed is None else 2 * rounds.pool * (max(listed.size, 0) + rounds.pool)
    enough = slack.pool**2 >= sharing and slack.rounds >= len(rounds.later)
    require(enough or not rounds.pool > limits.pop(), "the slack covers fewer draws than ran")


def remaining(later: SimpleNamespace | None) -> arb:
    """Return M, the cap on mu^2 of all later releases, which is at least the sum of its parts."""
    if later is None:
        return arb(0)
    parts = exact(later.joining) + exact(later.counting)
    if later.cover is not None:
        require(later.cover.columns >= 1 and later.cover.sigma > 0, "the cover is out of range")
        parts += later.cover.columns / exact(later.cover.sigma) ** 2
    require(later.square >= 0 and later.joining >= 0 and later.counting >= 0, "a square is negative")
    require(parts <= exact(later.square), "the parts exceed the cap on later releases")
    return later.square


def passes_of(later: SimpleNamespace | None, epsilon: arb) -> arb:
    """Return the cost of finite arithmetic in later releases."""
    require(later is None or later.passes >= 0, "the number of passes is negative")
    return arb(0) if later is None else walk(epsilon, later.passes)


def sensitivities(rounds: SimpleNamespace) -> list[arb]:
    """Return S of every later round. The last level has the smallest cap of each round."""
    caps = [arb(units) / WHOLE_CAP for units in rounds.caps.weights[-1]]
    require(len(caps) == len(rounds.later) >= 1, "not every round has a cap")
    require(
        all(each.bounding.name == "capped" and each.bounding.bound == 1 for each in rounds.later), "no capped round"
    )
    return [
        bounded(each.bounding, None if a >= 1 else a).sensitivity for each, a in zip(rounds.later, caps, strict=True)
    ]


def opening(rounds: SimpleNamespace) -> Bounded:
    """Return how users are bounded in the first round."""
    first = rounds.first
    require(first is not None and first.noise == "gaussian" and first.bounding.norm == 2, "no Gaussian first round")
    require(first.bounding.name != "capped" and first.bounding.bound == 1, "the first round has caps")
    return bounded(first.bounding)


def square_of(rounds: SimpleNamespace) -> arb:
    """Return mu^2, the sum of (S / sigma)^2 over the first and all later rounds."""
    require(all(each.sigma > 0 for each in rounds.later) and rounds.first.scale > 0, "a sigma is not above 0")
    shifts = [s / each.sigma for s, each in zip(sensitivities(rounds), rounds.later, strict=True)]
    return sum((m * m for m in shifts), (opening(rounds).sensitivity / rounds.first.scale) ** 2)


def check_caps(caps: SimpleNamespace, rounds: int, pool: int) -> None:
    """Require that caps are on the lattice, and that caps and probabilities never increase with the number of items."""
    levels = len(caps.items)
    require(levels == len(caps.weights) == len(caps.chances) >= 1, "levels without caps")
    require(all(len(each) == rounds for each in caps.weights), "caps without rounds")
    require(caps.items == sorted(set(caps.items)) and caps.items[0] >= 1, "levels do not increase")
    require(caps.items[-1] >= pool >= 1, "the last level serves fewer items than a pool has")
    require(all(0 <= q <= 1 for q in caps.chances), "a probability is out of range")
    for (low, q), (high, further) in pairwise(zip(caps.weights, caps.chances, strict=True)):
        falls = q >= further and all(x >= y for x, y in zip(low, high, strict=True))
        require(falls, "caps increase with the number of items")
    for units in {each for level in caps.weights for each in level}:
        # 1 / a^2 is at least 1/4 above and 1/16 below a whole number, so 1 - k a^2 is 0 or at least a^2 / 4.
        square, rest = units * units, WHOLE_CAP**2 % max(units * units, 1)
        between = 0 < units < WHOLE_CAP and square <= 4 * rest and 16 * rest <= 15 * square
        require(units in (0, WHOLE_CAP) or between, "a cap is not on the lattice")


def novel(rounds: SimpleNamespace, allowed: arb) -> arb:
    """Return d, the bound for the first round plus the largest t V_1(0) of any level.

    The grid is as fine as `allowed` requires.
    """
    check_caps(rounds.caps, len(rounds.later), rounds.pool)
    d = first_novel(rounds.first, opening(rounds))
    allowed, waiting, bounds = down(allowed - d), list(range(len(rounds.caps.items))), {}
    for points in GRIDS:
        values = recursion(rounds, waiting, points)
        for level, value in zip(waiting, values, strict=True):
            bounds[level] = up(value * rounds.caps.items[level])
        waiting = [level for level in waiting if not bounds[level] <= allowed]
        # The next grid halves the step and so divides the error by four, which lowers a bound by less than a twentieth.
        # If a bound is too high by more than that, the next grid cannot prove it either.
        if not waiting or any(bounds[level] > allowed * 21 / 20 for level in waiting):
            break
    return d + largest(bounds.values())


def recursion(rounds: SimpleNamespace, levels: list[int], points: int) -> list[arb]:
    """Return an upper bound of V_1(0) of some levels, by backward induction over a grid of scores.

    V_r(Z) = q G_r(a_r) + (1 - q) G_r(0), where G_r(w) is the mean of V_(r+1)(Z + c_r (mu_r w + N)), and V is 1 at or
    above the threshold and 0 below the drop threshold. Let H_r(y) be the mean of V_(r+1)(y + c_r N). Then G_r(w) is
    H_r(Z + c_r mu_r w). Between points, H_r exceeds the straight line by at most h^2 / (8 c^2) times its value at the
    upper point.
    """
    later, count = rounds.later, len(rounds.later)
    require(all(each.part > 0 and each.cell >= 1 for each in later), "a part or a cell is not above 0")
    require(all(each.drop is not None for each in later[:-1]), "only the last round has no drop threshold")
    shifts = [s / each.sigma for s, each in zip(sensitivities(rounds), later, strict=True)]
    cells = sum(((each.cell * arb(2) ** -each.bounding.bits / each.sigma) ** 2 for each in later), arb(0))
    # The margin is at least half a cell per round, in standard deviations of the score.
    margin = up(rounds.margin.max(cells.sqrt() / 2 + MARGIN))
    variance, spread = arb(0), []
    for each in later:
        variance += each.part**2
        spread.append(variance.sqrt())
    tops = [down(s * (each.threshold - margin)) for s, each in zip(spread, later, strict=True)]
    drops = [
        down(s * (each.drop - margin)) if each.drop is not None else top
        for s, each, top in zip(spread, later, tops, strict=True)
    ]
    # An item that reaches the threshold is released, even if it does not reach the drop threshold.
    drops = [down(drop.min(top)) for drop, top in zip(drops, tops, strict=True)]
    h = arb(max(float(each.part) for each in later) / points)
    caps = [rounds.caps.weights[level] for level in levels]
    chances = [up(rounds.caps.chances[level] * (1 + MARGIN) + arb(2) ** (1 - DRAWN_BITS)).min(ONE) for level in levels]
    low, high = [0] + [cell(x, h) + 1 for x in drops[:-1]], [0] + [cell(x, h) + 2 for x in tops[:-1]]
    precision, ctx.prec = ctx.prec, 64
    try:
        values: Grid = []
        for r in reversed(range(count)):
            c, mu = later[r].part, up(shifts[r].max(later[r].mu))
            moves = [up(c * mu * arb(each[r]) / WHOLE_CAP / h) for each in caps]
            whole = [cell(move, ONE) for move in moves]
            span = range(low[r], max(low[r], high[r]) + max(whole) + 2)
            # The values of V_(r+1) at the points from low[r + 1] on. After the last round, an item counts only if it
            # reaches the threshold.
            start = low[r + 1] if r + 1 < count else 0
            reached = means(values, start, drops[r], tops[r], h, c, span, len(levels))
            bulge = h * h / (8 * c * c)
            values = []
            size = max(1, high[r] - low[r] + 1)
            for row, move, k, q in zip(reached, moves, whole, chances, strict=True):
                part = move - k
                raised = [up(x * (1 - part) + y * (part + bulge)) for x, y in pairwise(row[k:])]
                mixed = [up(q * x + (1 - q) * y) for x, y in zip(raised[:size], row[:size], strict=True)]
                # The values of V at the points. Between points, V exceeds the line by at most `bulge` times its value
                # at the upper point.
                values.append([up(x + bulge * y) for x, y in pairwise([*mixed, ONE])] if r else mixed)
        return [row[0] for row in values]
    finally:
        ctx.prec = precision


def cell(x: arb, h: arb) -> int:
    """Return the k of the cell [k h, (k + 1) h) that contains x. Both x and h are exact."""
    return floor(exact(x) / exact(h))


def means(values: Grid, start: int, drop: arb, top: arb, h: arb, c: arb, span: range, levels: int) -> Grid:
    """Return, by level, H(y) at the points of a span.

    H(y) is the mean of V(y + c N), and V is given at the points from `start` on.

    V is a sum of nonnegative upward steps and of ramps over whole cells. The summands are a step at the drop threshold
    to the value at the first point above it; ramps; a step at the last point below the threshold to the value above it;
    and a step from there to 1. Therefore this sum is nowhere below the straight lines between points, and H is a
    product of two matrices. If both thresholds are in one cell, the first point is above both, and the first step is to
    its value.
    """
    last = cell(top, h)
    steps, ramps = [(top, [ONE] * levels)], []
    if values:
        end = last - start
        rises = [[up((y - x).max(arb(0))) for x, y in pairwise(row[: end + 1])] for row in values]
        steps = [(drop, [row[0] for row in values])]
        if end >= 0:
            steps.append((h * last, [up((row[end + 1] - row[end]).max(arb(0))) for row in values]))
        steps.append((top, [up((1 - row[end + 1]).max(arb(0))) for row in values]))
        ramps = list(range(start, last))
    left = [[heights[level] for _, heights in steps] + (rises[level] if ramps else []) for level in range(levels)]
    right = [[up(normal((h * y - at) / c)) for y in span] for at, _ in steps]
    if ramps:
        # The mean of a ramp from 0 at point k to 1 at point k + 1 is a function of y - k.
        first, size = span[0] - ramps[-1], len(span)
        v = [h * k / c for k in range(first - 1, span[-1] - ramps[0] + 1)]
        hinge = [x * normal(x) + phi(x) for x in v]
        ramp = [up((x - y) * c / h) for x, y in zip(hinge[1:], hinge[:-1], strict=True)]
        right += [ramp[ramps[-1] - k : ramps[-1] - k + size] for k in ramps]
    return [[up(x) for x in row] for row in (arb_mat(left) * arb_mat(right)).tolist()]
