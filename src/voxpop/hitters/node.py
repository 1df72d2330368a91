"""A node: holds the words of many users, tosses their coins, and tells the server sums of votes and nothing else."""

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from voxpop.hitters.alphabet import Spelling, spell
from voxpop.hitters.electorate import Electorate
from voxpop.hitters.prefix import Prefix, Word, prefix_after
from voxpop.hitters.rules import Rules
from voxpop.hitters.trie import Trie

if TYPE_CHECKING:
    from voxpop.corpus import Corpus
    from voxpop.privacy.secret import Secret


def node_votes(corpus: "Corpus", alphabet: str, trie: Trie, rules: Rules, secret: "Secret") -> Counter[Prefix]:
    """Return the votes of a node's users in the next round, by prefix: those of each user go to one.

    Args:
        corpus: what the node's users hold; it stays here.
        alphabet: see `HeavyHitters`.
        trie: as it is before the round.
        rules: the public rules, with Bernoulli sampling.
        secret: from which coins and choices of words follow.
    """
    spelling = spell(corpus, alphabet, rules)
    electorate = Electorate.of(spelling, corpus.user_key, rules)
    users, cast = electorate.sampled(trie.rounds, rules, secret)
    having, words = electorate.choices(users, trie.rounds, rules, secret)
    votes: Counter[Prefix] = Counter()
    distinct, place = np.unique(words, return_inverse=True)
    # Votes by word first, so that each word is spelled once.
    for number, count in zip(distinct, np.bincount(place, cast[having], minlength=distinct.size), strict=True):
        word = _symbols(int(number), spelling, corpus.vocabulary, alphabet)
        # As `cast_vote` does for one user: one prefix, or silence.
        if prefix_after(word, rules.size(trie.rounds)) in trie.live:
            votes[prefix_after(word, rules.size(trie.rounds + 1))] += int(count)
    return votes


def gram_of(word: Word, alphabet: str) -> list[str]:
    """Return a found word as a gram.

    Args:
        word: its symbols, as they came over the wire.
        alphabet: see `HeavyHitters`.
    """
    if alphabet == "tokens":
        return [str(token) for token in word]
    if alphabet == "bytes":
        return [bytes(int(str(byte)) & 0xFF for byte in word).decode(errors="backslashreplace")]
    return ["".join(str(letter) for letter in word)]


def canonical(grams: list[list[str]]) -> list[list[str]]:
    """Return distinct grams by length and then by the bytes of their tokens."""
    distinct = {tuple(gram) for gram in grams}
    return [list(gram) for gram in sorted(distinct, key=lambda each: (len(each), [token.encode() for token in each]))]


def _symbols(number: int, spelling: Spelling, vocabulary: pa.LargeStringArray, alphabet: str) -> Word:
    if spelling.rows is not None:
        tokens = spelling.rows[number, : spelling.sizes[number]]
        return tuple(vocabulary[int(token)].as_py() for token in tokens)
    word = vocabulary[number].as_py()
    return tuple(word.encode()) if alphabet == "bytes" else tuple(word)
