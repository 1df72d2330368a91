"""The protocol: prefixes, the trie, the public rules, the votes of users, and the growth of the trie.

The end mark of a word counts as a symbol, because it distinguishes a word from a prefix of a longer word.

The votes of all users of a corpus are drawn together with array operations (`tests/naive/protocol.py` contains a
reference implementation). A release on one machine and a node of a federation use the same code. Words are numbered in
the order of their symbols, so words with a common prefix are adjacent and form a run. A run of words with the same
first n symbols begins at a word that shares fewer than n leading symbols with the preceding word.
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, final

import numpy as np
import pyarrow as pa

from voxpop.errors import InputError
from voxpop.kernels.arrays import Bools, Bytes, Int32s, Int64s, Uint64s
from voxpop.kernels.tries import hold_all, keep_most_frequent, measure_strings
from voxpop.mechanisms.heavy_hitters.exclude import NO_WORDS, PublicList, excluded_tokens
from voxpop.privacy.planned import GateCall, run_passes
from voxpop.privacy.trie.accountant import Words
from voxpop.privacy.trie.ballot import Ballot
from voxpop.reading.arrow import int64_array, text_buffers

if TYPE_CHECKING:
    from voxpop.engine.local.corpus import LocalCorpus
    from voxpop.privacy.gate.votes import VotesGate
    from voxpop.privacy.secret import Secret

Symbol = Hashable
Word = tuple[Symbol, ...]
"""A word is a tuple of symbols. The symbols are characters, bytes, or the tokens of a phrase."""


@final
@dataclass(frozen=True, slots=True)
class Prefix:
    """The start of a word, or a whole word.

    Attributes:
        symbols: The symbols without the end mark.
        ended: Whether the prefix includes the end mark, so that it is a whole word.
    """

    symbols: Word
    ended: bool = False


ROOT = Prefix(())


def prefix_after(word: Word, size: int) -> Prefix:
    """Return the first symbols of a word, counting the end mark as a symbol.

    Args:
        word: The word, which must not be empty.
        size: The number of symbols; see `Rules.size`.

    Example:
        >>> prefix_after(tuple("sun"), 2)
        Prefix(symbols=('s', 'u'), ended=False)
        >>> prefix_after(tuple("sun"), 4)
        Prefix(symbols=('s', 'u', 'n'), ended=True)
    """
    # The end mark follows the last symbol.
    return Prefix(word[:size], ended=size > len(word))


@final
@dataclass(frozen=True, slots=True)
class Trie:
    """The prefixes that received enough votes, grouped by round.

    Attributes:
        levels: The prefixes that each completed round added. Before the first round, only the root can grow.
    """

    levels: tuple[frozenset[Prefix], ...] = ()

    @property
    def rounds(self) -> int:
        """The number of completed rounds."""
        return len(self.levels)

    @property
    def live(self) -> frozenset[Prefix]:
        """The prefixes that can still grow, which are the prefixes of the last round without an end mark."""
        if not self.levels:
            return frozenset((ROOT,))
        # Prefixes of earlier rounds are absent, because a prefix that did not grow in its round never grows again.
        return frozenset(prefix for prefix in self.levels[-1] if not prefix.ended)

    @property
    def words(self) -> frozenset[Word]:
        """The complete words, which have grown up to their end mark."""
        return frozenset(prefix.symbols for level in self.levels for prefix in level if prefix.ended)

    def grown(self, prefixes: frozenset[Prefix]) -> "Trie":
        """Return the trie with one more level."""
        return Trie((*self.levels, prefixes))


_WHOLE = 1 << 128


@final
@dataclass(frozen=True, slots=True)
class Rules:
    """The public numbers that are fixed before the first round.

    Attributes:
        ballot: The distribution of a user's votes in every round, and the threshold.
        rounds: The maximum number of rounds.
        unit: The number of symbols that each round adds to a prefix.
        max_length: The maximum number of symbols of a word, including its end mark.
        alphabet: With "characters" and "bytes", every token is a word. With "tokens", every document is a word.
        words: With "one", a user votes for their most frequent word in every round. With "many", one of the user's
            words is drawn in each round.
        first: The number of symbols in the first round, or 0 if it equals `unit`.
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
        """The maximum number of symbols in a word, without its end mark."""
        return self.max_length - 1

    @property
    def bars(self) -> tuple[int, ...]:
        """The bounds on a user's 128 uniform bits that determine the number of votes.

        A user with a draw below the first bound casts at least one vote, a user with a draw below the second bound
        casts at least two votes, and so on. Each bound is the probability multiplied by 2^128 and rounded down.
        """
        # P(X >= x) 2^128 is rounded down, so no user votes more often than the accounting assumes.
        return tuple(int(Fraction(tail) * _WHOLE) for tail in self.ballot.tails)

    def size(self, rounds: int) -> int:
        """Return the length, in symbols, of a prefix that has grown in this number of rounds."""
        # The length is first + (rounds - 1) unit, or 0 before the first round.
        return (self.first or self.unit) + (rounds - 1) * self.unit if rounds else 0


