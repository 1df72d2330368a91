"""The grams of a release as a tree of beginnings, in arrays: what completions walk and the report carries."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.arrays import Bools, Int32s, Int64s
from voxpop.arrow import array_of, joined, numbers_of


@final
@dataclass(frozen=True, slots=True, eq=False)
class Depth:
    """The beginnings of one length, in canonical order.

    Attributes:
        tokens: int32, the last token of each beginning.
        starts: int64, where the ones that extend each beginning of the length before start, and the end.
        released: bool, whether a beginning is a gram of the release by itself.
    """

    tokens: Int32s
    starts: Int64s
    released: Bools

    @property
    def parents(self) -> Int64s:
        """The beginning one shorter that each one extends."""
        return np.repeat(np.arange(self.starts.size - 1), np.diff(self.starts))


@final
@dataclass(frozen=True, eq=False)
class GramTrie:
    """All beginnings of released grams, by length.

    Attributes:
        words: the tokens, in the order of their bytes; a token's number is its place.
        depths: one `Depth` for each length.
    """

    words: list[str]
    depths: tuple[Depth, ...]

    @staticmethod
    def of(grams: pa.Table) -> "GramTrie":
        """Return the tree of a release's table.

        Args:
            grams: columns `gram` and `length`, in canonical order.
        """
        words, flat = _numbered(grams["gram"])
        lengths = numbers_of(joined(grams["length"])).astype(np.int64)
        first = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])[:-1]
        depths: list[Depth] = []
        node = np.zeros(lengths.size, np.int64)
        above = 1
        for depth in range(int(lengths.max(initial=0))):
            rows = np.flatnonzero(lengths > depth)
            keys = node[rows] * len(words) + flat[first[rows] + depth]
            distinct, node[rows] = np.unique(keys, return_inverse=True)
            parents, tokens = np.divmod(distinct, len(words))
            released = np.zeros(distinct.size, np.bool_)
            released[node[lengths == depth + 1]] = True
            starts = np.searchsorted(parents, np.arange(above + 1)).astype(np.int64)
            depths.append(Depth(tokens.astype(np.int32), starts, released))
            above = distinct.size
        return GramTrie(words, tuple(depths))

    @cached_property
    def through(self) -> tuple[Int64s, ...]:
        """How many released grams begin with each beginning, itself counted if it is one."""
        counts: list[Int64s] = []
        for depth in reversed(range(len(self.depths))):
            own = self.depths[depth].released.astype(np.int64)
            if counts:
                sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts[-1])])
                starts = self.depths[depth + 1].starts
                own += sums[starts[1:]] - sums[starts[:-1]]
            counts.append(own)
        return tuple(reversed(counts))

    @cached_property
    def ranks(self) -> tuple[Int64s, ...]:
        """The place of each beginning among those of its length: first what most released grams begin with.

        Ties are settled by the beginning without its first token, and in the end by canonical order.
        """
        ranks: list[Int64s] = []
        suffix = np.empty(0, np.int64)
        for depth, (level, through) in enumerate(zip(self.depths, self.through, strict=True)):
            if depth == 0:
                suffix = np.zeros(level.tokens.size, np.int64)
                shorter = suffix
            else:
                suffix = self._found(depth - 1, suffix[level.parents], level.tokens)
                shorter = np.where(suffix < 0, ranks[-1].size, ranks[-1][suffix])
            order = np.lexsort((np.arange(through.size), shorter, -through))
            rank = np.empty_like(order)
            rank[order] = np.arange(order.size)
            ranks.append(rank)
        return tuple(ranks)

    @cached_property
    def preferred(self) -> tuple[Int64s, ...]:
        """For each length, its beginnings sorted by parent and then by rank: `starts` cuts this as it cuts tokens."""
        return tuple(np.lexsort((rank, each.parents)) for each, rank in zip(self.depths, self.ranks, strict=True))

    def _found(self, depth: int, parents: Int64s, tokens: Int32s) -> Int64s:
        """Return the beginnings with these parents and last tokens, or -1 where there are none."""
        level, width = self.depths[depth], max(1, len(self.words))
        keys = level.parents * width + level.tokens
        wanted = np.where(parents < 0, -1, parents * width + tokens)
        places = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        return np.where(keys[places] == wanted, places, -1)


def _numbered(grams: Any) -> tuple[list[str], Int64s]:
    """Return the distinct tokens in the order of their bytes, and every token's number."""
    coded = joined(grams).flatten().dictionary_encode()
    order = numbers_of(pc.array_sort_indices(coded.dictionary))
    numbers = np.empty(order.size, np.int64)
    numbers[order] = np.arange(order.size)
    words: list[str] = coded.dictionary.take(array_of(order)).to_pylist()
    return words, numbers[numbers_of(coded.indices)]
