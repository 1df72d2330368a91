"""Reference implementations of tokenisers and of the corpus, with Python strings and dicts."""

import unicodedata

from icu4py.breakers import SentenceBreaker, WordBreaker

UNSPACED = (
    "THAI ",
    "LAO ",
    "MYANMAR ",
    "KHMER ",
    "HIRAGANA ",
    "KATAKANA",
    "HALFWIDTH KATAKANA",
    "CJK ",
)
BETWEEN = "'\u00b7\u055f\u058a\u05f4\u2027"
LIKE_MARKS = "\u055a\u055b\u055c\u055e\u05f3"
JOINERS = "\u200c\u200d"
INVISIBLE_LETTERS = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"


def words(text: str) -> list[str]:
    """Split a text into words, one character after another."""
    text = lowered(text)
    borders, end = set(), 0
    for part in WordBreaker(text, ""):
        end += len(part)
        borders.add(end)
    outside = without_addresses(text)
    found: list[str] = [""]
    for place, character in enumerate(outside):
        before, after = outside[place - 1 : place], outside[place + 1 : place + 2]
        if place in borders and (is_unspaced(before) or is_unspaced(character)):
            found.append("")
        # The next character, or an empty string if ICU splits the text before it.
        following = "" if place + 1 in borders and (is_unspaced(character) or is_unspaced(after)) else after
        if not belongs(character, found[-1], following):
            found.append("")
        else:
            found[-1] += character
    return [word for word in found if word]


def belongs(character: str, word: str, after: str) -> bool:
    """Return whether a character continues a (possibly empty) word, given the character that follows."""
    if category(character) in ("L", "N"):
        return True
    if category(character) == "M" or (character and character in LIKE_MARKS):
        return word != ""
    if character in BETWEEN:
        return word != "" and word[-1] not in BETWEEN + JOINERS + '"' and category(after) in ("L", "N")
    if character in JOINERS:
        inside = category(after) in ("L", "N", "M") or (after != "" and after in LIKE_MARKS)
        return word != "" and word[-1] not in BETWEEN + JOINERS + '"' and inside
    return character == '"' and is_hebrew(word[-1:]) and is_hebrew(after)


def lowered(text: str) -> str:
    """Return the visible characters in NFC and lower case."""
    text = "".join(character for character in text if not is_invisible(character))
    kept = ""
    for place, character in enumerate(text):
        if character not in JOINERS or (is_shaped(text[place - 1 : place]) and is_shaped(text[place + 1 : place + 2])):
            kept += character
    lower = unicodedata.normalize("NFC", kept).lower()
    while "i\u0307" in lower:
        lower = lower.replace("i\u0307", "i")
    return unicodedata.normalize("NFC", lower)


def without_addresses(text: str) -> str:
    """Return a text with spaces in place of addresses, and with one kind of apostrophe in the rest."""
    result, place = "", 0
    while place < len(text):
        head = next((each for each in ("http://", "https://", "www.") if text.startswith(each, place)), "")
        end = address_end(text, place + len(head))
        if head and end > place + len(head):
            result += " " * (end - place)
            place = end
        else:
            result += "'" if text[place] in "\u2018\u2019\u02bc\uff07" else text[place]
            place += 1
    return result


def address_end(text: str, place: int) -> int:
    """Return the end of an address that begins before a given position."""
    while place < len(text):
        if text[place] in "([":
            closing, end = ")]"["([".index(text[place])], place + 1
            while end < len(text) and in_address(text[end]):
                end += 1
            if text[end : end + 1] != closing:
                return place
            place = end + 1
        elif in_address(text[place]):
            place += 1
        else:
            return place
    return place


def in_address(character: str) -> bool:
    """Return whether addresses can contain a character. Brackets are treated separately."""
    if character.isascii():
        return character.isalnum() or character in "!#$%&'*+,-./:;=?@_~"
    other = is_unspaced(character) or "HANGUL" in name(character) or character == "\u02bc"
    return (category(character) in ("L", "M", "N") and not other) or character in JOINERS


def is_invisible(character: str) -> bool:
    """Return whether tokenisers ignore a character because it is invisible."""
    if character in INVISIBLE_LETTERS or "VARIATION SELECTOR" in name(character):
        return True
    code = ord(character)
    if 0xE0000 <= code < 0xE1000 or 0xFFF0 <= code < 0xFFF9 or code == 0x2065:
        return True
    visible = ("ARABIC", "SYRIAC", "KAITHI", "INTERLINEAR", "EGYPTIAN")
    control = unicodedata.category(character) == "Cf" and not name(character).startswith(visible)
    return (control and character not in JOINERS + "\u200b") or code in (0x061C, 0x180E)


def is_shaped(character: str) -> bool:
    """Return whether a character is from a script in which a joiner changes the shape of characters."""
    if character == "":
        return False
    code = ord(character)
    return (
        0x600 <= code < 0xE00
        or 0xF00 <= code < 0x10A0
        or 0x1700 <= code < 0x18B0
        or 0x1900 <= code < 0x1D00
        or (0xA800 <= code < 0xAC00 and not 0xA960 <= code < 0xA980)
        or 0x10A00 <= code < 0x12000
    )


def is_unspaced(character: str) -> bool:
    """Return whether a character belongs to a script without spaces, in which only a dictionary can separate words."""
    if category(character) not in ("L", "M", "N"):
        return False
    common = 0x3005 <= ord(character) < 0x3008 or 0x3021 <= ord(character) < 0x302A or 0x3031 <= ord(character) < 0x303D
    return common or name(character).startswith(
        (*UNSPACED, "COMBINING KATAKANA", "MASU", "VERTICAL KANA", "HENTAIGANA")
    )


def is_hebrew(character: str) -> bool:
    """Return whether a character is a Hebrew letter or point."""
    return category(character) in ("L", "M") and name(character).startswith("HEBREW")


def category(character: str) -> str:
    """Return the first letter of the category of a character, or an empty string if there is no character."""
    return unicodedata.category(character)[0] if character else ""


def name(character: str) -> str:
    """Return the name of a character."""
    return unicodedata.name(character, "")


def sentences(text: str) -> list[str]:
    """Split a text into sentences with ICU, and remove white space around them."""
    return [part.strip() for part in SentenceBreaker(text, "") if part.strip()] or [""]


def documents(rows: list[tuple[object, list[str]]]) -> dict[object, list[list[str]]]:
    """Group the tokens of the rows by user, in the order of the rows."""
    users: dict[object, list[list[str]]] = {}
    for user, tokens in rows:
        users.setdefault(user, []).append(tokens)
    return users
