"""The public side of the protocol: prefixes, the trie, the rules, and how the trie grows.

The end mark of a word counts as a symbol, which distinguishes a word from its start.

The votes of all users of a corpus are drawn in arrays (reference implementation: `tests/naive/protocol.py`). A release
on one machine and a node of a federation use the same votes.
Words are numbered in the order of their symbols, so the words with a common prefix are adjacent and form a run. A run
for a number of symbols begins where a word has fewer symbols in common with the word before.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, final

import numpy as np
import pyarrow as pa

from voxpop.errors import InputError
from voxpop.kernels.arrays import Bools, Bytes, Int32s, Int64s, Uint64s
from voxpop.kernels.tries import hold_all, keep_most_frequent, measure_strings
from voxpop.mechanisms.heavy_hitters.exclude import NO_WORDS, PublicList, excluded_tokens
from voxpop.privacy.trie.accountant import Words
from voxpop.privacy.trie.ballot import Ballot
from voxpop.reading.arrow import int64_array, text_buffers

if TYPE_CHECKING:
    from voxpop.engine.local.corpus import LocalCorpus
    from voxpop.privacy.gate.votes import VotesGate
    from voxpop.privacy.secret import Secret

Symbol = Hashable
Word = tuple[Symbol, ...]
"""A word is a tuple of symbols: characters, bytes, or tokens of a phrase."""


@final
@dataclass(frozen=True, slots=True)
class Prefix:
    """The start of a word, or all of it.

    Attributes:
        symbols: the symbols, the end mark left out.
        ended: whether the end mark is in it: then it is a whole word.
    """

    symbols: Word
    ended: bool = False


ROOT = Prefix(())


def prefix_after(word: Word, size: int) -> Prefix:
    """Return the first symbols of a word, the end mark counted.

    Args:
        word: not empty.
        size: number of symbols; see `Rules.size`.

    Example:
        >>> prefix_after(tuple("sun"), 2)
        Prefix(symbols=('s', 'u'), ended=False)
        >>> prefix_after(tuple("sun"), 4)
        Prefix(symbols=('s', 'u', 'n'), ended=True)
    """
    # The end mark is the symbol behind the last one.
    return Prefix(word[:size], ended=size > len(word))


@final
@dataclass(frozen=True, slots=True)
class Trie:
    """Prefixes that got enough votes, by the round in which they grew.

    Attributes:
        levels: the prefixes of each round so far; before the first there is the root.
    """

    levels: tuple[frozenset[Prefix], ...] = ()

    @property
    def rounds(self) -> int:
        """Number of completed rounds."""
        return len(self.levels)

    @property
    def live(self) -> frozenset[Prefix]:
        """The prefixes that may still grow: those of the last round without an end mark."""
        if not self.levels:
            return frozenset((ROOT,))
        # Only of the last round: a prefix that did not grow then never grows again.
        return frozenset(prefix for prefix in self.levels[-1] if not prefix.ended)

    @property
    def words(self) -> frozenset[Word]:
        """The words that grew up to their end mark."""
        return frozenset(prefix.symbols for level in self.levels for prefix in level if prefix.ended)

    def grown(self, prefixes: frozenset[Prefix]) -> "Trie":
        """Return the trie one level higher."""
        return Trie((*self.levels, prefixes))


_WHOLE = 1 << 128


@final
@dataclass(frozen=True, slots=True)
class Rules:
    """The public numbers before the first round.

    Attributes:
        ballot: how users vote in every round, and the threshold.
        rounds: most rounds.
        unit: symbols by which a prefix grows in a round.
        max_length: most symbols of a word, its end mark counted.
        alphabet: "characters" and "bytes" take every token as a word, "tokens" every document.
        words: "one" for a user's most frequent word in every round, "many" for any of its words, drawn in each round.
        first: symbols of the first round, where that is not `unit`; 0 where it is.
    """

    ballot: Ballot
    rounds: int
    unit: int = 1
    max_length: int = 10
    alphabet: str = "characters"
    words: Words = "one"
    first: int = 0

    @property
    def longest(self) -> int:
        """Most symbols of a word, its end mark left out."""
        return self.max_length - 1

    @property
    def bars(self) -> tuple[int, ...]:
        """Below the first of these 128 uniform bits mean at least one vote, below the second at least two, and so on.

        Each is exactly its probability's share of all 128 bits.
        """
        # P(X >= x) 2^128, rounded down: no user votes more often than accounting assumes.
        return tuple(int(Fraction(tail) * _WHOLE) for tail in self.ballot.tails)

    def size(self, rounds: int) -> int:
        """Return the number of symbols that this number of rounds spells."""
        # first + (rounds - 1) unit; nothing before the first round.
        return (self.first or self.unit) + (rounds - 1) * self.unit if rounds else 0


def is_valid(vote: object, trie: Trie, rules: Rules) -> bool:
    """Return whether a client could cast a vote after this trie.

    Args:
        vote: any received value.
        trie: state before the round.
        rules: the public rules.
    """
    if not isinstance(vote, Prefix) or not isinstance(vote.symbols, tuple):
        return False
    known, after, size = rules.size(trie.rounds), rules.size(trie.rounds + 1), len(vote.symbols)
    if not 0 < size <= rules.longest or Prefix(vote.symbols[:known]) not in trie.live:
        return False
    # An ended word may be shorter than the round's prefixes, an unfinished one has exactly their length.
    return known <= size < after if vote.ended else size == after


def grow(trie: Trie, votes: Mapping[Prefix, int], rules: Rules) -> Trie:
    """Return the trie with the prefixes that got at least theta votes.

    Args:
        trie: state before the round.
        votes: result of `count_votes`, or the sum of several results.
        rules: the public rules.
    """
    return trie.grown(rules.ballot.survivors(votes))


def is_over(trie: Trie, rules: Rules) -> bool:
    """Return whether no prefix can grow or no round is left: a function of public values."""
    # A function of the public trie only, so stopping early reveals nothing more.
    return trie.rounds >= rules.rounds or not trie.live


@final
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Spelling:
    """The distinct words of a corpus, and the words of each user: private.

    Attributes:
        sizes: int32 (words), symbols of each, the end mark left out.
        shared: int32 (words), symbols each has in common with the start of the word before.
        said: int32, the word at every position; negative if no word fits.
        user_start: int64 (users + 1), where each user's positions begin.
        vocabulary: the tokens.
        in_bytes: whether the symbols of a token are its bytes.
        rows: int32 (words, longest), tokens of each word, -1 beyond its end; None where a word is a token itself.
        excluded: uint8 (words), 1 for a word of the public list, which no user votes for; None without a list.
    """

    sizes: Int32s
    shared: Int32s
    said: Int32s
    user_start: Int64s
    vocabulary: pa.LargeStringArray
    in_bytes: bool = False
    rows: Int32s | None = None
    excluded: Bytes | None = None

    def fits(self, rules: Rules) -> Bytes:
        """Return which words may be voted for: neither empty nor too long, nor on the public list."""
        # Other words are removed before the user's word is chosen, so they cost no vote.
        fitting = (self.sizes > 0) & (self.sizes <= rules.longest)
        if self.excluded is not None:
            fitting &= self.excluded == 0
        return fitting.view(np.uint8)

    def word(self, number: int) -> Word:
        """Return the symbols of a word."""
        if self.rows is not None:
            return tuple(self.vocabulary[int(token)].as_py() for token in self.rows[number, : self.sizes[number]])
        text = str(self.vocabulary[number].as_py())
        return tuple(text.encode() if self.in_bytes else text)


def spell(corpus: "LocalCorpus", rules: Rules, exclude: PublicList = NO_WORDS) -> Spelling:
    """Return the words of a corpus in the alphabet of the rules.

    Args:
        corpus: The data.
        rules: The public rules.
        exclude: The public words that no user votes for.

    Raises:
        InputError: for tokens of items, which have no order.
    """
    spelling = _documents(corpus, rules) if rules.alphabet == "tokens" else _single(corpus, rules)
    if not exclude.size:
        return spelling
    listed = exclude.normalised(corpus)
    if spelling.rows is None:
        return replace(spelling, excluded=excluded_tokens(corpus.vocabulary, listed).view(np.uint8))
    distinct = set(listed)
    found = [spelling.word(number) in distinct for number in range(spelling.sizes.size)]
    return replace(spelling, excluded=np.array(found, np.uint8))


def polled(corpus: "LocalCorpus", rules: Rules, exclude: PublicList = NO_WORDS) -> "LocalCorpus":
    """Return a corpus of the same users with nothing but the word of each user that its votes are for.

    The votes of this corpus are those of the whole corpus, in every round and for every secret.

    Args:
        corpus: The data.
        rules: The public rules, by which a user votes for one word.
        exclude: The public words that no user votes for.
    """
    spelling = spell(corpus, rules, exclude)
    electorate = Electorate.of(spelling, corpus.user_key, rules)
    ids, starts = electorate.held, electorate.held_start
    if spelling.rows is not None:
        # int32 (users with a word, longest + 1), the tokens of each user's document, and -1 from its end on.
        rows = np.append(spelling.rows[ids], np.full((ids.size, 1), -1, np.int32), axis=1)
        sizes = spelling.sizes[ids].astype(np.int64) + 1
        ids = rows[np.arange(rows.shape[1]) < sizes[:, None]]
        starts = np.concatenate([[0], np.cumsum(sizes)])[starts]
    used, places = np.unique(ids[ids >= 0], return_inverse=True)
    tokens = np.full(ids.size, -1, np.int32)
    tokens[ids >= 0] = places
    return replace(
        corpus,
        tokens=tokens,
        user_start=starts.astype(np.int64),
        vocabulary=corpus.vocabulary.take(int64_array(used.astype(np.int64))),
        kind=corpus.kind if spelling.rows is not None else "items",
    )


def _single(corpus: "LocalCorpus", rules: Rules) -> Spelling:
    words = len(corpus.vocabulary)
    sizes, shared = np.empty(words, np.int32), np.empty(words, np.int32)
    measure_strings(*text_buffers(corpus.vocabulary), rules.alphabet == "characters", sizes, shared)
    return Spelling(sizes, shared, corpus.tokens, corpus.user_start, corpus.vocabulary, rules.alphabet == "bytes")


def _documents(corpus: "LocalCorpus", rules: Rules) -> Spelling:
    if corpus.kind == "items":
        raise InputError(
            'alphabet="tokens" spells documents token by token, and items have no order. Read the column with '
            "text=, tokens= or sequence=."
        )
    ends = np.flatnonzero(corpus.tokens < 0)
    starts = np.concatenate([np.zeros(1, np.int64), ends + 1])[:-1]
    # (users + 1,), now in documents: the number that end before each user begins.
    user_start = np.searchsorted(ends, corpus.user_start).astype(np.int64)
    sizes = ends - starts
    fitting = np.flatnonzero((sizes > 0) & (sizes <= rules.longest))
    # int32 (documents, longest), the tokens of each; a document ends with -1, which fills up its row.
    rows = corpus.tokens[np.minimum(starts[fitting, None] + np.arange(rules.longest), ends[fitting, None])]
    # lexsort's last key comes first: by the first token, then the second, with -1 (nothing) before all.
    order = np.lexsort(rows.T[::-1])
    rows = rows[order]
    # In this order: in which places, from the first on, each equals the one before.
    alike = np.logical_and.accumulate(rows[1:] == rows[:-1], axis=1)
    fresh, shared = np.ones(len(rows), np.bool_), np.zeros(len(rows), np.int32)
    fresh[1:], shared[1:] = ~alike.all(axis=1), (alike & (rows[1:] >= 0)).sum(axis=1)
    said = np.full(ends.size, -1, np.int32)
    # By document: the number of its content, -1 where it does not fit.
    said[fitting[order]] = np.cumsum(fresh) - 1
    lengths = (rows[fresh] >= 0).sum(axis=1, dtype=np.int32)
    return Spelling(lengths, shared[fresh], said, user_start, corpus.vocabulary, rows=rows[fresh])


def gram_of(word: Word, alphabet: str) -> list[str]:
    """Return a found word as a gram: a list of tokens.

    Args:
        word: its symbols, in a federation as they came over the wire.
        alphabet: see `HeavyHitters`.
    """
    if alphabet == "bytes":
        return [bytes(int(str(byte)) & 0xFF for byte in word).decode(errors="backslashreplace")]
    symbols = [str(symbol) for symbol in word]
    return symbols if alphabet == "tokens" else ["".join(symbols)]


_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


@final
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Electorate:
    """The state of all users that `client.py` holds for one: private.

    Attributes:
        keys: uint64 (users).
        twins: uint64 (users), number of earlier users with the same key.
        held: int32, each user's words in order, as often as it holds them; if only one counts, that one.
        held_start: int64 (users + 1).
    """

    keys: Uint64s
    twins: Uint64s
    held: Int32s
    held_start: Int64s

    @staticmethod
    def of(spelling: Spelling, keys: Uint64s, rules: Rules) -> "Electorate":
        """Return the users of a corpus with the words that fit the rules.

        Args:
            spelling: the words of the corpus.
            keys: of the users.
            rules: the public rules.
        """
        held, held_start = np.empty(spelling.said.size, np.int32), np.empty(keys.size + 1, np.int64)
        # int32, each user's words in order of their symbols; `held` has room for every position.
        count = hold_all(spelling.said, spelling.user_start, spelling.fits(rules), held, held_start)
        if rules.words == "one":
            count = keep_most_frequent(held, held_start)
        return Electorate(keys, twins_of(keys), held[:count], held_start)

    def sampled(self, rounds: int, rules: Rules, secret: "Secret") -> tuple[Int64s, Int64s]:
        """Return the places of the users who are sampled in the next round, and the number of votes that each casts.

        Args:
            rounds: number of completed rounds.
            rules: the public rules.
            secret: of the run.
        """
        # uint64 (users, 2), fresh in every round.
        draws = secret.draws(f"sample/round {rounds + 1}", self.keys, self.twins)
        votes, some = np.zeros(len(draws), np.int64), np.arange(len(draws))
        for bar in rules.bars:
            # Bars decrease, so a user who misses one misses the rest: few are examined again.
            some = some[_below(draws[some], bar)]
            votes[some] += 1
        sampled = np.flatnonzero(votes)
        return sampled, votes[sampled]

    def choices(self, users: Int64s, rounds: int, rules: Rules, secret: "Secret") -> tuple[Bools, Int32s]:
        """Return which of the users hold a word at all, and the word that each of these picks in the round.

        Args:
            users: places of users, rising.
            rounds: number of completed rounds.
            rules: the public rules.
            secret: of the run.
        """
        begin = self.held_start[users]
        # (users,), the number of entries of each: words repeated for each time they are held.
        total = self.held_start[users + 1] - begin
        having = total > 0
        users, begin, total = users[having], begin[having], total[having]
        if rules.words == "many":
            draws = secret.draws(f"word/round {rounds + 1}", self.keys[users], self.twins[users])[:, 0]
            # A user's words lie in order, each repeated for each time it is held.
            begin = begin + _share_of(draws, total)
        return having, self.held[begin]


def _below(draws: Uint64s, bar: int) -> Bools:
    high, low = np.uint64(bar >> 64), np.uint64(bar & (2**64 - 1))
    # 128 bits compared as two halves.
    below: Bools = (draws[:, 0] < high) | ((draws[:, 0] == high) & (draws[:, 1] < low))
    return below


def twins_of(keys: Uint64s) -> Uint64s:
    """Return for each key the number of equal keys before it.

    Args:
        keys: uint64.
    """
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if keys.size else np.empty(0, np.bool_)
    places = np.arange(keys.size)
    twins = np.empty(keys.size, np.uint64)
    # Place in its run of equal keys: place less that of the run's first.
    twins[order] = (places - np.maximum.accumulate(np.where(first, places, 0))).astype(np.uint64)
    return twins


def _share_of(draws: Uint64s, total: Int64s) -> Int64s:
    """Return draw * total / 2^64 rounded down, for totals below 2^32: as the client computes it, without overflow."""
    whole = total.astype(np.uint64)
    # Long multiplication by halves: 2^32 times less than 2^32 stays below 2^64.
    low = ((draws & _LOW) * whole) >> _HALF
    return (((draws >> _HALF) * whole + low) >> _HALF).astype(np.int64)


def prefix_votes(
    spelling: Spelling, electorate: Electorate, trie: Trie, rules: Rules, secret: "Secret", least: int = 1
) -> Counter[Prefix]:
    """Return the votes of all users in the next round, by prefix: those of each user go to one.

    Args:
        spelling: the words of the users.
        electorate: the users.
        trie: state before the round.
        rules: the public rules.
        secret: determines coins and choices of words.
        least: prefixes with fewer votes are left out.
    """
    known, size, live = rules.size(trie.rounds), rules.size(trie.rounds + 1), trie.live
    users, cast = electorate.sampled(trie.rounds, rules, secret)
    having, words = electorate.choices(users, trie.rounds, rules, secret)
    # Words are in order, so those with the same prefix form a run, which begins where fewer symbols are shared.
    first = np.flatnonzero(spelling.shared < size)
    run = np.searchsorted(first, words, side="right") - 1
    counts = np.bincount(run, cast[having], minlength=first.size)
    votes: Counter[Prefix] = Counter()
    for each in np.flatnonzero(counts >= least).tolist():
        # Every word of a run has the same prefix. Who votes for a dead prefix is silent: like `cast_vote`.
        word = spelling.word(int(first[each]))
        if prefix_after(word, known) in live:
            votes[prefix_after(word, size)] = int(counts[each])
    return votes


def grown_tries(spelling: Spelling, electorate: Electorate, rules: Rules, gate: "VotesGate") -> Iterator[Trie]:
    """Yield the trie after each round, until no prefix can grow or no round is left."""
    trie = Trie()

    def votes(ballot: Ballot, words: Words, secret: "Secret") -> Counter[Prefix]:
        mine = replace(rules, ballot=ballot, words=words)
        return prefix_votes(spelling, electorate, trie, mine, secret, ballot.theta)

    while not is_over(trie, rules):
        trie = trie.grown(gate.round(votes))
        yield trie
