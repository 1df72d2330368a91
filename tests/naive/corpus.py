"""Reference implementations of tokenisers and of the corpus, with Python strings and dicts."""

import re
import unicodedata

URL = re.compile(r"(?:https?://|www\.)\S+")


def words(text: str) -> list[str]:
    """Split NFC, lower-case text without URLs into runs of letters, marks and numbers; one apostrophe joins two."""
    text = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).lower())
    found: list[str] = [""]
    letters = re.sub("[\u2018\u2019\u02bc\uff07]", "'", URL.sub(" ", text))
    for place, character in enumerate(letters):
        between = 0 < place < len(letters) - 1 and is_letter(letters[place - 1]) and is_letter(letters[place + 1])
        if is_letter(character) or (character == "'" and between):
            found[-1] += character
        else:
            found.append("")
    return [word for word in found if word]


def is_letter(character: str) -> bool:
    """Return whether a character is part of a word."""
    return unicodedata.category(character)[0] in "LMN"


def documents(rows: list[tuple[object, list[str]]]) -> dict[object, list[list[str]]]:
    """Group the tokens of the rows by user, with rows in order."""
    users: dict[object, list[list[str]]] = {}
    for user, tokens in rows:
        users.setdefault(user, []).append(tokens)
    return users
