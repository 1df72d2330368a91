"""The table of a release, its Parquet file, and the completions that follow from it.

Grams are in canonical order, that is, by length and then by the bytes of their tokens.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from pkgutil import iter_modules
from typing import Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from voxpop.errors import InputError, InternalError, required
from voxpop.files.folder import entries_of
from voxpop.kernels.arrays import Int32s, Int64s
from voxpop.privacy.budget import check_whole
from voxpop.reading.arrow import array_of, joined, lists_of, string_array
from voxpop.reading.keys import Keys, split_texts
from voxpop.reading.one_text import TOKENIZER_NAMES, Cutter, cut_prompt
from voxpop.reading.segmenting import folded

WORD_COLUMN = "word"
"""The column of items that have no key columns."""
SCHEMA = pa.schema([pa.field("gram", pa.list_(pa.string())), pa.field("length", pa.int32())])


def table_of_items(items: Any) -> pa.Table:
    """Return the table of single items, which must be distinct and sorted by their bytes."""
    tokens = joined(items).cast(pa.string())
    sizes = np.ones(len(tokens), np.int32)
    return _table(tokens, sizes)


def table_of_tokens(words: Any, lengths: Sequence[Int32s]) -> pa.Table:
    """Return the table of grams given by their tokens.

    Args:
        words: Pyarrow array of strings, sorted by their bytes and distinct.
        lengths: int32 (grams, length) for each length. Each array contains indices into `words`, in distinct rows in
            increasing order.
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
    """Raise an error if the form of a table could depend on anything except its set of grams."""
    if not table.schema.equals(SCHEMA, check_metadata=True):
        raise InternalError(f"The table of a release must have the schema {SCHEMA}".replace("\n", ", "))
    grams, lengths = joined(table["gram"]), joined(table["length"])
    if grams.null_count or lengths.null_count or grams.flatten().null_count:
        raise InternalError("The table of a release must not contain nulls")
    if not lengths.equals(pc.list_value_length(grams)) or pc.min(lengths).as_py() == 0:
        raise InternalError("`length` must be the number of tokens of each gram, and at least 1")
    if not _strictly_rising(grams, lengths):
        raise InternalError("The grams of a release must be distinct and in canonical order")


def with_items(table: pa.Table, items: Any, keys: Keys | None) -> pa.Table:
    """Return a table of grams that also contains single items, in canonical order.

    Args:
        table: The table of grams.
        items: Pyarrow array of strings, distinct items in any order. The table may contain some of these items.
        keys: The columns of the items. Grams have no such columns.

    Raises:
        ValueError: If an item has a different type from its column. pyarrow's own errors are also of this type.
    """
    single = single_items(table.filter(pc.equal(table["length"], 1)))
    every = pc.unique(pa.concat_arrays([single.cast(pa.large_string()), joined(items).cast(pa.large_string())]))
    every = every.take(pc.array_sort_indices(every.cast(pa.large_binary())))
    plain_table(table_of_items(every), keys)  # checks the values
    longer = table.filter(pc.greater(table["length"], 1))
    return pa.concat_tables([table_of_items(every), longer]).combine_chunks()


def single_items(grams: pa.Table) -> pa.Array:
    """Return the tokens of grams that are all single items."""
    return joined(grams["gram"]).flatten()


def plain_table(table: pa.Table, keys: Keys | None) -> pa.Table:
    """Return the public columns. These are the key columns, `word` for words, or `gram` and `length` for grams."""
    if keys is None:
        return table
    items = joined(table["gram"]).flatten()
    return keys.table(items) if keys.columns else pa.table({WORD_COLUMN: items})


def with_result(table: pa.Table, name: str, numbers: Int64s) -> pa.Table:
    """Return a table with a result column. The column gets a different name if a key column has the same name."""
    return table.append_column(free_name(name, table.column_names), array_of(numbers.astype(np.int64)))


def free_name(name: str, taken: Collection[str]) -> str:
    """Return a name for a result column that no other column has.

    Example:
        >>> free_name("users", ["users", "noisy_users"])
        'noisy_noisy_users'
    """
    while name in taken:
        name = f"noisy_{name}"
    return name


def key_texts(items: Any, columns: int) -> Iterator[tuple[str, ...]]:
    """Return the spelled values of each item, one for each column of its key."""
    parts = [items] if columns == 1 else split_texts(items, columns)
    return zip(*(part.to_pylist() for part in parts), strict=True)


def to_parquet(table: pa.Table, keys: Keys | None = None) -> bytes:
    """Return the bytes of a Parquet file. The bytes depend only on the contents of the table."""
    canonical = pa.Table.from_arrays([joined(column) for column in table.columns], schema=SCHEMA)
    return write_parquet(plain_table(canonical, keys))


