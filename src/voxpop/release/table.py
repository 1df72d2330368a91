"""The table of a release, its Parquet file, and the completions that follow from it.

Grams are in canonical order: by length, then by the bytes of their tokens.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from voxpop.errors import InputError, InternalError
from voxpop.files.folder import entries_of
from voxpop.kernels.arrays import Int32s
from voxpop.privacy.budget import check_whole
from voxpop.reading.arrow import array_of, joined, lists_of, string_array
from voxpop.reading.keys import Keys, split_texts
from voxpop.reading.one_text import TOKENIZER_NAMES, Cutter, cut_prompt
from voxpop.reading.segmenting import folded

SCHEMA = pa.schema([pa.field("gram", pa.list_(pa.string())), pa.field("length", pa.int32())])


def table_of_items(items: Any) -> pa.Table:
    """Return the table of single items, which must come sorted by their bytes and distinct."""
    tokens = joined(items).cast(pa.string())
    sizes = np.ones(len(tokens), np.int32)
    return _table(tokens, sizes)


def table_of_tokens(words: Any, lengths: Sequence[Int32s]) -> pa.Table:
    """Return the table of grams given by their tokens.

    Args:
        words: pyarrow array of strings, sorted by their bytes and distinct.
        lengths: int32 (grams, length) for each length, indices into `words`, distinct rows in rising order.
    """
    sizes = np.concatenate([np.empty(0, np.int32), *(np.full(len(each), each.shape[1], np.int32) for each in lengths)])
    flat = np.concatenate([np.empty(0, np.int32), *(each.ravel() for each in lengths)])
    tokens = joined(words).cast(pa.string()).take(array_of(flat))
    return _table(tokens, sizes)


def table_of_lists(grams: Sequence[Sequence[str]]) -> pa.Table:
    """Return the table of grams given as lists of tokens, in canonical order."""
    tokens = string_array([token for gram in grams for token in gram]).cast(pa.string())
    sizes = np.array([len(gram) for gram in grams], np.int32)
    return _table(tokens, sizes)


def _table(tokens: pa.Array, sizes: Int32s) -> pa.Table:
    return pa.Table.from_arrays([lists_of(tokens, sizes), array_of(sizes)], schema=SCHEMA)


def check_canonical(table: pa.Table) -> None:
    """Refuse a table whose form could depend on more than the set it holds."""
    if not table.schema.equals(SCHEMA, check_metadata=True):
        raise InternalError(f"The table of a release must have the schema {SCHEMA}".replace("\n", ", "))
    grams, lengths = joined(table["gram"]), joined(table["length"])
    if grams.null_count or lengths.null_count or grams.flatten().null_count:
        raise InternalError("The table of a release must hold no nulls")
    if not lengths.equals(pc.list_value_length(grams)) or pc.min(lengths).as_py() == 0:
        raise InternalError("`length` must be the number of tokens of each gram, and at least 1")
    if not _strictly_rising(grams, lengths):
        raise InternalError("The grams of a release must be distinct and in canonical order")


def with_keys(table: pa.Table, keys: Keys | None) -> pa.Table:
    """Return the table of a release with the columns that its items came from."""
    if keys is None or not keys.columns:
        return table
    columns = keys.table(joined(table["gram"]).flatten())
    ours = table.select([name for name in table.column_names if name not in columns.column_names])
    for name in columns.column_names:
        ours = ours.append_column(columns.schema.field(name), columns[name])
    return ours


def key_texts(items: Any, columns: int) -> Iterator[tuple[str, ...]]:
    """Return the spelled values of each item, one for each column of its key."""
    parts = [items] if columns == 1 else split_texts(items, columns)
    return zip(*(part.to_pylist() for part in parts), strict=True)


def to_parquet(table: pa.Table, keys: Keys | None = None) -> bytes:
    """Return the bytes of a Parquet file that depend only on the table's contents."""
    canonical = pa.Table.from_arrays([joined(column) for column in table.columns], schema=SCHEMA)
    return write_parquet(with_keys(canonical, keys))