def is_valid(vote: object, trie: Trie, rules: Rules) -> bool:
    """Return whether a client could have cast this vote, given the trie.

    Args:
        vote: The received value, which can have any type.
        trie: The state before the round.
        rules: The public rules.
    """
    if not isinstance(vote, Prefix) or not isinstance(vote.symbols, tuple):
        return False
    known, after, size = rules.size(trie.rounds), rules.size(trie.rounds + 1), len(vote.symbols)
    if not 0 < size <= rules.longest or Prefix(vote.symbols[:known]) not in trie.live:
        return False
    # A complete word can be shorter than the prefixes of the round. An incomplete word has exactly their length.
    return known <= size < after if vote.ended else size == after


def grow(trie: Trie, votes: Mapping[Prefix, int], rules: Rules) -> Trie:
    """Return the trie extended by the prefixes with at least theta votes.

    Args:
        trie: The state before the round.
        votes: The number of votes for each prefix, for example the sum over several nodes.
        rules: The public rules.
    """
    return trie.grown(rules.ballot.survivors(votes))


def is_over(trie: Trie, rules: Rules) -> bool:
    """Return whether the run is over, because no prefix can grow or no round remains."""
    # The result depends only on the public trie and the rules, so stopping early reveals nothing else.
    return trie.rounds >= rules.rounds or not trie.live


