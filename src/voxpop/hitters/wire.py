"""The trie and sums of votes as text, for any transport; what comes in is checked as if an enemy had written it."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from voxpop.errors import InputError
from voxpop.hitters.prefix import Prefix
from voxpop.hitters.rules import Rules
from voxpop.hitters.server import is_valid
from voxpop.hitters.trie import Trie

MOST_BYTES = 1 << 28
MOST_VOTES = 1 << 40


def write_trie(trie: Trie) -> str:
    """Return a trie as text, the same for equal tries."""
    return _text([sorted(map(_plain, level), key=json.dumps) for level in trie.levels])


def read_trie(text: str) -> Trie:
    """Return the trie that `write_trie` wrote.

    Raises:
        InputError: for anything else.
    """
    levels = _list(_parsed(text))
    return Trie(tuple(frozenset(_prefix(each) for each in _list(level)) for level in levels))


def write_votes(votes: Mapping[Prefix, int]) -> str:
    """Return sums of votes as text, in an order that depends on them alone."""
    return _text(sorted(([*_plain(prefix), count] for prefix, count in votes.items()), key=json.dumps))


def read_votes(text: object, trie: Trie, rules: Rules) -> Counter[Prefix]:
    """Return sums of votes, every one of which could have been cast after this trie.

    Args:
        text: what came.
        trie: as it was before the round.
        rules: the public rules.

    Raises:
        InputError: where anything of it is no vote; nothing of it is then counted.
    """
    votes: Counter[Prefix] = Counter()
    for entry in _list(_parsed(text)):
        *rest, count = _list(entry) or [None]
        prefix = _prefix(rest)
        # True is an int to Python, and no number of votes.
        whole = type(count) is int and 0 < count <= MOST_VOTES
        if not whole or prefix in votes or not is_valid(prefix, trie, rules):
            raise InputError("sums of votes must be positive whole numbers of distinct prefixes that extend the trie.")
        votes[prefix] = count
    return votes


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _plain(prefix: Prefix) -> list[Any]:
    return [list(prefix.symbols), prefix.ended]


def _prefix(entry: object) -> Prefix:
    parts = _list(entry)
    if len(parts) != 2 or type(parts[1]) is not bool:
        raise InputError("a prefix must be a list of symbols, and whether it ended.")
    symbols = tuple(_list(parts[0]))
    if not all(type(symbol) in (str, int) for symbol in symbols):
        raise InputError("a symbol must be a string or a whole number.")
    return Prefix(symbols, parts[1])


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise InputError("a list was expected.")
    return value


def _parsed(text: object) -> object:
    if not isinstance(text, str) or len(text) > MOST_BYTES:
        raise InputError("text was expected.")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("the text is not JSON.") from None
