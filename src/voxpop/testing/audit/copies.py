"""Many copies of one tiny collection side by side, each with items and users of its own."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.arrays import Int32s, Int64s
from voxpop.corpus.corpus import Corpus
from voxpop.release.release import Release

DIGITS = 9
Holds = Sequence[int]


def copied_items(users: Sequence[Holds], width: int, copies: int) -> Corpus:
    """Return copies of users who hold items.

    Args:
        users: which items, from 0 to width - 1, each user of one copy holds.
        width: items of a copy.
        copies: how many.
    """
    pattern = np.array([item for held in users for item in held], np.int64)
    tokens = (np.arange(copies)[:, None] * width + pattern).ravel().astype(np.int32)
    sizes = np.tile([len(held) for held in users], copies) if users else np.empty(0, np.int64)
    return corpus_of(tokens, sizes, copies * width, "items")


def copied_documents(documents: Sequence[Holds], rows: Int64s, words: int, kind: str = "tokens") -> Corpus:
    """Return copies of users with one document each.

    Args:
        documents: places in a row, one document of one user each.
        rows: int64 (copies, places), the word at each place of each copy.
        words: size of the vocabulary.
        kind: of the corpus.
    """
    pattern = np.array([place for document in documents for place in [*document, -1]], np.int64)
    tokens = np.where(pattern < 0, -1, rows[:, np.maximum(pattern, 0)]).ravel().astype(np.int32)
    sizes = np.tile([len(document) + 1 for document in documents], len(rows)) if documents else np.empty(0, np.int64)
    return corpus_of(tokens, sizes, words, kind)


def corpus_of(tokens: Int32s, sizes: Int64s, words: int, kind: str) -> Corpus:
    """Return a corpus whose words are numbers of equal width, so that ids are the numbers themselves.

    Args:
        tokens: int32.
        sizes: positions of each user.
        words: size of the vocabulary.
        kind: of the corpus.
    """
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Corpus(tokens, starts, np.arange(starts.size - 1, dtype=np.uint64), numbered_words(words), kind)


def numbered_words(count: int) -> pa.LargeStringArray:
    """Return the numbers from 0 on as words of equal width, which rise as their bytes do."""
    return pc.utf8_lpad(pa.array(np.arange(count)).cast(pa.large_string()), width=DIGITS, padding="0")


def released_numbers(release: Release, length: int = 1) -> Int64s:
    """Return the released grams of one length as numbers, one row each."""
    chosen = release.grams.filter(pc.equal(release.grams["length"], length))
    flat = pc.list_flatten(chosen["gram"]).cast(pa.int64())
    return np.asarray(flat.to_numpy(), np.int64).reshape(-1, length)
