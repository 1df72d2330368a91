"""Completions: continuations by the longest released context, with back-off to shorter ones."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import InputError
from voxpop.kernels.arrays import Bools, Int32s, Int64s
from voxpop.reading.arrow import array_of, joined, numbers_of
from voxpop.release.cutting import cut_prompt


@final
@dataclass(frozen=True, slots=True, eq=False)
class Depth:
    """The beginnings of one length, in canonical order.

    Attributes:
        tokens: int32, the last token of each beginning.
        starts: int64, where the ones that extend each beginning of the length before start, and the end.
        released: bool, whether a beginning is itself a gram of the release.
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

    def numbered(self, numbers: Int64s) -> Int64s:
        """Return a number for each beginning, in order of length: that of the gram, or 0 where it was not released."""
        released = np.concatenate([np.zeros(0, np.bool_), *(depth.released for depth in self.depths)])
        spread = np.zeros(released.size, np.int64)
        spread[released] = numbers
        return spread

    @cached_property
    def through(self) -> tuple[Int64s, ...]:
        """Number of released grams that begin with each beginning, itself counted if it is one."""
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
        """The place of each beginning among those of its length: first the beginning of most released grams.

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
        """Return the beginnings with these parents and last tokens, or -1 where no such beginning exists."""
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


LARGEST = "\U0010ffff"


@final
@dataclass(frozen=True, slots=True)
class Completion:
    """One way to go on.

    Attributes:
        token: the next token.
        context: the tokens before it that were looked up: the longest end of the prompt that a released gram extends.
        phrases: number of released grams that begin with context and token. It counts grams, never users.
    """

    token: str
    context: tuple[str, ...]
    phrases: int

    @property
    def gram(self) -> tuple[str, ...]:
        """Context and token together."""
        return (*self.context, self.token)


@final
class Completer:
    """The lookup behind `Release.complete`: built once, then below a millisecond a call."""

    def __init__(self, grams: pa.Table, reading: str) -> None:
        """Build the arrays.

        Args:
            grams: the table of a release.
            reading: how texts became tokens, or "" where that is not known.
        """
        self._trie = GramTrie.of(grams)
        self._numbers = {word: number for number, word in enumerate(self._trie.words)}
        self._reading = reading
        if self._trie.depths:
            _ = self._trie.preferred

    def complete(self, prompt: str | Sequence[str], limit: int) -> list[Completion]:
        """Return continuations; see `Release.complete`."""
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise InputError(f"`limit` must be a whole number of at least 1, got {limit!r}.")
        if not self._trie.depths:
            return []
        cut = cut_prompt(prompt, self._reading, self._numbers)
        if not cut.open:
            return self._continued(cut.tokens, None, limit)
        if self._stands(cut.tokens):
            return self._continued(cut.tokens, None, limit) or self._begun(cut.tokens, limit)
        return self._begun(cut.tokens, limit) or self._continued(cut.tokens, None, limit)

    def _stands(self, tokens: Sequence[str]) -> bool:
        """Check whether the last token was released, and behind the one before it if that was released."""
        numbers = [self._numbers.get(token, -1) for token in tokens[-2:]]
        return numbers[-1] >= 0 and (len(numbers) < 2 or numbers[0] < 0 or self._walk(numbers) >= 0)

    def _begun(self, tokens: Sequence[str], limit: int) -> list[Completion]:
        """Take the last token for the beginning of one."""
        return self._continued(tokens[:-1], self._span(tokens[-1]), limit)

    def _span(self, beginning: str) -> tuple[int, int]:
        """Return the numbers of all tokens that begin like this."""
        words = self._trie.words
        return bisect_left(words, beginning), bisect_left(words, beginning + LARGEST)

    def _continued(self, tokens: Sequence[str], span: tuple[int, int] | None, limit: int) -> list[Completion]:
        """Go from the longest context to the shortest; to none only where the prompt holds no whole token."""
        numbers = [self._numbers.get(token, -1) for token in tokens]
        longest = min(len(numbers), len(self._trie.depths) - 1)
        shortest = 0 if span is not None or not numbers else 1
        seen: set[int] = set()
        found: list[Completion] = []
        for size in range(longest, shortest - 1, -1):
            context = numbers[len(numbers) - size :]
            node = self._walk(context)
            if node < 0:
                continue
            before = tuple(self._trie.words[number] for number in context)
            fresh = (
                place for place in self._best(size, node, span, limit + len(seen)) if self._is_new(size, place, seen)
            )
            for place in islice(fresh, limit - len(found)):
                word = self._trie.words[self._trie.depths[size].tokens[place]]
                found.append(Completion(word, before, int(self._trie.through[size][place])))
            if len(found) == limit:
                break
        return found

    def _is_new(self, size: int, place: int, seen: set[int]) -> bool:
        token = int(self._trie.depths[size].tokens[place])
        fresh = token not in seen
        seen.add(token)
        return fresh

    def _walk(self, context: Sequence[int]) -> int:
        """Return the beginning that these tokens are, or -1."""
        if len(context) > len(self._trie.depths):
            return -1
        node = 0
        for depth, token in enumerate(context):
            if token < 0:
                return -1
            level = self._trie.depths[depth]
            first, stop = int(level.starts[node]), int(level.starts[node + 1])
            node = first + int(level.tokens[first:stop].searchsorted(token))
            if node == stop or level.tokens[node] != token:
                return -1
        return node

    def _best(self, size: int, node: int, span: tuple[int, int] | None, most: int) -> Iterator[int]:
        """Yield the extensions of a beginning, in order of rank, up to the limit."""
        level = self._trie.depths[size]
        first, stop = int(level.starts[node]), int(level.starts[node + 1])
        if span is None:
            yield from self._trie.preferred[size][first : min(stop, first + most)].tolist()
            return
        low, high = (first + int(level.tokens[first:stop].searchsorted(number)) for number in span)
        yield from (low + _smallest(self._trie.ranks[size][low:high], most)).tolist()


def _smallest(ranks: Int64s, most: int) -> Int64s:
    """Return the places of the smallest ranks, in order."""
    if ranks.size > most:
        kept = np.argpartition(ranks, most)[:most]
        return kept[np.argsort(ranks[kept])]
    return np.argsort(ranks)
