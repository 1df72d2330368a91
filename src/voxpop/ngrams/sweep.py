"""The sweep: what came close at any length is voted on once more, all lengths together.

By then users know (and nobody else does) what they have left of their own budgets, and spend all of it. The candidates
are few and likely, so that a vote goes much further. Which they are, and in which piece each stands, is a function of
the levels that earlier votes gave them: public.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from voxpop.arrays import Floats, Int32s, Int64s
from voxpop.ngrams.grams import Grams
from voxpop.ngrams.schedule import FEWEST_IN_PIECE, LEAST_REAL, LOWEST_SWEPT, PIECES, SWEEP_ALPHA, SWEEP_CUTPOINTS
from voxpop.ngrams.threshold_vote import Selection, ThresholdVote
from voxpop.ngrams.thresholds import Votes

if TYPE_CHECKING:
    from voxpop.ngrams.ngrams import NGrams


@dataclass(frozen=True, slots=True)
class Missed:
    """The near misses of one length.

    Attributes:
        names: int64, rising, as candidates of that length.
        piece: int64, the piece of each.
        tokens: int32 (names, length), ranks of their tokens.
    """

    names: Int64s
    piece: Int64s
    tokens: Int32s

    @property
    def pieces(self) -> int:
        """How many pieces."""
        return int(self.piece.max(initial=-1)) + 1


@dataclass(frozen=True)
class Listed:
    """A public list of candidates, whose numbers are their names.

    Attributes:
        missed: the near misses of every length, from 2 on.
    """

    missed: tuple[Missed, ...]

    @cached_property
    def starts(self) -> Int64s:
        """Where each length begins, and one more."""
        # (lengths + 1,): candidates of all lengths in one list, named by their place in it.
        return np.cumsum([0, *(each.names.size for each in self.missed)])

    @property
    def count(self) -> int:
        """How many candidates."""
        return int(self.starts[-1])

    def names(self, numbers: Int64s) -> Int64s:
        """Return the names of candidates by number."""
        return numbers

    @cached_property
    def _piece(self) -> Int64s:
        before = np.cumsum([0, *(each.pieces for each in self.missed)])
        return np.concatenate(
            [np.empty(0, np.int64), *(e.piece + n for e, n in zip(self.missed, before, strict=False))]
        )

    @cached_property
    def sizes(self) -> Int64s:
        """How many candidates each piece holds."""
        return np.bincount(self._piece)

    def of_names(self, names: Int64s) -> Int64s:
        """Return the piece of each candidate."""
        # Names are places, so no search is needed.
        return self._piece[names]

    def lengths_of(self, by_piece: Sequence[float]) -> tuple[float, ...]:
        """Add up a number of each piece by length."""
        cuts = np.cumsum([each.pieces for each in self.missed])[:-1]
        return tuple(float(each.sum()) for each in np.split(np.array(by_piece, np.float64), cuts))

    def joined(self, released: list[Grams], selected: Int64s) -> list[int]:
        """Put what the sweep selected beside what was released; return how many were added at each length."""
        added = []
        for number, each in enumerate(self.missed):
            mine = selected[(selected >= self.starts[number]) & (selected < self.starts[number + 1])]
            added.append(mine.size)
            if mine.size:
                rows = each.tokens[mine - self.starts[number]]
                # In order of tokens, as every set of grams is; what was already there stays.
                tokens = np.unique(np.concatenate([released[number + 1].tokens, rows]), axis=0)
                none = np.zeros(len(tokens), np.int32)
                released[number + 1] = Grams(tokens, none, none)
        return added


def sweeping(ngrams: "NGrams") -> "NGrams":
    """Return what the sweep runs as: a user's limit over all lengths, and weight that stops rising earlier."""
    return replace(ngrams, limit=max(ngrams.limits[1:]), alpha=SWEEP_ALPHA)


def near_misses(
    vote: ThresholdVote, held: Int64s, levels: Int64s, votes: Votes, result: Selection
) -> tuple[Int64s, Int64s]:
    """Part what was not selected by band and level, and leave out what is hardly ever real.

    Args:
        vote: what was voted on.
        held: int64, the band of each candidate that reached the lowest cutpoint.
        levels: int64, how many cutpoints each reached.
        votes: how the votes came out, by band.
        result: what was selected.

    Returns:
        Places of the near misses, rising, and the piece of each.
    """
    # By place among what reached the lowest cutpoint; -1 for what is selected or not swept.
    piece_of, piece = np.full(held.size, -1, np.int64), 0
    # (bands,), how many nobody holds, as estimated.
    empty = votes.empty
    chances = np.append(votes.chances, 0.0)
    # (bands, cutpoints + 1): nobody reaches the one beyond the last.
    reached = np.hstack([votes.reached, np.zeros((votes.sizes.size, 1), np.int64)])
    for band in range(votes.sizes.size):
        mine = np.flatnonzero((held == band) & ~result.selected)
        # By rising level, so pieces are alike in how close they came.
        mine = mine[np.argsort(levels[mine], kind="stable")]
        for part in np.array_split(mine, max(1, min(PIECES, mine.size // FEWEST_IN_PIECE))):
            if not part.size:
                continue
            # Numbers of the lowest and of the first unreached cutpoint of the piece.
            low, high = int(levels[part[0]]) - 1, int(levels[part[-1]])
            within = int(reached[band, low] - reached[band, high])
            # The share of the piece that somebody holds, by estimate: 1 - n (p_low - p_high) / candidates between.
            if 1.0 - empty[band] * (chances[low] - chances[high]) / max(1, within) >= LEAST_REAL:
                piece_of[part] = piece
                piece += 1
    places = np.flatnonzero(piece_of >= 0)
    return places, piece_of[places]


def sweep_cutpoints(usual: float) -> Floats:
    """Return the rising cutpoints of the sweep at or below the published threshold, in sigma."""
    return np.linspace(min(LOWEST_SWEPT, usual), usual, SWEEP_CUTPOINTS, endpoint=False)
