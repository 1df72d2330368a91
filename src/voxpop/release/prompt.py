"""Cut what somebody types as the texts of a release were cut, without the private side's kernels."""

import re
from collections.abc import Container, Sequence
from typing import NamedTuple

from voxpop.errors import InputError
from voxpop.release.exports.text_cutter import NAMES, Cutter
from voxpop.segmenting import folded, normal_form

REGEX = "regex:"


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
    if reading in NAMES:
        return Cutter(reading)(text)
    if reading.startswith(REGEX):
        return Cutter(re.compile(reading.removeprefix(REGEX)))(text)
    return [_as_released(part, released) for part in Cutter("whitespace")(text)]


def _as_released(part: str, released: Container[str]) -> str:
    normal = normal_form(part)
    return normal if part not in released and normal in released else part


def _touches_end(text: str, token: str) -> bool:
    """Say whether a text ends with its last token, so that more letters would belong to it."""
    return not text[-1:].isspace() and folded(text).endswith(folded(token))
