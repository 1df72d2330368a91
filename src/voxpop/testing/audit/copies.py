"""Many copies of one tiny collection side by side, each with items and users of its own."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

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


def copied_documents(documents: Sequence[Holds], copies: NDArray[np.int64]) -> tuple[NDArray[np.int32], list[int]]:
    """Return the tokens of users with one document each, and how many each has, separators counted.

    Args:
        documents: places in a row of `copies`, one document of one user each.
        copies: int64 (copies, tokens), the tokens of each copy.
    """
    tokens = [np.append(row[list(document)], -1) for row in copies for document in documents]
    flat = np.concatenate([np.empty(0, np.int64), *tokens]).astype(np.int32)
    return flat, [len(document) + 1 for document in documents] * len(copies)


def corpus_of(tokens: NDArray[np.int32], sizes: Sequence[int] | NDArray[np.int64], words: int, kind: str) -> Corpus:
    """Return a corpus whose words are numbers of equal width, so that ids are the numbers themselves.

    Args:
        tokens: int32.
        sizes: positions of each user.
        words: size of the vocabulary.
        kind: of the corpus.
    """
    starts = np.concatenate([[0], np.cumsum(np.asarray(sizes, np.int64))]).astype(np.int64)
    return Corpus(tokens, starts, np.arange(starts.size - 1, dtype=np.uint64), numbered_words(words), kind)


def numbered_words(count: int) -> pa.LargeStringArray:
    """Return the numbers from 0 on as words of equal width, which rise as their bytes do."""
    return pc.utf8_lpad(pa.array(np.arange(count)).cast(pa.large_string()), width=DIGITS, padding="0")


def released_numbers(release: Release, length: int = 1) -> NDArray[np.int64]:
    """Return the released grams of one length as numbers, one row each."""
    chosen = release.grams.filter(pc.equal(release.grams["length"], length))
    flat = pc.list_flatten(chosen["gram"]).cast(pa.int64())
    return np.asarray(flat.to_numpy(), np.int64).reshape(-1, length)
