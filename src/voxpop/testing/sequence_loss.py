"""What one user can cost a tree of sequences: the exact privacy loss on neighbouring collections, on the real code.

A tree is explored on the larger collection. Then the smaller one is counted along the same releases. Each noisy
histogram contributes its l1 distance times its share of epsilon over the sensitivity; the sum, an exact fraction of
epsilon, is the loss of the worst outputs along that tree, and must never exceed 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from voxpop.arrays import Int32s, Int64s
from voxpop.corpus.tree_walk import MemoryTreeWalk
from voxpop.privacy.secret import Secret, Source
from voxpop.sequences.children import Candidates, released_children
from voxpop.sequences.exploring import ReleaseRule, explore
from voxpop.sequences.limits import Limits
from voxpop.sequences.path_budget import PathBudget
from voxpop.sequences.splitting import split_contexts
from voxpop.sequences.tree import Rows

Words = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class CostliestPair:
    """The worst pair of neighbours that a search met.

    Attributes:
        loss: fraction of epsilon that the extra user costs; at most 1 where the mechanism is sound.
        users: every user's symbols, of the larger collection.
        extra: place of the user whom the smaller collection lacks.
        limits: of the exploration.
    """

    loss: Fraction
    users: tuple[tuple[int, ...], ...]
    extra: int
    limits: Limits | None


def search_sequence_loss(pairs: int = 500, seed: int = 0) -> CostliestPair:
    """Search random neighbouring collections for the largest loss.

    Args:
        pairs: how many to try.
        seed: the search is a function of it.

    Returns:
        The worst pair met. A loss above 1 refutes the mechanism; finding none proves nothing.

    Example:
        >>> search_sequence_loss(pairs=5).loss <= 1
        True
    """
    rng = np.random.default_rng(seed)
    worst = CostliestPair(Fraction(0), (), 0, None)
    for number in range(pairs):
        limits = Limits(
            epsilon=Fraction(int(rng.integers(1, 400)), 4),
            alphabet=int(rng.integers(1, 5)),
            max_length=int(rng.integers(1, 7)),
            max_gram=int(rng.integers(1, 6)),
            keep_all=bool(rng.integers(2)),
            balanced=bool(rng.integers(2)),
            contexts=bool(rng.integers(2)),
        )
        users = [_some_symbols(rng, limits) for _ in range(int(rng.integers(1, 30)))]
        extra = int(rng.integers(len(users)))
        if rng.integers(2):
            users[extra] = users[extra][:1] * limits.max_length
        loss = pair_loss(limits, users, extra, Secret.from_seed(seed * pairs + number))
        if loss > worst.loss:
            worst = CostliestPair(loss, tuple(map(tuple, users)), extra, limits)
    return worst


def pair_loss(limits: Limits, users: Words, extra: int, secret: Secret) -> Fraction:
    """Return the loss of one pair along the tree that the larger collection gives.

    Args:
        limits: of the exploration.
        users: symbols of each user, at most `limits.max_length`.
        extra: place of the user whom the smaller collection lacks.
        secret: source of the noise.

    Returns:
        The loss as a fraction of epsilon.
    """
    larger = _Recorder()
    _grow(limits, users, secret, larger)
    others = [user for number, user in enumerate(users) if number != extra]
    smaller = _Recorder(replayed=larger.levels)
    _grow(limits, others, secret, smaller)
    loss = Fraction(0)
    for one, other, shares in zip(larger.histograms, smaller.histograms, larger.shares, strict=True):
        for key in one.keys() | other.keys():
            share = shares[key // (limits.alphabet + 1)]
            loss += share * abs(one.get(key, 0) - other.get(key, 0)) / limits.max_length
    return loss


def _grow(limits: Limits, users: Words, secret: Secret, release: ReleaseRule) -> None:
    """Run the real code, on whichever tree the limits ask for."""
    if limits.contexts:
        split_contexts(limits, MemoryTreeWalk(_laid_out(users, limits), limits.alphabet), secret, release)
    else:
        explore(limits, _laid_out(users, limits), secret, release)


@dataclass(slots=True)
class _Recorder:
    """Releases children as the real code does, or again what was released before, and keeps the private counts."""

    replayed: list[Rows] | None = None
    levels: list[Rows] = field(default_factory=list)
    histograms: list[dict[int, int]] = field(default_factory=list)
    shares: list[list[Fraction]] = field(default_factory=list)

    def __call__(
        self, limits: Limits, paths: PathBudget, candidates: Candidates, keys: Int64s, counts: Int64s, secret: Source
    ) -> Rows:
        level = len(self.levels)
        self.histograms.append(dict(zip(keys.tolist(), counts.tolist(), strict=True)))
        self.shares.append([paths.shares[share].own for share in candidates.shares.tolist()])
        if self.replayed is None:
            self.levels.append(released_children(limits, paths, candidates, keys, counts, secret))
        else:
            self.levels.append(self.replayed[level])
        return self.levels[-1]


def _laid_out(users: Words, limits: Limits) -> Int32s:
    """Return sequences as `one_sequence_each` does."""
    marked = [[*user[: limits.max_length], limits.alphabet] for user in users if len(user)]
    return np.array([symbol for user in marked for symbol in user], np.int32)


def _some_symbols(rng: np.random.Generator, limits: Limits) -> list[int]:
    favourite = rng.integers(limits.alphabet)
    symbols = rng.integers(limits.alphabet, size=int(rng.integers(1, limits.max_length + 1)))
    return np.where(rng.random(symbols.size) < 0.7, favourite, symbols).tolist()  # type: ignore[no-any-return]
