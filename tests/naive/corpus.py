"""Oracles of the private side: tokenisers and the corpus again, with Python strings and dicts."""

import re
import unicodedata

URL = re.compile(r"(?:https?://|www\.)\S+")


def words(text: str) -> list[str]:
    """Cut NFC, lower-cased text without URLs into runs of letters, marks, numbers and apostrophes."""
    text = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).lower())
    found: list[str] = [""]
    for character in URL.sub(" ", text):
        if unicodedata.category(character)[0] in "LMN" or character == "'":
            found[-1] += character
        else:
            found.append("")
    return [word for word in found if word]


def documents(rows: list[tuple[object, list[str]]]) -> dict[object, list[list[str]]]:
    """Group the rows' tokens by user, rows in order."""
    users: dict[object, list[list[str]]] = {}
    for user, tokens in rows:
        users.setdefault(user, []).append(tokens)
    return users