@final
@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Spelling:
    """The distinct words of a corpus, and the words of each user. All fields are private.

    Attributes:
        sizes: int32 (words), the number of symbols of each word without the end mark.
        shared: int32 (words), the number of leading symbols that each word shares with the preceding word.
        said: int32 (positions), the word at each position, or a negative number if there is no word that fits.
        user_start: int64 (users + 1), the first position of each user.
        vocabulary: The tokens.
        in_bytes: Whether the symbols of a token are its bytes.
        rows: int32 (words, longest), the tokens of each word, padded with -1, or None if each word is a single token.
        excluded: uint8 (words), 1 for words on the public list, which get no votes, or None if there is no list.
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
        """Return 1 for words that can receive votes, and 0 for words that are empty, too long or on the list."""
        # These other words are removed before the user's word is chosen, so users do not waste votes on them.
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
        InputError: The alphabet is "tokens" and the data are items, which have no order.
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
    """Return a corpus of the same users that contains only the word for which each user votes.

    This corpus gives the same votes as the whole corpus, in every round and for every secret.

    Args:
        corpus: The data.
        rules: The public rules, with one word per user.
        exclude: The public words that no user votes for.
    """
    spelling = spell(corpus, rules, exclude)
    electorate = Electorate.of(spelling, corpus.user_key, rules)
    ids, starts = electorate.held, electorate.held_start
    if spelling.rows is not None:
        # int32 (users with a word, longest + 1), the tokens of each user's document, padded with -1.
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
    # Shape (users + 1,). Each entry is the number of documents that end before the user's first token.
    user_start = np.searchsorted(ends, corpus.user_start).astype(np.int64)
    sizes = ends - starts
    fitting = np.flatnonzero((sizes > 0) & (sizes <= rules.longest))
    # int32 (documents, longest), the tokens of each document, padded with -1, the value that also ends each document in
    # the corpus.
    rows = corpus.tokens[np.minimum(starts[fitting, None] + np.arange(rules.longest), ends[fitting, None])]
    # lexsort compares the last key first. Therefore rows are sorted by their first token, then by the second, and so
    # on. The padding of -1 sorts before all tokens.
    order = np.lexsort(rows.T[::-1])
    rows = rows[order]
    # For each row, count the leading tokens that are equal to those of the preceding row.
    alike = np.logical_and.accumulate(rows[1:] == rows[:-1], axis=1)
    fresh, shared = np.ones(len(rows), np.bool_), np.zeros(len(rows), np.int32)
    fresh[1:], shared[1:] = ~alike.all(axis=1), (alike & (rows[1:] >= 0)).sum(axis=1)
    said = np.full(ends.size, -1, np.int32)
    # Shape (documents,), a number that is the same for documents with equal content, or -1 if the document does not
    # fit.
    said[fitting[order]] = np.cumsum(fresh) - 1
    lengths = (rows[fresh] >= 0).sum(axis=1, dtype=np.int32)
    return Spelling(lengths, shared[fresh], said, user_start, corpus.vocabulary, rows=rows[fresh])


def gram_of(word: Word, alphabet: str) -> list[str]:
    """Return a found word as a gram, which is a list of tokens.

    Args:
        word: The symbols. In a federation, these are the symbols as received.
        alphabet: The kind of symbols; see `HeavyHitters`.
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
    """The private state of all users.

    Attributes:
        keys: uint64 (users), the key of each user.
        twins: uint64 (users), the number of earlier users with the same key.
        held: int32, the words of each user in order, with one entry per occurrence. If each user votes for only one
            word, the array contains only that word.
        held_start: int64 (users + 1), the first entry of each user in `held`.
    """

    keys: Uint64s
    twins: Uint64s
    held: Int32s
    held_start: Int64s

    @staticmethod
    def of(spelling: Spelling, keys: Uint64s, rules: Rules) -> "Electorate":
        """Return the users of a corpus, with their words that fit the rules.

        Args:
            spelling: The words of the corpus.
            keys: The keys of the users.
            rules: The public rules.
        """
        held, held_start = np.empty(spelling.said.size, np.int32), np.empty(keys.size + 1, np.int64)
        # List the words of each user in order of their symbols. The array `held` is large enough for every position.
        count = hold_all(spelling.said, spelling.user_start, spelling.fits(rules), held, held_start)
        if rules.words == "one":
            count = keep_most_frequent(held, held_start)
        return Electorate(keys, twins_of(keys), held[:count], held_start)

    def sampled(self, rounds: int, rules: Rules, secret: "Secret") -> tuple[Int64s, Int64s]:
        """Return the positions of the users who are sampled in the next round, and the number of votes of each user.

        Args:
            rounds: The number of completed rounds.
            rules: The public rules.
            secret: The secret of the run.
        """
        # uint64 (users, 2), with new draws in every round.
        draws = secret.draws(f"sample/round {rounds + 1}", self.keys, self.twins)
        votes, some = np.zeros(len(draws), np.int64), np.arange(len(draws))
        for bar in rules.bars:
            # The bounds decrease, so most users can be rejected after the first comparison.
            some = some[_below(draws[some], bar)]
            votes[some] += 1
        sampled = np.flatnonzero(votes)
        return sampled, votes[sampled]

    def choices(self, users: Int64s, rounds: int, rules: Rules, secret: "Secret") -> tuple[Bools, Int32s]:
        """Return which of the users have a word, and the word that each of them picks in the round.

        Args:
            users: The positions of the users, in increasing order.
            rounds: The number of completed rounds.
            rules: The public rules.
            secret: The secret of the run.
        """
        begin = self.held_start[users]
        # Shape (users,), the number of entries of each user, with one entry per occurrence of a word.
        total = self.held_start[users + 1] - begin
        having = total > 0
        users, begin, total = users[having], begin[having], total[having]
        if rules.words == "many":
            draws = secret.draws(f"word/round {rounds + 1}", self.keys[users], self.twins[users])[:, 0]
            # Each entry is drawn with equal probability, so a word's probability is proportional to its number of
            # occurrences.
            begin = begin + _share_of(draws, total)
        return having, self.held[begin]


