"""One text cut into tokens as `voxpop.read` cuts it, by Python's own strings: for software that asks text by text.

The corpus has kernels of its own, which read millions of texts; tests hold the two against each other.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, final, get_args

from voxpop.choices import TokenizerName
from voxpop.errors import InputError
from voxpop.segmenting import URL, folded, normal_form, unicode_words

NAMES = get_args(TokenizerName)
_URL = re.compile(URL)
# The corpus asks Unicode what white space is; Python's own patterns add four control characters.
_NOT_SPACE = re.compile(r"\S|[\x1c-\x1f]")


class _Letters(dict[int, str]):
    """What each code point becomes between words: itself, or a space. Filled in as code points are met."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        self[code] = letter if unicodedata.category(letter)[0] in "LMN" or letter == "'" else " "
        return self[code]


_LETTERS = _Letters()
_WORD = re.compile(r"[^ ']+(?:'[^ ']+)*")


@final
@dataclass(frozen=True, slots=True)
class Cutter:
    """A tokeniser for one text at a time, which can be pickled.

    Args:
        tokenizer: what `voxpop.read` was given: "words", "unicode", "whitespace", "characters", a compiled regular
            expression or a callable on lists of texts; None where texts already are lists of tokens.

    Raises:
        InputError: for anything else.

    Example:
        >>> Cutter("words")("See https://example.org, don't you?")
        ['see', "don't", 'you']
        >>> Cutter(None)(["new york", "tea"])
        ['new york', 'tea']
    """

    tokenizer: Any = "words"

    def __post_init__(self) -> None:
        known = self.tokenizer is None or callable(self.tokenizer) or isinstance(self.tokenizer, re.Pattern)
        if not known and self.tokenizer not in NAMES:
            raise InputError(
                f"`tokenizer` must be {', '.join(NAMES)}, a compiled regular expression, a callable from a list of "
                f"texts to a list of lists of strings, or None for lists of tokens; got {self.tokenizer!r}."
            )

    def __call__(self, text: str | Iterable[str]) -> list[str]:
        """Return the tokens of a text, or those of a list as they are."""
        if self.tokenizer is None:
            if isinstance(text, str):
                raise InputError("tokenizer=None takes lists of tokens, got a text. Name the tokenizer of the texts.")
            return list(text)
        if not isinstance(text, str):
            raise InputError("texts must be strings; for lists of tokens give tokenizer=None.")
        if isinstance(self.tokenizer, re.Pattern):
            return [match.group(0) for match in self.tokenizer.finditer(text) if match.group(0)]
        if isinstance(self.tokenizer, str):
            return _CUTTERS[self.tokenizer](text)
        return list(next(iter(self.tokenizer([text]))))


def _words(text: str) -> list[str]:
    return _WORD.findall(_URL.sub(" ", folded(text)).translate(_LETTERS))


def _characters(text: str) -> list[str]:
    return _NOT_SPACE.findall(normal_form(text))


_CUTTERS: dict[str, Callable[[str], list[str]]] = {
    "words": _words,
    "unicode": unicode_words,
    "whitespace": re.compile(r"(?:\S|[\x1c-\x1f])+").findall,
    "characters": _characters,
}
