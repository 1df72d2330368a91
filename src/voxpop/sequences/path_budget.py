"""Who has spent what of epsilon: exact fractions, one account per history of predicted heights."""

from dataclasses import dataclass, field
from fractions import Fraction
from math import floor, log

from voxpop.errors import InternalError

SMALLEST_ALPHABET = 3
"""The threshold's logarithm of half the alphabet is 0 or less below this size, and would release everything."""


def threshold_factor(alphabet: int) -> float:
    """Return how many scales of its noise a count must exceed."""
    # P(X > T) is about e^(-T r) / 2: times the alphabet that is 1 at T = ln(alphabet / 2) / r.
    return log(max(alphabet, SMALLEST_ALPHABET) / 2)


@dataclass(frozen=True, slots=True)
class Share:
    """What one node's histogram costs.

    Attributes:
        before: fraction of epsilon that the histograms above it cost.
        own: fraction of epsilon that it costs itself.
    """

    before: Fraction
    own: Fraction

    @property
    def after(self) -> Fraction:
        """Fraction of epsilon spent on the path down to and including this node."""
        return self.before + self.own


@dataclass(slots=True)
class PathBudget:
    """The shares of all nodes of a tree. Nodes with the same heights above them have the same share.

    Attributes:
        epsilon: the whole budget, exact.
        max_length: most symbols of one sequence, which is the sensitivity.
        alphabet: number of symbols.
        shares: by number; 0 is the root's.

    Example:
        >>> paths = PathBudget(Fraction(1), max_length=5, alphabet=3)
        >>> root = paths.open_root(5)
        >>> child = paths.open(root, height=2)
        >>> paths.shares[child].own, paths.shares[paths.open(child, height=1)].after
        (Fraction(2, 5), Fraction(1, 1))
    """

    epsilon: Fraction
    max_length: int
    alphabet: int
    shares: list[Share] = field(default_factory=list)
    _numbers: dict[tuple[int, Fraction], int] = field(default_factory=dict)

    def open_root(self, height: int) -> int:
        """Return the number of the root's share: one level's worth of `height` levels."""
        return self.open_first(Fraction(1, height))

    def open_first(self, part: Fraction) -> int:
        """Return the number of the root's share: this part of the whole."""
        self.shares.append(Share(Fraction(0), part))
        return 0

    def open(self, above: int, height: int) -> int:
        """Return the number of a child's share: what is left, spread over the levels it is predicted to have."""
        return self.spend(above, Fraction(1, height))

    def spend(self, above: int, part: Fraction) -> int:
        """Return the number of a child's share: this part of what the path down to it has left."""
        if (above, part) not in self._numbers:
            before = self.shares[above].after
            # The path to a node costs before + own; the rest of 1 is what its descendants may still spend.
            # s(v) = (1 - spent) part: on a path shares add up to at most 1 (docs/privacy/sequences.md, "One step" and
            # "One start position").
            share = Share(before, (1 - before) * part)
            if share.own <= 0 or share.after > 1:
                raise InternalError("a path of the tree would spend more than the budget; please report the call.")
            self._numbers[above, part] = len(self.shares)
            self.shares.append(share)
        return self._numbers[above, part]

    def left(self, number: int) -> Fraction:
        """Return the fraction of epsilon that the path down to and including a node has left."""
        return 1 - self.shares[number].after

    def rate(self, number: int) -> Fraction:
        """Return epsilon over sensitivity of a node's noise, exact."""
        # r = epsilon s / L: L is the sensitivity, the most steps or start positions of one user.
        return self.epsilon * self.shares[number].own / self.max_length

    def scale(self, number: int) -> float:
        """Return the scale of a node's noise: the inverse of its rate."""
        return float(1 / self.rate(number))

    def threshold(self, number: int) -> float:
        """Return what a noisy count must exceed: one false child per node on average (CAC12, 4.3.3)."""
        return self.scale(number) * threshold_factor(self.alphabet)

    def least(self, number: int) -> int:
        """Return the smallest whole number above the threshold."""
        # A count must exceed the threshold, so a whole one must reach the next number.
        return floor(self.threshold(number)) + 1
