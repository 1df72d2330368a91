"""The grams of a public list, as a walk through lengths names them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from voxpop.arrays import Bools, Int64s
from voxpop.arrow import string_array

if TYPE_CHECKING:
    from voxpop.release.release import Release

Gram = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ListedGrams:
    """The grams of one length that a walk keeps: those on the list, and parts of longer ones.

    Attributes:
        length: of each.
        names: int64, rising: ranks at length 1, `left * 2^32 + partner` above.
        words: in order of bytes, at length 1; empty above.
        before: how many grams were kept at the length before.
        ranks: int64 by place on the list, the rank of each among the names.
        counted: bool by rank, which are on the list; None where all are.
    """

    length: int
    names: Int64s
    words: pa.LargeStringArray
    before: int
    ranks: Int64s
    counted: Bools | None

    @property
    def size(self) -> int:
        """How many are kept."""
        return int(self.names.size)

    @property
    def places(self) -> Int64s:
        """int64 by rank, the place on the list; parts that are not on it come behind."""
        # (kept,): the inverse of `ranks`, and behind it whatever is kept for longer grams only.
        places = np.empty(self.size, np.int64)
        places[self.ranks] = np.arange(self.ranks.size)
        others = np.setdiff1d(np.arange(self.size), self.ranks)
        places[others] = self.ranks.size + np.arange(others.size)
        return places


def listed_grams(release: "Release", lengths: int) -> Iterator[ListedGrams]:
    """Yield the grams of each length from 1 on, with the parts through which a walk must go.

    Args:
        release: whose grams are on the list.
        lengths: of the longest gram.
    """
    wanted = by_length(release, lengths)
    rank: dict[Gram, int] = {}
    for number, walked in enumerate(with_parts(wanted)):
        if number:
            # left * 2^32 + partner, as the walk names a gram by its two parts.
            named = {gram: (rank[gram[:-1]] << 32) | rank[gram[1:]] for gram in walked}
            kept, words = sorted(named, key=named.__getitem__), string_array([])
            names = np.array([named[gram] for gram in kept], np.int64)
        else:
            kept = sorted(walked, key=lambda gram: gram[0].encode())
            words, names = string_array([gram[0] for gram in kept]), np.arange(len(kept))
        before, rank = len(rank), {gram: place for place, gram in enumerate(kept)}
        listed = np.array([gram in wanted[number] for gram in kept], np.bool_)
        ranks = np.array([rank[gram] for gram in wanted[number]], np.int64)
        yield ListedGrams(number + 1, names, words, before, ranks, None if listed.all() else listed)


def by_length(release: "Release", lengths: int) -> list[dict[Gram, None]]:
    """Return the grams of each length from 1 on, in canonical order."""
    found: list[dict[Gram, None]] = [{} for _ in range(lengths)]
    for gram in release.each_gram():
        found[len(gram) - 1][gram] = None
    return found


def with_parts(wanted: Sequence[dict[Gram, None]]) -> list[dict[Gram, None]]:
    """Add the parts of grams that are not on the list themselves: they must be walked through, and do not count."""
    walked = [dict(each) for each in wanted]
    for number in range(len(walked) - 1, 0, -1):
        for gram in walked[number]:
            walked[number - 1].setdefault(gram[:-1])
            walked[number - 1].setdefault(gram[1:])
    return walked


def sizes_of(release: "Release") -> list[int]:
    """Return how many grams of each length from 1 to the longest a release holds."""
    return [int(size) for size in np.bincount(release.grams["length"].to_numpy())[1:]]
