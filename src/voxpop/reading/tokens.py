"""From checked columns to tokens: texts cut into words, lists unchanged, every token as a number."""

from collections.abc import Iterable
from dataclasses import dataclass
from queue import SimpleQueue

import numpy as np
import pyarrow as pa

from voxpop.errors import ColumnError, SourceError
from voxpop.kernels.arrays import Int32s, Int64s
from voxpop.kernels.group import lay_documents
from voxpop.kernels.threads import THREADS, in_order
from voxpop.reading.arrow import int_codes, numbers_of, plain
from voxpop.reading.columns import is_string, quieten, text_column, valid_text
from voxpop.reading.tokenizers import Tokenise, each_sentence, without_markup
from voxpop.reading.users import Stretch
from voxpop.reading.words import WordInterner

Texts = Iterable[tuple[str, pa.Array]]


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


Encoded = tuple[list[Piece], list[pa.Array]]


def encode_by_text(stretch: Stretch, as_lists: Tokenise | None, column: str, *, sentences: bool, html: bool) -> Encoded:
    """Cut texts into words, or into sentences and those into words; a text's sentences stay one user's."""
    starts: list[np.ndarray] = []
    rows: Texts = stretch
    if html:
        rows = ((where, without_markup(text_column(texts, where))) for where, texts in rows)
    if sentences:
        rows = each_sentence(((where, text_column(texts, where)) for where, texts in rows), starts)
    pieces, words = _encode_words(rows, stretch) if as_lists is None else _encode_texts(rows, stretch, as_lists, column)
    if sentences:
        pieces = [
            Piece(p.ids, None if p.ends is None else p.ends[own], p.interner)
            for p, own in zip(pieces, starts, strict=True)
        ]
    return pieces, words


def _encode_words(rows: Texts, stretch: Stretch) -> Encoded:
    """Cut texts into words by the kernel, a thread and an interner each."""
    interners = [WordInterner() for _ in range(THREADS)]
    idle: SimpleQueue[int] = SimpleQueue()
    for number in range(THREADS):
        idle.put(number)

    def cut(row: tuple[str, pa.Array]) -> Piece:
        where, texts = row
        number = idle.get()
        try:
            ids, ends = interners[number].cut(text_column(texts, where))
            return Piece(ids.copy(), ends, number)
        finally:
            idle.put(number)

    pieces, held = [], 0
    for piece in in_order(cut, rows):
        pieces.append(piece)
        held += piece.size
        stretch.hold(held + sum(interner.size for interner in interners))
    return pieces, [interner.vocabulary() for interner in interners]


def _encode_texts(rows: Texts, stretch: Stretch, tokenise: Tokenise, column: str) -> Encoded:
    """Cut texts into lists by a tokeniser, then encode the lists."""
    lists = ((where, tokenise(text_column(texts, where).fill_null(""))) for where, texts in rows)
    return encode_lists(lists, stretch, column, "text")


def encode_lists(rows: Texts, stretch: Stretch, column: str, kind: str) -> Encoded:
    """Encode lists of strings or numbers, or one item per row."""

    def encode(row: tuple[str, pa.Array]) -> tuple[pa.DictionaryArray, np.ndarray | None]:
        where, values = row
        flat, starts = _flat(values, column, kind)
        return _dictionary(flat, where, column), starts

    encoded, held = [], 0
    for codes, starts in in_order(encode, rows):
        encoded.append((codes, starts))
        held += codes.nbytes + (0 if starts is None else starts.nbytes)
        # Twice: codes are rewritten when the dictionaries become one.
        stretch.hold(2 * held)
    if not encoded:
        return [], []
    whole = pa.chunked_array([codes for codes, _ in encoded]).unify_dictionaries()
    words = whole.chunk(0).dictionary
    words = words.cast(pa.large_string())
    pieces = [_piece(chunk, starts, kind) for chunk, (_, starts) in zip(whole.chunks, encoded, strict=True)]
    return pieces, [words]


def _flat(values: pa.Array, column: str, kind: str) -> tuple[pa.Array, np.ndarray | None]:
    """Return all elements of lists and where each list starts, or single items and None."""
    test = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if any(each(values.type) for each in test):
        large = values.cast(pa.large_list(values.type.value_type))
        lengths = numbers_of(large.value_lengths())
        # (lists + 1,), where each list's elements begin.
        return large.flatten(), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    if kind == "items" or pa.types.is_null(values.type):
        return values, None
    raise ColumnError(
        f'{kind}= needs a column of lists, got "{column}" of type {values.type}; for strings use text=, for one item '
        "per row items=, for one event per row sequence= with order=, its time."
    )


def _dictionary(flat: pa.Array, where: str, column: str) -> pa.DictionaryArray:
    """Return elements as codes into distinct strings."""
    if pa.types.is_null(flat.type):
        flat = flat.cast(pa.large_string())
    kind = flat.type.value_type if pa.types.is_dictionary(flat.type) else flat.type
    if not pa.types.is_integer(kind) and not is_string(kind):
        raise ColumnError(f'the column "{column}" must hold strings or whole numbers, got {kind}.')
    if not pa.types.is_dictionary(flat.type):
        flat = plain(flat.dictionary_encode())
    words = flat.dictionary
    words = words.cast(pa.large_string()) if pa.types.is_integer(kind) else valid_text(words, where, column)
    try:
        return pa.DictionaryArray.from_arrays(flat.indices.cast(pa.int32()), words)
    except (pa.ArrowIndexError, pa.ArrowInvalid) as error:  # of a damaged file: codes beyond its dictionary
        quieten(error)
        raise SourceError(f'{where}: the column "{column}" is damaged; write the file again.') from None


def _piece(chunk: pa.DictionaryArray, starts: np.ndarray | None, kind: str) -> Piece:
    """Lay out one batch: documents with their -1, or items row by row."""
    codes = int_codes(chunk)
    if kind == "items":
        return Piece(codes, None, 0)
    if starts is None:
        starts = np.arange(codes.size + 1, dtype=np.int64)
    ids = np.empty(codes.size + starts.size - 1, np.int32)
    ends = np.zeros(starts.size, np.int64)
    lay_documents(codes, starts, ids, ends)
    return Piece(ids[: ends[-1]], ends, 0)
