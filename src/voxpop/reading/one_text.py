"""Tokenize one text or one prompt in the same way as `voxpop.read`, without the compiled kernels of the corpus.

Tests compare this tokenizer with the kernels, the Hugging Face tokenizer and the JavaScript of the report.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final, get_args

from voxpop.errors import InputError
from voxpop.reading.choices import TokenizerName
from voxpop.reading.segmenting import characters, folded, normal_form, words

TOKENIZER_NAMES = get_args(TokenizerName)
# The corpus uses Unicode's definition of white space, but Python's patterns also match four control characters.
_NOT_SPACE = re.compile(r"\S|[\x1c-\x1f]")


@final
@dataclass(frozen=True, slots=True)
class Cutter:
    """A tokenizer for one text at a time, which can be pickled.

    Args:
        tokenizer: The tokenizer that was passed to `voxpop.read`: "words", "whitespace", "characters", a compiled
            regular expression, a callable on lists of texts, or None for texts that are already lists of tokens.

    Raises:
        InputError: If the tokenizer is something else.

    Example:
        >>> Cutter("words")("See https://example.org, don't you?")
        ['see', "don't", 'you']
        >>> Cutter(None)(["new york", "tea"])
        ['new york', 'tea']
    """

    tokenizer: Any = "words"

    def __post_init__(self) -> None:
        known = self.tokenizer is None or callable(self.tokenizer) or isinstance(self.tokenizer, re.Pattern)
        if not known and self.tokenizer not in TOKENIZER_NAMES:
            raise InputError(
                f"`tokenizer` must be {', '.join(TOKENIZER_NAMES)}, a compiled regular expression, a callable from a "
                f"list of texts to a list of lists of strings, or None for lists of tokens; got {self.tokenizer!r}."
            )

    def __call__(self, text: str | Iterable[str]) -> list[str]:
        """Return the tokens of a text, or the tokens of a list unchanged."""
        if self.tokenizer is None:
            if isinstance(text, str):
                raise InputError("tokenizer=None accepts lists of tokens, got a text. Name the tokenizer of the texts.")
            return list(text)
        if not isinstance(text, str):
            raise InputError("texts must be strings; for lists of tokens give tokenizer=None.")
        if isinstance(self.tokenizer, re.Pattern):
            return [match.group(0) for match in self.tokenizer.finditer(text) if match.group(0)]
        if isinstance(self.tokenizer, str):
            return _CUTTERS[self.tokenizer](text)
        return list(next(iter(self.tokenizer([text]))))


def _characters(text: str) -> list[str]:
    return _NOT_SPACE.findall(characters(text))


_CUTTERS: dict[str, Callable[[str], list[str]]] = {
    "words": words,
    "whitespace": re.compile(r"(?:\S|[\x1c-\x1f])+").findall,
    "characters": _characters,
}


REGEX = "regex:"


class Prompt(NamedTuple):
    """A tokenized prompt.

    Attributes:
        tokens: All tokens of the prompt.
        open: Whether the last token could be the beginning of a longer one.
    """

    tokens: list[str]
    open: bool


def cut_prompt(prompt: str | Sequence[str], reading: str, released: Container[str]) -> Prompt:
    """Return the tokens of a prompt.

    Args:
        prompt: A text, or tokens, which are used unchanged.
        reading: The source of tokens: "words", "whitespace", "characters", "regex:PATTERN", "items", "tokens" or
            "sequence", or "" if the source is unknown. If the source is unknown, white space separates tokens, and a
            token that was not released as typed is tried in NFC and lower case.
        released: The tokens of the release.

    Raises:
        InputError: If the prompt is neither a string nor a sequence of strings.
    """
    if not isinstance(prompt, str):
        tokens = list(prompt) if isinstance(prompt, Sequence) else [None]
        if not all(isinstance(token, str) for token in tokens):
            raise InputError(f"a prompt must be a text or a list of tokens, got {type(prompt).__name__}.")
        return Prompt([str(token) for token in tokens], open=False)
    if reading == "items":
        return Prompt([prompt] if prompt else [], open=bool(prompt))
    tokens = _cut(prompt, reading, released)
    may_grow = bool(tokens) and reading != "characters" and _touches_end(prompt, tokens[-1])
    return Prompt(tokens, open=may_grow)


def _cut(text: str, reading: str, released: Container[str]) -> list[str]:
    if reading in TOKENIZER_NAMES:
        return Cutter(reading)(text)
    if reading.startswith(REGEX):
        return _found(reading.removeprefix(REGEX), text)
    return [_as_released(part, released) for part in Cutter("whitespace")(text)]


_PATIENCE = 10.0
"""The maximum number of seconds in which an expression must find the tokens of a prompt."""
_FIND = """
import json, re, sys
pattern, text = json.load(sys.stdin)
json.dump([found.group(0) for found in re.finditer(pattern, text) if found.group(0)], sys.stdout)
"""


def _found(pattern: str, text: str) -> list[str]:
    """Return the matches of a regular expression.

    A separate process finds the matches, and is stopped if it takes too long. The expression is from a saved folder,
    which an attacker may have forged. For example, (a+)+$ takes years for a short text.
    """
    try:
        ran = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _FIND],
            input=json.dumps([pattern, text]).encode(),
            capture_output=True,
            timeout=_PATIENCE,
            check=True,
        )
        return list(map(str, json.loads(ran.stdout)))
    except (OSError, ValueError, subprocess.SubprocessError):
        raise InputError(
            "the regular expression of this release cannot tokenize the prompt, because it is damaged, or takes more "
            f"than {_PATIENCE:g} s. Give the prompt as a list of tokens."
        ) from None


def _as_released(part: str, released: Container[str]) -> str:
    normal = normal_form(part)
    return normal if part not in released and normal in released else part


def _touches_end(text: str, token: str) -> bool:
    """Check whether a text ends with its last token. If so, further letters would belong to this token."""
    return not text[-1:].isspace() and folded(text).endswith(folded(token))
