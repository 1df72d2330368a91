"""What each Unicode code point is to the word tokeniser, built a page of 256 at a time when first met."""

import unicodedata

import numpy as np
from numpy.typing import NDArray

from voxpop.kernels.words import BUILT, SLOW, SPACE, WORD

PAGE = 256
APOSTROPHE = "'"
HANGUL_VOWELS_AND_TAILS = range(0x1160, 0x1200)
KIRAT_RAI_VOWELS = range(0x16D63, 0x16D6B)
SURROGATES = range(0xD800, 0xE000)


def empty_table() -> NDArray[np.uint32]:
    """Return a table of all code points with the ASCII page filled in."""
    table = np.zeros(0x110000, np.uint32)
    fill_page(table, 0)
    return table


def fill_page(table: NDArray[np.uint32], code: int) -> None:
    """Fill in the page of a code point."""
    first = code // PAGE * PAGE
    table[first : first + PAGE] = [_describe(each) for each in range(first, first + PAGE)]


def _describe(code: int) -> int:
    """Return the lower case of a code point, and whether it is part of words, white space, or slow.

    Slow is what one code point cannot settle: what may combine with its neighbours under NFC, and what has a lower
    case of several code points or one that depends on its neighbours.
    """
    if code in SURROGATES:
        return code | BUILT
    character = chr(code)
    category = unicodedata.category(character)
    lower = character.lower()
    word = WORD if category[0] in "LMN" or character == APOSTROPHE else 0
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


def normal_form(text: str) -> str:
    """Return text in NFC and lower case: what the fast path does one code point at a time."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).lower())
