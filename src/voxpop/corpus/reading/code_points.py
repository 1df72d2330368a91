"""What each Unicode code point is to the word tokeniser, built a page of 256 at a time when first met."""

import unicodedata
from functools import cache

import numpy as np

from voxpop.arrays import Bytes, Uint32s
from voxpop.kernels.words import BUILT, SLOW, SPACE, WORD
from voxpop.segmenting import APOSTROPHES

PAGE = 256
HANGUL_VOWELS_AND_TAILS = range(0x1160, 0x1200)
KIRAT_RAI_VOWELS = range(0x16D63, 0x16D6B)
SURROGATES = range(0xD800, 0xE000)


@cache
def shared_table() -> Uint32s:
    """Return the table of all code points, of which at first the ASCII page alone is filled in.

    Threads share it: filling a page twice writes the same numbers.
    """
    table = np.zeros(0x110000, np.uint32)
    fill_page(table, 0)
    return table


def ascii_letters() -> Bytes:
    """Return the lower case of each byte that is an ASCII letter or digit, and 0 for the others."""
    letters = np.zeros(256, np.uint8)
    for code in range(128):
        if chr(code).isalnum():
            letters[code] = ord(chr(code).lower())
    return letters


def fill_page(table: Uint32s, code: int) -> None:
    """Fill in the page of a code point."""
    first = code // PAGE * PAGE
    table[first : first + PAGE] = [_describe(each) for each in range(first, first + PAGE)]


def _describe(code: int) -> int:
    """Return the lower case of a code point, and whether it is part of words, white space, or slow; of apostrophes '.

    Slow is what one code point cannot settle: what may combine with its neighbours under NFC, and what has a lower
    case of several code points or one that depends on its neighbours.
    """
    if code in SURROGATES:
        return code | BUILT
    character = chr(code)
    if character in APOSTROPHES:
        return ord("'") | BUILT
    category = unicodedata.category(character)
    lower = character.lower()
    word = WORD if category[0] in "LMN" else 0
    space = SPACE if character.isspace() else 0
    slow = SLOW if _is_slow(code, character, category, lower) else 0
    return ord(lower[0]) | word | space | slow | BUILT


def _is_slow(code: int, character: str, category: str, lower: str) -> bool:
    return (
        category[0] == "M"
        or len(lower) != 1
        or character == "Σ"
        or code in HANGUL_VOWELS_AND_TAILS
        or code in KIRAT_RAI_VOWELS
        or not unicodedata.is_normalized("NFC", character + lower)
    )
