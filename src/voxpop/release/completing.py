"""Completions: continuations by the longest released context, with back-off to shorter ones."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.errors import InputError
from voxpop.kernels.arrays import Bools, Int32s, Int64s
from voxpop.reading.arrow import array_of, joined, numbers_of
from voxpop.release.cutting import cut_prompt

Gram = tuple[str, ...]


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


def _numbered(grams: Any) -> tuple[list[str], Int64s]:
    """Return the distinct tokens in the order of their bytes, and every token's number."""
    coded = joined(grams).flatten().dictionary_encode()
    order = numbers_of(pc.array_sort_indices(coded.dictionary))
    numbers = np.empty(order.size, np.int64)
    numbers[order] = np.arange(order.size)
    words: list[str] = coded.dictionary.take(array_of(order)).to_pylist()
    return words, numbers[numbers_of(coded.indices)]


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
    """The lookup behind `Release.complete`: the tokens that follow each context, the best first.

    Of the beginnings of one length, those of most released grams come first. Ties are settled by the beginning without
    its first token, and in the end by the order of bytes.
    """

    def __init__(self, grams: Iterable[Gram], reading: str) -> None:
        """Sort the beginnings of all grams.

        Args:
            grams: of a release.
            reading: how texts became tokens, or "" where that is not known.
        """
        phrases = Counter(gram[:size] for gram in grams for size in range(1, len(gram) + 1))
        self._reading, self._tokens = reading, frozenset(beginning[-1] for beginning in phrases)
        self._following: dict[Gram, dict[str, int]] = {}
        ranks: dict[Gram, int] = {}
        for _, level in groupby(sorted(phrases, key=len), len):
            # Text compares as its UTF-8 bytes do.
            order = sorted(level, key=lambda each: (-phrases[each], ranks.get(each[1:], len(ranks)), each))
            ranks = {each: rank for rank, each in enumerate(order)}
            for each in order:
                self._following.setdefault(each[:-1], {})[each[-1]] = phrases[each]
        self._longest = max(map(len, self._following), default=0)

    def complete(self, prompt: str | Sequence[str], limit: int) -> list[Completion]:
        """Return continuations; see `Release.complete`."""
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise InputError(f"`limit` must be a whole number of at least 1, got {limit!r}.")
        if not self._following:
            return []
        tokens, is_open = cut_prompt(prompt, self._reading, self._tokens)
        if not is_open:
            return self._continued(tokens, "", limit)
        if self._stands(tokens):
            return self._continued(tokens, "", limit) or self._continued(tokens[:-1], tokens[-1], limit)
        return self._continued(tokens[:-1], tokens[-1], limit) or self._continued(tokens, "", limit)

    def _stands(self, tokens: Sequence[str]) -> bool:
        """Check whether the last token was released, and behind the one before it if that was released."""
        *before, last = tokens[-2:]
        after = [self._following.get((token,), {}) for token in before if token in self._tokens]
        return last in self._tokens and all(last in each for each in after)

    def _continued(self, tokens: Sequence[str], begun: str, limit: int) -> list[Completion]:
        """Go from the longest context to the shortest; to none only where the prompt holds no whole token.

        Args:
            tokens: whole tokens.
            begun: the beginning of the next token; "" where none was typed.
            limit: most continuations.
        """
        found: dict[str, Completion] = {}
        shortest = 0 if begun or not tokens else 1
        for size in range(min(len(tokens), self._longest), shortest - 1, -1):
            context = tuple(tokens[len(tokens) - size :])
            for token, phrases in self._following.get(context, {}).items():
                if token not in found and token.startswith(begun):
                    found[token] = Completion(token, context, phrases)
                    if len(found) == limit:
                        return list(found.values())
        return list(found.values())
