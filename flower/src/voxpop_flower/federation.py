"""Federation over any transport. Nodes send encoded sums of votes, and the server runs the rounds."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from voxpop.errors import InputError
from voxpop.kernels.arrays import Uint32s
from voxpop.mechanisms.heavy_hitters import protocol
from voxpop.mechanisms.heavy_hitters.constants import MOST_SUMS
from voxpop.mechanisms.heavy_hitters.protocol import Electorate, Prefix, Rules, Symbol, Trie

if TYPE_CHECKING:
    from voxpop.engine.local.corpus import LocalCorpus
    from voxpop.privacy.secret import Secret


# This section encodes the votes of a round as a vector. The trie and the alphabet are public. Therefore the children of
# all live prefixes have the same places in the vectors of all nodes, as secure aggregation requires.

LETTERS = "abcdefghijklmnopqrstuvwxyz"

Sums = Uint32s


def public_symbols(alphabet: str, declared: str | None) -> tuple[Symbol, ...]:
    """Return the symbols of an alphabet, in order.

    Args:
        alphabet: The alphabet of `HeavyHitters`.
        declared: The letters of an alphabet of characters without separators, or None for the lowercase English
            letters. For tokens, these are the words of phrases, separated by spaces.

    Raises:
        InputError: If the alphabet is "tokens" and no list is given, or if a symbol occurs twice.
    """
    if alphabet == "bytes":
        return tuple(range(256))
    if alphabet == "tokens" and not declared:
        raise InputError(
            "Secure aggregation of tokens needs a public list of tokens. Set `symbols` in the run config to the "
            'tokens with spaces between them, such as "good morning how are you", for example to the words of an '
            "earlier release."
        )
    symbols = tuple(str(declared).split()) if alphabet == "tokens" else tuple(declared or LETTERS)
    if len(set(symbols)) < len(symbols):
        raise InputError("`symbols` contains a symbol twice. Each symbol must be listed once.")
    return tuple(sorted(symbols))


class Domain:
    """The prefixes that a round can grow, with their places in a vector.

    The places are computed on request, so the prefixes are never all in memory.
    """

    def __init__(self, trie: Trie, rules: Rules, symbols: tuple[Symbol, ...]):
        """Number the children of every live prefix.

        Args:
            trie: The trie before the round.
            rules: The public rules.
            symbols: The public alphabet.

        Raises:
            InputError: If the vector would have more than `MOST_SUMS` places.
        """
        known, after = rules.size(trie.rounds), rules.size(trie.rounds + 1)
        self._known, self._symbols = known, symbols
        self._digit = {symbol: digit for digit, symbol in enumerate(symbols)}
        # All nodes must use the same order, because otherwise votes for different prefixes would be added.
        self._live = sorted(trie.live, key=lambda each: tuple(map(str, each.symbols)))
        self._rank = {prefix.symbols: rank for rank, prefix in enumerate(self._live)}
        # The children of a live prefix are first the words that end within the round, in increasing order of length,
        # and then the prefixes of full length.
        self._start: dict[tuple[int, bool], int] = {}
        self._each = 0
        # A prefix of `known` symbols has a^(size - known) continuations of `size` symbols.
        for size in range(max(known, 1), min(after, rules.longest) + 1):
            self._start[size, size < after] = self._each
            self._each += len(symbols) ** (size - known)
        if len(self) > MOST_SUMS:
            raise InputError(
                f"round {trie.rounds + 1} has {len(self):,} sums, {self._each:,} for each live prefix, but secure "
                f"aggregation supports at most {MOST_SUMS:,} sums, which is {MOST_SUMS // self._each:,} live "
                "prefixes. Use a smaller `unit`, fewer `symbols`, or a smaller epsilon."
            )

    def __len__(self) -> int:
        """Return the number of places."""
        return self._each * len(self._live)

    @property
    def digest(self) -> bytes:
        """The hash of all values that determine the places. The server and the nodes compare it."""
        told = (self._known, sorted(self._start.items()), self._symbols, [prefix.symbols for prefix in self._live])
        return hashlib.sha256(repr(told).encode()).digest()

    def place_of(self, prefix: Prefix) -> int | None:
        """Return the place of a prefix, counted from 0, or None if users cannot vote for this prefix."""
        start = self._start.get((len(prefix.symbols), prefix.ended))
        rank = self._rank.get(prefix.symbols[: self._known])
        digits = [self._digit.get(symbol) for symbol in prefix.symbols[self._known :]]
        if start is None or rank is None or None in digits:
            return None
        number = 0
        # The symbols of the continuation are the digits of a number, the most significant digit first.
        for digit in digits:
            number = number * len(self._symbols) + int(digit or 0)
        # One number encodes the live prefix, the kind of continuation and the continuation.
        return rank * self._each + start + number

    def prefix_at(self, place: int) -> Prefix:
        """Return the prefix at a place. This is the inverse of `place_of`."""
        rank, rest = divmod(place, self._each)
        # The last kind of prefix that starts at or before this place. The starts increase in the order of the kinds.
        size, ended = max((kind for kind in self._start if self._start[kind] <= rest), key=self._start.__getitem__)
        number, digits = rest - self._start[size, ended], []
        for _ in range(size - self._known):
            number, digit = divmod(number, len(self._symbols))
            digits.append(self._symbols[digit])
        return Prefix((*self._live[rank].symbols, *reversed(digits)), ended)

    def vector(self, votes: Mapping[Prefix, int]) -> Sums:
        """Return the sums of a node's votes as a vector, without votes outside the public alphabet."""
        # Shape (places,). Sums are modulo 2^32.
        sums = np.zeros(len(self), np.uint32)
        for prefix, count in votes.items():
            place = self.place_of(prefix)
            if place is not None:
                sums[place] = count
        return sums

    def votes(self, sums: Sums) -> Counter[Prefix]:
        """Return the sums of votes by prefix from the vector of all nodes together."""
        return Counter({self.prefix_at(int(place)): int(sums[place]) for place in np.flatnonzero(sums)})


