"""Texts of any size with stock phrases that many users share, from a generator that streams to disk."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
import pyarrow as pa

from voxpop.engine.local.corpus import LocalCorpus
from voxpop.kernels.arrays import Int32s, Int64s

WORDS = 1_000_000
PHRASES = 200_000
SHORTEST, LONGEST = 2, 9
PHRASE_SHARE = 0.15
PIECES_IN_DOCUMENT = 40
TOKENS_AT_ONCE = 1 << 23


@dataclass(frozen=True, slots=True)
class PhraseBook:
    """Stock phrases, in which phrase p is `tokens[starts[p]:starts[p + 1]]`, with words of any popularity."""

    tokens: Int32s
    starts: Int64s

    @staticmethod
    def drawn(words: int, phrases: int, rng: np.random.Generator) -> "PhraseBook":
        """Draw phrases of 2 to 9 words."""
        starts = np.concatenate([[0], np.cumsum(rng.integers(SHORTEST, LONGEST + 1, phrases))])
        return PhraseBook(popular(words, int(starts[-1]), rng), starts)


def write_texts(
    folder: str | Path, users: int, tokens: int, words: int = WORDS, phrases: int = PHRASES, seed: int = 0
) -> None:
    """Write texts as a saved corpus, a few thousand users at a time.

    Words and stock phrases are drawn with a popularity of one over their rank (Zipf). The sizes of users are
    log-normal, with the mean that `tokens` implies, and documents have about 40 words or phrases.

    Args:
        folder: The folder of the corpus, which `voxpop.load_corpus` maps into memory.
        users: The number of users.
        tokens: The approximate total number of tokens.
        words: The number of words in the data.
        phrases: The number of stock phrases.
        seed: The seed that determines the texts.

    Example:
        >>> import tempfile
        >>> import voxpop as vp
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_texts(folder + "/texts", users=100, tokens=5000, words=500, phrases=50)
        ...     vp.load_corpus(folder + "/texts")
        Corpus(kind='tokens', private)
    """
    rng = np.random.default_rng(seed)
    book = PhraseBook.drawn(words, phrases, rng)
    vocabulary = pa.array([f"word{number:09}" for number in range(words)], pa.large_string())
    sizes = [np.zeros(1, np.int64)]
    with TemporaryFile() as file:
        for ids, own in _blocks(book, users, tokens, words, rng):
            file.write(ids.data)
            sizes.append(own)
        file.flush()
        user_start = np.cumsum(np.concatenate(sizes))
        keys = np.arange(users, dtype=np.uint64)
        mapped = np.memmap(file, np.int32, "r")
        LocalCorpus(mapped, user_start, keys, vocabulary, "tokens").save(folder)


def popular(kinds: int, count: int, rng: np.random.Generator) -> Int32s:
    """Draw numbers below `kinds`, each with a probability of about one over its rank."""
    ranks: Int32s = np.minimum(np.exp(rng.random(count) * np.log(kinds)), kinds).astype(np.int32)
    return ranks - 1


def _blocks(
    book: PhraseBook, users: int, tokens: int, words: int, rng: np.random.Generator
) -> Iterator[tuple[Int32s, Int64s]]:
    """Yield the positions of some users, and the number of positions of each user."""
    mean = PHRASE_SHARE * np.diff(book.starts).mean() + 1 - PHRASE_SHARE + 1 / PIECES_IN_DOCUMENT
    spread = rng.lognormal(0.0, 1.0, users)
    pieces = np.maximum(1, spread / spread.mean() * tokens / users / mean).astype(np.int64)
    at_once = max(1, int(TOKENS_AT_ONCE / (tokens / users)))
    for first in range(0, users, at_once):
        yield _some_users(book, pieces[first : first + at_once], words, rng)


def _some_users(book: PhraseBook, pieces: Int64s, words: int, rng: np.random.Generator) -> tuple[Int32s, Int64s]:
    """Draw the pieces of users (words, phrases or ends of documents), and write them as tokens."""
    ends = np.cumsum(pieces)
    total = int(ends[-1])
    kinds = rng.random(total)
    is_phrase = kinds < PHRASE_SHARE
    is_end = kinds > 1 - 1 / PIECES_IN_DOCUMENT
    is_end[ends - 1] = True
    is_phrase &= ~is_end
    phrase = popular(book.starts.size - 1, int(is_phrase.sum()), rng)
    lengths = np.ones(total, np.int64)
    lengths[is_phrase] = np.diff(book.starts)[phrase]
    places = np.cumsum(lengths) - lengths
    laid = np.empty(int(lengths.sum()), np.int32)
    single = ~is_phrase & ~is_end
    laid[places[single]] = popular(words, int(single.sum()), rng)
    laid[places[is_end]] = -1
    sizes = lengths[is_phrase]
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    laid[np.repeat(places[is_phrase], sizes) + within] = book.tokens[np.repeat(book.starts[phrase], sizes) + within]
    user_ends = (places + lengths)[ends - 1]
    return laid, np.diff(np.concatenate([[0], user_ends]))
