"""The definition of words and sentences.

All other code that splits texts is derived from this module or tested against it.

A text becomes words in five steps:

1. Unicode's default-ignorable characters are removed, because readers do not see them: soft hyphens, direction marks,
   variation selectors. Joiners (U+200C, U+200D) remain between two characters of scripts that use joiners to shape
   letters.
2. The text is converted to NFC and to lower case. Unicode's rules for all languages apply, except that İ becomes i
   without a combining dot above.
3. Addresses (http://, https://, www.) are removed, up to the first character that addresses do not contain.
4. A word is a run of letters, marks and numbers that begins with a letter or number. An apostrophe, middle dot or
   gershayim between two letters of a word belongs to the word. Words are as in Unicode (UAX #29), except that a full
   stop, comma, colon or underscore always separates words, and emoji are not words.
5. ICU's dictionaries split the text of scripts without spaces into words.

Python's `unicodedata` defines letters, marks and numbers. UAX #29 defines sentences, and ICU splits them.
"""

import re
import unicodedata
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

from voxpop.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# These constants list characters in the syntax of character classes, which is the same in the regular expressions of
# Python, Rust and JavaScript.

IGNORED = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Default_Ignorable_Code_Point of Unicode 17, except joiners and the zero-width space, which separates words."""
JOINERS = "\u200c\u200d"
SHAPED = "\u0600-\u0dff\u0f00-\u109f\u1700-\u18af\u1900-\u1cff\ua800-\ua95f\ua980-\uabff\U00010a00-\U00011fff"
"""Arabic and the scripts of South and South-east Asia, which use joiners to shape letters."""
APOSTROPHES = "’‘ʼ＇"
"""The characters that phones, word processors and other alphabets use for the apostrophe '."""
WITHIN = "\u00b7\u055f\u058a\u05f4\u2027"
"""Middle dot, Armenian abbreviation mark and hyphen, gershayim, hyphenation point. By UAX #29, they join letters."""
MARK_LIKE = "\u055a-\u055c\u055e\u05f3"
"""Armenian marks and geresh. By UAX #29 they are parts of words, but their category is punctuation."""
HEBREW = "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u05d0-\u05f2\ufb1d-\ufb28\ufb2a-\ufb4f"
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u303c"
    "\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaa7f\uf900-\ufaff\uff66-\uff9f"
    "\U000116d0-\U000116ff\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, Han, Hiragana and Katakana, the scripts of ICU's dictionaries."""
HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff\uffa1-\uffdc"
IN_ADDRESSES = "!#$%&'*+,\\-./:;=?@_~"
"""The characters of addresses (RFC 3986) except letters, digits and brackets. Brackets must be in pairs."""

# These patterns for folded texts use the syntax that Rust and JavaScript share.

ANY_APOSTROPHE = f"[{APOSTROPHES}]"
ANY_IGNORED = f"[{IGNORED}]"
USELESS_JOINER = f"(?<![{SHAPED}])[{JOINERS}]|[{JOINERS}](?![{SHAPED}])"
ANY_WITHOUT_WIDTH = f"[\u200b{JOINERS}]"
ANY_UNSPACED = rf"(?=[\p{{L}}\p{{M}}\p{{N}}])[{UNSPACED}]"
DOTTED_I = "i\u0307+"
"""The lower case of İ, and other sequences that look like an i."""


def _address(character: str) -> str:
    """Return the pattern of an address, which is its beginning, followed by characters and pairs of brackets."""
    return rf"(?:{character}|\({character}*\)|\[{character}*\])+"


def _word(letter: str, mark: str, joiner: str, within: str, hebrew: str) -> str:
    """Return the pattern of a word, built from patterns for single characters."""
    inside = f'{joiner}(?={letter}|{mark})|{within}(?={letter})|(?<={hebrew})"(?={hebrew})'
    return f"{letter}(?:{letter}|{mark}|{inside})*"


URL = r"(?:https?:\/\/|www\.)" + _address(
    rf"(?:[{IN_ADDRESSES}]|(?![{UNSPACED}{HANGUL}{APOSTROPHES}])[\p{{L}}\p{{M}}\p{{N}}{JOINERS}])"
)
"""An address, in a text with unchanged apostrophes. In scripts without spaces, text may continue after an address."""
WORD = _word(r"[\p{L}\p{N}]", rf"[\p{{M}}{MARK_LIKE}]", f"[{JOINERS}]", f"['{WITHIN}]", f"[{HEBREW}]")
"""A word, in a text with one kind of apostrophe. `ANY_UNSPACED` characters need a dictionary first."""

# The same patterns for Python, which has no classes such as \p{L}. A text is first converted to a string of the same
# length that contains the kind of each character.

_SETS = {
    name: re.compile(f"[{inside}]")
    for name, inside in (
        ("ignored", IGNORED),
        ("within", WITHIN + APOSTROPHES),
        ("like a mark", MARK_LIKE),
        ("hebrew", HEBREW),
        ("unspaced", UNSPACED),
        ("hangul", HANGUL),
        ("address", IN_ADDRESSES),
    )
}
_KINDS_OF_LETTERS = {"unspaced": "c", "hangul": "k", "hebrew": "h"}
_KINDS_OF_MARKS = {"unspaced": "d", "hebrew": "n"}


def is_ignored(character: str) -> bool:
    """Return whether a character is removed from texts."""
    return _SETS["ignored"].match(character) is not None


