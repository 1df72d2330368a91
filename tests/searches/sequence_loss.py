"""A search for the largest exact privacy loss of one user in sequences, over neighbouring collections.

The larger collection releases a tree. Then the smaller collection is counted along the same released values. Each noisy
histogram contributes its l1 distance times its share of epsilon over the sensitivity. The sum, an exact fraction of
epsilon, is the loss of the worst outputs along that tree, and must not exceed 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np

from support.exact import paths_gate
from voxpop.mechanisms.sequences.constants import FIRST_SYMBOLS
from voxpop.mechanisms.sequences.releasing import split_contexts
from voxpop.papers import ngram_model
from voxpop.privacy.path_budget import ContextNoise, Limits
from voxpop.privacy.secret import Secret

Words = Sequence[Sequence[int]]
UNBOUNDED = Fraction(10**9)
"""The loss if neighbours with equal outputs have different noise, because such noise reveals the user."""
REAL_COUNTS = ContextNoise.__call__


@dataclass(frozen=True, slots=True)
class CostliestPair:
    """The worst pair of neighbours that a search found.

    Attributes:
        loss: The fraction of epsilon that the extra user costs, which is at most 1 if the mechanism is sound.
        users: The symbols of each user in the larger collection.
        extra: The index of the user who is missing from the smaller collection.
        limits: The limits of the tree.
        grams: Whether the tree is a tree of grams (CAC12) instead of contexts.
        usual: The usual length, if released lengths determine the length of sequences.
    """

    loss: Fraction
    users: tuple[tuple[int, ...], ...]
    extra: int
    limits: Limits | None
    grams: bool
    usual: int | None = None


def search_sequence_loss(pairs: int = 500, seed: int = 0) -> CostliestPair:
    """Search random neighbouring collections for the largest loss.

    Args:
        pairs: The number of pairs.
        seed: The seed that determines the search.

    Returns:
        The worst pair. A loss above 1 refutes the mechanism, but a search that finds no such loss proves nothing.
    """
    rng = np.random.default_rng(seed)
    worst = CostliestPair(Fraction(0), (), 0, None, False)
    for number in range(pairs):
        limits = Limits(
            epsilon=Fraction(int(rng.integers(1, 400)), 4),
            alphabet=int(rng.integers(1, 5)),
            max_length=int(rng.integers(1, FIRST_SYMBOLS + 3)),
            max_gram=int(rng.integers(1, 6)),
        )
        grams = bool(rng.integers(2))
        users = [_some_symbols(rng, limits) for _ in range(int(rng.integers(1, 30)))]
        extra = int(rng.integers(len(users)))
        if rng.integers(2):
            # The number of steps that one user can have, with all symbols distinct or repeated.
            users[extra] = [place * limits.alphabet // limits.max_length for place in range(limits.max_length)]
        usual = int(rng.integers(limits.max_length + 1)) or None
        loss = pair_loss(limits, users, extra, Secret.from_seed(seed * pairs + number), grams, usual)
        if loss > worst.loss:
            worst = CostliestPair(loss, tuple(map(tuple, users)), extra, limits, grams, usual)
    return worst


def pair_loss(
    limits: Limits, users: Words, extra: int, secret: Secret, grams: bool = False, usual: int | None = None
) -> Fraction:
    """Return the loss of one pair for the tree that the larger collection releases.

    Args:
        limits: The limits of the exploration.
        users: The symbols of each user, at most `limits.max_length`.
        extra: The index of the user who is missing from the smaller collection.
        secret: The source of the noise.
        grams: Whether the tree is a tree of grams instead of contexts.
        usual: The usual length, if released lengths determine the length of sequences.

    Returns:
        The loss as a fraction of epsilon.
    """
    larger = _Recorder()
    _grow(limits, users, secret, larger, grams, usual)
    others = [user for number, user in enumerate(users) if number != extra]
    return _loss(larger, limits, others, secret, grams, usual)


def loss_along(
    limits: Limits, users: Words, extra: int, lengths: Sequence[int], secret: Secret, usual: int | None = None
) -> tuple[Fraction, int, int]:
    """Return the loss of one pair if these lengths are released, and the resulting maximum length and counted steps."""
    larger = _Recorder(lengths=np.array([lengths]))
    tree = _grow(limits, users, secret, larger, False, usual)
    others = [user for number, user in enumerate(users) if number != extra]
    return _loss(larger, limits, others, secret, False, usual), tree.max_length, tree.counted


def _loss(
    larger: "_Recorder", limits: Limits, others: Words, secret: Secret, grams: bool, usual: int | None
) -> Fraction:
    smaller = _Recorder(replayed=larger)
    try:
        _grow(limits, others, secret, smaller, grams, usual)
    except _OtherNoiseError:
        return UNBOUNDED
    loss = Fraction(0)
    # For each histogram and node, the recorded share is the share of the node divided by the sensitivity.
    for one, other, (width, shares) in zip(larger.histograms, smaller.histograms, larger.shares, strict=True):
        for key in one.keys() | other.keys():
            if change := abs(one.get(key, 0) - other.get(key, 0)):
                loss += shares[key // width] * change
    return loss


def _grow(limits: Limits, users: Words, secret: Secret, recorder: "_Recorder", grams: bool, usual: int | None) -> Any:
    """Run the real code, with the privacy boundary recorded or replayed, and return the tree of contexts."""
    sequences = _laid_out(users, limits)
    with patch.object(ContextNoise, "__call__", lambda *given: recorder.released_counts(*given)):
        if grams:
            return ngram_model.explore(paths_gate(limits, sequences, secret, "grams"))
        return split_contexts(paths_gate(limits, sequences, secret, usual=usual))[0]


class _OtherNoiseError(Exception):
    """Raised if two neighbours with equal outputs receive different noise."""


@dataclass(slots=True)
class _Recorder:
    """Releases values like the real code, or repeats earlier released values, and records the private counts.

    Attributes:
        replayed: The recorder with the released values to repeat.
        lengths: The lengths that are released first, in place of noisy lengths, as int64 (1, classes).
    """

    replayed: "_Recorder | None" = None
    lengths: Any = None
    levels: list[Any] = field(default_factory=list)
    histograms: list[dict[int, int]] = field(default_factory=list)
    shares: list[tuple[int, list[Fraction]]] = field(default_factory=list)

    def released_counts(self, noise, keys, counts):
        """Release or repeat noisy counts, in place of the noise of a tree."""
        return self._released(noise.paths, noise, keys, counts, lambda: REAL_COUNTS(noise, keys, counts))

    def _released(self, paths, nodes, keys, counts, release):
        self.histograms.append(dict(zip(keys.tolist(), counts.tolist(), strict=True)))
        own = [paths.shares[share].own / paths.limits.max_length for share in nodes.shares.tolist()]
        self.shares.append((paths.limits.alphabet + 1, own))
        if self.replayed is None:
            self.levels.append(release() if self.lengths is None or self.levels else self.lengths)
        elif self.replayed.shares[len(self.levels)] != self.shares[-1]:
            raise _OtherNoiseError
        else:
            self.levels.append(self.replayed.levels[len(self.levels)])
        return self.levels[-1].copy()


def _laid_out(users: Words, limits: Limits) -> np.ndarray:
    """Return sequences in the format of `one_sequence_each`."""
    marked = [[*user[: limits.max_length], limits.alphabet] for user in users if len(user)]
    return np.array([symbol for user in marked for symbol in user], np.int32)


def _some_symbols(rng: np.random.Generator, limits: Limits) -> list[int]:
    favourite = rng.integers(limits.alphabet)
    symbols = rng.integers(limits.alphabet, size=int(rng.integers(1, limits.max_length + 1)))
    return np.where(rng.random(symbols.size) < 0.7, favourite, symbols).tolist()
