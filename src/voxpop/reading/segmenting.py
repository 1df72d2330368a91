"""Words as Unicode cuts them (UAX #29), with dictionaries where a script writes no spaces: Chinese, Japanese, Thai.

The rules and the dictionaries are those of ICU, through `icu4py`.
"""

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from voxpop.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

URL = r"(?:https?://|www\.)\S+"
_URL = re.compile(URL)
WORD = r"[\p{L}\p{M}\p{N}]+(?:'[\p{L}\p{M}\p{N}]+)*"
"""The tokens that the tokenizer "words" cuts from a folded text, in the syntax that Rust and JavaScript share."""
APOSTROPHES = "’‘ʼ＇"
"""The characters that phones, word processors and other alphabets use for the apostrophe '."""
ANY_APOSTROPHE = f"[{APOSTROPHES}]"
FOLDED = ("words", "unicode")
"""The tokenisers whose words have one kind of apostrophe."""
_PLAIN = str.maketrans(dict.fromkeys(APOSTROPHES, "'"))


def normal_form(text: str) -> str:
    """Return text in NFC and lower case: the common rule of all tokenizers."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).lower())


def folded(text: str) -> str:
    """Return text as words are cut from it: in normal form, with one kind of apostrophe.

    Example:
        >>> folded("DON’T")
        "don't"
    """
    return normal_form(text).translate(_PLAIN)


def unicode_words(text: str) -> list[str]:
    """Return the words, numbers and emoji of a folded text, URLs left out.

    Args:
        text: any text.

    Raises:
        InputError: if icu4py is not installed.

    Example:
        >>> unicode_words("Don't panic: 3.14 👍🏽, 今天天气很好")
        ["don't", 'panic', '3.14', '👍🏽', '今天', '天气', '很好']
    """
    return [part for part in breaker()(_URL.sub(" ", folded(text))) if _is_word(part)]


@lru_cache(maxsize=1)
def breaker() -> "Callable[[str], Any]":
    """Return the function that breaks a text into words.

    Raises:
        InputError: if icu4py is not installed.
    """
    try:
        from icu4py.breakers import WordBreaker
    except ImportError:
        raise InputError(
            'tokenizer="unicode" needs icu4py, which is not installed: pip install voxpop[unicode].'
        ) from None
    return lambda text: WordBreaker(text, "")


@lru_cache(maxsize=1 << 16)
def _is_word(part: str) -> bool:
    """Check whether a piece between two borders holds a letter, a number or a picture."""
    return any(kind[0] in "LN" or kind == "So" for kind in map(unicodedata.category, part))