def kind_of_character(character: str) -> str:
    """Return the kind of a character of a text in normal form.

    The kind of a letter or number is a, except h for Hebrew, k for Hangul and c for scripts without spaces. The kind of
    a mark is m, n or d, and the kind of a letter that addresses do not contain is i. Joiners become j, and apostrophes
    and similar characters become ’. Straight quotes, parentheses and square brackets are kept. All other characters
    that addresses may contain become /, and the rest become spaces.
    """
    if _SETS["within"].match(character):
        return "’"
    if _SETS["like a mark"].match(character):
        return "i"
    if character in JOINERS:
        return "j"
    category = unicodedata.category(character)[0]
    if category in "LMN":
        kinds, other = (_KINDS_OF_MARKS, "m") if category == "M" else (_KINDS_OF_LETTERS, "a")
        return next((kind for name, kind in kinds.items() if _SETS[name].match(character)), other)
    if character in "'\"()[]":
        return character
    return "/" if _SETS["address"].match(character) else " "


class _Kinds(dict[int, str]):
    """The kind of each code point, computed when the code point is first looked up."""

    def __missing__(self, code: int) -> str:
        return self.setdefault(code, kind_of_character(chr(code)))


IN_ADDRESS = "ahmnj'/"
"""The kinds that addresses contain."""
_KINDS = _Kinds()
_HEAD = re.compile(r"https?://|www\.")
_BODY = re.compile(_address(f"[{IN_ADDRESS}]"))
_WORD = re.compile(_word("[ahkc]", "[mndi]", "j", "['’]", "[hn]"))
_ANY_IGNORED, _USELESS_JOINER = re.compile(ANY_IGNORED), re.compile(USELESS_JOINER)
_ANY_WITHOUT_WIDTH, _DOTTED_I = re.compile(ANY_WITHOUT_WIDTH), re.compile(DOTTED_I)
_PLAIN = str.maketrans(dict.fromkeys(APOSTROPHES, "'"))


def normal_form(text: str) -> str:
    """Return the visible characters of a text in NFC and lower case. All tokenizers share this rule."""
    if text.isascii():
        return text.lower()
    text = _USELESS_JOINER.sub("", _ANY_IGNORED.sub("", text))
    text = _DOTTED_I.sub("i", unicodedata.normalize("NFC", text).lower())
    return unicodedata.normalize("NFC", text)


def folded(text: str) -> str:
    """Return a text in normal form with one kind of apostrophe.

    Example:
        >>> folded("DON’T")
        "don't"
    """
    return normal_form(text).translate(_PLAIN)


def characters(text: str) -> str:
    """Return the visible characters of a text in normal form, and white space."""
    return _ANY_WITHOUT_WIDTH.sub("", normal_form(text))


def words(text: str) -> list[str]:
    """Return the words of a text, which do not depend on other texts.

    Raises:
        InputError: If the text needs a dictionary and icu4py is not installed.

    Example:
        >>> words("Don't look: https://example.org/天气。今天天气很好 ❤️")
        ["don't", 'look', '天气', '今天', '天气', '很好']
    """
    text = normal_form(text)
    kinds = _without_addresses(text, text.translate(_KINDS))
    spans = _cut_unspaced(text, kinds) if "c" in kinds else (found.span() for found in _WORD.finditer(kinds))
    return [text[begin:end].translate(_PLAIN) for begin, end in spans]


def _without_addresses(text: str, kinds: str) -> str:
    """Return the kinds of the characters of a text, with spaces in place of addresses."""
    if "http" not in text and "www." not in text:
        return kinds
    parts, done = [], 0
    for head in _HEAD.finditer(text):
        body = _BODY.match(kinds, head.end())
        if body and head.start() >= done:
            parts += [kinds[done : head.start()], " " * (body.end() - head.start())]
            done = body.end()
    return "".join([*parts, kinds[done:]])


def _cut_unspaced(text: str, kinds: str) -> "Iterator[tuple[int, int]]":
    """Yield the positions of words, with ICU's boundaries around the characters of scripts without spaces."""
    begin = border = 0
    for part in _breakers()[0](text):
        border += len(part)
        if border == len(text) or {*kinds[border - 1 : border + 1]} & {"c", "d"}:
            yield from (found.span() for found in _WORD.finditer(kinds, begin, border))
            begin = border


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, without white space around them. A blank text has one empty sentence.

    Example:
        >>> sentences("Tea? Yes, please. 天气很好。我们去公园！")
        ['Tea?', 'Yes, please.', '天气很好。', '我们去公园！']
    """
    cut = (part.strip() for part in _breakers()[1](text))
    return [sentence for sentence in cut if sentence] or [""]


def needs_dictionary(word: str) -> bool:
    """Return whether a word is in a script without spaces, so that only a dictionary can find it in a text."""
    return any(kind_of_character(letter) in "cd" for letter in word)


_MISSING = (
    "icu4py, which splits sentences and the words of scripts without spaces, cannot be imported. Install it with pip "
    "install icu4py, on a cluster on every worker."
)


def check_icu() -> None:
    """Check that ICU is installed, without loading it, so that the error does not depend on the texts.

    Raises:
        InputError: If icu4py is not installed.
    """
    if find_spec("icu4py") is None:
        raise InputError(_MISSING)


@cache
def _breakers() -> "tuple[Callable[[str], Iterable[str]], Callable[[str], Iterable[str]]]":
    """Return the functions that split a text at word boundaries and at sentence boundaries."""
    try:
        from icu4py.breakers import SentenceBreaker, WordBreaker
    except ImportError:
        raise InputError(_MISSING) from None
    # Use the rules of the root locale, which do not depend on the language of the machine. ICU's spans are not used,
    # because they count UTF-16 code units.
    return lambda text: WordBreaker(text, ""), lambda text: SentenceBreaker(text, "")
