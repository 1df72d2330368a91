"""Collections that contain many copies of a tiny one, each with separate items and users."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from voxpop.engine.local.corpus import LocalCorpus
from voxpop.kernels.arrays import Int32s, Int64s
from voxpop.release.release import Release

_ROUNDED_DIGITS = 9
Holds = Sequence[int]
EngineOf = Callable[[LocalCorpus], Any]
"""A function that returns an engine, which reads and weighs a collection (`voxpop.engine.contract.Engine`)."""


def in_memory(corpus: LocalCorpus) -> LocalCorpus:
    """Return the collection unchanged."""
    return corpus


def copied_items(users: Sequence[Holds], width: int, copies: int) -> LocalCorpus:
    """Return copies of users with items.

    Args:
        users: The items of each user of one copy, from 0 to width - 1.
        width: The number of items of a copy.
        copies: The number of copies.
    """
    return copied_documents(users, np.arange(copies * width).reshape(copies, width), copies * width, "items")


def copied_documents(documents: Sequence[Holds], rows: Int64s, words: int, kind: str = "tokens") -> LocalCorpus:
    """Return copies of users with one document each.

    Args:
        documents: The positions in a row of `rows` that form each document. Each user has one document.
        rows: int64 (copies, positions), the word at each position of each copy.
        words: The size of the vocabulary.
        kind: The kind of the corpus. Items have no end mark.
    """
    end = [] if kind == "items" else [-1]
    pattern = np.array([place for document in documents for place in [*document, *end]], np.int64)
    tokens = np.where(pattern < 0, -1, rows[:, np.maximum(pattern, 0)]).ravel().astype(np.int32)
    sizes = np.array([len(document) + len(end) for document in documents] * len(rows), np.int64)
    return corpus_of_tokens(tokens, sizes, words, kind)


def corpus_of_tokens(tokens: Int32s, sizes: Int64s, words: int, kind: str) -> LocalCorpus:
    """Return a corpus with numbers of equal width as its words, so that the ids are the numbers themselves.

    Args:
        tokens: int32, the tokens of all users, concatenated.
        sizes: The number of positions of each user.
        words: The size of the vocabulary.
        kind: The kind of the corpus.
    """
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return LocalCorpus(tokens, starts, np.arange(starts.size - 1, dtype=np.uint64), numbered_words(words), kind)


def numbered_words(count: int) -> pa.LargeStringArray:
    """Return the numbers from 0 as words of equal width, so that the order of their bytes is the numeric order."""
    return pc.utf8_lpad(pa.array(np.arange(count)).cast(pa.large_string()), width=_ROUNDED_DIGITS, padding="0")


def released_numbers(release: Release, length: int = 1) -> Int64s:
    """Return the released grams of one length as numbers, one row per gram."""
    chosen = release.grams.filter(pc.equal(release.grams["length"], length))
    flat = pc.list_flatten(chosen["gram"]).cast(pa.int64())
    return np.asarray(flat.to_numpy(), np.int64).reshape(-1, length)
