"""The gate of trees, with integer Laplace noise and shares of epsilon that add up to at most 1 on every path."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, final

import numpy as np

from voxpop.kernels.arrays import Floats, Int32s, Int64s
from voxpop.kernels.proved import proved
from voxpop.privacy.gate.gate import Gate, refused
from voxpop.privacy.passes import PathsProof
from voxpop.privacy.path_budget import PROFILE_NODES, ContextNoise, Limits, PathBudget, StepsRule
from voxpop.privacy.secret import Secret

Released = tuple[Int64s, Floats]
"""The noisy counts, and the noise scale of each row."""


@final
class PathsGate(Gate[PathsProof]):
    """The gate of counts along the paths of a tree of contexts or grams (docs/privacy/sequences.md).

    Attributes:
        paths: The shares of all nodes. Computing a share spends no budget. The gate spends only the shares of nodes
            that it counts.
        numbers: The index of each node's share.
        longest: The maximum number of symbols of a sequence, which released lengths can reduce.
    """

    _proves = PathsProof

    def __init__(self, text: str, secret: Secret) -> None:
        super().__init__(text, secret)
        self.numbers = np.empty(0, np.int64)
        self.paths = PathBudget(Limits(self.proof.epsilon, 0, self.proof.max_length, self.proof.max_gram))
        self._counting: Any = None
        self.longest = self.proof.max_length
        self._spent = self._first = self._depth = 0

    def open(self, engine: Any, alphabet: tuple[str, ...], other: str | None = None) -> None:
        """Start the release with one sequence per user over a public alphabet. `other` represents all other tokens."""
        self._begin("open")
        if self.proof.alphabet not in (None, len(alphabet)):
            raise refused("symbols would be counted that the certificate does not contain")
        limits = Limits(self.proof.epsilon, len(alphabet), self.proof.max_length, self.proof.max_gram)
        self.paths = PathBudget(limits)
        walk = engine.tree_walk(alphabet, limits.max_length, self._secret, other)
        self._counting = walk if self.proof.tree == "contexts" else walk.grams()

    # Statistics of users, before the tree of contexts.

    @proved("sequences.md#proof-for-contexts")
    def lengths(self, first: Int64s, part: Fraction) -> Released:
        """Return the noisy number of sequences in each length class. Each user is in one class.

        Proof: "M and K cost nothing, because they are post-processing of the lengths, for which s1 is charged."

        From these numbers, the rule of the certificate determines the maximum length of sequences, and the number of
        steps that the tree counts from the start of each sequence. Only the classes up to this length are returned.

        Args:
            first: The smallest length of each class, in increasing order.
            part: The part of epsilon that this statistic spends.
        """
        self._begin("lengths", "open")
        counts, scale = self._statistic("lengths", 0, int(first.size), 1, part, first)
        if self.proof.least is not None and self.proof.per_noise is not None:
            rule = StepsRule(self.proof.least, self.proof.per_noise, self.proof.usual)
            limits = self.paths.limits
            public = {"symbols": limits.alphabet, "first": first.tolist(), "released": counts.tolist()}
            counts = rule.classes(counts, first, self.proof.epsilon * part)
            self.longest = int(first[counts.size - 1])
            # The counts and their noise use the same number of steps, which is a function of the lengths that were just
            # released.
            steps = rule.steps(replace(limits, max_length=self.longest), first[: counts.size], counts)
            if steps < limits.max_length:
                self._counting.count_first(steps)
                self.paths.count_first(steps)
            found = {} if rule.usual is None else {"longest": self.longest}
            self._transcript[-1] |= public | found | {"steps": steps}
        return counts, scale

    @property
    def steps(self) -> int:
        """The number of steps that the tree counts from the start of each sequence."""
        return self.paths.limits.max_length

    @proved("sequences.md#proof-for-contexts")
    def variety(self, most: int, bins: int, part: Fraction) -> Released:
        """Return the noisy number of distinct symbols. With two bins, also return the noisy number of repeated symbols.

        Proof: "The number of distinct symbols among the first M is at most M, and at most the size of the alphabet. In
        the case of two numbers, each of its first F symbols adds 1 to one of the numbers or to none"

        Args:
            most: The number of symbols that are counted from the start of each sequence.
            bins: The number of bins, 1 or 2.
            part: The part of the remaining epsilon that this statistic spends.
        """
        self._begin("variety", "lengths")
        if bins not in (1, 2) or not 1 <= most <= self.longest:
            raise refused("another statistic would be counted")
        # With two bins, each symbol adds to at most one bin, because it cannot differ from all earlier symbols and also
        # equal the previous symbol. With one bin, a user's number of distinct symbols is also at most the size of the
        # alphabet.
        sensitivity = most if bins == 2 else min(self.paths.limits.alphabet, most)
        return self._statistic("variety", 1, bins, sensitivity, part, np.array([most, bins]))

    @proved("sequences.md#proof-for-contexts")
    def _statistic(self, kind: str, place: int, bins: int, sensitivity: int, part: Fraction, given: Int64s) -> Released:
        """Release a statistic of users with its part of the budget at the beginning of every path.

        Proof: "So both statistics contribute at most epsilon (s1 + s2)."
        """
        if self.numbers.size or self.proof.tree != "contexts":
            raise refused("statistics of users would be released after the tree")
        mine = self.paths.of_users(bins, sensitivity)
        self._spent = self.paths.spend(self._spent, part)
        self._note(kind, {"bins": bins, "sensitivity": sensitivity, "part": str(part)})
        noise = ContextNoise(mine, np.array([self._spent]), PROFILE_NODES + place, self._secret)
        return self._counting.released(kind, noise, given)[0], np.array([mine.scale(self._spent)])

    # The tree of contexts.

    @proved("sequences.md#proof-for-contexts")
    def level(self, parents: Int32s, before: Int32s, parts: Sequence[Fraction]) -> Released:
        """Return the noisy counts of all bins of the next level of contexts.

        Proof: "So a step in a node is in exactly one of the node's children, if there are any. Therefore the nodes of a
        step are one path from the root."

        A share is a part of the remaining epsilon on the path to the parent. A step moves to one child of its node,
        so shares add up along the path of each step.

        Args:
            parents: The parent of each new node in the last level; -1 for the root.
            before: The symbol before the context of the parent of each new node; negative for all other symbols
                together.
            parts: The part of the remaining epsilon on its path that each new node spends.
        """
        width = self.paths.limits.alphabet + 1
        if self.numbers.size == 0:
            self._begin("root", "open")
            above = [self._spent] * len(parts)
            if len(parts) != 1:
                raise refused("a tree would have several roots")
        else:
            last = self.numbers.size - self._first
            if not ((parents >= self._first) & (parents < self.numbers.size)).all():
                raise refused("a context would be counted below a level that is not the last one")
            if not (before < width).all():
                # Such a node would have the same key as a context below the next node, and the path to that context
                # could have spent more.
                raise refused("no symbol would precede a context")
            above = self.numbers[parents].tolist()
            self._counting.lengthen(self._depth, *_moves(parents - self._first, before, last, width))
            self._depth += 1
        return self._released(above, parts, "following")

    @proved("sequences.md#proof-for-contexts")
    def _released(self, above: Sequence[int], parts: Sequence[Fraction], kind: str) -> Released:
        """Return the noisy counts of new nodes, each with its share of the budget on its path.

        Proof: "The nodes and all shares are functions of earlier released values. So the release is an adaptive
        composition"
        """
        shares = np.array([self.paths.spend(*each) for each in zip(above, parts, strict=True)], np.int64)
        self._first = self.numbers.size
        self.numbers = np.concatenate([self.numbers, shares])
        distinct = [self.paths.shares[share] for share in np.unique(shares).tolist()]
        shared = [[str(each.before), str(each.own)] for each in distinct]
        self._note("level", {"shares": shared, "sensitivity": self.steps})
        noise = ContextNoise(self.paths, shares, self._first, self._secret)
        counts = self._counting.released(kind, noise)
        return counts, np.array([self.paths.scale(share) for share in shares.tolist()])

    # The tree of grams.

    @proved("sequences.md#proof-for-grams")
    def children(self, rows: Int64s, symbols: Int64s, parts: Sequence[Fraction]) -> Released:
        """Return the noisy counts of the symbols after the next grams.

        Proof: "So all nodes that p affects are on one path from the root, and p adds at most 1 to each of their
        histograms."

        Args:
            rows: The row of the gram in the last level that each new gram continues; empty for the root.
            symbols: The symbol that each new gram adds.
            parts: For each new gram, the fraction that it spends of the epsilon that remains on its path.
        """
        width, root = self.paths.limits.alphabet + 1, self.numbers.size == 0
        last = self.numbers[self._first :]
        if not root:
            if not (symbols < width - 1).all():
                raise refused("a gram would continue after the end mark")
            if not ((symbols >= 0) & (rows >= 0) & (rows < last.size)).all():
                raise refused("a gram would be counted below a gram that does not pay for its path")
            self._counting.enter(rows * width + symbols, last.size * width)
        counts, scales = self._released([0] if root else last[rows].tolist(), parts, "children")
        # The root has no bin for the end mark. With such a bin, one user would change max_length + 1 counts.
        counts[:, _bins(width, root) :] = 0
        return counts, scales


@proved("sequences.md#proof-for-grams")
def _bins(width: int, at_root: bool) -> int:
    """Return the number of bins of a gram. The root has no bin for the end mark.

    Proof: "The end mark is only ever the last symbol of a gram, and the root has no bin for it, so its position affects
    no histogram."
    """
    return width - 1 if at_root else width


@proved("sequences.md#proof-for-contexts")
def _moves(above: Int32s, before: Int32s, size: int, width: int) -> tuple[Int64s, Int32s, Int32s]:
    """Return the keys, new nodes and `others` that determine the moves of steps. In a level, node numbers start at 0.

    Proof: "is determined by the symbol before the context of the node"
    """
    places = np.arange(above.size, dtype=np.int32)
    above = above.astype(np.int64)
    named = before >= 0
    others = np.full(size, -1, np.int32)
    others[above[~named]] = places[~named]
    return above[named] * width + before[named], places[named], others
