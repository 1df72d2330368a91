"""Completions: continuations by the longest released context, with back-off to shorter ones."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import final

from voxpop.errors import InputError
from voxpop.release.cutting import cut_prompt

Gram = tuple[str, ...]


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