def from_parquet(content: bytes, keys: Keys | None = None) -> pa.Table:
    """Return the table that `to_parquet` wrote. Items are read from their key columns.

    Raises:
        ValueError: If the content is not a table of a release. pyarrow's own errors are also of this type.
    """
    whole = read_parquet(content).replace_schema_metadata(None)
    if keys is None:
        # Parquet gives the inner field another name, which the cast undoes.
        return whole.cast(SCHEMA)
    if whole.column_names != (keys.names or [WORD_COLUMN]):
        raise ValueError("other columns than those of the record")
    table = table_of_items(keys.spell([joined(each) for each in whole.columns]))
    ours = plain_table(table, keys)
    if not ours.equals(whole.cast(ours.schema)):
        raise ValueError("values that are not spelled like keys")
    return table


def write_parquet(table: pa.Table) -> bytes:
    """Return the bytes of a Parquet file without dictionaries and statistics."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", use_dictionary=False, write_statistics=False)
    content: bytes = sink.getvalue().to_pybytes()
    return content


LARGEST, EXPANDED = 1 << 32, 1000
"""The size in bytes up to which a table is read regardless of the size of its file, and for larger tables the maximum
number of bytes per byte of the file."""


def read_parquet(content: bytes) -> pa.Table:
    """Return the table of a Parquet file written by voxpop.

    `pq.read_table` would first import its support for folders of Parquet files.

    Raises:
        ValueError: If the table contains nulls, which saved tables never contain.
    """
    file = pq.ParquetFile(pa.BufferReader(content))
    size = sum(file.metadata.row_group(number).total_byte_size for number in range(file.metadata.num_row_groups))
    if file.metadata.num_rows > size or size > max(LARGEST, EXPANDED * len(content)):
        raise ValueError("A few bytes of the file would become more rows than fit into memory.")
    table = file.read(use_threads=False)
    if any(column.null_count for column in table.columns):
        raise ValueError("A saved table contains no nulls.")
    return table


def without_words(
    table: pa.Table, keys: Keys | None, reading: str, words: Iterable[str], keep: Iterable[str], *, mentions: bool
) -> pa.Table:
    """Return the rows of a table of grams that contain no word of a public list.

    Differences in case, width and the normal form of accents are ignored. A word that the tokenizer splits into several
    tokens removes the grams that contain these tokens consecutively. A word also removes its form with 's at the end.

    Args:
        table: The table of grams.
        keys: The columns of the items. Grams have no such columns.
        reading: The tokenizer or the kind of data.
        words: The public words.
        keep: The public words that remain.
        mentions: Whether grams with a token that contains "@" are removed too.

    Raises:
        InputError: If the tokenizer removed every "@". Without "@", no token shows that it was part of a mention.
    """
    if mentions and reading == "words":
        raise InputError(
            "the tokenizer 'words' removes \"@\" from texts, so names after it cannot be distinguished from other "
            "words. Remove such names from the texts before the release, or remove public names with `names` or a list."
        )
    columns = 0 if keys is None else len(keys.columns)
    whole = columns or reading in ("items", "tokens", "sequence")
    # The regular expression of a saved release is not run, because it may be forged.
    cutter = Cutter(reading if reading in TOKENIZER_NAMES else "words")
    given, kept = ([(word,) if whole else cutter(word) for word in each] for each in (words, keep))
    blocked = {tuple(map(folded, tokens)) for tokens in given if tokens}
    blocked -= {tuple(map(folded, tokens)) for tokens in kept}
    sizes = sorted({len(tokens) for tokens in blocked})
    items = joined(table["gram"])
    grams = key_texts(items.flatten(), columns) if columns else map(tuple, items.to_pylist())

    def is_kept(gram: tuple[str, ...]) -> bool:
        tokens = tuple(map(folded, gram))
        forms = {tokens, tuple(POSSESSIVE.sub("", token) for token in tokens)}
        parts = (each[at : at + size] for each in forms for size in sizes for at in range(len(each) - size + 1))
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


def names_of_persons(locales: str | Iterable[str]) -> list[str]:
    """Return the given names and family names that Faker lists for the given locales, such as en_US.

    Raises:
        InputError: If Faker is not installed, or has no names for a locale.
    """
    wanted = [locales] if isinstance(locales, str) else list(locales)
    if not wanted:
        return []
    person = required("faker.providers.person", "a public list of names", "faker")
    known = sorted(each.name for each in iter_modules(person.__path__))
    found: set[str] = set()
    for locale in wanted:
        provider = import_module(f"{person.__name__}.{locale}").Provider if locale in known else person.Provider
        lists = [getattr(provider, name) for name in dir(provider) if NAMES_OF_FAKER.search(name)]
        if all(callable(each) or each in (person.Provider.first_names, person.Provider.last_names) for each in lists):
            raise InputError(
                f"`names` must be locales of Faker with names, such as en_US. Choose from {', '.join(known)}."
            )
        found.update(_strings([each for each in lists if not callable(each)]))
    return sorted(found)


POSSESSIVE = re.compile("['’]s$")
NAMES_OF_FAKER = re.compile("(first|last|middle)_(?!.*format)")
"""The attributes of a locale that contain names. The remaining attributes are titles and patterns."""


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings in nested lists and the keys of dicts. These dicts map names to frequencies."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Iterable):
        for each in value:
            yield from _strings(each)


def _strictly_rising(grams: Any, lengths: Any) -> bool:
    """Check whether each gram sorts before the next one, by length and then by bytes."""
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
    """Return the token at one position of every gram, and an empty string after the end of a gram."""
    padded = pc.list_slice(grams, place, place + 1, return_fixed_size_list=True)
    tokens = padded.flatten()
    if not tokens.null_count:
        return tokens
    nowhere = pa.py_buffer(np.zeros(len(tokens) + 1, np.int32))
    return pc.coalesce(tokens, pa.Array.from_buffers(pa.string(), len(tokens), [None, nowhere, pa.py_buffer(b"")]))


# Completions are continuations of the longest released context, with back-off to shorter contexts.

Gram = tuple[str, ...]


@final
@dataclass(frozen=True, slots=True)
class Completion:
    """One continuation.

    Attributes:
        token: The next token.
        context: The preceding tokens that were looked up, for example the longest suffix of the prompt that a released
            gram extends.
        phrases: number of released grams that begin with context and token. The number counts grams, never users.
        users: noisy number of users of context and token, or None without counts or if the context followed by the
            token is not a released gram.
    """

    token: str
    context: tuple[str, ...]
    phrases: int
    users: int | None = None

    @property
    def gram(self) -> tuple[str, ...]:
        """The context followed by the token."""
        return (*self.context, self.token)


@final
class Completer:
    """The lookup of `Release.complete`, with the tokens that follow each context in descending order of rank.

    Beginnings of the same length are sorted by their noisy number of users if there are counts, and then by their
    number of released grams. Both numbers are in descending order. Ties follow the order of the beginning without its
    first token, and finally the order of the bytes of the tokens.
    """

    def __init__(self, grams: Iterable[Gram], reading: str, users: Mapping[Gram, int] | None = None) -> None:
        """Sort the beginnings of all grams.

        Args:
            grams: The grams of a release.
            reading: The tokenizer or the kind of data, or "" if unknown.
            users: The noisy numbers of users of the grams, if counts are available.
        """
        self._users = users or {}
        phrases = Counter(gram[:size] for gram in grams for size in range(1, len(gram) + 1))
        self._reading, self._tokens = reading, frozenset(beginning[-1] for beginning in phrases)
        self._following: dict[Gram, dict[str, int]] = {}
        ranks: dict[Gram, int] = {}
        for _, level in groupby(sorted(phrases, key=len), len):
            # Strings have the same order as their UTF-8 bytes.
            order = sorted(level, key=lambda each: self._rank(each, phrases[each], ranks.get(each[1:], len(ranks))))
            ranks = {each: rank for rank, each in enumerate(order)}
            for each in order:
                self._following.setdefault(each[:-1], {})[each[-1]] = phrases[each]
        self._longest = max(map(len, self._following), default=0)

    def _rank(self, beginning: Gram, phrases: int, rank: int) -> tuple[bool, int, int, int, Gram]:
        users = self._users.get(beginning)
        return users is None, -(users or 0), -phrases, rank, beginning

    def complete(self, prompt: str | Sequence[str], first: int) -> list[Completion]:
        """Return continuations (see `Release.complete`)."""
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
        """Check whether the last token was released and, if the preceding token was released too, can follow it."""
        *before, last = tokens[-2:]
        after = [self._following.get((token,), {}) for token in before if token in self._tokens]
        return last in self._tokens and all(last in each for each in after)

    def _continued(self, tokens: Sequence[str], begun: str, first: int) -> list[Completion]:
        """Search from the longest context to the shortest. Use the empty context only if the prompt has no whole token.

        Args:
            tokens: Whole tokens.
            begun: The typed beginning of the next token, or "".
            first: The maximum number of continuations.
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
