"""The budget along the paths of a tree, in exact fractions of epsilon, and the noise of contexts.

Nodes with equal histories of shares share one account.
"""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from math import inf, sqrt

import numpy as np

from voxpop.errors import InternalError
from voxpop.kernels.arrays import Int64s
from voxpop.kernels.proved import proved
from voxpop.privacy.opening import Opening
from voxpop.privacy.sampling import laplace_noise
from voxpop.privacy.secret import Source


@dataclass(frozen=True, slots=True)
class Limits:
    """The public numbers that bound a tree.

    Attributes:
        epsilon: The whole budget, as an exact fraction.
        alphabet: The number of symbols.
        max_length: The maximum number of counted steps per user, which is the sensitivity.
        max_gram: The length of the longest gram.
    """

    epsilon: Fraction
    alphabet: int
    max_length: int
    max_gram: int


@dataclass(frozen=True, slots=True)
class Share:
    """The cost of the histogram of one node.

    Attributes:
        before: The fraction of epsilon that the histograms above this histogram spent.
        own: The fraction of epsilon that this histogram spent.
    """

    before: Fraction
    own: Fraction

    @property
    def after(self) -> Fraction:
        """The fraction of epsilon that the path down to and including this node spent."""
        return self.before + self.own


@dataclass(slots=True)
class PathBudget:
    """The shares of all nodes of a tree. Nodes with the same history of shares have the same index.

    Attributes:
        limits: The public numbers of the tree.
        shares: The distinct shares. Index 0 is the share of a path without nodes, above the root.

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

    @proved("sequences.md#proof-for-contexts")
    def spend(self, above: int, part: Fraction) -> int:
        """Register the share of a child node, and return its index in `shares`.

        Proof: "On a path of nodes, shares add up to at most 1 - s1 - s2, because each is a part of the rest."

        Args:
            above: The index of the parent's share.
            part: The fraction of the remaining budget of the parent's path that the child spends.
        """
        if (above, part) not in self._numbers:
            before = self.shares[above].after
            # The share is s(v) = (1 - spent) part, so the shares on a path add up to at most 1
            # (docs/privacy/sequences.md).
            share = Share(before, (1 - before) * part)
            if share.own <= 0 or share.after > 1:
                raise InternalError("a path of the tree would spend more than the budget")
            self._numbers[above, part] = len(self.shares)
            self.shares.append(share)
        return self._numbers[above, part]

    @proved("sequences.md#proof-for-contexts")
    def of_users(self, bins: int, sensitivity: int) -> "PathBudget":
        """Return a copy of the accounts for a histogram with this number of bins and this sensitivity.

        Proof: "So both statistics contribute at most epsilon (s1 + s2)."
        """
        return replace(self, limits=replace(self.limits, alphabet=bins - 1, max_length=sensitivity))

    @proved("sequences.md#contexts")
    def count_first(self, steps: int) -> None:
        """From now on, count only this number of steps from the start of each sequence.

        Proof: "Then histograms of sensitivity K are released level by level."

        This number becomes the sensitivity.
        """
        self.limits = replace(self.limits, max_length=steps)

    def left(self, number: int) -> Fraction:
        """Return the fraction of epsilon that remains on the path down to and including a node."""
        return 1 - self.shares[number].after

    @proved("sequences.md#contexts")
    def rate(self, number: int) -> Fraction:
        """Return the exact ratio of epsilon to sensitivity for a node's noise.

        Proof: "Noise is an integer X with P(X = k) proportional to exp(-|k| r), where r = epsilon s / sensitivity for a
        share s."
        """
        # r = epsilon s / L. The sensitivity L is the maximum number of steps or start positions per user.
        return self.limits.epsilon * self.shares[number].own / self.limits.max_length

    def scale(self, number: int) -> float:
        """Return the scale of a node's noise, which is the inverse of its rate."""
        return float(1 / self.rate(number))


@dataclass(frozen=True, slots=True)
class StepsRule:
    """The rule that derives the maximum length of sequences and the number of counted steps from released lengths.

    The rule is described in docs/privacy/sequences.md.

    Attributes:
        least: The minimum share of the steps that is counted.
        per_noise: The weight of the square root of the noise, relative to the share of the steps that is not counted.
        usual: The length up to which sequences are drawn even if few sequences have this length, or None if the length
            was set.
    """

    least: Fraction
    per_noise: Fraction
    usual: int | None = None

    @proved("sequences.md#contexts")
    def classes(self, lengths: Int64s, first: Int64s, rate: Fraction) -> Int64s:
        """Return the noisy number of sequences by class, up to the maximum drawn length, using only released numbers.

        Proof: "the length M up to which sequences are drawn is a function of the released lengths and the scale of
        their noise"

        The last class contains all sequences of at least its first length, which is the maximum length that is drawn.

        Args:
            lengths: int64 by class, the released number of sequences.
            first: int64, the first length of each class.
            rate: The rate of the noise on each number.
        """
        if self.usual is None:
            return lengths
        counts, common = lengths.tolist(), sum(each <= self.usual for each in first.tolist())
        # If noise alone explains the numbers of all classes after some class, these classes are assumed to be empty.
        kept = max((place + 1 for place, each in enumerate(counts) if each * rate >= CLEAR), default=common)
        # Compute, for each class, the number of sequences in it or in a class of longer sequences.
        tails = [sum(counts[place:kept]) for place in range(min(kept + 1, first.size))]
        last = max(place for place, tail in enumerate(tails) if place < common or tail >= REACHED * tails[0])
        # After the last class that noise alone does not explain, one more class follows with its released number.
        return np.array([*counts[:last], counts[last] if last == kept else tails[last]], np.int64)

    @proved("sequences.md#contexts")
    def steps(self, limits: Limits, first: Int64s, lengths: Int64s) -> int:
        """Return the number of steps that are counted from the start of each sequence, using only released numbers.

        Proof: "K is a function of the released lengths, of M, of epsilon and of the size of the alphabet."

        If more steps are counted, fewer are omitted, but the noise is larger, because it is proportional to the number
        of counted steps.

        Args:
            limits: The limits of the tree. `max_length` is the maximum number of steps.
            first: int64, the first length of each class.
            lengths: int64 by class, the noisy number of sequences.

        Returns:
            A number from 1 to `limits.max_length`, or the maximum if the numbers of sequences add up to 0.
        """
        whole = doubled_steps(first, lengths, limits.max_length, limits.max_length)
        if whole <= 0:
            return limits.max_length

        def cost(steps: int) -> float:
            counted = Fraction(doubled_steps(first, lengths, limits.max_length, steps), whole)
            if counted < self.least:
                return inf
            noise = steps * (limits.alphabet + 1) / (limits.epsilon * counted * whole / 2)
            return float(self.per_noise) * sqrt(noise) + float(1 - counted)

        return min(range(1, limits.max_length + 1), key=cost)