def from_parquet(content: bytes, keys: Keys | None = None) -> pa.Table:
    """Return the table that `to_parquet` wrote, of items from their own columns.

    Raises:
        ValueError: where it is not one; pyarrow's own errors are of this kind, too.
    """
    whole = read_parquet(content).replace_schema_metadata(None)
    if keys is not None and keys.columns:
        table = table_of_items(keys.spell([joined(whole[name]) for name in keys.names]))
        if not with_keys(table, keys).equals(whole.cast(with_keys(table, keys).schema)):
            raise ValueError("keys and grams differ")
        return table
    # Parquet names the inner field its own way, which the cast undoes.
    return whole.cast(SCHEMA)


def write_parquet(table: pa.Table) -> bytes:
    """Return the bytes of a Parquet file without dictionaries and statistics."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", use_dictionary=False, write_statistics=False)
    content: bytes = sink.getvalue().to_pybytes()
    return content


LARGEST, EXPANDED = 1 << 32, 1000
"""Bytes of a table that is read however small its file is, and the most bytes of others for each byte of the file."""


def read_parquet(content: bytes) -> pa.Table:
    """Return the table of a Parquet file written by voxpop.

    `pq.read_table` would first import its support for folders of such files.

    Raises:
        ValueError: for nulls, which nothing that we save holds.
    """
    file = pq.ParquetFile(pa.BufferReader(content))
    size = sum(file.metadata.row_group(number).total_byte_size for number in range(file.metadata.num_row_groups))
    if file.metadata.num_rows > size or size > max(LARGEST, EXPANDED * len(content)):
        raise ValueError("a few bytes would become more rows than fit into memory")
    table = file.read(use_threads=False)
    if any(column.null_count for column in table.columns):
        raise ValueError("A saved table holds no nulls.")
    return table


def without_words(
    table: pa.Table, keys: Keys | None, reading: str, words: Iterable[str], *, mentions: bool
) -> pa.Table:
    """Return the rows of a table of grams that contain none of some public words.

    Case, accents in another normal form and widths do not matter. A word that the tokenizer cuts into several tokens
    removes the grams that contain them in a row.

    Args:
        table: Of grams.
        keys: The columns of the items; None for grams.
        reading: How texts became tokens.
        words: The public words.
        mentions: Whether grams with a token that contains "@" are removed too.
    """
    columns = 0 if keys is None else len(keys.columns)
    whole = columns or reading in ("items", "tokens", "sequence")
    # The expression of a saved release is not run, because it may be forged.
    cutter = Cutter(reading if reading in TOKENIZER_NAMES else "words")
    cut = [(word,) if whole else cutter(word) for word in words]
    blocked = {tuple(map(folded, tokens)) for tokens in cut if tokens}
    sizes = sorted({len(tokens) for tokens in blocked})
    items = joined(table["gram"])
    grams = key_texts(items.flatten(), columns) if columns else map(tuple, items.to_pylist())

    def is_kept(gram: tuple[str, ...]) -> bool:
        tokens = tuple(map(folded, gram))
        parts = (tokens[at : at + size] for size in sizes for at in range(len(tokens) - size + 1))
        return not (mentions and any("@" in token for token in gram)) and not any(part in blocked for part in parts)

    return table.filter(pa.array([is_kept(gram) for gram in grams], pa.bool_()))


def public_words(given: Any) -> list[str]:
    """Return the words of a list or of a UTF-8 file with one word per line.

    Raises:
        InputError: If they are not strings.
        SourceError: If the file cannot be read.
    """
    words = entries_of(given)
    if not all(isinstance(word, str) for word in words):
        raise InputError(
            "the words must be strings. Give a list of them, or the path of a file with one word per line."
        )
    return [word.strip() for word in words if word.strip()]


def _strictly_rising(grams: Any, lengths: Any) -> bool:
    """Check whether each gram comes before the next one: shorter, or equally long and of smaller bytes."""
    if len(grams) < 2:
        return True
    before, after = lengths[:-1], lengths[1:]
    rises, ties = pc.less(before, after), pc.equal(before, after)
    for place in range(pc.max(lengths).as_py()):
        tokens = _tokens_at(grams, place)
        rises = pc.or_(rises, pc.and_(ties, pc.less(tokens[:-1], tokens[1:])))
        ties = pc.and_(ties, pc.equal(tokens[:-1], tokens[1:]))
    return bool(pc.all(rises).as_py())


def _tokens_at(grams: Any, place: int) -> Any:
    """Return the token at one place of every gram; an empty string behind a gram's end."""
    padded = pc.list_slice(grams, place, place + 1, return_fixed_size_list=True)
    tokens = padded.flatten()
    if not tokens.null_count:
        return tokens
    nowhere = pa.py_buffer(np.zeros(len(tokens) + 1, np.int32))
    return pc.coalesce(tokens, pa.Array.from_buffers(pa.string(), len(tokens), [None, nowhere, pa.py_buffer(b"")]))


