"""Budget spent along the paths of a tree: exact fractions of epsilon, one account per history of shares."""

from dataclasses import dataclass, field, replace
from fractions import Fraction

from voxpop.errors import InternalError


@dataclass(frozen=True, slots=True)
class Limits:
    """The public numbers that bound a tree.

    Attributes:
        epsilon: the whole budget, exact.
        alphabet: number of symbols.
        max_length: maximum number of counted symbols of one user, which is the sensitivity.
        max_gram: length of the longest gram.
    """

    epsilon: Fraction
    alphabet: int
    max_length: int
    max_gram: int


@dataclass(frozen=True, slots=True)
class Share:
    """The cost of the histogram of one node.

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
    """The shares of all nodes of a tree. Nodes with the same history of shares have the same number.

    Attributes:
        limits: the public numbers of the tree.
        shares: by number; 0 is that of a path without nodes, above the root.

    Example:
        >>> paths = PathBudget(Limits(Fraction(1), alphabet=3, max_length=5, max_gram=5))
        >>> root = paths.spend(0, Fraction(1, 5))
        >>> child = paths.spend(root, Fraction(1, 2))
        >>> paths.shares[child].own, paths.shares[paths.spend(child, Fraction(1))].after
        (Fraction(2, 5), Fraction(1, 1))
    """

    limits: Limits
    shares: list[Share] = field(default_factory=lambda: [Share(Fraction(0), Fraction(0))])
    _numbers: dict[tuple[int, Fraction], int] = field(default_factory=dict)

    def spend(self, above: int, part: Fraction) -> int:
        """Return the number of a child's share: this part of the remaining budget of the path to its parent."""
        if (above, part) not in self._numbers:
            before = self.shares[above].after
            # s(v) = (1 - spent) part: on a path shares add up to at most 1 (docs/privacy/sequences.md).
            share = Share(before, (1 - before) * part)
            if share.own <= 0 or share.after > 1:
                raise InternalError("a path of the tree would spend more than the budget")
            self._numbers[above, part] = len(self.shares)
            self.shares.append(share)
        return self._numbers[above, part]

    def of_users(self, bins: int, sensitivity: int) -> "PathBudget":
        """Return the same accounts for a histogram of so many bins, which one user changes by this much in all."""
        return replace(self, limits=replace(self.limits, alphabet=bins - 1, max_length=sensitivity))

    def left(self, number: int) -> Fraction:
        """Return the fraction of epsilon that the path down to and including a node has left."""
        return 1 - self.shares[number].after

    def rate(self, number: int) -> Fraction:
        """Return epsilon over sensitivity of a node's noise, exact."""
        # r = epsilon s / L: L is the sensitivity, the maximum number of steps or start positions of one user.
        return self.limits.epsilon * self.shares[number].own / self.limits.max_length

    def scale(self, number: int) -> float:
        """Return the scale of a node's noise: the inverse of its rate."""
        return float(1 / self.rate(number))
