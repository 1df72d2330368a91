"""From rows to a corpus: users grouped, tokens renamed to their rank in the vocabulary."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from voxpop.arrays import Int32s, Int64s
from voxpop.corpus.corpus import Corpus
from voxpop.corpus.reading.vocabulary import merge_words
from voxpop.kernels.group import (
    gather_documents,
    gather_items,
    is_rising,
    mark_used,
    rename,
    sizes_by_user,
)
from voxpop.threads import in_order

if TYPE_CHECKING:
    from voxpop.corpus.reading.users import Users


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """The documents of one batch.

    Attributes:
        ids: int32, provisional ids of tokens, -1 after each document (items: one id per row, -1 where null).
        ends: int64 (documents + 1), where each document's ids end; None for items, one per row.
        interner: which list of words the ids refer to.
    """

    ids: Int32s
    ends: Int64s | None
    interner: int

    @property
    def size(self) -> int:
        """Bytes held."""
        return self.ids.nbytes + (0 if self.ends is None else self.ends.nbytes)


def build_corpus(pieces: list[Piece], words: list[pa.Array], users: "Users", kind: str) -> Corpus:
    """Merge the lists of words, rename every id, and lay the documents out user by user.

    Args:
        pieces: the batches, in the order of the rows.
        words: the provisional vocabularies that the pieces' ids refer to.
        users: the user of every row, and every user's key.
        kind: what was read.

    Returns:
        The corpus.
    """
    # names: by list of words, int32 from provisional id to rank in the sorted vocabulary.
    vocabulary, names = _merge(pieces, words)
    tokens = np.empty(sum(piece.ids.size for piece in pieces), np.int32)
    # (pieces + 1,), where each piece's ids go.
    places = np.cumsum([0, *(piece.ids.size for piece in pieces)])

    def finish(number: int) -> None:
        piece = pieces[number]
        rename(piece.ids, names[piece.interner], tokens[places[number] : places[number + 1]])

    for _ in in_order(finish, range(len(pieces))):
        pass
    codes, keys = users
    if pieces and pieces[0].ends is None:
        grouped, user_start = _group_items(tokens, codes, keys.size)
    else:
        grouped, user_start = _group_documents(tokens, _all_ends(pieces, places), codes, keys.size)
    return Corpus(grouped, user_start, keys, vocabulary, kind)


def _merge(pieces: list[Piece], words: list[pa.Array]) -> tuple[pa.LargeStringArray, list[Int32s]]:
    """Return the sorted vocabulary of all words that occur, and each list's new names."""
    used = [np.zeros(len(each), np.uint8) for each in words]
    for piece in pieces:
        mark_used(piece.ids, used[piece.interner])
    return merge_words(words, [mask.view(np.bool_) for mask in used])


def _all_ends(pieces: list[Piece], places: Int64s) -> Int64s:
    """Return where every document ends, over all pieces."""
    # From places within a piece to places in all of them.
    ends = [piece.ends[1:] + place for piece, place in zip(pieces, places, strict=False) if piece.ends is not None]
    return np.concatenate([np.zeros(1, np.int64), *ends])


def _group_documents(tokens: Int32s, ends: Int64s, codes: Int32s, users: int) -> tuple[Int32s, Int64s]:
    user_start = np.zeros(users + 1, np.int64)
    sizes_by_user(codes, ends, user_start)
    if is_rising(codes):
        return tokens, user_start
    grouped = np.empty_like(tokens)
    gather_documents(tokens, codes, ends, user_start, grouped)
    return grouped, user_start


def _group_items(items: Int32s, codes: Int32s, users: int) -> tuple[Int32s, Int64s]:
    # A row without an item is nobody's.
    held = items >= 0
    if not held.all():
        items, codes = items[held], codes[held]
    user_start = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=users))]).astype(np.int64)
    if is_rising(codes):
        return items, user_start
    grouped = np.empty_like(items)
    gather_items(items, codes, user_start, grouped)
    return grouped, user_start