# Completions: continuations by the longest released context, with back-off to shorter ones.

Gram = tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class Completion:
    """One way to go on.

    Attributes:
        token: the next token.
        context: the tokens before it that were looked up: the longest end of the prompt that a released gram extends.
        phrases: number of released grams that begin with context and token. It counts grams, never users.
        users: noisy number of users of context and token; None without counts, or if they are no released gram.
    """

    token: str
    context: tuple[str, ...]
    phrases: int
    users: int | None = None

    @property
    def gram(self) -> tuple[str, ...]:
        """Context and token together."""
        return (*self.context, self.token)


@final
class Completer:
    """The lookup behind `Release.complete`: the tokens that follow each context, the best first.

    Of the beginnings of one length, those of most users come first if there are counts, then those of most released
    grams. Ties are settled by the beginning without its first token, and in the end by the order of bytes.
    """

    def __init__(self, grams: Iterable[Gram], reading: str, users: Mapping[Gram, int] | None = None) -> None:
        """Sort the beginnings of all grams.

        Args:
            grams: of a release.
            reading: how texts became tokens, or "" where that is not known.
            users: noisy numbers of users of the grams, if there are some.
        """
        self._users = users or {}
        phrases = Counter(gram[:size] for gram in grams for size in range(1, len(gram) + 1))
        self._reading, self._tokens = reading, frozenset(beginning[-1] for beginning in phrases)
        self._following: dict[Gram, dict[str, int]] = {}
        ranks: dict[Gram, int] = {}
        for _, level in groupby(sorted(phrases, key=len), len):
            # Text compares as its UTF-8 bytes do.
            order = sorted(level, key=lambda each: self._rank(each, phrases[each], ranks.get(each[1:], len(ranks))))
            ranks = {each: rank for rank, each in enumerate(order)}
            for each in order:
                self._following.setdefault(each[:-1], {})[each[-1]] = phrases[each]
        self._longest = max(map(len, self._following), default=0)

    def _rank(self, beginning: Gram, phrases: int, rank: int) -> tuple[bool, int, int, int, Gram]:
        users = self._users.get(beginning)
        return users is None, -(users or 0), -phrases, rank, beginning

    def complete(self, prompt: str | Sequence[str], first: int) -> list[Completion]:
        """Return continuations; see `Release.complete`."""
        check_whole("first", first, 2**31, "the number of continuations that are returned")
        if not self._following:
            return []
        tokens, is_open = cut_prompt(prompt, self._reading, self._tokens)
        if not is_open:
            return self._continued(tokens, "", first)
        if self._stands(tokens):
            return self._continued(tokens, "", first) or self._continued(tokens[:-1], tokens[-1], first)
        return self._continued(tokens[:-1], tokens[-1], first) or self._continued(tokens, "", first)

    def _stands(self, tokens: Sequence[str]) -> bool:
        """Check whether the last token was released, and behind the one before it if that was released."""
        *before, last = tokens[-2:]
        after = [self._following.get((token,), {}) for token in before if token in self._tokens]
        return last in self._tokens and all(last in each for each in after)

    def _continued(self, tokens: Sequence[str], begun: str, first: int) -> list[Completion]:
        """Go from the longest context to the shortest; to none only where the prompt holds no whole token.

        Args:
            tokens: whole tokens.
            begun: the beginning of the next token; "" where none was typed.
            first: most continuations.
        """
        found: dict[str, Completion] = {}
        shortest = 0 if begun or not tokens else 1
        for size in range(min(len(tokens), self._longest), shortest - 1, -1):
            context = tuple(tokens[len(tokens) - size :])
            for token, phrases in self._following.get(context, {}).items():
                if token not in found and token.startswith(begun):
                    found[token] = Completion(token, context, phrases, self._users.get((*context, token)))
                    if len(found) == first:
                        return list(found.values())
        return list(found.values())