# The code below writes and reads tries and sums of votes as text. All received text is untrusted input, so it is
# validated.

MOST_BYTES = 1 << 28
MOST_VOTES = 1 << 40


def write_trie(trie: Trie) -> str:
    """Return a trie as text. Equal tries have equal texts."""
    return _text([sorted(map(_plain, level), key=json.dumps) for level in trie.levels])


def read_trie(text: str) -> Trie:
    """Return the trie that `write_trie` wrote.

    Raises:
        InputError: If the text is not a trie.
    """
    levels = _list(_parsed(text))
    return Trie(tuple(frozenset(_prefix(each) for each in _list(level)) for level in levels))


def write_votes(votes: Mapping[Prefix, int]) -> str:
    """Return sums of votes as text, in an order that depends only on the sums."""
    return _text(sorted(([*_plain(prefix), count] for prefix, count in votes.items()), key=json.dumps))


def read_votes(text: object, trie: Trie, rules: Rules) -> Counter[Prefix]:
    """Return sums of votes, after checking that users could cast each of these votes in the round after this trie.

    Args:
        text: The received text.
        trie: The trie before the round.
        rules: The public rules.

    Raises:
        InputError: If any entry is not a vote. In this case no entry is counted.
    """
    votes: Counter[Prefix] = Counter()
    for entry in _list(_parsed(text)):
        *rest, count = _list(entry) or [None]
        prefix = _prefix(rest)
        # In Python, True is an int, but it is not a number of votes.
        whole = type(count) is int and 0 < count <= MOST_VOTES
        if not whole or prefix in votes or not protocol.is_valid(prefix, trie, rules):
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
        raise InputError("a prefix must be a list of symbols and whether it ended.")
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
        raise InputError("the value must be a text.")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("the text must be JSON.") from None


# A node draws the votes of its users and sends only their sums.


def node_votes(corpus: "LocalCorpus", trie: Trie, rules: Rules, secret: "Secret") -> Counter[Prefix]:
    """Return the votes of a node's users in the next round, by prefix. All votes of a user are for the same prefix.

    Args:
        corpus: The data of the node's users. The data does not leave the node.
        trie: The trie before the round.
        rules: The public rules.
        secret: The key that determines coins and choices of words.
    """
    spelling = protocol.spell(corpus, rules)
    electorate = Electorate.of(spelling, corpus.user_key, rules)
    return protocol.prefix_votes(spelling, electorate, trie, rules, secret)


def next_trie(
    trie: Trie, asked: Iterable[int], answers: Iterable[tuple[int, object]], rules: Rules
) -> tuple[Trie, list[str]]:
    """Return the trie after a round, and one line for each node without counted votes.

    A node that is lost or late, or sends a malformed answer, has the same effect as a set of users who were not
    sampled. Therefore the round continues without this node, and the guarantee remains valid. A second answer from a
    node is not counted.

    Args:
        trie: The trie before the round.
        asked: The ids of the queried nodes.
        answers: Pairs of a node id and the answer of the node.
        rules: The public rules.
    """
    waiting = dict.fromkeys(asked, "did not answer in time")
    total: Counter[Prefix] = Counter()
    for node, text in answers:
        if node not in waiting:
            continue
        if text is None:
            waiting[node] = "refused or failed"
            continue
        try:
            total.update(read_votes(text, trie, rules))
            # From now on, a second answer of this node is ignored, like the answer of an unknown node.
            del waiting[node]
        except InputError as error:
            waiting[node] = f"sent an invalid vote: {error}"
    where = f"round {trie.rounds + 1}"
    complaints = [f"{where}: node {node} {what}; the round continues without it" for node, what in waiting.items()]
    return protocol.grow(trie, total, rules), complaints
