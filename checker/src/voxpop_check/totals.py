"""Totals of several releases (docs/privacy/composition.md), for folders by claim 1 and for ledgers by claim 2.

A release with novel and mu is dominated by a revealing outcome of probability h = novel / (2 Phi(-mu / 2)) and a
Gaussian mechanism with this mu. Any other release is dominated by a revealing outcome, which has the delta of the
release as its probability, and by randomised response with its epsilon. Then delta is

    D + (1 - D) E[delta_G(epsilon - L; mu)],    D = 1 - prod(1 - h),    L the sum of losses of randomised responses.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

from flint import arb

from . import nights, public, rounds
from .balls import ONE, ROOT_2, gauss, normal, require, up, walk
from .bounding import bounded, first_novel
from .schema import ball, exact

MOST_LOSSES = 4096
MOST_ENTRIES = 1024
"""The maximum number of entries. The caps on noise exclude the slack of this number of releases."""
PASSES = 58
"""The maximum number of passes per release. It bounds the cost of finite arithmetic at the epsilon of other
releases."""
LOOSE = 4
"""If novel and mu give more than this multiple of delta, the release is also tried with its epsilon and delta."""


@dataclass(frozen=True)
class Release:
    """The guarantee of a release, with the fields of its JSON form.

    The guarantee includes novel and mu if the release has them.
    """

    epsilon: float
    delta: float
    novel: arb | None = None
    mu: arb | None = None

    @property
    def hit(self) -> arb:
        """Return h, the probability of a revealing outcome."""
        return arb(self.delta) if self.mu is None else up(self.novel / (2 * normal(-self.mu / 2))).min(ONE)

    def covered_by(self, spend: Any) -> bool:
        """Return whether a guarantee has no spend, or a spend with at least this novel and mu."""
        if spend is None:
            return True
        room = 1 + arb(1e-9)
        return self.mu is not None and bool(self.mu <= spend["mu"] * room and self.novel <= spend["novel"] * room)

    @property
    def plain(self) -> "Release":
        """Return the release with only its epsilon and delta."""
        return Release(self.epsilon, self.delta)


def written(number: float) -> Fraction:
    """Return the decimal representation of a double as an exact fraction."""
    return Fraction(repr(float(number)))


def release_of(frame: SimpleNamespace, terms: Sequence[tuple[str, arb, str]], claim: dict[str, float]) -> Release:
    """Return a release with novel and mu from its certificate and the terms of delta."""
    numbers, term = frame.numbers, {name: bound for name, bound, _ in terms}
    novel, square = term.get("novel", arb(0)) + term.get("slack", arb(0)), None
    if frame.proof == "adaptive rounds" and not numbers.data_sets:
        square = rounds.whole_square(numbers)
    elif frame.proof == "threshold" and numbers.first.noise == "gaussian":
        rule = bounded(numbers.first.bounding)
        novel += first_novel(numbers.first, rule)
        square = (rule.sensitivity / numbers.first.scale) ** 2 + rounds.remaining(numbers.later)
    elif frame.proof == "counts":
        square = public.counts_square(numbers)
    elif frame.proof == "nights":
        square = nights.square_of(numbers)
    elif frame.proof == "picks":
        # By "Other releases" in docs/privacy/top.md, a ranking costs k picks of half the rate and twice the mu of the
        # rounding.
        k = max(1, numbers.picks)
        square = (arb(k).sqrt() * dominating(numbers.rate / 2) + 2 * dominating(public.rounded(numbers))) ** 2
    pair = () if square is None else (up(novel), up(square.sqrt()))
    return Release(claim["epsilon"], claim["delta"], *pair)


def dominating(epsilon: arb) -> arb:
    """Return 2 Phi^-1(e^eps / (1 + e^eps)), the mu of the Gaussian mechanism that dominates randomised response."""
    return up(2 * ROOT_2 * (2 / (1 + epsilon.exp())).erfcinv())


def composed(epsilon: arb, releases: Sequence[Release]) -> arb:
    """Return the smallest of three bounds on delta, with all pairs of novel and mu, the tight pairs, or no pair."""
    tight = [each.plain if _loose(each) else each for each in releases]
    return min((_composed(epsilon, some) for some in (releases, tight, [each.plain for each in releases])), key=float)


def _loose(each: Release) -> bool:
    return each.novel is not None and not _composed(arb(each.epsilon), [each]) <= LOOSE * arb(each.delta)


def _composed(epsilon: arb, releases: Sequence[Release]) -> arb:
    kept, square, count = ONE, arb(0), 0
    for each in releases:
        kept *= 1 - each.hit
        square, count = (square, count) if each.mu is None else (square + each.mu**2, count + 1)
    lost, mu, mean = up(1 - kept), up(square.sqrt()), arb(0)
    for loss, chance in losses([each.epsilon for each in releases if each.mu is None]).items():
        left = epsilon - ball(loss)
        mean += chance * (gauss(left, mu) if count else (1 - left.exp()).max(arb(0)))
    return up(lost + (1 - lost) * up(mean) + walk(epsilon, PASSES * count)).min(ONE)


def losses(epsilons: Sequence[float]) -> dict[Fraction, arb]:
    """Return the values of L with their probabilities.

    If there are more than 4,096 values, they are rounded up to a grid.
    """
    found, whole = {Fraction(0): ONE}, Fraction(0)
    for epsilon in map(Fraction, sorted(epsilons)):
        whole += epsilon
        likelier = 1 / (1 + (-ball(epsilon)).exp())
        ahead: dict[Fraction, arb] = {}
        for loss, chance in found.items():
            for value, part in ((loss + epsilon, likelier), (loss - epsilon, 1 - likelier)):
                ahead[value] = ahead.get(value, arb(0)) + chance * part
        found = ahead
        if len(found) > MOST_LOSSES:
            step, found = whole / 1024, {}
            for loss, chance in ahead.items():
                place = -(-loss // step) * step
                found[place] = found.get(place, arb(0)) + chance
    return found


def sums(releases: Sequence[Release]) -> tuple[Fraction, Fraction]:
    """Return the sums of epsilons and deltas as written, which are valid even if budgets depend on earlier results."""
    pairs = [(written(each.epsilon), written(each.delta)) for each in releases]
    return sum((epsilon for epsilon, _ in pairs), Fraction(0)), sum((delta for _, delta in pairs), Fraction(0))


def holds(epsilon: float, releases: Sequence[Release], stated: float = 0.0) -> bool:
    """Return whether the sum of deltas (or `stated`, if it is larger) is proved at this epsilon for fixed budgets."""
    whole, delta = sums(releases)
    return written(epsilon) >= whole or bool(composed(arb(epsilon), releases) <= ball(max(delta, written(stated))))


def least_epsilon(releases: Sequence[Release]) -> float:
    """Return approximately the smallest epsilon with six digits that proves the sum of deltas."""
    low, high = 0.0, (whole := float(sums(releases)[0]))
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle, releases) else (middle, high)
    return min(whole, float(Context(prec=6, rounding=ROUND_CEILING).create_decimal_from_float(high)))


class Account:
    """The sums of the releases that were charged to a data set, and the caps on these sums (claim 2)."""

    def __init__(self, epsilon: float, delta: float) -> None:
        """Create an empty account with a budget."""
        self.epsilon, self.delta, self.count = written(epsilon), written(delta), 0
        self.plain, self.mixed, self.chance, self.trade = Fraction(0), Fraction(0), Fraction(0), Fraction(0)
        self.square, self.dominated = arb(0), arb(0)

    def admits(self, each: Release, times: int) -> str:
        """Charge identical releases, and return the name of the part of the rule that admits them, or ""."""
        epsilon, delta, first = written(each.epsilon), written(each.delta), self.count == 0
        self.count += times
        self.plain += times * epsilon
        if each.mu is None:
            self.chance += times * delta
            self.mixed += times * epsilon
            self.dominated += times * dominating(arb(each.epsilon)) ** 2
        else:
            self.chance += times * exact(each.hit)
            self.square += times * each.mu**2
            noise = up(gauss(arb(each.epsilon), each.mu) + walk(arb(each.epsilon), PASSES))
            self.trade += times * min(exact(noise), delta)
        if self.count > MOST_ENTRIES:
            return ""
        if first and times == 1:
            return "first" if epsilon <= self.epsilon and delta <= self.delta else ""
        if first and composed(ball(self.epsilon), [each] * times) <= ball(self.delta):
            return "reserve"
        return self._corner()

    def _corner(self) -> str:
        """Return the first corner of claim 2 that has room for all releases, or an empty string."""
        epsilon = ball(self.epsilon)
        if self.chance > self.delta / 2:
            return ""
        if self.plain <= self.epsilon and self.trade <= self.delta / 3:
            return "plain"
        kappa = ball(self.delta) / 12 - walk(epsilon, PASSES * MOST_ENTRIES)
        if self.delta and gauss(epsilon, (self.square + self.dominated).sqrt()) <= kappa:
            return "gaussian"
        mixed = self.delta and self.mixed <= self.epsilon / 2 and gauss(epsilon / 2, self.square.sqrt()) <= kappa
        return "mixed" if mixed else ""


def charged(guarantee: Any) -> Release:
    """Return the release of a ledger entry, with the guarantee and spend of the entry."""
    spend = guarantee.get("spend")
    numbers = [guarantee["epsilon"], guarantee["delta"]]
    require(guarantee["neighbours"] == "one user added or removed", "a release has other neighbours")
    require(guarantee["private"] is True, "a release had a seed")
    if spend is not None:
        require(spend.keys() <= {"novel", "mu", "two_sided"}, "a spend has unknown fields")
        numbers += [spend["novel"], spend["mu"]]
    known = all(type(each) in (int, float) and each >= 0 and arb(each).is_finite() for each in numbers)
    require(known and numbers[1] <= 1, "a guarantee is out of range")
    return Release(*map(float, numbers[:2]), *map(arb, numbers[2:]))


def replay(budget: tuple[float, float], entries: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Return the number of entries that each part of the rule admits.

    The key "" counts entries that are not admitted.
    """
    account = Account(*budget)
    parts: dict[str, int] = {}
    left: dict[int, tuple[int, Any]] = {}
    for place, each in enumerate(entries, 1):
        whole = all(type(each[name]) is int for name in ("number", "times", "reserve"))
        require(whole and each["number"] == place and each["times"] >= 1, "an entry is missing or out of range")
        stated = each["mechanism"], each["guarantee"]
        if each["reserve"]:
            # An earlier reserve with this mechanism and guarantee paid for the release. The reserve pays for as many
            # releases as it was charged for.
            paid = left.get(each["reserve"], (0, None))
            part = "drawn" if paid[0] > 0 and paid[1] == stated and each["times"] == 1 else ""
            left[each["reserve"]] = (paid[0] - 1, paid[1])
        else:
            part = account.admits(charged(each["guarantee"]), each["times"])
            if each["state"] == "reserved":
                left[place] = (each["times"], stated)
        parts[part] = parts.get(part, 0) + 1
    return parts
