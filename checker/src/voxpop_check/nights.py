"""A series of nights with delta = Phi(Phi^-1(W p0) + M^(1/2)) + delta_G(epsilon; M^(1/2)) (docs/privacy/series.md)."""

from types import SimpleNamespace

from flint import arb

from .balls import ROOT_2, gauss, largest, normal, phi, require, up, walk
from .bounding import bounded

PARTS = 2**40
CELLS, CELLS_OF_ALL_NIGHTS = 4000, 240_000
LOWEST = -12
"""A limit in standard deviations. Scores below it are treated like scores that reach the threshold."""


def nights(numbers: SimpleNamespace, epsilon: arb, _: arb) -> list[tuple[str, arb, str]]:
    """Return the terms of delta with their sources."""
    n, count = numbers, len(numbers.costs)
    # Nothing is charged for a public list, because its items are shared and its levels do not affect delta.
    levels = (n.known.lowest, n.known.steps) if n.known else ()
    lists = (n.sigmas, n.cutoffs, n.factors, n.thresholds, *levels)
    require(count >= 1 and all(len(each) == count for each in lists), "not every night has its numbers")
    require(n.square > 0 and n.pool >= 1 and n.cell >= 1 and 0 <= n.bits <= 62, "the series is out of range")
    require(min(n.costs) >= 1 and min(n.factors) >= 1 and all(s > 0 for s in n.sigmas), "a night is out of range")
    square = square_of(n)
    require(square <= n.square * (1 + arb(2) ** -40), "a night has less noise than its price requires")
    hit = n.pool * ever(n)
    require(hit < 1, "noise alone reaches a threshold too often")
    novel = normal(-ROOT_2 * (2 * hit).erfcinv() + square.sqrt())
    return [
        ("novel", up(novel), f"{n.pool} items of one user; noise releases one of them with {hit.str(4, radius=False)}"),
        ("shared", gauss(epsilon, square.sqrt()), f"delta_G at mu {square.sqrt().str(9, radius=False)}"),
        ("slack", walk(epsilon, count), "decisions by 128 bits"),
    ]


def square_of(n: SimpleNamespace) -> arb:
    """Return M.

    On every night, a user who is charged c parts of the price changes the weights by at most S (c / price)^(1/2).
    """
    squares = [n.square]
    for cost, sigma, cutoff in zip(n.costs, n.sigmas, n.cutoffs, strict=True):
        night = SimpleNamespace(
            name="policy-gaussian", norm=2, limit=n.pool, bits=n.bits, cutoff=cutoff, bound=4, error=None, least=None
        )
        squares.append((bounded(night).sensitivity / sigma) ** 2 * PARTS / cost)
    return largest(squares)


def ever(n: SimpleNamespace) -> arb:
    """Return p0, the probability that pure noise reaches a threshold on any night.

    The first night above a threshold is night 1 or follows a night below the threshold. Given the score x of the
    previous night, the probability of reaching the threshold increases in x, and is convex for x below the threshold.
    Therefore, on a cell it is at most the straight line between its values at both ends, and at most its value at the
    upper end.
    """
    steps = [f * s * arb(2) ** n.bits / n.cell for f, s in zip(n.factors, n.sigmas, strict=True)]
    # Noisy weights are rounded to cells, so a score differs from the exact score by at most half the sum of the
    # factors.
    tops, factors = [], 0
    for threshold, factor in zip(n.thresholds, n.factors, strict=True):
        factors += factor
        tops.append(arb(threshold) - arb(factors) / 2)
    spread, total = steps[0], normal(-tops[0] / steps[0])
    cells = max(CELLS, CELLS_OF_ALL_NIGHTS // len(steps))
    for before, top, step in zip(tops[:-1], tops[1:], steps[1:], strict=True):
        # Cells are narrower near the threshold of the previous night, where most of the probability is.
        last = before / spread
        ends = [last - (last - LOWEST) * (arb(cells - k) / cells) ** 2 for k in range(cells + 1)]
        below, dense = [normal(x) for x in ends], [phi(x) for x in ends]
        reached = [up(normal((spread * x - top) / step)) for x in ends]
        total += below[0]
        for k in range(cells):
            mass, rise = below[k + 1] - below[k], (reached[k + 1] - reached[k]) / (ends[k + 1] - ends[k])
            if spread * ends[k + 1] <= top:
                # The integral of a straight line over the cell. The first moment of the normal distribution on a cell
                # is the difference of the densities at its ends.
                total += reached[k] * mass + rise * (dense[k] - dense[k + 1] - ends[k] * mass)
            else:
                total += up(mass) * reached[k + 1]
        spread = (spread**2 + step**2).sqrt()
    return up(total)