CLEAR, REACHED = 4, Fraction(1, 5)
"""Noise alone does not explain the number of a length class if it is at least `CLEAR` noise scales. Sequences longer
than usual are drawn up to a length that a share of `REACHED` of all sequences reaches.
"""


def doubled_steps(first: Int64s, lengths: Int64s, max_length: int, steps: int) -> int:
    """Return twice the number of counted steps that the lengths imply.

    This integer is identical in all implementations.

    Args:
        first: int64, the first length of each class. The last class is the class of `max_length`.
        lengths: int64 by class, the number of sequences.
        max_length: The maximum number of symbols per sequence.
        steps: The maximum number of counted steps per sequence.
    """
    starts = first.tolist()
    # The end of a sequence that is not cut is one more step, so the mean number of steps in a class is (first + last) /
    # 2 + 1.
    means = [low + high + 1 for low, high in pairwise(starts)] + [2 * max_length]
    return sum(each * min(mean, 2 * steps) for each, mean in zip(lengths.tolist(), means, strict=True))


PROFILE_NODES = 1 << 31
"""The noise of the statistics of users is drawn with node numbers that start at this number. No tree has such nodes."""
_PATHS_AT_ONCE = 1 << 21
"""The number of bins in one draw of noise."""
NOISE_PURPOSES = ("sequences/noise", "sequences/noise/more 1", "sequences/noise/more 2")
"""The purposes of the noise. Bits beyond these are needed with a probability of 2^-256."""


@dataclass(frozen=True, slots=True, eq=False)
class ContextNoise(Opening):
    """The noise of the contexts of one level, which can be sent to the processes that have the counts.

    Attributes:
        paths: The shares of all contexts.
        shares: int64 by context, the index of the context's share in `paths`.
        first: The number of contexts in all levels above. Contexts are numbered across levels.
        secret: The source of the noise.
    """

    paths: PathBudget
    shares: Int64s
    first: int
    secret: Source

    @property
    def width(self) -> int:
        """The number of counts of a node."""
        return self.paths.limits.alphabet + 1

    @proved("sequences.md#contexts")
    def __call__(self, keys: Int64s, counts: Int64s) -> Int64s:
        """Add noise to the counts of all bins.

        Proof: "Noise is an integer X with P(X = k) proportional to exp(-|k| r), where r = epsilon s / sensitivity for a
        share s. All bins are released, including empty bins."

        Every bin is released, including bins without users. The end mark of sequences also has a bin. A sequence has at
        most `max_length` steps, because the end after `max_length` symbols is not counted.

        Args:
            keys: The distinct keys (context * width + symbol) of the bins that occur. They are private.
            counts: The number of occurrences of each key. The counts are private.

        Returns:
            int64 (contexts, width), the noisy counts, which are public and may be negative.
        """
        width = self.width
        noisy = np.zeros((self.shares.size, width), np.int64)
        noisy.ravel()[keys] = counts
        # Contexts with equal shares have the same noise scale, so their noise is drawn together.
        for share in np.unique(self.shares).tolist():
            mine = np.flatnonzero(self.shares == share)
            step = max(1, _PATHS_AT_ONCE // width)
            for some in (mine[start : start + step] for start in range(0, mine.size, step)):
                # P(noise = k) is proportional to exp(-|k| rate). Context and symbol identify a draw, so no draw is used
                # twice.
                names, symbols = np.repeat(self.first + some, width), np.tile(np.arange(width), some.size)
                noise = laplace_noise(self.paths.rate(share), self.secret, NOISE_PURPOSES[0], names, symbols)
                noisy[some] += noise.reshape(-1, width)
        return noisy

    def of_nodes(self, first: int, shares: Int64s) -> "ContextNoise":
        """Return the noise of some of the contexts, starting with number `first`. Their new numbers start at 0."""
        return replace(self, shares=shares, first=self.first + first)

    def restricted(self) -> "ContextNoise":
        """Return the noise without its contexts and with a secret that is restricted to its purposes."""
        return replace(self, shares=np.empty(0, np.int64), secret=self.secret.restrict(*NOISE_PURPOSES))
