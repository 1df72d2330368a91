"""Cut what somebody types as the texts of a release were cut, without the private side's kernels."""

import re
import unicodedata
from collections.abc import Container, Sequence
from typing import NamedTuple

from voxpop.errors import InputError
from voxpop.segmenting import URL, unicode_words

REGEX = "regex:"
_URL = re.compile(URL)


class Prompt(NamedTuple):
    """What somebody typed.

    Attributes:
        tokens: all of it, cut.
        open: whether the last token may be the beginning of a longer one.
    """

    tokens: list[str]
    open: bool


def cut_prompt(prompt: str | Sequence[str], reading: str, released: Container[str]) -> Prompt:
    """Cut a prompt.

    Args:
        prompt: a text, or tokens, which are taken as they are.
        reading: how texts became tokens: "words", "unicode", "whitespace", "characters", "regex:PATTERN", "items",
            "tokens" or "sequence"; "" where that is not known: then runs of white space part tokens, and a token that
            was not released as it is typed is tried in NFC and lower case.
        released: the tokens of the release.

    Raises:
        InputError: for anything but a string or strings.
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
    if reading == "words":
        return words(text)
    if reading == "unicode":
        return unicode_words(text)
    if reading == "characters":
        return [letter for letter in _folded(text) if not letter.isspace()]
    if reading.startswith(REGEX):
        return [match.group(0) for match in re.finditer(reading.removeprefix(REGEX), text) if match.group(0)]
    parts = text.split()
    return parts if reading == "whitespace" else [_as_released(part, released) for part in parts]


def words(text: str) -> list[str]:
    """Return runs of letters, marks, numbers and apostrophes of a text in NFC and lower case, URLs left out."""
    letters = (each if _in_word(each) else " " for each in _URL.sub(" ", _folded(text)))
    return "".join(letters).split()


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).lower())


def _in_word(letter: str) -> bool:
    return letter == "'" or unicodedata.category(letter)[0] in "LMN"


def _as_released(part: str, released: Container[str]) -> str:
    folded = _folded(part)
    return folded if part not in released and folded in released else part


def _touches_end(text: str, token: str) -> bool:
    """Say whether a text ends with its last token, so that more letters would belong to it."""
    return not text[-1:].isspace() and _folded(text).endswith(_folded(token))
