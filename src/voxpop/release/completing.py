"""What comes next: continuations by the longest released context, with back-off to shorter ones."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import final

import numpy as np
import pyarrow as pa

from voxpop.arrays import Int64s
from voxpop.errors import InputError
from voxpop.release.prompt import cut_prompt
from voxpop.release.trie import GramTrie

LARGEST = "\U0010ffff"


@final
@dataclass(frozen=True, slots=True)
class Completion:
    """One way to go on.

    Attributes:
        token: what comes next.
        context: the tokens before it that were looked up: the longest end of the prompt that a released gram extends.
        phrases: how many released grams begin with context and token. It counts grams, never users.
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
        """Say whether the last token was released, and behind the one before it if that was released."""
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
        """Yield what extends a beginning, in order of rank: at most so many."""
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