def _below(draws: Uint64s, bar: int) -> Bools:
    high, low = np.uint64(bar >> 64), np.uint64(bar & (2**64 - 1))
    # Compare 128 bits as two halves of 64 bits.
    below: Bools = (draws[:, 0] < high) | ((draws[:, 0] == high) & (draws[:, 1] < low))
    return below


def twins_of(keys: Uint64s) -> Uint64s:
    """For each key, return the number of earlier entries with the same key."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if keys.size else np.empty(0, np.bool_)
    places = np.arange(keys.size)
    twins = np.empty(keys.size, np.uint64)
    # The position of a key within its run of equal keys is its own position minus the position of the run's first key.
    twins[order] = (places - np.maximum.accumulate(np.where(first, places, 0))).astype(np.uint64)
    return twins


def _share_of(draws: Uint64s, total: Int64s) -> Int64s:
    """Return draw * total / 2^64, rounded down, for totals below 2^32."""
    whole = total.astype(np.uint64)
    # Long multiplication of 32-bit halves does not overflow, because both factors are below 2^32.
    low = ((draws & _LOW) * whole) >> _HALF
    return (((draws >> _HALF) * whole + low) >> _HALF).astype(np.int64)


def prefix_votes(
    spelling: Spelling, electorate: Electorate, trie: Trie, rules: Rules, secret: "Secret", least: int = 1
) -> Counter[Prefix]:
    """Return the number of votes for each prefix in the next round. All votes of a user are for the same prefix.

    Args:
        spelling: The words of the users.
        electorate: The users.
        trie: The state before the round.
        rules: The public rules.
        secret: The secret, which determines the draws of votes and of words.
        least: The minimum number of votes. Prefixes with fewer votes are omitted.
    """
    known, size, live = rules.size(trie.rounds), rules.size(trie.rounds + 1), trie.live
    users, cast = electorate.sampled(trie.rounds, rules, secret)
    having, words = electorate.choices(users, trie.rounds, rules, secret)
    # Words are sorted, so words with the same prefix form a run. Each run begins at a word that shares fewer than
    # `size` leading symbols with the preceding word.
    first = np.flatnonzero(spelling.shared < size)
    run = np.searchsorted(first, words, side="right") - 1
    counts = np.bincount(run, cast[having], minlength=first.size)
    votes: Counter[Prefix] = Counter()
    for each in np.flatnonzero(counts >= least).tolist():
        # Every word of a run has the same prefix. Votes for prefixes that cannot grow are dropped, as in `cast_vote`.
        word = spelling.word(int(first[each]))
        if prefix_after(word, known) in live:
            votes[prefix_after(word, size)] = int(counts[each])
    return votes


def grown_trie(spelling: Spelling, electorate: Electorate, rules: Rules, gate: "VotesGate") -> Trie:
    """Run rounds until no prefix can grow or no round remains."""

    def schedule(trie: Trie) -> "GateCall[VotesGate, Trie] | None":
        def votes(ballot: Ballot, words: Words, secret: "Secret") -> Counter[Prefix]:
            mine = replace(rules, ballot=ballot, words=words)
            return prefix_votes(spelling, electorate, trie, mine, secret, ballot.theta)

        return None if is_over(trie, rules) else GateCall(lambda gate: gate.round(votes), trie.grown)

    return run_passes(Trie(), schedule, gate, "rounds")
